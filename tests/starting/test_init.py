"""A repository gets a suite: all of it, at once, and nothing of its own is touched."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest

from phasegate.cli import main
from phasegate.cli.init.kit import WORKFLOW, kit
from tests.edges.quick_pytest import QuickPytest


def tree(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_an_empty_folder_gets_the_suite_this_project_tests_itself(tmp_path: Path) -> None:
    assert main(["init", str(tmp_path)]) == 0
    for name in ("perf_tests/test_prefill.py", "fixtures/workloads/prompt-length.yaml", "fixtures/policy.yaml"):
        assert (tmp_path / name).read_text(encoding="utf-8") == Path(name).read_text(encoding="utf-8")
    for name in ("baselines/README.md", WORKFLOW, "fixtures/load/concurrency.yaml"):
        assert (tmp_path / name).is_file()


def test_a_second_call_writes_nothing_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["init", str(tmp_path)])
    before = tree(tmp_path)
    capsys.readouterr()
    assert main(["init", str(tmp_path)]) == 0
    assert "nothing was written" in capsys.readouterr().out
    assert tree(tmp_path) == before


@pytest.mark.parametrize("name", ["fixtures/policy.yaml", "perf_tests/test_decode.py", WORKFLOW])
def test_a_file_of_the_users_is_never_overwritten(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = tmp_path / name
    mine.parent.mkdir(parents=True, exist_ok=True)
    mine.write_text("mine", encoding="utf-8")
    before = tree(tmp_path)
    assert main(["init", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert name in said
    assert "nothing was written" in said
    assert said.count("\n") == 1
    assert tree(tmp_path) == before
    assert mine.read_text(encoding="utf-8") == "mine"


def test_a_file_where_a_folder_has_to_be_is_in_the_way(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "fixtures").write_text("mine", encoding="utf-8")
    assert main(["init", str(tmp_path)]) == 2
    assert "overwritten" in capsys.readouterr().err
    assert tree(tmp_path) == {"fixtures"}


def test_without_a_workflow_github_is_left_alone(tmp_path: Path) -> None:
    assert main(["init", "--no-workflow", str(tmp_path)]) == 0
    assert not (tmp_path / ".github").exists()
    assert (tmp_path / "perf_tests").is_dir()


def test_a_folder_that_does_not_exist_is_made(tmp_path: Path) -> None:
    assert main(["init", str(tmp_path / "new" / "repository")]) == 0
    assert (tmp_path / "new" / "repository" / "perf_tests" / "test_decode.py").is_file()


def test_a_file_instead_of_a_folder_is_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert main(["init", str(tmp_path / "file")]) == 2
    assert "is a file" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "import os\n", 'pytest_plugins = ["pytester"]\n'])
def test_a_repository_with_a_conftest_keeps_it(tmp_path: Path, text: str) -> None:
    """Nearly every repository has one (A17); an installed plugin needs none of its own."""
    (tmp_path / "conftest.py").write_text(text, encoding="utf-8")
    assert main(["init", str(tmp_path)]) == 0
    assert (tmp_path / "conftest.py").read_text(encoding="utf-8") == text
    assert (tmp_path / "perf_tests" / "test_decode.py").is_file()


def test_a_write_that_fails_in_the_middle_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The fifth file cannot be written: the four before it, and their folders, are gone again."""
    real, calls = tempfile.mkstemp, []

    def full(**where: Any) -> tuple[int, str]:
        calls.append(where)
        if len(calls) == 5:
            raise OSError(28, "No space left on device")
        return real(**where)

    monkeypatch.setattr(tempfile, "mkstemp", full)
    assert main(["init", str(tmp_path)]) == 2
    assert "No space left on device" in capsys.readouterr().err
    assert len(calls) == 5
    assert tree(tmp_path) == set()


def test_every_file_of_the_suite_is_in_the_kit() -> None:
    """A file added to the suite and forgotten here would be missing in every new repository."""
    have = {str(one.path) for one in kit()}
    for folder, pattern in (("perf_tests", "*.py"), ("fixtures/workloads", "*"), ("fixtures/load", "*")):
        for path in Path(folder).rglob(pattern):
            assert path.is_dir() or str(path) in have


def test_a_new_repository_without_pytest_settings_finds_its_files(tmp_path: Path, quick: QuickPytest) -> None:
    """Called in the repository or from elsewhere, pytest's root is then perf_tests, and the files stand beside it."""
    main(["init", str(tmp_path)])
    words = ["-q", "--perf-engine", "simulator", "--perf-engine-config", "speed=10", "--perf-requests", "2"]
    for folder in (tmp_path, tmp_path.parent):
        done = quick.run(str(tmp_path / "perf_tests" / "test_rows.py"), *words, "-p", "no:cacheprovider", cwd=folder)
        assert done.status == 0, done.output
        assert "prompt-length" in done.output
