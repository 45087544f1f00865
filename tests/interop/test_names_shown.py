"""Names that files bring along, on a terminal: no escape sequence acts, no markup is read, none fills the screen."""

from __future__ import annotations

from pathlib import Path

import pytest

from phasegate.cli import main
from phasegate.store.other_tools.reading import read_side
from tests.interop import foreign


def test_names_of_files_move_no_cursor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "t.csv"
    table.write_text("session,workload,metric,value\n1,\x1b[31mred[/bold]\x07,ttft,0.1\n", encoding="utf-8")
    document = {**foreign.vllm(1), "backend": "\x1b]0;title\x07new\nline[bold]", "model_id": "\x1b[2Jm"}
    result = foreign.write(tmp_path / "r.json", document)
    other = foreign.write(tmp_path / "other.json", {**document, "model_id": "\x1b[8mn"})
    for words in ([table, table], [result, result], [result, other], [result, table]):
        for flags in ([], ["--json"]):
            main(["compare", *map(str, words), *flags])
            found = capsys.readouterr()
            assert not any(mark in found.out + found.err for mark in "\x1b\x07")


def test_a_long_word_is_shortened_and_told_apart(tmp_path: Path) -> None:
    for index, end in enumerate("ab"):
        foreign.write(tmp_path / f"{end}.json", {**foreign.vllm(index), "backend": "x" * 5000 + end})
    names = {one.workload for session in read_side(tmp_path) for one in session.measurements}
    assert len(names) == 2
    assert all(len(name) < 120 for name in names)
