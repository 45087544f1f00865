"""Workflows as files: pinned, with the least permissions, and without a user's text in a script."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.pipeline.workflows import ACTION, ALL, GATE, STARTER, UPDATE, load, step, steps_of

FILES = (*ALL, ACTION)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_action_is_pinned_to_a_commit_and_says_its_version(path: Path) -> None:
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if re.match(r"\s*-? *uses:", line)]
    for line in lines:
        assert re.search(r"uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line), line


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_no_expression_stands_in_a_script(path: Path) -> None:
    """Text of an input or a pull request would be run by the shell there; it reaches a script by its environment."""
    for one in steps_of(path):
        assert "${{" not in one.script, one.name


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name)
def test_a_workflow_begins_with_reading_only(path: Path) -> None:
    assert load(path)["permissions"] == {"contents": "read"}


def test_the_written_workflow_runs_the_same_scripts_as_the_reusable_one() -> None:
    for name in ("Gate", "Comment"):
        assert step(STARTER, name).script == step(GATE, name).script
    assert step(ACTION, "Gate").script == step(GATE, "Gate").script


def test_the_action_takes_what_the_workflow_takes() -> None:
    action, workflow = load(ACTION)["inputs"], load(GATE)[True]["workflow_call"]["inputs"]
    only_jobs = {"runner", "timeout-minutes", "python-version", "comment"}
    assert set(action) - {"out"} == set(workflow) - only_jobs


def test_a_key_is_a_secret_and_never_an_input() -> None:
    document = load(GATE)[True]["workflow_call"]
    assert "api-key" in document["secrets"]
    assert not [name for name in (*document["inputs"], *load(ACTION)["inputs"]) if "key" in name]


def test_only_the_update_may_write_contents() -> None:
    writing = [path.name for path in ALL if "contents: write" in path.read_text(encoding="utf-8")]
    assert writing == [UPDATE.name]
