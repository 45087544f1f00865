"""`phasegate compare` on sessions that are not of one level, and on values that come in steps: C045 and its like.

Unchanged builds are never red, whatever kinds they fall into, and a server that is really 40 % slower is. Each build is
drawn from a seed of its own, so that the tables are the same in every run.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from phasegate.cli import main

BUILDS = range(12)

Level = Callable[[random.Random, int], float]
"""What a session takes in units of an ordinary one; given its number, the newest with the highest."""


def of_kinds(share: float, gap: float) -> Level:
    """Some sessions, by chance, are slower by a gap."""
    return lambda rng, _: rng.gauss(1, 0.005) * (1 + gap * (rng.random() < share))


def steady(rng: random.Random, _: int) -> float:
    return rng.gauss(1, 0.005)


def table(
    path: Path, rng: random.Random, sessions: int, level: Level, *, factor: float = 1.0, step: float = 0.0
) -> str:
    """A CSV file of sessions of nine requests each; values are rounded to a step in seconds, 0 for none."""
    lines = ["session,workload,metric,value"]
    for number in range(sessions):
        own = level(rng, number) * factor
        for _ in range(9):
            for metric, seconds in (("ttft", 0.2), ("tpot", 0.0085)):
                value = seconds * own * rng.gauss(1, 0.01)
                lines.append(f"{path.stem}{number:02},chat,{metric},{round(value / step) * step if step else value!r}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


class Compared:
    """Judges builds; keeps the JSON of the last one."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._folder, self._capsys = folder, capsys
        self.said = ""

    def verdict(
        self, seed: int, sessions: tuple[int, int], level: Level, newest: Level | None = None,
        *, factor: float = 1.0, step: float = 0.0,
    ) -> str:  # fmt: skip
        rng = random.Random(seed)
        base = table(self._folder / "a.csv", rng, sessions[0], level, step=step)
        cand = table(self._folder / "b.csv", rng, sessions[1], newest or level, factor=factor, step=step)
        main(["compare", base, cand, "--json"])
        self.said = self._capsys.readouterr().out
        return str(json.loads(self.said)["verdict"])


@pytest.fixture
def compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Compared:
    return Compared(tmp_path, capsys)


@pytest.mark.parametrize(
    ("share", "gap", "sessions"),
    [(0.5, 0.15, (16, 8)), (0.2, 0.15, (16, 8)), (0.5, 0.30, (16, 8)), (0.3, 0.08, (8, 3)), (0.3, 0.08, (20, 5))],
)
def test_starts_of_two_kinds_alarm_nobody_and_hide_nothing(
    compared: Compared, share: float, gap: float, sessions: tuple[int, int]
) -> None:
    """C045, and shares and gaps of our own."""
    words = [compared.verdict(seed, sessions, of_kinds(share, gap)) for seed in BUILDS]
    assert "REGRESSION" not in words
    slower = [compared.verdict(seed, sessions, of_kinds(share, gap), factor=1.4) for seed in BUILDS]
    assert set(slower) == {"REGRESSION"}


def test_candidates_all_of_the_slow_kind_alarm_nobody(compared: Compared) -> None:
    """They look 8 % slower together, and the baseline has had such sessions."""
    slow: Level = lambda rng, _: 1.08 * steady(rng, 0)  # noqa: E731
    words = [compared.verdict(seed, (20, 5), of_kinds(0.3, 0.08), slow) for seed in BUILDS]
    assert "REGRESSION" not in words
    assert "two kinds of sessions" in compared.said


@pytest.mark.parametrize("step", [0.001, 0.0005, 0.002])
def test_coarse_values_alarm_nobody_and_hide_nothing(compared: Compared, step: float) -> None:
    """Whole milliseconds: most sessions coincide, and the rest stood out as if proven."""
    words = [compared.verdict(seed, (8, 3), steady, step=step) for seed in BUILDS]
    assert "REGRESSION" not in words
    if step == 0.001:  # of the others 8.5 ms give one value only, which shows no step
        assert "come in steps of" in compared.said
    slower = [compared.verdict(seed, (8, 3), steady, factor=1.4, step=step) for seed in BUILDS]
    assert set(slower) == {"REGRESSION"}


def stepped(change: float, ago: int, sessions: int) -> Level:
    """The newest ``ago`` of the sessions are changed for good."""
    return lambda rng, number: steady(rng, number) * (1 + change if number >= sessions - ago else 1.0)


@pytest.mark.parametrize("ago", [1, 2, 3])
@pytest.mark.parametrize("change", [-0.2, -0.3])
def test_a_speed_up_in_the_newest_sessions_does_not_hide_what_follows(
    compared: Compared, ago: int, change: float
) -> None:
    """Slower than the newest level by 8 %, and much faster than the old one: never green in silence."""
    after: Level = lambda rng, number: (1 + change) * 1.08 * steady(rng, number)  # noqa: E731
    words: Sequence[str] = [compared.verdict(seed, (20, 5), stepped(change, ago, 20), after) for seed in BUILDS]
    assert not {"PASS", "IMPROVED"} & set(words), words
    assert "at another level" in compared.said
