"""The table of metrics: what each one is called, measured in, good for, and how it is computed.

A metric takes a `Timeline` and gives seconds (or another unit) or `Undefined` with the reason. Undefined is
not zero: it never enters a sample. Definitions follow docs/reference/metrics.md; where tools differ, ours
stands here, in code, once.
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Callable
from dataclasses import dataclass

from phasegate.core.timeline import Channel, Timeline


class Phase(str, enum.Enum):
    """The half of a request a metric speaks of."""

    PREFILL = "prefill"
    DECODE = "decode"
    BOTH = "both"
    CLIENT = "client"


class Better(str, enum.Enum):
    """Which way a metric improves."""

    LOWER = "lower"
    HIGHER = "higher"


@dataclass(frozen=True, slots=True)
class Undefined:
    """A metric that a request does not have, and why."""

    reason: str


@dataclass(frozen=True, slots=True)
class Metric:
    """One row of the table.

    Attributes:
        name: long name, as used in files.
        short: short name, as used on screens and in options.
        unit: ``"s"`` or ``"s/token"``; a metric of the user's own may have another, such as ``"tokens/step"``.
        better: which way is better.
        phase: the phase it measures.
        definition: one sentence.
        measure: `Timeline` -> value or `Undefined`.
    """

    name: str
    short: str
    unit: str
    better: Better
    phase: Phase
    definition: str
    measure: Callable[[Timeline], float | Undefined]


def time_to_first_token(timeline: Timeline) -> float | Undefined:
    """First token event of any channel, counted from the moment the request's headers were sent."""
    if timeline.sent is None:
        return Undefined("the request was never sent")
    if not timeline.tokens:
        return Undefined("no token event came")
    return timeline.tokens[0].at - timeline.sent


def time_to_first_output_token(timeline: Timeline) -> float | Undefined:
    """First *answer* token, so reasoning counts as waiting, counted from the send."""
    if timeline.sent is None:
        return Undefined("the request was never sent")
    first = next((event.at for event in timeline.tokens if event.channel is Channel.CONTENT), None)
    if first is None:
        return Undefined("no answer token came")
    return first - timeline.sent


def time_per_output_token(timeline: Timeline) -> float | Undefined:
    """(last token event - first token event) / (output tokens - 1), with a count the server proved."""
    reason = _no_decode_span(timeline)
    if reason is not None:
        return Undefined(reason)
    streamed = streamed_tokens(timeline)
    assert streamed is not None
    return (timeline.tokens[-1].at - timeline.tokens[0].at) / (streamed - 1)


def streamed_tokens(timeline: Timeline) -> int | None:
    """Output tokens that the token events hold: all, less the reasoning that took place unseen before them.

    None without a proven count, and where unseen reasoning is not counted apart.
    """
    if timeline.output_tokens is None or "hidden_reasoning" not in timeline.flags:
        return timeline.output_tokens
    return None if timeline.reasoning_tokens is None else timeline.output_tokens - timeline.reasoning_tokens


def _no_decode_span(timeline: Timeline) -> str | None:
    if timeline.status != "ok":
        return f"the request ended as {timeline.error_kind or timeline.status}"
    if timeline.choices > 1:
        return f"{timeline.choices} choices share one token count"
    if timeline.output_tokens is None:
        return f"no proven output token count ({timeline.count_problem or 'the server sent no usage'})"
    if (timeline.reasoning_tokens or 0) > timeline.output_tokens:
        return (
            f"the server counts {timeline.reasoning_tokens} reasoning tokens among {timeline.output_tokens} output "
            "tokens, which cannot be"
        )
    streamed = streamed_tokens(timeline)
    if streamed is None:
        return "the model reasoned unseen, and those tokens are not counted apart"
    if streamed < 2:
        return f"needs 2 output tokens, got {streamed}"
    if "usage_inconsistent" in timeline.flags:
        return "the server's token count contradicts its own stream"
    if len(timeline.tokens) < 2:
        return f"all {streamed} tokens came in one event"
    return None


def request_latency(timeline: Timeline) -> float | Undefined:
    """Last token event, counted from the send; usage chunk and ``[DONE]`` do not stretch it."""
    if timeline.sent is None:
        return Undefined("the request was never sent")
    if timeline.status != "ok" or not timeline.tokens:
        return Undefined(f"the request ended as {timeline.error_kind or timeline.status}")
    return timeline.tokens[-1].at - timeline.sent


def time_to_first_token_from_due(timeline: Timeline) -> float | Undefined:
    """First token event of any channel, counted from the moment the schedule wanted the request sent.

    What a user waits for in an open loop: a client or a cap that held the request back cannot hide the wait.
    """
    value = time_to_first_token(timeline)
    return value if isinstance(value, Undefined) else timeline.tokens[0].at - timeline.due


def request_latency_from_due(timeline: Timeline) -> float | Undefined:
    """Last token event, counted from the moment the schedule wanted the request sent."""
    value = request_latency(timeline)
    return value if isinstance(value, Undefined) else timeline.tokens[-1].at - timeline.due


def schedule_delay(timeline: Timeline) -> float | Undefined:
    """How long after it was due the request was sent: the client's own lateness."""
    if timeline.sent is None:
        return Undefined("the request was never sent")
    return timeline.sent - timeline.due


def connect_time(timeline: Timeline) -> float | Undefined:
    """Connection set-up, which is not part of TTFT."""
    if timeline.connect_time is None:
        return Undefined("no connection was made")
    return timeline.connect_time


def inter_chunk_latencies(timeline: Timeline, choice: int = 0) -> list[float]:
    """Gaps between the token events of one choice, in seconds, in order.

    Events that came in one network read have gaps of 0. Equal to inter-token latency only where one chunk
    is one token.
    """
    moments = [event.at for event in timeline.tokens if event.choice == choice]
    return [later - earlier for earlier, later in itertools.pairwise(moments)]


METRICS: tuple[Metric, ...] = (
    Metric(
        "time_to_first_token", "ttft", "s", Better.LOWER, Phase.PREFILL,
        "first token event of any channel - request headers sent", time_to_first_token,
    ),
    Metric(
        "time_to_first_output_token", "ttfo", "s", Better.LOWER, Phase.PREFILL,
        "first answer token - request headers sent", time_to_first_output_token,
    ),
    Metric(
        "time_per_output_token", "tpot", "s/token", Better.LOWER, Phase.DECODE,
        "(last token event - first token event) / (output tokens - 1)", time_per_output_token,
    ),
    Metric(
        "request_latency", "e2el", "s", Better.LOWER, Phase.BOTH,
        "last token event - request headers sent", request_latency,
    ),
    Metric(
        "time_to_first_token_from_due", "ttft_from_due", "s", Better.LOWER, Phase.BOTH,
        "first token event of any channel - due", time_to_first_token_from_due,
    ),
    Metric(
        "request_latency_from_due", "e2el_from_due", "s", Better.LOWER, Phase.BOTH,
        "last token event - due", request_latency_from_due,
    ),
    Metric(
        "schedule_delay", "delay", "s", Better.LOWER, Phase.CLIENT,
        "request headers sent - due", schedule_delay,
    ),
    Metric(
        "connect_time", "connect", "s", Better.LOWER, Phase.CLIENT,
        "connection set-up before the send", connect_time,
    ),
)  # fmt: skip


_OWN: dict[str, Metric] = {}


def register(metric: Metric) -> None:
    """Add a metric of the user's own to the table, for this process. Adding the same one again changes nothing.

    Raises:
        ValueError: another metric has that name already.
    """
    for one in (*METRICS, *_OWN.values()):
        if {one.name, one.short} & {metric.name, metric.short} and one != metric:
            raise ValueError(f"a metric named {metric.short!r} ({metric.name!r}) exists already; choose another name")
    _OWN[metric.short] = metric


def own_metrics() -> tuple[Metric, ...]:
    """The metrics that were registered, in order."""
    return tuple(_OWN.values())


def metric_named(name: str) -> Metric:
    """The metric of that long or short name, registered ones included.

    Raises:
        ValueError: no metric has that name; the message lists those that exist.
    """
    table = (*METRICS, *_OWN.values())
    for metric in table:
        if name in (metric.name, metric.short):
            return metric
    known = ", ".join(metric.short for metric in table)
    raise ValueError(f"unknown metric {name!r}; known: {known}")
