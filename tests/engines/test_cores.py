"""Engine and client keep out of each other's way, where there are cores enough."""

from __future__ import annotations

from pathlib import Path

import pytest

from phasegate.engines import cores


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """A machine without hyper-threads; tests say which cores there are."""
    monkeypatch.setattr(cores, "_TOPOLOGY", str(tmp_path / "cpu{}"))
    return monkeypatch


@pytest.mark.parametrize(
    ("allowed", "threads", "engine", "client"),
    [
        ((0, 1), 1, [0], [1]),
        ((0, 1, 2, 3), 1, [0], [1, 2, 3]),
        ((4, 5, 6), 2, [4, 5], [6]),
        ((0, 1), 2, [], [1]),
        ((0,), 1, [], []),
        ((), 1, [], []),
    ],
    ids=["two", "four", "two threads", "too few", "one", "nobody can pin"],
)
def test_cores_are_divided(
    machine: pytest.MonkeyPatch, allowed: tuple[int, ...], threads: int, engine: list[int], client: list[int]
) -> None:
    """One core for each thread of the engine; none where that would leave nothing for the client."""
    machine.setattr(cores, "_START", allowed)
    assert cores.engine_cores(threads) == engine
    assert cores.client_cores(threads) == client


@pytest.mark.parametrize(
    ("allowed", "listed", "client"),
    [((0, 1, 2, 3), "0,2", [1, 3]), ((0, 1, 2, 3), "0-1", [2, 3]), ((0, 1), "0-1", [1]), ((0, 1), "nonsense", [1])],
)
def test_the_client_keeps_off_the_engines_hyper_thread(
    machine: pytest.MonkeyPatch, tmp_path: Path, allowed: tuple[int, ...], listed: str, client: list[int]
) -> None:
    """Unless nothing else is left."""
    (tmp_path / "cpu0").write_text(f"{listed}\n")
    machine.setattr(cores, "_START", allowed)
    assert cores.client_cores() == client
