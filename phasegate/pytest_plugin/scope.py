"""What the word of a run covers, and what it does not: comparisons, laws and objectives, each with the reason."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from phasegate.gate.verdict import Verdict
from phasegate.pytest_plugin.tally import GATE, LAW, OBJECTIVE, Tally
from phasegate.report.document.words import plural

if TYPE_CHECKING:
    from phasegate.pytest_plugin.state import PerfState


_UNUSABLE = {
    Verdict.INVALID_RUN: "the run is invalid",
    Verdict.INVALID_BASELINE: "a stored session cannot be used",
}
"""Why nothing was compared where the gate refused one side."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What was judged in a run and what was not, each in a few words."""

    judged: tuple[str, ...] = ()
    not_judged: tuple[str, ...] = ()


def scope_of(tally: Tally, state: PerfState | None) -> Scope:
    """The scope of a run; empty where no test of this process measures."""
    if state is None or not tally.measuring:
        return Scope()
    clauses = [*_comparisons(tally, state), _laws(tally, state), _objectives(tally, state), *_tests(tally)]
    return Scope(
        tuple(text for judged, text in clauses if judged), tuple(text for judged, text in clauses if not judged)
    )


def _comparisons(tally: Tally, state: PerfState) -> Iterator[tuple[bool, str]]:
    slower, gate = "whether it got slower", state.gate
    if gate is not None and gate.gated is not None:
        result = gate.gated.result
        coverage = result.coverage
        if coverage.compared:
            yield True, f"{coverage.compared} of {plural(coverage.expected, 'comparison')}"
        elif result.verdict in _UNUSABLE:
            yield False, f"{slower} ({_UNUSABLE[result.verdict]})"
        elif gate.gated.baseline:
            yield False, f"{slower} (nothing could be compared)"
        else:
            yield False, f"{slower} (no baseline)"
    elif gate is not None and gate.updates:
        yield False, f"{slower} (this run records baselines)"
    elif tally.chosen(GATE):
        yield False, f"{slower} (its tests did not come to measure)"
    else:
        yield False, f"{slower} (no test of it was chosen)"


def _laws(tally: Tally, state: PerfState) -> tuple[bool, str]:
    chosen, judged = tally.chosen(LAW), len(state.laws)
    if not chosen:
        return False, "laws of the phases (no test of them was chosen)"
    return bool(
        judged
    ), f"{judged} of {plural(chosen, 'law')}" if judged else "laws of the phases (none was decided on)"


def _objectives(tally: Tally, state: PerfState) -> tuple[bool, str]:
    judged = tally.claims(of=OBJECTIVE)
    if judged:
        return True, plural(judged, "objective")
    if not state.load_options.objectives:
        return False, "objectives (none given)"
    if not tally.chosen(OBJECTIVE):
        return False, "objectives (no test of them was chosen)"
    return False, "objectives (their tests did not come to measure)"


def _tests(tally: Tally) -> Iterator[tuple[bool, str]]:
    """Tests of a suite's own, and those that were to measure and did not."""
    if tally.others():
        yield True, plural(tally.others(), "other test")
    for count, why in (
        (len(tally.left), "left out by the selection"),
        (tally.count("skipped"), "skipped"),
        (tally.unreached, "not reached"),
    ):
        if count:
            yield False, f"{plural(count, 'test')} {why}"
