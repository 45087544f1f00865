"""A pipeline's folder of results holds something of the user's under the same names (C040)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from phasegate.cli.ci.results import FILES, MARK, make_room, sign
from phasegate.cli.ci.settings import PipelineError
from phasegate.store import session_text
from tests.edges.quick_pytest import Done, QuickPytest
from tests.sessions import measurement, session
from tests.situations.planted import planted

A_SESSION = session(1, measurement("chat", "tpot", [0.02]))


def gate(quick: QuickPytest, folder: Path, out: str = ".") -> Done:
    with planted() as server:
        return quick.phasegate(
            "ci", "gate", cwd=folder, PERF_OUT=out, PERF_BASE_URL=server.base_url, PERF_MODEL="m",
            PERF_ARGS="-q --perf-requests 3 -k nothing_at_all",
        )  # fmt: skip


def finished_run(out: Path) -> None:
    """A run that wrote its results and ended."""
    make_room(out)
    for name in FILES:
        (out / name).write_text(f"{name} of a run\n")
    (out / "sessions").mkdir()
    (out / "sessions" / f"{A_SESSION.session_id}.json").write_text(session_text(A_SESSION))
    sign(out)


def test_what_is_the_users_is_kept_and_the_run_says_so_before_it_measures(
    quick: QuickPytest, one_workload: Callable[..., Path]
) -> None:
    """C040: a folder sessions/ and a report.json that no run wrote."""
    folder = one_workload()
    (folder / "sessions").mkdir()
    (folder / "sessions" / "views.py").write_text("def view(): ...\n")
    (folder / "report.json").write_text('{"mine": 1}')
    done = gate(quick, folder)
    assert done.status == 2
    (line,) = done.output.strip().splitlines()
    assert "report.json was not written by an earlier run" in line
    assert "PERF_OUT" in line
    (folder / "report.json").unlink()
    done = gate(quick, folder)
    assert done.status == 2
    assert "sessions/views.py was not written by an earlier run" in done.output
    assert (folder / "sessions" / "views.py").read_text() == "def view(): ...\n"
    assert not (folder / MARK).exists()


def test_a_run_takes_the_place_of_the_one_before(quick: QuickPytest, one_workload: Callable[..., Path]) -> None:
    """Without anything of the user's the folder is used again and again, also where it is the repository itself."""
    folder = one_workload()
    for _ in range(2):
        done = gate(quick, folder)
        assert done.status == 5, done.output
        assert (folder / "comment.md").exists()
        assert (folder / "perf_tests").is_dir()


def test_what_a_run_wrote_is_removed(tmp_path: Path) -> None:
    finished_run(tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    make_room(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [MARK, "notes.txt"]


def test_a_file_of_the_users_in_place_of_one_that_a_run_wrote_is_kept(tmp_path: Path) -> None:
    """Names alone are no mark: the content has to be what the run wrote."""
    finished_run(tmp_path)
    (tmp_path / "report.json").write_text('{"mine": 1}')
    with pytest.raises(PipelineError, match=r"report\.json was not written"):
        make_room(tmp_path)
    assert all((tmp_path / name).exists() for name in (*FILES, "sessions"))


@pytest.mark.parametrize("what", ["link to a file", "link to a folder", "folder", "session of another", "nested"])
def test_other_things_under_these_names_are_kept(tmp_path: Path, what: str) -> None:
    out, mine = tmp_path / "out", tmp_path / "mine"
    finished_run(out)
    mine.mkdir()
    (mine / "a.json").write_text("{}")
    place = out / "sessions" / "mine.json"
    if what == "link to a file":
        place = out / "summary.md"
        place.unlink()
        place.symlink_to(mine / "a.json")
    elif what == "link to a folder":
        place = out / "sessions"
        next(place.iterdir()).unlink()
        place.rmdir()
        place.symlink_to(mine)
    elif what == "folder":
        place = out / "junit.xml"
        place.unlink()
        place.mkdir()
    elif what == "nested":
        place = out / "sessions" / "old"
        place.mkdir()
        (place / "keep.txt").write_text("mine")
    else:
        place.write_text(session_text(A_SESSION))
    with pytest.raises(PipelineError, match="move it away, or name another folder"):
        make_room(out)
    assert place.exists()
    assert (mine / "a.json").read_text() == "{}"
    assert (out / "report.html").exists()


def test_what_a_killed_run_left_is_its_own(tmp_path: Path) -> None:
    """It never came to sign what it wrote: its names were claimed, and its sessions tell by themselves."""
    make_room(tmp_path)
    (tmp_path / "report.html").write_text("half")
    sessions = tmp_path / "sessions"
    sessions.mkdir()
    (sessions / f"{A_SESSION.session_id}.json").write_text(session_text(A_SESSION))
    (sessions / ".x.json-abc.part").write_text("{")
    make_room(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [MARK]
    sessions.mkdir()
    (sessions / "models.json").write_text("{}")
    with pytest.raises(PipelineError, match=r"models\.json"):
        make_room(tmp_path)


@pytest.mark.parametrize("text", ["", "[]", '{"wrote": 3}', '{"wrote": {"report.json": 7}}', "\x00"])
def test_a_mark_that_says_nothing_gives_nothing_away(tmp_path: Path, text: str) -> None:
    (tmp_path / MARK).write_text(text)
    (tmp_path / "summary.md").write_text("mine")
    with pytest.raises(PipelineError):
        make_room(tmp_path)
    assert (tmp_path / "summary.md").read_text() == "mine"


def test_the_mark_names_what_was_written_with_its_digest(tmp_path: Path) -> None:
    finished_run(tmp_path)
    wrote = json.loads((tmp_path / MARK).read_text())["wrote"]
    assert set(wrote) == {*FILES, f"sessions/{A_SESSION.session_id}.json"}
    assert all(len(digest) == 64 for digest in wrote.values())


def test_results_that_cannot_be_written_at_the_end_are_no_regression(
    quick: QuickPytest, one_workload: Callable[..., Path], tmp_path: Path
) -> None:
    """Status 1 means a regression: a summary that cannot be written has another, and one line."""
    folder = one_workload()
    with planted() as server:
        done = quick.phasegate(
            "ci", "gate", cwd=folder, PERF_BASE_URL=server.base_url, PERF_MODEL="m", PERF_ARGS="-q -k nothing_at_all",
            GITHUB_STEP_SUMMARY=str(tmp_path),
        )  # fmt: skip
    assert done.status == 15
    assert "Traceback" not in done.output
    assert "cannot be written: Is a directory" in done.output
