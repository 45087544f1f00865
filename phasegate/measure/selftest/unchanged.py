"""Part 3: many builds in which nothing changed, judged as a real build is, and how many of them raise an alarm."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phasegate.gate.policy import Policy
from phasegate.measure.selftest.check import Check, Count
from phasegate.measure.selftest.noise import NoiseSeen, draw_sessions
from phasegate.measure.selftest.sequence import judge_in_sequence, raises_alarm

PART = "A/A builds"


@dataclass(frozen=True, slots=True)
class AABuilds:
    """What many unchanged builds gave.

    Attributes:
        alarms: how many raised an alarm.
        undecided: how many ended INCONCLUSIVE; they stop a build without blaming it.
        comparisons: gated comparisons in a build.
        baseline_sessions: in each build.
        alpha: the chance of an alarm that the policy allows.
        source: where the noise was seen.
        model: what the sessions were drawn from, in one sentence.
    """

    alarms: Count
    undecided: int
    comparisons: int
    baseline_sessions: int
    alpha: float
    source: str
    model: str

    def check(self) -> Check:
        """Whether the alarms agree with the policy's alpha: the lower bound must not exceed it."""
        too_many = self.alarms.exceeds(self.alpha)
        return Check(
            part=PART,
            name=f"{self.source}: {self.alarms.n} unchanged builds, {self.comparisons} gated comparisons each",
            wanted=f"alarms in at most {100 * self.alpha:g} %",
            got=str(self.alarms),
            holds=not too_many and self.comparisons > 0,
            remedy=self._remedy(too_many),
        )

    def _remedy(self, too_many: bool) -> str:
        if self.comparisons == 0:
            return "nothing gates under this policy, so no alarm could have been raised; see gate and rules in it"
        return "the gate cries wolf on this noise: record more baseline sessions on a quieter host" if too_many else ""


def judge_unchanged(
    seen: NoiseSeen,
    policy: Policy,
    *,
    source: str,
    builds: int,
    baseline_sessions: int,
    seed: int,
) -> AABuilds:
    """Draw builds from the noise and judge each by the policy's own sequence of sessions.

    Args:
        source: where the noise was seen, for sentences.
        builds: at least 1.
        baseline_sessions: stored sessions of each build.
    """
    alarms = undecided = comparisons = 0
    for build in range(builds):
        rng = np.random.default_rng([seed, build])
        drawn = draw_sessions(seen, baseline_sessions + policy.session_budget, rng)
        result = judge_in_sequence(drawn[:baseline_sessions], drawn[baseline_sessions:], policy)
        alarms += raises_alarm(result)
        undecided += result.verdict.value == "INCONCLUSIVE"
        comparisons = max(comparisons, sum(row.gated and row.ratio is not None for row in result.findings))
    return AABuilds(
        Count.of(alarms, builds), undecided, comparisons, baseline_sessions, policy.alpha, source, seen.line()
    )
