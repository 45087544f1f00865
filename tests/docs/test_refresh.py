"""Pages with measured output: marks are read, blocks replaced, and every mark has a block with something in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.blocks import ROOT, documents
from tests.docs.refresh import Run, kept, replaced, runs

PAGE = "a\n<!-- run: echo x | from ^b | to ^c -->\n```text\nold\nolder\n```\nz\n"


def test_a_marked_block_gets_the_output_and_the_rest_stays() -> None:
    (run,) = runs(PAGE)
    assert run == Run(1, "echo x", "^b", "^c")
    lines = kept("a\nb1\nm\nc1\nd\n", run)
    assert lines == ["b1", "m", "c1"]
    assert replaced(PAGE, {run.line: lines}) == PAGE.replace("old\nolder", "b1\nm\nc1")


def test_a_pattern_that_matches_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match="no line"):
        kept("a\n", Run(0, "x", "^b", None))


@pytest.mark.parametrize("path", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_every_marked_block_holds_output(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    for run in runs("\n".join(lines)):
        assert lines[run.line + 1].startswith("```"), f"{path}:{run.line + 2}"
        assert not lines[run.line + 3].startswith("```"), f"{path}:{run.line + 3}: not measured yet"


@pytest.mark.parametrize("path", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_every_marked_block_shows_its_command(path: Path) -> None:
    """A comment is seen by nobody who reads the page."""
    lines = path.read_text(encoding="utf-8").splitlines()
    for run in runs("\n".join(lines)):
        assert lines[run.line + 1] == "```console", f"{path}:{run.line + 2}"
        assert lines[run.line + 2] == f"$ {run.command}", f"{path}:{run.line + 3}"
