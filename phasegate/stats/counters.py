"""What a server counted while it was measured: two readings of its counters, and the difference between them.

Names are ours (`TIMES`, `COUNTS`, `GAUGES`); which of an engine's names stands for which is the business of
`engines.metrics`. A counter that fell was reset in between, so nothing can be said about it: it is named, and not used.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

TIMES = ("ttft", "queue", "prefill", "decode", "inference", "total", "handoff")
"""Seconds of a request by the server's clock: first token after arrival, waiting, computing the prompt, all further
tokens, all computing, everything, and moving its KV cache from the worker that read the prompt to the one that
writes."""

COUNTS = (
    "requests",
    "prompt_tokens",
    "computed_tokens",
    "output_tokens",
    "cached_tokens",
    "cache_queries",
    "cache_hits",
    "preemptions",
    "drafted_tokens",
    "accepted_tokens",
    "steps",
    "step_streams",
    "handoff_bytes",
)
"""Things that only grow. Prefix-cache queries and hits are in tokens; prompt tokens are those sent, or, as
``computed_tokens``, only those that were not in the cache. Steps are the engine's forward passes, and ``step_streams``
the streams that got a token from one, added up over the steps. Hand-off bytes are those of the KV cache that moved."""

GAUGES = ("running", "waiting", "kv_usage")
"""What is at one moment: requests in work, requests queued, share of the KV cache in use."""


class Kind(str, enum.Enum):
    """How a reading behaves."""

    COUNTER = "counter"
    HISTOGRAM = "histogram"
    GAUGE = "gauge"


@dataclass(frozen=True, slots=True)
class Reading:
    """One metric at one moment, summed over its labels.

    Attributes:
        kind: how it behaves.
        value: a counter's or gauge's value, a histogram's sum.
        count: how often a histogram was added to; None for others.
        parts: each worker's own value, where it is the sum over several; empty otherwise.
    """

    kind: Kind
    value: float
    count: float | None = None
    parts: tuple[float, ...] = ()

    def fell_since(self, then: Reading) -> bool:
        """Whether it began anew in between, on any worker: the others may have made up for it in the sum."""
        one_fell = any(now < before for now, before in zip(self.parts, then.parts, strict=False))
        return self.value < then.value or (self.count or 0.0) < (then.count or 0.0) or one_fell


@dataclass(frozen=True, slots=True)
class ServerCounts:
    """What the server counted in some span of time.

    Attributes:
        grown: word -> by how much a counter or the sum of a histogram grew.
        observed: word -> how many values a histogram took in.
        gauges: word -> as read after the span; never a mean over it.
        reset: words whose counter fell in between; they have no other entry.
        workers: how many servers' counts these are the sum of. Of several a request may pass more than one.
    """

    grown: Mapping[str, float] = field(default_factory=dict)
    observed: Mapping[str, float] = field(default_factory=dict)
    gauges: Mapping[str, float] = field(default_factory=dict)
    reset: tuple[str, ...] = ()
    workers: int = 1

    def mean(self, word: str, requests: int | None = None) -> float | None:
        """Seconds a request of one of `TIMES`.

        ``requests`` is the client's own count, for counters of seconds that do not say of how many requests they are
        the sum, and for several workers, where it is the sum over all that a request passed. None where the server
        does not tell, or told of no request.
        """
        count = requests if self.workers > 1 and requests else self.observed.get(word, requests)
        return self.grown[word] / count if word in self.grown and count else None

    def mean_waiting(self, seconds: float) -> float | None:
        """Requests that waited at one moment, on average over a span of so many seconds.

        Little's law: what arrives, times how long each waits, is how many wait; so it is the sum of all waiting over
        the length of the span, and no page need be read inside it. Exact where the server was idle at both ends of
        the span. None where the server tells no waiting, where that was reset, and for a span of no length.
        """
        return _per_second(self.grown.get("queue"), seconds)

    def mean_running(self, seconds: float) -> float | None:
        """Requests that were computed at one moment, on average over a span of so many seconds.

        As `mean_waiting`, from the sum of all computing: told as such, or as prefill and decode, or as everything less
        the waiting; None where the server tells none of these.
        """
        return _per_second(self._computing(), seconds)

    def _computing(self) -> float | None:
        """Seconds of computing, summed over requests."""
        if "inference" in self.grown:
            return self.grown["inference"]
        if "prefill" in self.grown and "decode" in self.grown:
            return self.grown["prefill"] + self.grown["decode"]
        if "total" in self.grown and "queue" in self.grown:
            return max(0.0, self.grown["total"] - self.grown["queue"])
        return None

    def share(self, part: str, whole: str) -> float | None:
        """One count as a fraction of another; None where either is unknown or the whole is 0."""
        return self.grown[part] / self.grown[whole] if part in self.grown and self.grown.get(whole) else None

    @property
    def cache_hit_rate(self) -> float | None:
        """Share of prompt tokens that came from the prefix cache."""
        if self.grown.get("cache_queries"):
            return self.share("cache_hits", "cache_queries")
        if "computed_tokens" in self.grown and "cached_tokens" in self.grown:
            whole = self.grown["computed_tokens"] + self.grown["cached_tokens"]
            return self.grown["cached_tokens"] / whole if whole else None
        return self.share("cached_tokens", "prompt_tokens")

    @property
    def acceptance(self) -> float | None:
        """Share of drafted tokens that speculative decoding accepted; None where nothing was drafted."""
        return self.share("accepted_tokens", "drafted_tokens")

    @property
    def streams_per_step(self) -> float | None:
        """Streams that got a token from a step of the engine, on average; about 1 where each has a step of its own.

        Where the server adds up no streams, they are the tokens it gave out less the drafted ones among them: a stream
        gets one token of its own from a step. Steps that only read a prompt lower the figure where an engine counts
        them. None where the server does not tell, where there was no step, and where one of the counts was reset.
        """
        if not self.grown.get("steps") or {"step_streams", "output_tokens", "accepted_tokens"} & set(self.reset):
            return None
        if "step_streams" in self.grown:
            return self.share("step_streams", "steps")
        if "output_tokens" not in self.grown:
            return None
        own = self.grown["output_tokens"] - self.grown.get("accepted_tokens", 0.0)
        return max(0.0, own) / self.grown["steps"]

    def facts(self) -> dict[str, object]:
        """Everything as plain values, for a session's file."""
        return {
            "grown": dict(self.grown),
            "observed": dict(self.observed),
            "gauges": dict(self.gauges),
            "reset": list(self.reset),
            **({"workers": self.workers} if self.workers > 1 else {}),
        }


def _per_second(total: float | None, seconds: float) -> float | None:
    return total / seconds if total is not None and seconds > 0 else None


def counted_between(before: Mapping[str, Reading], after: Mapping[str, Reading], workers: int = 1) -> ServerCounts:
    """The difference of two readings, each the sum over so many workers.

    A metric that appears only afterwards began at 0: servers create many of them with the first request. A metric that
    is gone afterwards has no difference.
    """
    grown: dict[str, float] = {}
    observed: dict[str, float] = {}
    gauges: dict[str, float] = {}
    reset: list[str] = []
    for word, now in after.items():
        if not math.isfinite(now.value):
            continue
        if now.kind is Kind.GAUGE:
            gauges[word] = now.value
            continue
        then = before.get(word) or Reading(now.kind, 0.0, None if now.count is None else 0.0)
        if now.fell_since(then):
            reset.append(word)
            continue
        grown[word] = now.value - then.value
        if now.count is not None:
            observed[word] = now.count - (then.count or 0.0)
    return ServerCounts(grown, observed, gauges, tuple(sorted(reset)), workers)


def counted_together(given: Sequence[ServerCounts | None]) -> ServerCounts | None:
    """Several spans as one: growth added up, gauges of the last one. A word that was reset in one of them is out.

    None stands for a span of which the server told nothing, and comes back where there is no other.
    """
    spans = [span for span in given if span is not None]
    if not spans:
        return None
    reset = {word for span in spans for word in span.reset}
    words = {word for span in spans for word in span.grown} - reset
    return ServerCounts(
        grown={word: sum(span.grown.get(word, 0.0) for span in spans) for word in sorted(words)},
        observed={
            word: sum(span.observed.get(word, 0.0) for span in spans)
            for word in sorted(words)
            if any(word in span.observed for span in spans)
        },
        gauges=dict(spans[-1].gauges),
        reset=tuple(sorted(reset)),
        workers=max(span.workers for span in spans),
    )
