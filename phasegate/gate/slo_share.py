"""Whether a level of load keeps an objective, by the exact interval of the share of requests that miss it.

``p95 <= 500 ms`` says that at most 5 % of all requests take longer. How many of the sent ones did is a binomial count,
so its exact interval (Clopper and Pearson 1934) decides: below the promise PASS, above it SLO_BREACH, across it
INCONCLUSIVE with the number of requests that could decide. Each bound errs in at most 5 % of runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from phasegate.core.timeline import Timeline
from phasegate.core.units import format_percent, format_seconds
from phasegate.gate.margin import breach_margin, pass_margin
from phasegate.gate.slo import Objective, attainment
from phasegate.gate.verdict import Verdict
from phasegate.stats.client_error import FIRST_TOKEN, WHOLE
from phasegate.stats.intervals import ProportionInterval, proportion_interval
from phasegate.stats.level_run import LevelRun, value_of

ALPHA = 0.05
"""Error probability of each bound, as for the laws."""


@dataclass(frozen=True, slots=True)
class Kept:
    """One objective at one level.

    Attributes:
        objective: the promise.
        level: of the load.
        verdict: PASS, SLO_BREACH, INCONCLUSIVE or INVALID_RUN.
        reason: one sentence with the numbers, and what to do where it did not pass.
        missed: the share of all requests sent that missed the limit, with bounds; None where nothing was sent.
        needed: requests in all that would decide if no other missed; None where decided.
    """

    objective: Objective
    level: float
    verdict: Verdict
    reason: str
    missed: ProportionInterval | None
    needed: int | None = None


def requests_to_prove(objective: Objective) -> int:
    """Requests without a single miss that prove an objective: 59 for p95, 299 for p99."""
    return math.ceil(round(math.log(ALPHA) / math.log(objective.share), 9))


def judge_level(objective: Objective, run: LevelRun) -> Kept:
    """Whether a level keeps an objective."""
    if not run.sent:
        return Kept(objective, run.level, Verdict.INVALID_RUN, f"{run.name}: no request was sent; measure again", None)
    found = attainment(objective, run.samples(objective.metric), run.without(objective.metric))
    missed = proportion_interval(found.sent - found.kept, found.sent, ALPHA)
    promised = 1 - objective.share
    said = (
        f"{run.name}: {missed.hits} of {missed.n} requests missed {objective.metric} <= "
        f"{format_seconds(objective.limit)} ({format_percent(missed.share)}, at least {format_percent(missed.low)}, at "
        f"most {format_percent(missed.high)}; promised: at most {format_percent(promised)}); "
        f"p{objective.percentile:g} is {format_seconds(found.value)}"
    )
    invalid = run.missed or (run.disproved() if objective.metric == "tpot" else None)
    if invalid is not None:
        return Kept(objective, run.level, Verdict.INVALID_RUN, f"{said}; {invalid}", missed)
    if missed.low > promised:
        return _unless_the_client(Kept(objective, run.level, Verdict.SLO_BREACH, said, missed), run)
    if missed.high <= promised:
        return _unless_the_client(Kept(objective, run.level, Verdict.PASS, said, missed), run)
    needed = _needed(objective, missed)
    return Kept(
        objective, run.level, Verdict.INCONCLUSIVE, f"{said}; p{objective.percentile:g} needs {needed} requests "
        f"(--perf-load-requests {needed})", missed, needed,
    )  # fmt: skip


def _unless_the_client(kept: Kept, run: LevelRun) -> Kept:
    """The decision, or INVALID_RUN where the client's own error is a material share of the margin it was made by.

    A late client makes first tokens and whole answers later and never earlier, so one that passes all the same passes.
    """
    metric = kept.objective.metric
    if run.client is None or (kept.verdict is Verdict.PASS and metric in FIRST_TOKEN | WHOLE):
        return kept
    margin_of = pass_margin if kept.verdict is Verdict.PASS else breach_margin
    margin = margin_of(kept.objective, run.samples(metric), run.without(metric), ALPHA)
    problem = run.client.problem(metric, run.usual_tokens(), margin)
    if problem is None:
        return kept
    return replace(kept, verdict=Verdict.INVALID_RUN, reason=f"{kept.reason}; {problem}")


def _needed(objective: Objective, missed: ProportionInterval) -> int:
    """The fewest requests in all that decide: either no further one misses, or the share stays as it is."""
    promised = 1 - objective.share
    if missed.hits == 0:
        return requests_to_prove(objective)
    n = missed.n
    while n < MOST_NEEDED:
        n += max(1, n // 50)
        share = missed.hits * n // missed.n
        if proportion_interval(missed.hits, n, ALPHA).high <= promised:
            return n
        if missed.share > promised and proportion_interval(share, n, ALPHA).low > promised:
            return n
    return MOST_NEEDED


MOST_NEEDED = 10_000
"""`_needed` looks no further: the share lies on the promise itself."""


def attained(objectives: Sequence[Objective], run: LevelRun) -> int:
    """Requests of a level that meet every objective; failures meet none."""
    return sum(all(_meets(line, one) for one in objectives) for line in run.timelines)


def _meets(line: Timeline, objective: Objective) -> bool:
    value = value_of(line, objective.metric)
    return value is not None and value <= objective.limit
