"""The server's own times of lone requests from its counters, where its answers carry none: means over a workload.

vLLM, SGLang and TGI keep histograms, which tell the mean over all requests of a span, not one request's. A mean is
taken for a kind of request only where it is that kind's: the server counted as many requests as were sent, and, for
reading the prompt, all prompts were new to it and of one length. A wait does not depend on the prompt, so its mean is
taken for every kind. Where others used the server meanwhile, the mean wait is everybody's; the count tells that. Times
longer than what the client waited are of something else and are not taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from phasegate.diagnose.observations import Ask
from phasegate.diagnose.thresholds import OTHERS_SHARE
from phasegate.stats.counters import ServerCounts
from phasegate.stats.first_token import CLOCK_DRIFT, CLOCK_ERROR

REQUEST_WORDS = ("queue", "ttft", "total", "requests")
"""Where the number of requests is looked for, in this order."""


@dataclass(frozen=True, slots=True)
class Span:
    """What was sent while a server counted.

    Attributes:
        sent: requests, of all kinds.
        alike: whether all prompts were of one length and new to the server.
    """

    sent: int
    alike: bool


def with_counts(ask: Ask, ttfts: Sequence[float], server: ServerCounts | None, span: Span) -> Ask:
    """The request with what the server counted in its span; as it is where that tells nothing of it.

    Args:
        ask: a kind of request.
        ttfts: its measured TTFTs, seconds.
        server: what was counted while all kinds of the span were sent.
        span: what was sent.
    """
    if server is None or not span.sent:
        return ask
    # Of several workers' counts a request may be in more than one.
    seen = _requests(server) if server.workers == 1 else float(span.sent)
    others = None if seen is None else max(0.0, seen - span.sent)
    others = others if others is not None and others > OTHERS_SHARE * span.sent else None
    ask = replace(ask, others=others)
    if ask.server_handoff is None and others is None:
        ask = replace(ask, server_handoff=server.mean("handoff", span.sent))
    if ask.server_prefill is not None or ask.ttft is None or seen is None or seen < span.sent:
        return ask
    # Means beside medians: what one slow request added to the mean, the middle one did not wait.
    excess = max(0.0, float(np.mean(ttfts)) - float(np.median(ttfts))) if ttfts else 0.0
    queue, prefill = server.mean("queue", span.sent), server.mean("prefill", span.sent)
    prefill = prefill if others is None and span.alike else None
    if others is None and _too_long((queue or 0.0) + (prefill or 0.0), ttfts):
        return ask
    if queue is not None:
        queue, excess = max(0.0, queue - excess), max(0.0, excess - queue)
        ask = replace(ask, server_queue=min(queue, ask.ttft))
    return ask if prefill is None else replace(ask, server_prefill=max(0.0, prefill - excess))


def _too_long(told: float, ttfts: Sequence[float]) -> bool:
    """Whether a mean time of the server cannot be a part of what the client waited on average."""
    return told > (float(np.mean(ttfts)) if ttfts else 0.0) * (1 + CLOCK_DRIFT) + CLOCK_ERROR


def _requests(server: ServerCounts) -> float | None:
    """Requests that the server counted; None where it tells no number of them."""
    for word in REQUEST_WORDS:
        if server.observed.get(word) is not None:
            return server.observed[word]
    return server.grown.get("requests")
