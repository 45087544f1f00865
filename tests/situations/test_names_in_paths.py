"""A name that becomes a part of a path names one folder and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from phasegate.cli import main
from phasegate.core.naming import path_name
from phasegate.store import BaselineStore
from tests.edges.quick_pytest import QuickPytest
from tests.sessions import measurement, session

ONE = session(0, measurement("chat", "tpot", [0.02]))

WRONG = (
    "../../x", "..", ".", "", "/tmp/x", "a/b", "a\\b", ".incoming-x", ".committed-x", ".git", "a\0b", "a\nb", "\x1b[2J",
    "~root", "-rf", "C:x", "a\u202eb", "a\u200bb", "x" * 300, " x", "x.", "\ud800",
)  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_such_a_name_is_refused_everywhere_and_nothing_is_written(tmp_path: Path, name: str) -> None:
    store = BaselineStore(tmp_path / "deep" / "baselines")
    with pytest.raises(ValueError, match="becomes a part of a path") as told:
        path_name(name, "--perf-pinned")
    assert len(str(told.value).splitlines()) == 1
    assert str(told.value).isprintable()
    for wrong in (
        lambda: store.add([ONE], pinned=name),
        lambda: store.add([replace(ONE, session_id=name)]),
        lambda: store.add([replace(ONE, fingerprint=name)]),
        lambda: store.read(ONE.fingerprint, name),
        lambda: store.fingerprints(name),
    ):
        with pytest.raises(ValueError, match=r"becomes a part of a path|all of one fingerprint"):
            wrong()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["v1.0", "release-2026.03_rc+1", "Modell für alle", "模型"])
def test_other_names_are_names(tmp_path: Path, name: str) -> None:
    store = BaselineStore(tmp_path)
    store.add([ONE], pinned=name)
    assert store.pins() == [name]
    assert store.read(ONE.fingerprint, name) == [ONE]


@pytest.mark.parametrize("name", ["../../x", *(pytest.param(one, marks=pytest.mark.slow) for one in ("/x", ".x", ""))])
def test_a_run_is_refused_before_it_measures(
    quick: QuickPytest, one_workload: Callable[..., Path], tmp_path: Path, name: str
) -> None:
    """Nobody listens at the address: the label is looked at before."""
    done = quick.run(
        "perf_tests/test_regression.py", "-q", "--perf-base-url", "http://127.0.0.1:9/v1", "--perf-model", "m",
        "--perf-baselines", tmp_path / "b", "--perf-pinned", name, "--update-baselines", cwd=one_workload(),
    )  # fmt: skip
    assert done.status == 4, done.output
    assert "--perf-pinned is " in done.output
    assert not (tmp_path / "b").exists()


def test_hidden_folders_are_no_baselines(tmp_path: Path) -> None:
    """What lies beside the baselines, such as a repository's own folder, is never taken for one."""
    store = BaselineStore(tmp_path)
    store.add([ONE])
    (tmp_path / ONE.fingerprint).rename(tmp_path / ".git")
    assert store.fingerprints() == []


@pytest.mark.parametrize("action", ["show", "check", "prune"])
def test_a_zero_byte_in_a_name_is_one_line(
    tmp_path: Path, action: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    more = ["--keep", "1"] if action == "prune" else []
    assert main(["baselines", action, "a\0b", *more]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
