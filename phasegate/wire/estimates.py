"""Decode times beside the gated metric: per token where counts prove it, per chunk where nothing does."""

from __future__ import annotations

import itertools

from phasegate.core.timeline import Timeline


def per_token_latencies(timeline: Timeline) -> list[float] | None:
    """Seconds per token, one entry a token after the first event's, or None.

    Each gap between token events is spread evenly over the tokens that the later event proved, which is all
    that can be known of them. None where an event lacks its proof, or where a gap holds no whole token.
    """
    latencies: list[float] = []
    for earlier, later in itertools.pairwise(timeline.tokens):
        if not later.tokens:
            return None
        latencies += [(later.at - earlier.at) / later.tokens] * later.tokens
    return latencies or None


def time_per_output_token_estimate(timeline: Timeline) -> float | None:
    """(last token event - first token event) / (token events - 1), or None.

    An upper bound of TPOT where a chunk holds one token or more; only for an answer whose count is unproven,
    and never to be compared with a proven TPOT.
    """
    events = timeline.output_tokens_estimate
    if timeline.status != "ok" or timeline.choices > 1 or events is None or events < 2:
        return None
    return (timeline.tokens[-1].at - timeline.tokens[0].at) / (events - 1)
