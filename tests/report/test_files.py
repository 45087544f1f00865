"""Reports as files: refused before anything is measured, written whole or not at all."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from phasegate.core.atomic_write import UnwritableError
from phasegate.report import files
from phasegate.report.files import ReportPathError, check_path, write_report, write_text
from tests.report.documents import document


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("r.pdf", "the suffix says the format; use one of .html, .md, .json, .csv"),
        ("r", "the suffix says the format"),
        ("file/r.html", "is a file; name a file in a folder"),
        (".", "the suffix says the format"),
    ],
)
def test_a_report_that_could_not_be_written_is_refused_in_one_line(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ReportPathError) as caught:
        check_path(tmp_path / name, "--perf-report")
    assert said in str(caught.value)
    assert str(caught.value).startswith(f"--perf-report {tmp_path / name}")
    assert "\n" not in str(caught.value)


def test_a_folder_of_that_name_is_refused(tmp_path: Path) -> None:
    (tmp_path / "r.html").mkdir()
    with pytest.raises(ReportPathError, match="is a folder"):
        check_path(tmp_path / "r.html", "-o")


def _denied(*_: object, **__: object) -> None:
    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def test_a_folder_without_leave_to_write_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may write everywhere, so the refusal is planted."""
    monkeypatch.setattr("tempfile.mkstemp", _denied)
    with pytest.raises(UnwritableError, match="cannot be written to"):
        check_path(tmp_path / "r.md", "-o")


def test_a_missing_folder_is_made_when_the_report_is_written(tmp_path: Path) -> None:
    """Found in the first hour of use (A17); the check itself makes nothing."""
    path = tmp_path / "out" / "today" / "r.json"
    check_path(path, "-o")
    assert not path.parent.exists()
    write_report(document(), path)
    assert path.is_file()


def test_a_missing_folder_that_may_not_be_made_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.mkstemp", _denied)
    with pytest.raises(UnwritableError, match="cannot be written to"):
        check_path(tmp_path / "out" / "r.md", "-o")


@pytest.mark.parametrize("suffix", sorted(files.FORMATS))
def test_every_format_is_written(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"r{suffix.upper() if suffix == '.md' else suffix}"
    check_path(path, "-o")
    write_report(document(), path)
    text = path.read_text(encoding="utf-8")
    assert "PASS" in text
    assert suffix != ".json" or json.loads(text)["headline"]["verdict"] == "PASS"
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


def test_a_full_disk_leaves_the_old_report_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "r.md"
    path.write_text("old", encoding="utf-8")

    def full(_: Path, __: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(ReportPathError, match="No space left on device"):
        write_text(path, "new")
    assert path.read_text(encoding="utf-8") == "old"
    assert [one.name for one in tmp_path.iterdir()] == ["r.md"]
