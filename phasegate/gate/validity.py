"""Whether numbers may be compared at all. These checks come before any statistics, on the plain counts and labels.

A statistic cannot tell a fast server from a cache, a dead server from a quick one, or a metric of another unit from a
regression. Each check gives its own word and says what to do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from phasegate.core.session import Measurement
from phasegate.core.units import format_percent, format_rate, format_seconds
from phasegate.gate.facts import MetricFacts
from phasegate.gate.levels import Key, Side, ratio_of
from phasegate.gate.policy import Policy
from phasegate.gate.question import Question
from phasegate.gate.verdict import Verdict

UNIT_MIXUP = (500.0, 2000.0)
"""A ratio of about a thousand in everything that was compared is milliseconds read as seconds, not a slow server."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Why something cannot be judged: the word, one sentence with numbers, and what to do."""

    verdict: Verdict
    reason: str
    advice: str


@dataclass(frozen=True, slots=True)
class _Pair:
    """What both sides hold for one question: a measurement for each session."""

    question: Question
    old: Sequence[Measurement]
    new: Sequence[Measurement]
    policy: Policy

    def sides(self) -> tuple[tuple[Verdict, str, Sequence[Measurement]], ...]:
        """For each side: the verdict of a fault in it, what to call it, and its measurements."""
        return (Verdict.INVALID_BASELINE, "baseline", self.old), (Verdict.INVALID_RUN, "run", self.new)


def problem_of(question: Question, baseline: Side, candidate: Side, policy: Policy) -> Problem | None:
    """The first reason, in the order of the checks, why a question cannot be put to the statistics; None if it can."""
    old, new = baseline.measurements(question.key), candidate.measurements(question.key)
    if not any(one.samples for one in old) and not any(one.failed for one in old):
        return Problem(
            Verdict.NO_BASELINE,
            f"{question.name} is not in the baseline",
            "record it with --update-baselines once its numbers are reviewed",
        )
    if not new:
        advice = "run it again, or record a baseline for the new name"
        return Problem(Verdict.INVALID_RUN, _missing(question, baseline, candidate), advice)
    pair = _Pair(question, old, new, policy)
    for check in _CHECKS:
        problem = check(pair)
        if problem is not None:
            return problem
    return _collapsed(question, baseline, candidate, policy)


def _missing(question: Question, baseline: Side, candidate: Side) -> str:
    known = f"{question.name} is in the baseline, but this run did not measure it"
    if question.workload in set(candidate.workloads()):
        return f"{known}, though it measured other metrics of the workload"
    digest = baseline.measurements(question.key)[-1].workload_digest
    twins = [
        workload
        for (workload, metric), row in candidate.by_key.items()
        if metric == question.metric and digest and row[-1][1].workload_digest == digest
        and workload not in set(baseline.workloads())
    ]  # fmt: skip
    return f"{known} (crashed, left out, or renamed{f'; {twins[0]} sends the same' if twins else ''})"


def _not_finite(pair: _Pair) -> Problem | None:
    for verdict, word, side in pair.sides():
        for one in side:
            bad = next((value for value in one.samples if not (math.isfinite(value) and value > 0)), None)
            if bad is not None:
                reason = f"{pair.question.name}: the {word} holds {bad!r}, which is no measurement"
                return Problem(verdict, reason, "measure it again; values must be finite and above 0")
    return None


def _failures(pair: _Pair) -> Problem | None:
    for verdict, word, side in pair.sides():
        sent, failed = sum(one.requests for one in side), sum(one.failed for one in side)
        if sent and failed / sent > pair.policy.max_error_rate:
            reason = (
                f"{pair.question.workload}: {failed} of {sent} requests of the {word} failed "
                f"({format_percent(failed / sent)}, allowed {format_percent(pair.policy.max_error_rate)}), "
                "so what is left is no fair sample"
            )
            return Problem(verdict, reason, "find out why requests fail, then measure again")
    return None


def _unfit(pair: _Pair) -> Problem | None:
    for verdict, word, side in pair.sides():
        sent, unfit = sum(one.requests for one in side), sum(one.invalid for one in side)
        if sent and unfit / sent > pair.policy.max_unfit_rate:
            flags = sorted({flag for one in side for flag in one.flags})
            said = f" ({', '.join(flags)})" if flags else ""
            reason = (
                f"{pair.question.workload}: {unfit} of {sent} answers of the {word} are unfit for a latency "
                f"sample{said}, allowed {format_percent(pair.policy.max_unfit_rate)}"
            )
            return Problem(
                verdict, reason, next((_UNFIT_ADVICE[flag] for flag in flags if flag in _UNFIT_ADVICE), "measure again")
            )
    return None


def _without_values(pair: _Pair) -> Problem | None:
    if not any(one.samples for one in pair.new):
        sent = sum(one.requests for one in pair.new)
        reason = f"{pair.question.name}: the run holds no usable value ({sent} requests sent)"
        return Problem(Verdict.INVALID_RUN, reason, "see why no request has the metric, then measure again")
    return None


_UNFIT_ADVICE = {
    "prompt_length_mismatch": "the server read other prompts than were sent: does a context window cut them?",
    "cached_prompt": "the prompts came from a prefix cache: send prompts the server has not seen, or flush its cache",
}


def _other_workload(pair: _Pair) -> Problem | None:
    left, right = {one.workload_digest for one in pair.old}, {one.workload_digest for one in pair.new}
    if left == right or not all(left | right):
        return None
    reason = (
        f"{pair.question.workload} sends something else than in the baseline (workload digest "
        f"{', '.join(sorted(left))} there, {', '.join(sorted(right))} here)"
    )
    return Problem(
        Verdict.NOT_COMPARABLE,
        reason,
        "restore the workload file (and --perf-mark-prefix), or record a baseline for the new one",
    )


def _other_counts(pair: _Pair) -> Problem | None:
    left, right = {one.token_source for one in pair.old}, {one.token_source for one in pair.new}
    if left == right or None in left | right:
        return None
    reason = (
        f"{pair.question.name}: tokens were counted by {_names(left)} in the baseline and by "
        f"{_names(right)} here, which are different units"
    )
    return Problem(Verdict.NOT_COMPARABLE, reason, "let the server report usage on both sides, or record anew")


def _names(sources: set[str | None]) -> str:
    return ", ".join(sorted(str(source) for source in sources))


_CHECKS: tuple[Callable[[_Pair], Problem | None], ...] = (
    _not_finite,
    _failures,
    _unfit,
    _without_values,
    _other_workload,
    _other_counts,
)


def _collapsed(question: Question, baseline: Side, candidate: Side, policy: Policy) -> Problem | None:
    old, new = (side.level(question.key, question.percentile) for side in (baseline, candidate))
    ratio = ratio_of(new, old)
    if ratio is None or not question.facts.is_latency or ratio >= policy.suspect_ratio:
        return None
    reason = (
        f"{question.name} fell to {format_percent(ratio)} of its baseline "
        f"({say(new, question.facts)} after {say(old, question.facts)}), "
        f"below the {format_percent(policy.suspect_ratio)} that a change of the server explains"
    )
    return Problem(
        Verdict.INVALID_RUN,
        reason,
        "look for a cache, a buffering proxy or answers cut short; if it is real, record a new baseline",
    )


def other_units(keys: Sequence[Key], baseline: Side, candidate: Side) -> Problem | None:
    """A problem where everything grew by about a thousand: one side is in milliseconds. None without keys."""
    ratios = [ratio_of(candidate.level(key), baseline.level(key)) for key in keys]
    if not ratios or not all(ratio is not None and UNIT_MIXUP[0] <= ratio <= UNIT_MIXUP[1] for ratio in ratios):
        return None
    middle = sorted(ratio for ratio in ratios if ratio is not None)[len(ratios) // 2]
    reason = (
        f"every metric is about {middle:,.0f} times its baseline: one side is in milliseconds, the other in seconds"
    )
    return Problem(Verdict.NOT_COMPARABLE, reason, "give both sides in seconds; values are never converted by guess")


def say(value: float | None, facts: MetricFacts) -> str:
    """A value of a metric for a reader, with its unit."""
    if facts.is_latency:
        return format_seconds(value) + ("/token" if facts.unit.endswith("/token") and value is not None else "")
    return format_rate(value, facts.unit.removesuffix("/s")) if facts.unit.endswith("/s") else f"{value:.3g}"
