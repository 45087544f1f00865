"""How often does the gate cry wolf, and what does it find? ``python -m benchmarks.gate_simulation --builds 300``

Every build compares 20 things: TTFT and TPOT of ten workloads. Each is judged three times: unchanged (any regression is
a false alarm), with one TPOT 5 % slower, and with one TTFT 10 % slower (found: that very comparison regressed; right
phase: found, and no comparison of the other metric regressed). Ours go through the product's own functions; the other
rules are small reimplementations of what their tools publish, on the same draws, with one candidate session each.
Intervals are Clopper and Pearson's, 95 %. A second table has sessions that are not of one level (`_odd_sessions`).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from benchmarks._gate_noise import COMPARISONS, METRICS, PROFILES, SERVER, Noise, draw_blocks, draw_sessions
from benchmarks._odd_sessions import odd_table, simulate_odd
from benchmarks._prior_rules import RULES, WHOLE_BASELINE
from phasegate.measure.compare_paired import EARLY_SHARE, MOST_BLOCKS, VISITS, looks_of
from phasegate.stats.compare import compare_stored
from phasegate.stats.compare_types import ComparedRow, CompareSettings, Decision, StoredComparison
from phasegate.stats.paired import PairedComparison, block_orders, compare_paired
from phasegate.stats.sequential import needs_more

Floats = NDArray[np.float64]

TOLERANCES = {"ttft": 0.10, "tpot": 0.05}
REQUESTS = 100
"""Requests of a session to one workload."""

BLOCK_REQUESTS = 50
"""Requests of a block to each side of one workload."""

MOST_CANDIDATES = 8
"""Candidate sessions of `scenarios_by_sessions`, at most."""

TTFT, TPOT = 0, 1
"""The comparisons that are slowed, by position."""


@dataclass(frozen=True, slots=True)
class Slowed:
    """What is done to the candidate: one comparison multiplied, or nothing."""

    position: int = 0
    factor: float = 1.0

    def apply(self, requests: Floats) -> Floats:
        """Candidate requests, comparisons on the axis before the last, with the one slowed."""
        if self.factor == 1.0:
            return requests
        changed = requests.copy()
        changed[..., self.position, :] *= self.factor
        return changed


NOTHING = Slowed()
SLOWER_TPOT = Slowed(TPOT, 1.05)
SLOWER_TTFT = Slowed(TTFT, 1.10)
CHANGES = (NOTHING, SLOWER_TPOT, SLOWER_TTFT)

Outcome = tuple[NDArray[np.bool_], NDArray[np.bool_]]
"""(regressed, undecided), one flag per comparison"""


@dataclass
class Tally:
    """What one rule said over the builds."""

    name: str
    baseline: str
    candidate: str
    builds: int = 0
    alarms: int = 0
    found: dict[int, int] = field(default_factory=lambda: {TPOT: 0, TTFT: 0})
    right_phase: int = 0
    undecided: int = 0
    sessions: int = 0

    def add(self, change: Slowed, regressed: NDArray[np.bool_], undecided: NDArray[np.bool_] | None = None) -> None:
        """Count one judgement of one build."""
        if change == NOTHING:
            self.builds += 1
            self.alarms += bool(regressed.any())
            self.undecided += 0 if undecided is None else int(undecided.sum())
            return
        other_metric = np.arange(COMPARISONS) % 2 != change.position % 2
        found = bool(regressed[change.position])
        self.found[change.position] += found
        self.right_phase += found and not regressed[other_metric].any()


def name_of(position: int) -> str:
    """A comparison's name."""
    return f"workload-{position // 2} {METRICS[position % 2]}"


def stored(
    baseline: Floats, candidate: Sequence[Floats], sentinels: tuple[Floats, Floats] | None
) -> list[StoredComparison]:
    """Session medians as comparisons.

    Args:
        baseline: sessions x comparisons.
        candidate: one array of session medians per comparison.
        sentinels: baseline and candidate sessions x metrics.
    """
    made = []
    for position in range(COMPARISONS):
        metric = METRICS[position % 2]
        before, now = ((), ()) if sentinels is None else (side[:, position % 2].tolist() for side in sentinels)
        made.append(
            StoredComparison(
                name_of(position), metric, baseline[:, position].tolist(), candidate[position].tolist(),
                TOLERANCES[metric], baseline_sentinel=before, candidate_sentinel=now,
            )
        )  # fmt: skip
    return made


def outcome(rows: Sequence[ComparedRow]) -> Outcome:
    """The flags of some rows."""
    return (
        np.array([row.decision is Decision.REGRESSED for row in rows]),
        np.array([row.decision is Decision.UNDECIDED for row in rows]),
    )


def judge_with_sentinel(rng: np.random.Generator, noise: Noise, tallies: Sequence[Tally]) -> None:
    """8 baseline sessions and a sentinel, 3 candidate sessions; the other rules judge the first of them."""
    drawn = draw_sessions(rng, noise, 8, 3, REQUESTS)
    baseline = np.median(drawn.requests[:8], axis=2)
    ours, *others = tallies
    for change in CHANGES:
        requests = change.apply(drawn.requests[8:])
        medians = np.median(requests, axis=2)
        sentinels = drawn.sentinel[:8], drawn.sentinel[8:]
        result = compare_stored(stored(baseline, list(medians.T), sentinels))
        ours.add(change, *outcome(result.rows))
        for tally in others:
            tally.add(change, RULES[tally.name](drawn.requests[:8], requests[0]))


def judge_in_sequence(rng: np.random.Generator, noise: Noise, tallies: Sequence[Tally]) -> None:
    """20 baseline sessions, no sentinel; 2 candidate sessions, and 3 more where needed."""
    drawn = draw_sessions(rng, noise, 20, 5, REQUESTS)
    baseline = np.median(drawn.requests[:20], axis=2)
    settings = CompareSettings(planned_candidate=5)
    (ours,) = tallies
    for change in CHANGES:
        medians = np.median(change.apply(drawn.requests[20:]), axis=2)
        first = stored(baseline, list(medians[:2].T), None)
        more = set(needs_more(compare_stored(first, settings).rows, first, 5))
        final = [
            replace(one, candidate=medians[:, i].tolist()) if one.name in more else one for i, one in enumerate(first)
        ]
        ours.add(change, *outcome(compare_stored(final, settings).rows))
        if change == NOTHING:
            ours.sessions += 2 * COMPARISONS + 3 * len(more)


def judge_paired(rng: np.random.Generator, noise: Noise, tallies: Sequence[Tally]) -> None:
    """8 blocks with 50 requests to each side."""
    reference, candidate = draw_blocks(rng, noise, 8, BLOCK_REQUESTS)
    orders = block_orders(8, rng)
    before = np.median(reference, axis=2)
    (ours,) = tallies
    for change in CHANGES:
        now = np.median(change.apply(candidate), axis=2)
        comparisons = [_paired(i, before, now, orders) for i in range(COMPARISONS)]
        ours.add(change, *outcome([one.row for one in compare_paired(comparisons).rows]))


def judge_in_looks(rng: np.random.Generator, noise: Noise, tallies: Sequence[Tally]) -> None:
    """Two requests a block to each side, and more blocks of what is open: a paired run with its defaults."""
    reference, candidate = draw_blocks(rng, noise, MOST_BLOCKS, VISITS)
    orders = block_orders(MOST_BLOCKS, rng)
    before = np.median(reference, axis=2)
    (ours,) = tallies
    looks = looks_of(MOST_BLOCKS)
    early, last = (
        CompareSettings(alpha=CompareSettings().alpha * share)
        for share in (EARLY_SHARE / (len(looks) - 1), 1.0 - EARLY_SHARE)
    )
    for change in CHANGES:
        now = np.median(change.apply(candidate), axis=2)
        counts = np.zeros(COMPARISONS, dtype=int)
        still = np.ones(COMPARISONS, dtype=bool)
        for blocks in looks:
            counts[still] = blocks
            comparisons = [_paired(i, before[: counts[i]], now[: counts[i]], orders) for i in range(COMPARISONS)]
            rows, proven = ([one.row for one in compare_paired(comparisons, by).rows] for by in (last, early))
            is_open = [
                row.decision is Decision.UNDECIDED
                or (row.decision is Decision.REGRESSED and first.decision is not Decision.REGRESSED)
                for row, first in zip(rows, proven, strict=True)
            ]
            still = np.repeat(np.array(is_open).reshape(-1, 2).any(axis=1), 2)
            if not still.any():
                break
        ours.add(change, *outcome(rows))
        if change == NOTHING:
            ours.sessions += int(counts.sum())


def _paired(position: int, before: Floats, now: Floats, orders: Sequence[str]) -> PairedComparison:
    metric = METRICS[position % 2]
    sides = before[:, position].tolist(), now[:, position].tolist()
    return PairedComparison(name_of(position), metric, *sides, TOLERANCES[metric], orders=orders[: len(before)])


def judge_by_sessions(baseline: int, *, sentinel: bool) -> Judge:
    """So many baseline sessions against the first 2, 3, ... 8 of one row of candidate sessions, a tally for each."""

    def judge(rng: np.random.Generator, noise: Noise, tallies: Sequence[Tally]) -> None:
        drawn = draw_sessions(rng, noise, baseline, MOST_CANDIDATES, REQUESTS)
        before = np.median(drawn.requests[:baseline], axis=2)
        for change in CHANGES:
            medians = np.median(change.apply(drawn.requests[baseline:]), axis=2)
            for count, tally in enumerate(tallies, start=2):
                reference = drawn.sentinel[:baseline], drawn.sentinel[baseline : baseline + count]
                result = compare_stored(stored(before, list(medians[:count].T), reference if sentinel else None))
                tally.add(change, *outcome(result.rows))

    return judge


Judge = Callable[[np.random.Generator, Noise, Sequence[Tally]], None]


def scenarios(*, others: bool = True) -> list[tuple[Judge, list[Tally]]]:
    """What is simulated, with fresh tallies; one stream of random numbers each."""
    rules = RULES if others else ()
    prior = [Tally(name, "8 sessions" if name in WHOLE_BASELINE else "the last session", "1 session") for name in rules]
    return [
        (judge_with_sentinel, [Tally("phasegate", "8 sessions + sentinel", "3 sessions"), *prior]),
        (judge_in_sequence, [Tally("phasegate", "20 sessions", "2+3 sessions")]),
        (judge_paired, [Tally("phasegate", "8 blocks x 50", "same sitting")]),
        (judge_in_looks, [Tally("phasegate", "5 to 16 blocks x 2", "same sitting")]),
    ]


def scenarios_by_sessions() -> list[tuple[Judge, list[Tally]]]:
    """Stored sessions with every number of candidate sessions from 2 on."""
    counts = [f"{count} sessions" for count in range(2, MOST_CANDIDATES + 1)]
    return [
        (judge_by_sessions(8, sentinel=True), [Tally("phasegate", "8 sessions + sentinel", one) for one in counts]),
        (judge_by_sessions(20, sentinel=False), [Tally("phasegate", "20 sessions", one) for one in counts]),
    ]


def simulate(
    builds: int, seed: int, noise: Noise = SERVER, *, others: bool = True, by_sessions: bool = False
) -> list[Tally]:
    """Run all scenarios, or those of `scenarios_by_sessions`; the same seed gives the same figures.

    ``others`` says whether other tools' rules judge the builds too.
    """
    tallies: list[Tally] = []
    for number, (judge, group) in enumerate(scenarios_by_sessions() if by_sessions else scenarios(others=others)):
        for build in range(builds):
            judge(np.random.default_rng([seed, number, build]), noise, group)
        tallies += group
    return tallies


def interval(count: int, total: int, confidence: float = 0.95) -> tuple[float, float]:
    """Clopper and Pearson's interval of a share."""
    tail = (1.0 - confidence) / 2.0
    low = float(beta.ppf(tail, count, total - count + 1)) if count else 0.0
    high = float(beta.ppf(1.0 - tail, count + 1, total - count)) if count < total else 1.0
    return low, high


def share(count: int, total: int) -> str:
    """A share with its interval, in per cent."""
    low, high = interval(count, total)
    return f"{100 * count / total:.1f} ({100 * low:.1f} to {100 * high:.1f})"


HEADINGS = (
    "rule", "baseline", "candidate", "false alarms per build, %", "finds TPOT +5 %, %", "finds TTFT +10 %, %",
    "found, in the right phase, %", "undecided rows, %",
)  # fmt: skip


def table(tallies: Sequence[Tally]) -> Iterator[str]:
    """The lines of a Markdown table, all shares in per cent."""
    yield f"| {' | '.join(HEADINGS)} |"
    yield "|---" * len(HEADINGS) + "|"
    for one in tallies:
        undecided = f"{100 * one.undecided / (one.builds * COMPARISONS):.1f}" if one.name == "phasegate" else "-"
        cells = [one.name, one.baseline, one.candidate, share(one.alarms, one.builds)]
        cells += [share(one.found[TPOT], one.builds), share(one.found[TTFT], one.builds)]
        cells += [share(one.right_phase, 2 * one.builds), undecided]
        yield f"| {' | '.join(cells)} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--builds", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--noise", choices=sorted(PROFILES), default=SERVER.name)
    parser.add_argument(
        "--candidate-scatter", type=float, default=1.0, help="times that candidate sessions deviate more than baselines"
    )
    parser.add_argument(
        "--by-sessions", action="store_true", help="2 to 8 candidate sessions instead of the page's rows"
    )
    parser.add_argument("--ours", action="store_true", help="without the other tools' rules")
    parser.add_argument("--odd", action="store_true", help="the table of sessions that are not of one level alone")
    chosen = parser.parse_args()
    noise = replace(PROFILES[chosen.noise], candidate_scatter=chosen.candidate_scatter)
    began = time.process_time()
    print(f"{chosen.builds} builds of {COMPARISONS} comparisons a row, seed {chosen.seed}, noise: {noise}\n")
    if not chosen.odd:
        _print_usual(
            simulate(chosen.builds, chosen.seed, noise, others=not chosen.ours, by_sessions=chosen.by_sessions)
        )
    if noise == SERVER and not chosen.by_sessions:
        print("\n".join(odd_table(simulate_odd(chosen.builds, chosen.seed, noise), share)))
    print(f"\nCPU: {time.process_time() - began:.0f} s")


def _print_usual(tallies: Sequence[Tally]) -> None:
    print("\n".join(table(tallies)))
    for sequence in (one for one in tallies if one.sessions):
        per_comparison = sequence.sessions / (sequence.builds * COMPARISONS)
        print(f"\n{sequence.candidate}, {sequence.baseline}: {per_comparison:.2f} per unchanged comparison")
    print()


if __name__ == "__main__":
    main()
