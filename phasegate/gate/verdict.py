"""How a comparison ends: the words, one row per comparison, and the result of a whole build.

A verdict is a word plus a reason. Words are ordered from the worst to the best, and a build takes the worst word of
its gated rows, so that nothing can be averaged away: one row 40 % worse and one 40 % better is a regression.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from phasegate.gate.undecided import hardest


class Verdict(str, enum.Enum):
    """The nine words, worst first. Only PASS and IMPROVED are green.

    A broken measurement stands above a regression, because its numbers prove nothing either way; a regression
    stands above what merely could not be compared, because it is proven.
    """

    INVALID_BASELINE = "INVALID_BASELINE"
    INVALID_RUN = "INVALID_RUN"
    REGRESSION = "REGRESSION"
    SLO_BREACH = "SLO_BREACH"
    NOT_COMPARABLE = "NOT_COMPARABLE"
    NO_BASELINE = "NO_BASELINE"
    INCONCLUSIVE = "INCONCLUSIVE"
    PASS = "PASS"
    IMPROVED = "IMPROVED"

    @property
    def green(self) -> bool:
        """Whether a build with this verdict may go on."""
        return self in (Verdict.PASS, Verdict.IMPROVED)

    @property
    def badness(self) -> int:
        """Position in the order of words: 0 is the best."""
        return len(_WORST_FIRST) - 1 - _WORST_FIRST.index(self)


_WORST_FIRST = tuple(Verdict)


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The worst of some verdicts.

    Raises:
        ValueError: there is none; nothing compared is for the caller to name, it is never a pass.
    """
    return max(verdicts, key=lambda verdict: verdict.badness)


@dataclass(frozen=True, slots=True)
class Finding:
    """One row: one metric of one workload, judged.

    Attributes:
        workload, metric: what was compared; ``metric`` carries its percentile where that is not the median
            (``ttft:p95``) and its limit where it is an SLO (``ttft:p95:500ms``).
        phase: ``prefill``, ``decode`` or ``both``.
        gated: whether the row decides the build; the others inform.
        verdict: the word.
        reason: one sentence with the numbers in it.
        ratio: candidate / baseline, in the metric's own direction; None where nothing could be compared.
        ratio_low, ratio_high: its 95 % interval.
        p: p-value of "worse" as the statistics report it, before any correction; None where there is no evidence
            to speak of.
        binds: whether it is held to its own tolerance: not so a row of the phase that does not bind its workload.
        p_allowed: the largest p that counts as proof, after the correction for all comparisons; None with ``p``.
        mde: smallest worsening this comparison would have found, as a fraction; None where it has no power.
        baseline_sessions, candidate_sessions: how many sessions carry the row (blocks, when paired).
        tolerance: smallest worsening that must be found, a fraction, absolute floor included; None where none was
            needed.
        tolerance_source: where it came from: ``default`` or ``file:line``.
        fails_from: from which change on the row is a regression where it is proven, absolute floor included: a fraction
            in the metric's own direction like ``ratio`` - 1, negative for a throughput; None where it fails nothing.
        sessions_needed, baseline_needed: how many more candidate sessions (or blocks) or baseline sessions would decide
            an undecided row; None where it is decided, or where no number would decide it.
        remedy: what would decide an undecided row, in the clause that its reason has of it.
        baseline_value, candidate_value: median of the sessions' values, in the metric's unit.
        advice: what to do; empty for green rows.
        notes: remarks that do not change the verdict.
    """

    workload: str
    metric: str
    phase: str
    gated: bool
    verdict: Verdict
    reason: str
    ratio: float | None = None
    ratio_low: float | None = None
    ratio_high: float | None = None
    p: float | None = None
    mde: float | None = None
    baseline_sessions: int = 0
    candidate_sessions: int = 0
    tolerance: float | None = None
    tolerance_source: str = ""
    baseline_value: float | None = None
    candidate_value: float | None = None
    advice: str = ""
    notes: tuple[str, ...] = ()
    binds: bool = True
    p_allowed: float | None = None
    fails_from: float | None = None
    sessions_needed: int | None = None
    baseline_needed: int | None = None
    remedy: str = ""

    @property
    def proven_slower(self) -> bool:
        """Whether noise does not explain that it got worse, by however little."""
        return self.p is not None and self.p_allowed is not None and self.p <= self.p_allowed

    def as_json(self) -> dict[str, Any]:
        """The row as the compare command prints it; numbers that are not finite become None."""
        return {
            "workload": self.workload,
            "metric": self.metric,
            "phase": self.phase,
            "gated": self.gated,
            "verdict": self.verdict.value,
            "ratio": finite(self.ratio),
            "ratio_low": finite(self.ratio_low),
            "ratio_high": finite(self.ratio_high),
            "p": finite(self.p),
            "p_allowed": finite(self.p_allowed),
            "mde": finite(self.mde),
            "tolerance": finite(self.tolerance),
            "fails_from": finite(self.fails_from),
            "sessions_needed": self.sessions_needed,
            "baseline_needed": self.baseline_needed,
            "baseline_sessions": self.baseline_sessions,
            "candidate_sessions": self.candidate_sessions,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of what the baseline knows was compared: gated and informing rows alike."""

    expected: int
    compared: int


@dataclass(frozen=True, slots=True)
class GateResult:
    """What the gate says about a build.

    Attributes:
        verdict: the worst word of the gated rows and of the checks on the run as a whole.
        reason: one sentence for the last line of a report.
        coverage: comparisons expected and made.
        findings: one row per comparison and SLO, worst first within gated and informing rows.
        warnings: remarks for the reader, worded as remedies.
        binding: workload -> the phase that decides it, with the reason.
        attributions: workload -> one sentence that spreads a slower request over its phases.
        lever: what usually helps the phase that got slower; None for a green build.
        needs_more: workloads that a planned sequence of sessions should measure again; empty without a plan.
        refusal_remedy: what to do where nothing could be compared; the rows say it where something was.
    """

    verdict: Verdict
    reason: str
    coverage: Coverage
    findings: tuple[Finding, ...] = ()
    warnings: tuple[str, ...] = ()
    binding: dict[str, str] = field(default_factory=dict)
    attributions: dict[str, str] = field(default_factory=dict)
    lever: str | None = None
    needs_more: tuple[str, ...] = ()
    refusal_remedy: str = ""

    @property
    def remedy(self) -> str:
        """What to do; empty for a green build."""
        rows = [row for row in self.findings if row.gated and row.verdict is self.verdict]
        if rows and self.verdict is Verdict.INCONCLUSIVE:
            told = hardest(rows)
            return told.advice or told.remedy
        return "" if self.verdict.green else next((row.advice for row in rows if row.advice), self.refusal_remedy)

    def as_json(self) -> dict[str, Any]:
        """The result as the compare command prints it."""
        return {
            "verdict": self.verdict.value,
            "reason": self.reason,
            "remedy": self.remedy,
            "coverage": {"expected": self.coverage.expected, "compared": self.coverage.compared},
            "findings": [finding.as_json() for finding in self.findings],
            "warnings": list(self.warnings),
        }


def refused(
    verdict: Verdict, reason: str, *, remedy: str = "", expected: int = 0, warnings: Sequence[str] = ()
) -> GateResult:
    """The result of a build in which nothing could be compared.

    Args:
        verdict: the word.
        reason: why, in one sentence.
        remedy: what to do; it is said behind the reason.
        expected: comparisons that should have been made.
        warnings: remarks for the reader.
    """
    said = f"{reason}; {remedy}" if remedy else reason
    return GateResult(verdict, said, Coverage(expected, 0), (), tuple(warnings), refusal_remedy=remedy)


def finite(value: float | None) -> float | None:
    """The number where it is one that JSON knows, else None."""
    return value if value is not None and math.isfinite(value) else None
