"""The simulator's counters in Prometheus' text format. Times are real seconds, as a client counts them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from phasegate.engines.simulator.prefix_cache import PrefixCache
from phasegate.engines.simulator.timetable import Timetable
from phasegate.engines.simulator.truth import Truth

PREFIX = "phasegate_simulator"
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the TTFT histogram, seconds."""


def render(truths: Sequence[Truth], timetable: Timetable, cache: PrefixCache) -> str:
    """The whole page. Counters cover what the truth log holds; the cache and the steps count since the start."""
    steps, step_streams = timetable.decoded
    values = {
        "requests_running": ("gauge", timetable.running),
        "requests_waiting": ("gauge", timetable.waiting),
        "kv_cache_tokens": ("gauge", timetable.kv_tokens),
        "prefix_cache_queries_total": ("counter", cache.queries),
        "prefix_cache_hits_total": ("counter", cache.hits),
        "requests_total": ("counter", len(truths)),
        "prompt_tokens_total": ("counter", sum(truth.prompt_tokens for truth in truths if truth.chunks)),
        "generation_tokens_total": ("counter", sum(c.tokens for truth in truths for c in truth.chunks)),
        "preemptions_total": ("counter", sum(truth.preemptions for truth in truths)),
        "decode_steps_total": ("counter", steps),
        "decode_step_streams_total": ("counter", step_streams),
    }
    lines: list[str] = []
    for name, (kind, value) in values.items():
        lines += [f"# TYPE {PREFIX}_{name} {kind}", f"{PREFIX}_{name} {value}"]
    if any(truth.handed_over is not None for truth in truths):
        lines += _histogram(f"{PREFIX}_kv_handoff_seconds", handoffs(truths))
    ttfts = [t.chunks[0].planned - t.arrived for t in truths if t.chunks]
    return "\n".join([*lines, *_histogram(f"{PREFIX}_time_to_first_token_seconds", ttfts), ""])


def handoffs(truths: Sequence[Truth]) -> list[float]:
    """Seconds that each KV cache was on its way between the pools."""
    return [t.handed_over - t.prefill_end for t in truths if t.handed_over is not None and t.prefill_end is not None]


def _histogram(name: str, values: Sequence[float]) -> Iterator[str]:
    yield f"# TYPE {name} histogram"
    for bound in BUCKETS:
        yield f'{name}_bucket{{le="{bound:g}"}} {sum(value <= bound for value in values)}'
    yield f'{name}_bucket{{le="+Inf"}} {len(values)}'
    yield f"{name}_sum {sum(values):.6f}"
    yield f"{name}_count {len(values)}"
