"""What a finished run has to say, as plain values: every report is made from this and from nothing else.

The document is frozen and versioned. It holds numbers in seconds, seconds per token and fractions, words as the gate
and the laws said them, and no object of the run itself; so it can be written to a file, read back elsewhere, and shown
as HTML, Markdown, CSV or on a screen with the same result. Whatever was not measured is None or empty: a report leaves
it out or says what would fill it. Infinite values (a percentile that falls on a failed request) are None as well, with
the failures counted beside them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

SCHEMA = "phasegate-report/1"
"""Name and version of this layout. A reader refuses another version instead of guessing at it."""

BROKEN = ("INTERRUPTED", "INVALID_BASELINE", "INVALID_RUN", "NOT_MEASURED")
"""Words of a run whose numbers prove nothing."""

BAD = ("REGRESSION", "SLO_BREACH", "FAIL")
"""Words of a run that proved something wrong."""

OPEN = ("NOT_COMPARABLE", "NO_BASELINE", "INCONCLUSIVE")
"""Words of a run that decided nothing."""

GOOD = ("PASS", "IMPROVED")
"""Words of a green run."""

WORDS = (*BROKEN, *BAD, *OPEN, *GOOD)
"""Every word a run can end with, worst first, in the order of the exit statuses."""


def tone_of(word: str) -> str:
    """How a word is shown: ``good``, ``bad``, ``open`` or ``broken``; ``open`` for a word that is not known."""
    tones = {"good": GOOD, "bad": BAD, "open": OPEN, "broken": BROKEN}
    return next((tone for tone, words in tones.items() if word in words), "open")


@dataclass(frozen=True, slots=True)
class Headline:
    """The answer in one screen: what happened, in which phase, how much, how sure, and what to do.

    Attributes:
        verdict: one of `WORDS`.
        title: one short sentence for people.
        phase: ``prefill``, ``decode``, ``both``, or None where no phase is concerned.
        how_much: the deciding numbers in one sentence; empty where there are none.
        how_sure: interval, smallest change that would have been found, sessions; empty where nothing was compared.
        what_to_do: the next steps, the first one first; empty for nothing to do.
        lever: what usually helps the phase; None for a run without a slower phase.
        reason: the gate's or the run's own sentence, in full.
        also: words of other parts of the run, such as ``1 law: FAIL``.
        phase_note: what of the phase it is, where that is known: ``waiting for a turn before the prompt is read``.
    """

    verdict: str
    title: str
    phase: str | None = None
    how_much: str = ""
    how_sure: str = ""
    what_to_do: tuple[str, ...] = ()
    lever: str | None = None
    reason: str = ""
    also: tuple[str, ...] = ()
    phase_note: str = ""


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
        p, mde: p-value of "worse", and smallest worsening that would have been found, as a fraction.
        tolerance, tolerance_source: the fraction that applied, and ``default`` or ``file:line``.
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
class Estimate:
    """A value with its two-sided 95 % interval, in seconds (or seconds per token).

    ``value`` is None where it is infinite: too many requests failed. An end is None where too few values bound it.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int


@dataclass(frozen=True, slots=True)
class Gaps:
    """Inter-chunk latencies of the usable requests of a workload, in seconds.

    Attributes:
        n: gaps in all.
        same_read: gaps of 0, between events that came in one network read; in no bin of the histogram.
        p50, p95, p99, longest: by nearest rank over all gaps.
        edges: bounds of the histogram's bins, ascending, one more than ``counts``.
        counts: gaps in each bin.
    """

    n: int
    same_read: int
    p50: float
    p95: float
    p99: float
    longest: float
    edges: tuple[float, ...] = ()
    counts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class CellRow:
    """One cell of a workload.

    Attributes:
        label: the cell's full name.
        input_tokens, output_tokens, role: what was asked.
        requests: usable requests.
        ttft, tpot, e2el: medians with intervals; None where no request has the metric.
        samples: metric -> values of the requests, in order of sending, at most `MOST_SAMPLES`.
        cached_tokens: median that the server reported; None where it reports none.
    """

    label: str
    input_tokens: int
    output_tokens: int
    role: str
    requests: int
    ttft: Estimate | None = None
    tpot: Estimate | None = None
    e2el: Estimate | None = None
    samples: dict[str, tuple[float, ...]] = field(default_factory=dict)
    cached_tokens: float | None = None


MOST_SAMPLES = 100
"""Requests of a cell that a document shows one by one: more could not be told apart in a chart."""


@dataclass(frozen=True, slots=True)
class Fit:
    """A straight line through a metric over a length, by least squares with weights 1 / median squared.

    Attributes:
        metric: ``ttft`` or ``e2el``.
        over: ``prompt tokens`` or ``output tokens - 1``.
        intercept: seconds at 0.
        slope: seconds per token.
        n: requests.
    """

    metric: str
    over: str
    intercept: float
    slope: float
    n: int


@dataclass(frozen=True, slots=True)
class WorkloadTable:
    """One workload of the lab's own session.

    Attributes:
        name: of the workload.
        title: name, lengths and counts in one line.
        axis: which length varies: ``prompt``, ``output``, or None for neither (or both).
        prefix: how prompts share their beginning, such as ``unique``.
        cells: in the order of the workload.
        fits: lines through the cells, where a length varies.
        gaps: of all its requests; None where no request has any.
        said: attribution or what the cache saved, one sentence each.
        remarks: failures, unfit answers, a stopped run, notes of the client.
    """

    name: str
    title: str
    axis: str | None
    prefix: str
    cells: tuple[CellRow, ...]
    fits: tuple[Fit, ...] = ()
    gaps: Gaps | None = None
    said: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LevelRow:
    """One level of load.

    Attributes:
        level: requests in flight, or requests a second where ``by_rate``.
        name: the level in words.
        by_rate: whether it is a rate of arrivals.
        sent: requests, failures included.
        failed: error kind -> requests.
        percentiles: metric -> percentile such as ``p95`` -> estimate over all requests sent, failures as infinity.
        token_rate, request_rate: per second of the measured window.
        attained: share of requests that met every objective; None without objectives.
        remarks: what a reader must know of it.
    """

    level: float
    name: str
    by_rate: bool
    sent: int
    failed: dict[str, int]
    percentiles: dict[str, dict[str, Estimate]]
    token_rate: float
    request_rate: float
    attained: float | None = None
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ObjectiveRow:
    """One objective at one level, judged.

    Attributes:
        objective: as it is written, such as ``ttft:p95:500ms``.
        metric, percentile, limit: its parts; seconds.
        phase: of the metric.
        level, by_rate: where it was judged.
        verdict, reason: the gate's words.
        missed, missed_low, missed_high: share of all requests that missed the limit; None where none was sent.
        source: where it was given.
    """

    objective: str
    metric: str
    percentile: float
    limit: float
    phase: str
    level: float
    verdict: str
    reason: str
    by_rate: bool = False
    missed: float | None = None
    missed_low: float | None = None
    missed_high: float | None = None
    source: str = ""


@dataclass(frozen=True, slots=True)
class LimitRow:
    """How far one objective holds, as the search found it; levels as in `LevelRow`."""

    objective: str
    text: str
    by_rate: bool
    kept: float | None = None
    broken: float | None = None
    cause: str | None = None
    cause_reason: str = ""


@dataclass(frozen=True, slots=True)
class Load:
    """Everything measured under load; ``said`` are sentences on batching and on long prompts."""

    levels: tuple[LevelRow, ...] = ()
    objectives: tuple[ObjectiveRow, ...] = ()
    limits: tuple[LimitRow, ...] = ()
    said: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RequestLine:
    """One real request as it passed.

    Attributes:
        request_id, workload: which one.
        prompt_tokens, output_tokens, cached_tokens: as the server reported them; None where it did not.
        ttft, total: seconds from the send.
        tpot: seconds per token; None where it is undefined.
        token_at: moments of the token events, seconds from the send, ascending.
        why: why it stands for the others.
    """

    request_id: str
    workload: str
    ttft: float
    total: float
    token_at: tuple[float, ...]
    tpot: float | None = None
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class TrendPoint:
    """One session in a trend: its value in the metric's unit, and whether it is ``baseline`` or ``now``."""

    session: str
    recorded_at: str
    value: float
    side: str


@dataclass(frozen=True, slots=True)
class Trend:
    """A metric of a workload over sessions, oldest first."""

    workload: str
    metric: str
    unit: str
    phase: str
    gated: bool
    points: tuple[TrendPoint, ...]


@dataclass(frozen=True, slots=True)
class Failure:
    """A test of the run that did not pass: its name, its word (``FAIL`` for any other failure), and what it said."""

    test: str
    word: str
    message: str


@dataclass(frozen=True, slots=True)
class Validity:
    """Whether the numbers may be believed.

    Attributes:
        invalid: why parts of the run prove nothing.
        failures: tests that did not pass.
        outcomes: word -> tests that ended with it (``passed`` for those that passed).
        requests, failed, unfit: of the lab's own session.
        remarks: host disturbances, notes of the client, stopped runs.
        sessions: sessions measured for the gate, baseline or reference first.
        interrupted: whether the run was stopped before its end.
        duration: seconds of the whole run; None where unknown.
    """

    invalid: tuple[str, ...] = ()
    failures: tuple[Failure, ...] = ()
    outcomes: dict[str, int] = field(default_factory=dict)
    requests: int = 0
    failed: int = 0
    unfit: int = 0
    remarks: tuple[str, ...] = ()
    sessions: tuple[int, int] = (0, 0)
    interrupted: bool = False
    duration: float | None = None


@dataclass(frozen=True, slots=True)
class PolicyValue:
    """A number that decided something: its name, its value as text, and where it came from."""

    name: str
    value: str
    source: str


@dataclass(frozen=True, slots=True)
class Environment:
    """On what was measured, from where, and by which numbers it was judged.

    Attributes:
        server, client: facts as text; unknown ones are left out.
        reference: the server compared with, in a paired run; empty otherwise.
        settings: settings that the server told, as text.
        prompts: how prompts were written, in one line.
        plan: how a budget of time was divided; None without one.
        policy: values that applied.
        objectives: as they are written.
    """

    server: dict[str, str] = field(default_factory=dict)
    client: dict[str, str] = field(default_factory=dict)
    reference: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    prompts: str = ""
    plan: str | None = None
    policy: tuple[PolicyValue, ...] = ()
    objectives: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reproduce:
    """How to measure the same again: commands to type, and the seed of prompts and order."""

    commands: tuple[str, ...] = ()
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """A finished run.

    Attributes:
        schema: `SCHEMA`.
        phasegate: version that made it.
        created: UTC time in ISO 8601.
        exit_status: of the run; None where it had none (made from sessions).
        headline: the first screen.
        gate, load, request: None where nothing of the kind was measured.
        diagnosis: findings of the diagnosis, each a mapping with at least ``title`` and ``text``.
        server_timings: the server's own times beside the client's, as the part that measured them wrote them.
        roofline: what the hardware allows at best, as the part that worked it out wrote it.
    """

    schema: str
    phasegate: str
    created: str
    headline: Headline
    exit_status: int | None = None
    gate: Gate | None = None
    laws: tuple[Law, ...] = ()
    workloads: tuple[WorkloadTable, ...] = ()
    load: Load | None = None
    request: RequestLine | None = None
    trends: tuple[Trend, ...] = ()
    validity: Validity = field(default_factory=Validity)
    environment: Environment = field(default_factory=Environment)
    reproduce: Reproduce = field(default_factory=Reproduce)
    diagnosis: tuple[dict[str, Any], ...] = ()
    server_timings: dict[str, Any] | None = None
    roofline: dict[str, Any] | None = None
