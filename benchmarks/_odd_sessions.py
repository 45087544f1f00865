"""Builds whose sessions are not of one level: two kinds of sessions, whole milliseconds, a step two sessions ago.

Each build is judged unchanged (any regression is a false alarm) and with one TTFT and one TPOT 40 % slower. After a
step, unchanged means as fast as the newest sessions; there a third judgement has the same two 8 % slower than those,
which nothing may call green.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from benchmarks._gate_noise import COMPARISONS, METRICS, WORKLOADS, Noise, draw_sessions
from phasegate.stats.compare import compare_stored
from phasegate.stats.compare_types import ComparedRow, Decision, StoredComparison
from phasegate.stats.resolution import grid_step

Floats = NDArray[np.float64]

TOLERANCES = {"ttft": 0.10, "tpot": 0.05}
REQUESTS = 100
SLOWED = (0, 1)
"""The comparisons that are slowed: a TTFT and a TPOT."""

GROSS, SMALL = 1.40, 1.08
STEP = 0.80
"""The level of the newest sessions in that of those before."""

SINCE = 2
"""Sessions at the new level."""

BETWEEN_TWO = 8.5 / 8.0
"""What a TPOT of 8 ms is multiplied by to lie between two whole milliseconds."""


@dataclass
class OddTally:
    """What the gate said over the builds of one situation."""

    observations: str
    baseline: int
    candidate: int
    builds: int = 0
    alarms: int = 0
    undecided: int = 0
    found: int = 0
    hidden: int | None = None


Observations = Callable[[np.random.Generator, Noise, OddTally], Floats]
"""Requests of an unchanged build: sessions x comparisons x requests, seconds."""


def two_kinds(share: float, gap: float, *, alike: bool = False) -> Observations:
    """Sessions of which a share is slower by ``gap`` in all they measure.

    ``alike`` makes all of a candidate's sessions of one kind.
    """

    def draw(rng: np.random.Generator, noise: Noise, tally: OddTally) -> Floats:
        requests = _requests(rng, noise, tally)
        slow = rng.random(len(requests)) < share
        if alike:
            slow[tally.baseline :] = slow[tally.baseline]
        return np.asarray(requests * np.where(slow, 1.0 + gap, 1.0)[:, None, None])

    return draw


def whole_milliseconds(rng: np.random.Generator, noise: Noise, tally: OddTally) -> Floats:
    """Requests whose values were rounded to 1 ms, the TPOT lying between two of them."""
    requests = _requests(rng, noise, tally)
    return np.asarray(requests * np.tile([1.0, BETWEEN_TWO], WORKLOADS)[None, :, None])


def step_lately(rng: np.random.Generator, noise: Noise, tally: OddTally) -> Floats:
    """A server that got faster two baseline sessions ago."""
    requests = _requests(rng, noise, tally)
    new = np.arange(len(requests)) >= tally.baseline - SINCE
    return np.asarray(requests * np.where(new, STEP, 1.0)[:, None, None])


def _requests(rng: np.random.Generator, noise: Noise, tally: OddTally) -> Floats:
    return draw_sessions(rng, noise, tally.baseline, tally.candidate, REQUESTS).requests


def situations() -> list[tuple[Observations, OddTally]]:
    """What is simulated, with fresh tallies; one stream of random numbers each."""
    return [
        (two_kinds(0.3, 0.08), OddTally("two kinds: 3 in 10 sessions 8 % slower", 8, 3)),
        (two_kinds(0.5, 0.15), OddTally("two kinds: half of them 15 % slower", 16, 8)),
        (two_kinds(0.3, 0.08, alike=True), OddTally("two kinds, all candidate sessions of one", 20, 5)),
        (whole_milliseconds, OddTally("whole milliseconds, a TPOT of 8.5 ms", 8, 3)),
        (step_lately, OddTally("20 % faster since two sessions ago", 20, 5, hidden=0)),
    ]


def simulate_odd(builds: int, seed: int, noise: Noise) -> list[OddTally]:
    """Run all situations; the same seed gives the same figures."""
    tallies = []
    for number, (draw, tally) in enumerate(situations()):
        for build in range(builds):
            rng = np.random.default_rng([seed, 100 + number, build])
            _judge(draw(rng, noise, tally), draw is whole_milliseconds, tally)
        tallies.append(tally)
    return tallies


def _judge(requests: Floats, rounded: bool, tally: OddTally) -> None:
    rows = _rows(requests, 1.0, rounded, tally.baseline)
    tally.builds += 1
    tally.alarms += any(row.decision is Decision.REGRESSED for row in rows)
    tally.undecided += sum(row.decision is Decision.UNDECIDED for row in rows)
    rows = _rows(requests, GROSS, rounded, tally.baseline)
    tally.found += sum(rows[index].decision is Decision.REGRESSED for index in SLOWED)
    if tally.hidden is not None:
        rows = _rows(requests, SMALL, rounded, tally.baseline)
        green = (Decision.WITHIN, Decision.IMPROVED)
        tally.hidden += sum(rows[index].decision in green for index in SLOWED)


def _rows(requests: Floats, factor: float, rounded: bool, baseline: int) -> Sequence[ComparedRow]:
    measured = requests.copy()
    measured[baseline:, list(SLOWED)] *= factor
    if rounded:
        measured = np.round(measured, 3)
    medians = np.median(measured, axis=2)
    made = []
    for index in range(COMPARISONS):
        metric = METRICS[index % 2]
        one = StoredComparison(
            f"workload-{index // 2} {metric}", metric,
            medians[:baseline, index].tolist(), medians[baseline:, index].tolist(), TOLERANCES[metric],
        )  # fmt: skip
        sides = measured[:baseline, index].ravel(), measured[baseline:, index].ravel()
        made.append(replace(one, step=grid_step(*sides) if rounded else 0.0))
    return compare_stored(made).rows


HEADINGS = (
    "situation", "baseline", "candidate", "false alarms per build, %", "undecided rows, %", "finds +40 %, %",
    "8 % slower than the newest sessions, and green, %",
)  # fmt: skip


def odd_table(tallies: Sequence[OddTally], share: Callable[[int, int], str]) -> Iterator[str]:
    """The lines of a Markdown table, all shares in per cent; ``share`` writes one with its interval."""
    yield f"| {' | '.join(HEADINGS)} |"
    yield "|---" * len(HEADINGS) + "|"
    for one in tallies:
        cells = [
            one.observations,
            f"{one.baseline} sessions",
            f"{one.candidate} sessions",
            share(one.alarms, one.builds),
        ]
        cells += [f"{100 * one.undecided / (one.builds * COMPARISONS):.1f}", share(one.found, 2 * one.builds)]
        cells += ["-" if one.hidden is None else share(one.hidden, 2 * one.builds)]
        yield f"| {' | '.join(cells)} |"
