"""The net under the commands: what goes wrong is one line and a status that is not 1; output ends no program."""

from __future__ import annotations

import errno
import io
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from phasegate import cli
from phasegate.cli import compare as cli_compare
from phasegate.core.atomic_write import UnwritableError, check_writable
from phasegate.core.faults import guarded
from phasegate.core.output import Outlet
from phasegate.engines.base import EngineError
from phasegate.engines.generated.store import cache_folder
from phasegate.engines.temporary import new_log
from phasegate.load.files import allow_open_files


def raising(error: BaseException) -> Callable[[], int]:
    def work() -> int:
        raise error

    return work


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ZeroDivisionError("division by zero"), "unexpected: ZeroDivisionError: division by zero"),
        (KeyError("x"), "unexpected: KeyError: 'x'"),
        (RuntimeError("two\nlines"), "unexpected: RuntimeError: two lines"),
        (RecursionError(), "unexpected: RecursionError (phasegate/"),
        (MemoryError(), "there is not enough memory"),
        (EngineError("it does not start; do this"), "it does not start; do this"),
        (OSError(errno.ENOSPC, "No space left on device", "/x/r.json"), "/x/r.json: the disk is full"),
        (OSError(errno.EMFILE, "Too many open files"), "too many open files (this process may have "),
        (PermissionError(errno.EACCES, "Permission denied", "/x"), "/x: Permission denied; change the permissions"),
        (ModuleNotFoundError("No module named 'psutil'", name="psutil"), "the package psutil is missing"),
    ],
    ids=lambda one: type(one).__name__ if isinstance(one, BaseException) else "",
)
def test_an_error_is_one_line_and_a_status_of_its_own(
    error: BaseException, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """C004, C025, C043 and what nobody thought of."""
    assert guarded("phasegate x", raising(error)) == 5
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith(f"phasegate x: {said}")


def test_the_traceback_is_there_for_who_asks(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line says how to ask; keys that an error quotes are hidden."""
    monkeypatch.setenv("OPENAI_API_KEY", "plain-words-very-secret")
    error = ValueError("Bearer sk-very-secret-key-123 was refused, as was plain-words-very-secret")
    guarded("phasegate x", raising(error))
    said = capsys.readouterr().err
    assert "PHASEGATE_TRACEBACK=1" in said
    assert "very-secret" not in said
    monkeypatch.setenv("PHASEGATE_TRACEBACK", "1")
    assert guarded("phasegate x", raising(ValueError("y"))) == 5
    assert "Traceback (most recent call last)" in capsys.readouterr().err


def test_ctrl_c_is_130_and_wrong_usage_stays_2(capsys: pytest.CaptureFixture[str]) -> None:
    """As shells count it, and as argparse ends."""
    assert guarded("phasegate x", raising(KeyboardInterrupt())) == 130
    assert capsys.readouterr().err == "stopped\n"
    with pytest.raises(SystemExit) as caught:
        guarded("phasegate x", raising(SystemExit(2)))
    assert caught.value.code == 2


@pytest.mark.parametrize(("command", "status"), [(["compare", "a", "b"], 5), (["ci", "gate"], 15)])
def test_every_command_has_the_net(
    command: list[str], status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The pipeline ends with pytest's statuses, in which 5 means that no test was found."""
    monkeypatch.setattr(cli_compare, "run", lambda _: 1 // 0)
    monkeypatch.setattr("phasegate.cli.ci.command.run", lambda _: 1 // 0)
    assert cli.main(command) == status
    assert capsys.readouterr().err.startswith(f"phasegate {command[0]}: unexpected: ZeroDivisionError")


@contextmanager
def stream(where: str, encoding: str = "utf-8") -> Iterator[io.TextIOWrapper]:
    """A text stream onto a pipe that nobody reads, or onto a path."""
    if where == "a closed pipe":
        reading, writing = os.pipe()
        os.close(reading)
    else:
        writing = os.open(where, os.O_WRONLY | os.O_CREAT)
    with os.fdopen(writing, "w", encoding=encoding) as opened:
        yield opened


def test_a_reader_that_went_away_is_no_error() -> None:
    """As behind head: what follows is dropped, and closing the stream does not fail either."""
    with stream("a closed pipe") as opened:
        outlet = Outlet(opened)
        for _ in range(3):
            print("x" * 100_000, file=outlet)
            outlet.flush()
        assert outlet.problem is None


def test_a_full_disk_is_told() -> None:
    """The program goes on, and knows that nobody will read what it said."""
    with stream("/dev/full") as opened:
        outlet = Outlet(opened)
        print("x" * 100_000, file=outlet)
        outlet.flush()
        assert outlet.problem == "No space left on device"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_what_has_no_code_is_escaped(encoding: str, tmp_path: Path) -> None:
    """Also half of a surrogate pair, which not even UTF-8 can write."""
    with stream(str(tmp_path / "out"), encoding) as opened:
        outlet = Outlet(opened)
        print("café … \udce9", file=outlet)
        outlet.flush()
        assert outlet.problem is None
    written = (tmp_path / "out").read_text(encoding)
    assert (
        written
        == {
            "ascii": "caf\\xe9 \\u2026 \\udce9\n",
            "latin-1": "café \\u2026 \\udce9\n",
            "utf-8": "café … \\udce9\n",
        }[encoding]
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("redirection", "status"), [(">&-", 0), ("2>&-", 0), (">&- 2>&- <&-", 0), (">/dev/full", 5), ("| head -1", 0)]
)
@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_a_command_goes_on_without_its_output(redirection: str, status: int, encoding: str) -> None:
    """Closed, full or not read to the end: the status stays the command's own, or is 5; never a traceback."""
    line = f"set -o pipefail; {sys.executable} -m phasegate roofline --list-hardware {redirection}"
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    done = subprocess.run(["bash", "-c", line], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    assert len(done.stderr.splitlines()) <= 1
    assert "Traceback" not in done.stderr


def test_a_folder_is_tried_by_writing(tmp_path: Path) -> None:
    """Nothing is left behind, and missing folders are not made."""
    check_writable(tmp_path / "a" / "b", "--out")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("x")
    with pytest.raises(UnwritableError, match=r"^--out .*file/b cannot be written to: Not a directory"):
        check_writable(tmp_path / "file" / "b", "--out")


def test_a_folder_without_room_is_found_before_anything_is_measured(tmp_path: Path) -> None:
    """C043 without root: a limit on the size of files stands for the full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, hard))
    try:
        with pytest.raises(UnwritableError, match=r"^PERF_OUT .* may not grow so large \(ulimit -f\)"):
            check_writable(tmp_path, "PERF_OUT")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(tmp_path.iterdir()) == []


def test_a_pipeline_without_room_for_its_results_is_15(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """C043 without root: the disk refuses what is written to it. Nothing is measured, and nothing is left half."""

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    monkeypatch.setenv("PERF_OUT", str(tmp_path / "out"))
    assert cli.main(["ci", "gate"]) == 15
    said = capsys.readouterr().err
    assert "the disk is full" in said
    assert len(said.splitlines()) == 1
    assert not list((tmp_path / "out").iterdir())


def test_a_user_without_a_home_is_told_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """C025 without root."""

    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for name in ("PHASEGATE_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", nowhere)
    with pytest.raises(EngineError, match="set PHASEGATE_CACHE_DIR to a folder that can be written"):
        cache_folder()
    monkeypatch.setenv("PHASEGATE_CACHE_DIR", "/x")
    assert cache_folder() == Path("/x")


def test_no_temporary_folder_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine needs one for its log."""
    monkeypatch.setattr("tempfile.tempdir", "/no/such/folder")
    with pytest.raises(EngineError, match="set TMPDIR to a folder that can be written"):
        new_log("engine")


@pytest.mark.parametrize(
    ("hard", "connections", "fits"), [(64, 1, True), (64, 60, False), (16, 1, False), (9, 1, False)]
)
def test_too_few_open_files_are_told_with_the_remedy(
    hard: int, connections: int, fits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A small limit is used as far as it goes."""
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (hard, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: asked.append(limits))
    monkeypatch.setattr("phasegate.load.files._open_now", lambda: 12)
    if fits:
        allow_open_files(connections)
        return
    with pytest.raises(EngineError, match=f"may have {hard}; raise the hard limit"):
        allow_open_files(connections)
    assert not asked
