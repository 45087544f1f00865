"""What was measured, as the document keeps it: workloads, levels of load, objectives under load, one request."""

from __future__ import annotations

from dataclasses import dataclass, field


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
class ServerCounted:
    """What the server counted of a workload or a level of load; None for what it does not tell.

    Attributes:
        seconds: mean seconds a request by the server's clock, of what it tells: ``ttft``, ``queue``, ``prefill``,
            ``decode``, ``inference``, ``total``, ``handoff`` (of a KV cache, for each move).
        running, waiting: requests in work and queued at a moment, on average over a level; None for workloads.
        streams_per_step: streams that got a token from a step of the engine, on average.
        cache_hit_rate: share of prompt tokens that came from the prefix cache.
        acceptance: share of drafted tokens that speculative decoding accepted.
        preemptions: how often a request lost its memory.
        handoff_bytes: mean size of a KV cache that was handed over.
        reset: words whose counter fell meanwhile, so that nothing is known of them.
    """

    seconds: dict[str, float] = field(default_factory=dict)
    running: float | None = None
    waiting: float | None = None
    streams_per_step: float | None = None
    cache_hit_rate: float | None = None
    acceptance: float | None = None
    preemptions: float | None = None
    handoff_bytes: float | None = None
    reset: tuple[str, ...] = ()


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
        server: what the server counted meanwhile; None where it tells nothing.
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
    server: ServerCounted | None = None


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
        server: as in `WorkloadTable`.
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
    server: ServerCounted | None = None


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
