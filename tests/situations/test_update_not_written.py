"""An update of baselines that cannot be written ends with 15, whatever kept it from being written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.edges.quick_pytest import Done, QuickPytest
from tests.situations.planted import planted

FULL = """\
import errno, os
import pytest

real = os.open

def full(path, flags, *rest, **more):
    if flags & os.O_CREAT and {part!r} in str(path):
        raise OSError(errno.ENOSPC, "No space left on device")
    return real(path, flags, *rest, **more)

@pytest.fixture(autouse=True, scope="session")
def _full_disk():
    os.open = full
"""


def updated(quick: QuickPytest, folder: Path, *more: str | Path) -> Done:
    with planted() as server:
        return quick.run(
            "perf_tests/test_regression.py", "-q", "--perf-base-url", server.base_url, "--perf-model", "m",
            "--update-baselines", "--perf-sessions", "1", "--perf-requests", "3", *more, cwd=folder,
        )  # fmt: skip


@pytest.mark.parametrize(
    "what",
    [
        "root is a file",
        pytest.param("folder is a file", marks=pytest.mark.slow),
        pytest.param("below a file", marks=pytest.mark.slow),
    ],
)
def test_a_file_where_the_folder_belongs(
    quick: QuickPytest, one_workload: Callable[..., Path], tmp_path: Path, what: str
) -> None:
    folder, root = one_workload(), tmp_path / "b"
    options: tuple[str | Path, ...] = ("--perf-baselines", root)
    if what == "root is a file":
        root.write_text("mine")
    elif what == "below a file":
        root.write_text("mine")
        options = ("--perf-baselines", root / "deeper")
    else:
        assert updated(quick, folder, *options).status == 0
        (stored,) = root.iterdir()
        stored.rename(tmp_path / "away")
        stored.write_text("mine")
    done = updated(quick, folder, *options)
    assert done.status == 15, done.output
    # A root that is no folder is found before anything is measured.
    said = "baselines not updated: " if what == "folder is a file" else "cannot be written to"
    assert said in done.output
    assert "Traceback" not in done.output


@pytest.mark.parametrize("part", [pytest.param("/b/", marks=pytest.mark.slow), "/saved/"])
def test_a_full_disk(quick: QuickPytest, one_workload: Callable[..., Path], tmp_path: Path, part: str) -> None:
    folder = one_workload()
    (folder / "conftest.py").write_text(FULL.format(part=part))
    done = updated(quick, folder, "--perf-baselines", tmp_path / "b", "--perf-save-sessions", tmp_path / "saved")
    assert done.status == 15, done.output
    assert "No space left on device" in done.output
    assert "Traceback" not in done.output


@pytest.mark.slow
def test_the_folder_for_saved_sessions_is_a_file(
    quick: QuickPytest, one_workload: Callable[..., Path], tmp_path: Path
) -> None:
    folder = one_workload()
    (tmp_path / "saved").write_text("mine")
    done = updated(quick, folder, "--perf-baselines", tmp_path / "b", "--perf-save-sessions", tmp_path / "saved")
    assert done.status == 15, done.output
    assert "Traceback" not in done.output


@pytest.mark.slow
def test_a_name_that_no_folder_may_have(quick: QuickPytest, one_workload: Callable[..., Path], tmp_path: Path) -> None:
    folder = one_workload()
    done = updated(quick, folder, "--perf-baselines", tmp_path / ("b" * 300))
    assert done.status in (4, 15), done.output
    assert "Traceback" not in done.output
