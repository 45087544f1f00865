"""Several jobs store sessions in one baseline folder at the same moment, and others read it (C024)."""

from __future__ import annotations

import errno
import fcntl
import multiprocessing
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import pytest

from phasegate.core.session import Session
from phasegate.store import BaselineStore, InvalidBaselineError
from phasegate.store import lock as lock_module
from phasegate.store.baseline_folder import leftovers, prune
from phasegate.store.lock import FolderBusyError, locked
from phasegate.store.other_tools.reading import read_side
from tests.sessions import measurement, session

FORK = multiprocessing.get_context("fork")

ONE = session(0, measurement("chat", "tpot", [0.02, 0.021]))
EACH = 3
"""Sessions of an update."""


def update(name: str, count: int = EACH) -> list[Session]:
    return [replace(ONE, session_id=f"{name}-{number}") for number in range(count)]


def whole(sessions: list[Session], count: int = EACH) -> bool:
    """Whether every update that is seen is seen whole."""
    seen: dict[str, int] = {}
    for one in sessions:
        key = one.session_id.rsplit("-", 1)[0]
        seen[key] = seen.get(key, 0) + 1
    return all(number == count for number in seen.values())


@contextmanager
def children(*works: Callable[[], Any]) -> Iterator[list[Any]]:
    """Processes that each do some work; afterwards the list holds what each returned, in no order."""
    answers: Any = FORK.Queue()
    running = [FORK.Process(target=_answer, args=(work, answers), daemon=True) for work in works]
    for one in running:
        one.start()
    found: list[Any] = []
    try:
        yield found
        found += [answers.get(timeout=300) for _ in running]
    finally:
        for one in running:
            one.join(5)
            one.kill()


def _answer(work: Callable[[], Any], answers: Any) -> None:
    answers.put(work())


def write(root: Path, who: str, updates: int) -> tuple[str, list[str]]:
    store, failed = BaselineStore(root), []
    for number in range(updates):
        try:
            paths = store.add(update(f"{who}-{number}"))
            assert all(path.exists() or (path.parent.parent / path.name).exists() for path in paths)
        except Exception as error:
            failed.append(f"{who}-{number}: {type(error).__name__}: {error}")
    return "writer", failed


def read(stop: Event, how: Callable[[], list[Session]]) -> tuple[str, list[str]]:
    failed, reads = [], 0
    while not stop.is_set() or not reads:
        reads += 1
        try:
            sessions = how()
        except Exception as error:
            failed.append(f"{type(error).__name__}: {error}")
        else:
            if not whole(sessions):
                failed.append("a part of an update was seen")
    return "reader", failed


def race(root: Path, writers: int, updates: int) -> None:
    """Writers and two readers at once; nothing may be lost, nothing untrue be told."""
    stop = FORK.Event()
    folder = root / ONE.fingerprint
    BaselineStore(root).add(update("before"))
    works: list[Callable[[], Any]] = [lambda who=who: write(root, f"w{who}", updates) for who in range(writers)]  # type: ignore[misc]
    works.append(lambda: read(stop, lambda: BaselineStore(root).read(ONE.fingerprint)))
    works.append(lambda: read(stop, lambda: read_side(folder)))
    with children(*works) as answers:
        end = time.monotonic() + 280
        while len(list(folder.glob("w*-*.json"))) < writers * updates * EACH and time.monotonic() < end:
            time.sleep(0.05)
        stop.set()
    assert [text for _, failed in answers for text in failed] == []
    names = {one.session_id for one in BaselineStore(root).read(ONE.fingerprint)}
    wanted = {f"w{who}-{number}-{k}" for who in range(writers) for number in range(updates) for k in range(EACH)}
    assert names == wanted | {one.session_id for one in update("before")}
    assert list(folder.glob(".*")) == []


def test_what_several_jobs_store_at_once_is_all_there_and_readers_see_whole_updates(tmp_path: Path) -> None:
    """C024, small."""
    race(tmp_path, writers=4, updates=8)


@pytest.mark.slow
def test_a_thousand_updates_by_four_writers_with_two_readers_lose_nothing(tmp_path: Path) -> None:
    """C024, as large as it was asked for."""
    race(tmp_path, writers=4, updates=250)


@pytest.mark.slow
def test_writers_killed_at_random_moments_leave_whole_updates_and_block_nobody(tmp_path: Path) -> None:
    """C024: a lock dies with its process, whether it held it or waited for it."""
    chance = random.Random(5)
    store = BaselineStore(tmp_path)
    store.add(update("before"))
    for turn in range(60):
        victims = [FORK.Process(target=write, args=(tmp_path, f"v{turn}.{who}", 1000)) for who in range(2)]
        for one in victims:
            one.start()
        time.sleep(chance.uniform(0.002, 0.12))
        for one in victims:
            os.kill(one.pid or 0, signal.SIGKILL)
            one.join()
        assert whole(store.read(ONE.fingerprint))
        store.add(update(f"next{turn}"))
        assert leftovers(tmp_path / ONE.fingerprint) == []
    assert {f"next{turn}-0" for turn in range(60)} <= {one.session_id for one in store.read(ONE.fingerprint)}


def test_the_next_writer_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    store = BaselineStore(tmp_path)
    store.add(update("a"))
    half = tmp_path / ONE.fingerprint / ".incoming-b-0-1"
    half.mkdir()
    (half / "b-0.json").write_text('{"half": ')
    assert leftovers(half.parent) == [half]
    store.add(update("c"))
    assert not half.exists()


def test_a_process_that_stopped_while_it_held_the_folder_is_waited_for_and_then_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C024: neither a writer nor a reader waits for ever, and the line says what to do."""
    store = BaselineStore(tmp_path)
    store.add(update("a"))
    folder = tmp_path / ONE.fingerprint
    ready, go = FORK.Event(), FORK.Event()

    def hold() -> None:
        with locked(folder, alone=True):
            ready.set()
            go.wait(30)

    holder = FORK.Process(target=hold, daemon=True)
    holder.start()
    assert ready.wait(10)
    monkeypatch.setattr(lock_module.locked.__wrapped__, "__kwdefaults__", {"seconds": 0.2})  # type: ignore[attr-defined]
    with pytest.raises(FolderBusyError, match=r"another process has been using it for 0.2 s; wait .* or end it"):
        store.add(update("b"))
    with pytest.raises(InvalidBaselineError, match="another process has been using it"):
        store.read(ONE.fingerprint)
    go.set()
    holder.join(10)
    store.add(update("b"))
    assert len(store.read(ONE.fingerprint)) == 2 * EACH


def test_a_reader_of_a_folder_whose_oldest_sessions_are_being_deleted_sees_no_fault(tmp_path: Path) -> None:
    store = BaselineStore(tmp_path)
    folder = tmp_path / ONE.fingerprint
    stop = FORK.Event()

    def delete() -> tuple[str, list[str]]:
        for number in range(15):
            store.add(update(f"n{number}"))
            prune(folder, EACH, delete=True)
        return "pruner", []

    def look() -> tuple[str, list[str]]:
        failed = []
        while not stop.is_set():
            try:
                store.read(ONE.fingerprint)
            except InvalidBaselineError as error:
                failed.append(str(error))
        return "reader", failed

    with children(look) as answers:
        delete()
        stop.set()
    assert answers == [("reader", [])]
    assert len(store.read(ONE.fingerprint)) == EACH


def test_a_file_system_without_locks_loses_nothing_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two writers without a lock: each move tolerates that the other has made it."""

    def none(*_: Any) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", none)
    store = BaselineStore(tmp_path)
    store.add(update("a"))
    real = os.rename
    done: list[bool] = []

    def other_first(source: Any, target: Any) -> None:
        if ".committed-" in str(source) and not done:
            done.append(True)
            store.add(update("other"))  # finishes the move of both
        real(source, target)

    monkeypatch.setattr(os, "rename", other_first)
    store.add(update("b"))
    monkeypatch.undo()
    assert {one.session_id for one in store.read(ONE.fingerprint)} == {
        one.session_id for name in ("a", "b", "other") for one in update(name)
    }


def test_an_update_that_counts_is_never_told_to_have_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """C024: once it is committed it is stored, also where the disk then refuses the move to its place."""
    store = BaselineStore(tmp_path)
    real = os.rename

    def refuse_moves(source: Any, target: Any) -> None:
        if ".committed-" in str(source):
            raise OSError(5, "Input/output error")
        real(source, target)

    monkeypatch.setattr(os, "rename", refuse_moves)
    paths = store.add(update("a"))
    assert all(path.exists() for path in paths)
    monkeypatch.undo()
    assert [one.session_id for one in store.read(ONE.fingerprint)] == [one.session_id for one in update("a")]


def test_an_update_that_does_not_count_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = BaselineStore(tmp_path)
    store.add(update("a"))

    def full(*_: Any) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space left"):
        store.add(update("b"))
    monkeypatch.undo()
    assert sorted(path.name for path in (tmp_path / ONE.fingerprint).iterdir()) == ["a-0.json", "a-1.json", "a-2.json"]
