"""Folders of sessions: together or not at all, never overwritten, whole after a kill at any step."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from phasegate.core.session import Session
from phasegate.store import BaselineExistsError, BaselineStore, InvalidBaselineError, fingerprint_of
from phasegate.store.baseline_folder import leftovers, session_paths
from tests.sessions import SERVER, measurement, session

STEPS = ("mkdir", "open", "write", "fsync", "rename", "rmdir", "close")
"""Everything of `os` that the writer calls."""


def some(*numbers: int, level: float = 0.02) -> list[Session]:
    return [session(number, measurement("chat", "tpot", [level, level])) for number in numbers]


def ids(store: BaselineStore) -> list[str]:
    return [one.session_id for one in store.read(some(1)[0].fingerprint)]


def test_sessions_read_back_oldest_first(tmp_path: Path) -> None:
    store = BaselineStore(tmp_path / "baselines")
    paths = store.add(some(3, 1))
    store.add(some(2))
    assert ids(store) == [one.session_id for one in some(1, 2, 3)]
    assert paths[0].parent.parent == tmp_path / "baselines"
    assert store.fingerprints() == [some(1)[0].fingerprint]


def test_a_session_is_never_overwritten(tmp_path: Path) -> None:
    store = BaselineStore(tmp_path)
    (path,) = store.add(some(1))
    before = path.read_bytes()
    with pytest.raises(BaselineExistsError, match="never overwritten"):
        store.add(some(1, 2, level=0.09))
    assert path.read_bytes() == before
    assert len(ids(store)) == 1


def test_a_batch_with_one_bad_sample_writes_nothing(tmp_path: Path) -> None:
    store = BaselineStore(tmp_path)
    bad = session(2, measurement("chat", "tpot", [float("nan")]))
    with pytest.raises(ValueError, match="only positive finite"):
        store.add([*some(1), bad])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "batch",
    [[], [*some(1), *some(1)], [*some(1), replace(some(2)[0], fingerprint="other")]],
    ids=["none", "twice", "two"],
)
def test_a_batch_is_of_one_fingerprint_and_different_ids(tmp_path: Path, batch: list[Session]) -> None:
    with pytest.raises(ValueError, match="all of one fingerprint"):
        BaselineStore(tmp_path).add(batch)


def test_pinned_baselines_stand_apart(tmp_path: Path) -> None:
    store = BaselineStore(tmp_path)
    store.add(some(1), pinned="v1.0")
    store.add(some(2))
    assert store.pins() == ["v1.0"]
    fingerprint = some(1)[0].fingerprint
    assert [one.session_id for one in store.read(fingerprint, "v1.0")] == [some(1)[0].session_id]
    assert ids(store) == [some(2)[0].session_id]
    assert store.fingerprints() == [fingerprint]


def test_one_bad_file_spoils_the_folder(tmp_path: Path) -> None:
    store = BaselineStore(tmp_path)
    paths = store.add(some(1, 2))
    paths[0].write_text("{", encoding="utf-8")
    with pytest.raises(InvalidBaselineError, match=paths[0].name):
        store.read(some(1)[0].fingerprint)


def killed_at(step: int, work: Callable[[], Any]) -> bool:
    """Run some work in a child process that dies, without any clean-up, before its ``step``-th call into the system.

    Returns whether it died; False means that the work had fewer steps.
    """
    child = os.fork()
    if child == 0:
        left = [step]

        def dying(real: Callable[..., Any]) -> Callable[..., Any]:
            def call(*args: Any, **kwargs: Any) -> Any:
                left[0] -= 1
                if left[0] < 0:
                    os._exit(9)
                return real(*args, **kwargs)

            return call

        try:
            for name in STEPS:
                setattr(os, name, dying(getattr(os, name)))
            work()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


def test_a_writer_killed_at_any_step_leaves_the_old_or_the_new_baseline(tmp_path: Path) -> None:
    """At every step the folder reads without a fault as all of the old or all of the new, and the next writer works."""
    old, new = some(1, 2), some(3, 4, 5)
    seen: list[int] = []
    for step in range(200):
        store = BaselineStore(tmp_path / str(step))
        store.add(old)
        before = {path: path.read_bytes() for path in session_paths(store.folder(old[0].fingerprint))}
        died = killed_at(step, lambda store=store: store.add(new))  # type: ignore[misc]
        found = ids(store)
        assert found in ([one.session_id for one in old], [one.session_id for one in old + new])
        assert all(path.read_bytes() == content for path, content in before.items())
        seen.append(len(found))
        if len(found) == 2:
            store.add(new)
        store.add(some(9))
        assert ids(store) == [one.session_id for one in [*old, *new, *some(9)]]
        if not died:
            break
    assert not died
    assert set(seen) == {2, 5}
    assert len(seen) > 20


def test_the_kill_finds_a_writer_that_is_not_careful(tmp_path: Path) -> None:
    """The same kill on a plain write leaves a torn file, so the check above can fail."""

    def careless() -> None:
        descriptor = os.open(tmp_path / "s.json", os.O_WRONLY | os.O_CREAT)
        os.write(descriptor, b'{"half": ')
        os.write(descriptor, b"1}")

    assert killed_at(2, careless)
    assert (tmp_path / "s.json").read_text(encoding="utf-8") == '{"half": '


def test_left_overs_of_a_killed_update_are_found_and_not_read(tmp_path: Path) -> None:
    store = BaselineStore(tmp_path)
    store.add(some(1))
    assert killed_at(4, lambda: store.add(some(2)))
    folder = store.folder(some(1)[0].fingerprint)
    assert len(leftovers(folder)) == 1
    assert len(ids(store)) == 1


def test_a_full_disk_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = BaselineStore(tmp_path)
    store.add(some(1))

    def full(*_: Any) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space left"):
        store.add(some(2))
    monkeypatch.undo()
    assert len(ids(store)) == 1


def test_the_fingerprint_follows_the_server_and_neither_version_nor_client() -> None:
    name = fingerprint_of(SERVER)
    assert name.startswith("llama.cpp_tiny_cpu-4-")
    assert fingerprint_of({**SERVER, "engine_version": "b2", "started": "later"}) == name
    for change in ({"hardware": "cpu-8"}, {"model": "big"}, {"engine": "vllm"}, {"settings": {"slots": 2}}):
        assert fingerprint_of({**SERVER, **change}) != name


def test_unknown_hardware_is_said_to_be_unknown() -> None:
    assert "unknown-hardware" in fingerprint_of({"engine": "vllm", "model": "org/Some-Model 8B"})
    assert fingerprint_of({"engine": "vllm", "model": "org/Some-Model 8B"}).startswith("vllm_some-model-8b_")


def test_a_folder_name_is_safe_whatever_the_server_says() -> None:
    name = fingerprint_of({"engine": "../..", "model": "/a/b/../", "hardware": "x" * 300})
    assert "/" not in name
    assert not name.startswith(".")
    assert len(name) < 80
