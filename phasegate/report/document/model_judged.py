"""What was judged, as the document keeps it: rows of the gate, laws of the phases, and trends over sessions."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Row:
    """One comparison or objective of the gate: a `gate.verdict.Finding` with what is needed to draw it.

    Attributes:
        workload, metric: as the gate names them; ``metric`` carries its percentile where that is not the median
            (``ttft:p95``) and its limit where it is an objective (``ttft:p95:500ms``).
        phase: ``prefill``, ``decode`` or ``both``.
        unit: of the values: ``s``, ``s/token`` or a rate; empty where nobody declared the metric.
        better: ``lower`` or ``higher``.
        gated: whether it decides the build; the others inform.
        verdict, reason, advice, notes: the gate's words.
        ratio, ratio_low, ratio_high: now / baseline with its 95 % interval.
        p, p_allowed: p-value of "worse", and the largest one that counts as proof.
        mde: smallest worsening that would have been found, as a fraction.
        tolerance, tolerance_source: smallest worsening that must be found, and ``default`` or ``file:line``.
        fails_from: from which change on, a fraction in the metric's own direction, it is a regression if proven; None
            where it fails nothing.
        sessions_needed, baseline_needed: how many more candidate sessions (or blocks) or baseline sessions would decide
            an undecided row; None where no number would.
        remedy: what would decide an undecided row.
        baseline_value, candidate_value: medians of the sessions' values, in ``unit``.
        baseline_sessions, candidate_sessions: sessions (or blocks) that carry the row.
        baseline_levels, candidate_levels: one value for each of those sessions, oldest first, in ``unit``.
    """

    workload: str
    metric: str
    phase: str
    unit: str
    better: str
    gated: bool
    verdict: str
    reason: str
    advice: str = ""
    notes: tuple[str, ...] = ()
    ratio: float | None = None
    ratio_low: float | None = None
    ratio_high: float | None = None
    p: float | None = None
    mde: float | None = None
    tolerance: float | None = None
    tolerance_source: str = ""
    baseline_value: float | None = None
    candidate_value: float | None = None
    baseline_sessions: int = 0
    candidate_sessions: int = 0
    baseline_levels: tuple[float, ...] = ()
    candidate_levels: tuple[float, ...] = ()
    p_allowed: float | None = None
    fails_from: float | None = None
    sessions_needed: int | None = None
    baseline_needed: int | None = None
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Gate:
    """What the gate compared and said.

    Attributes:
        verdict, reason, lever, warnings: the gate's own.
        against: ``stored sessions`` or ``a reference measured beside it``.
        unit: what carries the evidence: ``session`` or ``block``.
        expected, compared: coverage: comparisons that the baseline knows, and those that were made.
        rows: gated rows first, worst first.
        binding: workload -> which phase decides it, and why.
        attributions: one sentence for each slower workload: where a request lost its time.
    """

    verdict: str
    reason: str
    against: str
    unit: str
    expected: int
    compared: int
    rows: tuple[Row, ...] = ()
    warnings: tuple[str, ...] = ()
    binding: dict[str, str] = field(default_factory=dict)
    attributions: tuple[str, ...] = ()
    lever: str | None = None


@dataclass(frozen=True, slots=True)
class Law:
    """One law of the phases, as `stats.outcome.LawResult`, with the test that asked for it."""

    law: str
    outcome: str
    reason: str
    unit: str
    confidence: float
    n: int
    effect: float | None = None
    low: float | None = None
    high: float | None = None
    needed: int | None = None
    warnings: tuple[str, ...] = ()
    detail: str = ""
    test: str = ""


@dataclass(frozen=True, slots=True)
class TrendPoint:
    """One session or block in a trend: its value in the metric's unit, and its side.

    The side is ``baseline`` or ``now``; in a paired comparison ``reference`` or ``candidate``.
    """

    session: str
    recorded_at: str
    value: float
    side: str


@dataclass(frozen=True, slots=True)
class Trend:
    """A metric of a workload over sessions, oldest first, or over the blocks of a paired comparison.

    Attributes:
        orders: for each block the order of its visits, ``ABBA`` or ``BAAB`` with A the reference, empty where it is not
            known; without entries where these are sessions.
    """

    workload: str
    metric: str
    unit: str
    phase: str
    gated: bool
    points: tuple[TrendPoint, ...]
    orders: tuple[str, ...] = ()
