"""The simulator's counters in Prometheus' text format. Times are real seconds, as a client counts them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from phasegate.engines.simulator.prefix_cache import PrefixCache
from phasegate.engines.simulator.timetable import Timetable
from phasegate.engines.simulator.truth import Truth

PREFIX = "phasegate_simulator"
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the histograms, seconds."""


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
    for name, spans in _times(truths).items():
        lines += _histogram(f"{PREFIX}_{name}_seconds", spans)
    return "\n".join([*lines, ""])


def _times(truths: Sequence[Truth]) -> dict[str, list[float]]:
    """Name -> seconds of each request that has come so far; one that got no token has none."""
    begun = [truth for truth in truths if truth.chunks]
    times = {
        "time_to_first_token": [t.chunks[0].planned - t.arrived for t in begun],
        "request_queue": _spans((t.queued, t.prefill_start) for t in begun),
        "request_prefill": _spans((t.prefill_start, t.prefill_end) for t in begun),
        "request_decode": [t.chunks[-1].planned - t.chunks[0].planned for t in begun if t.ended is not None],
    }
    moved = _spans((t.prefill_end, t.handed_over) for t in begun)
    return {**times, "kv_handoff": moved} if moved else times


def _spans(moments: Iterable[tuple[float | None, float | None]]) -> list[float]:
    """Seconds between two moments, where both came."""
    return [end - start for start, end in moments if start is not None and end is not None]


def _histogram(name: str, values: Sequence[float]) -> Iterator[str]:
    yield f"# TYPE {name} histogram"
    for bound in BUCKETS:
        yield f'{name}_bucket{{le="{bound:g}"}} {sum(value <= bound for value in values)}'
    yield f'{name}_bucket{{le="+Inf"}} {len(values)}'
    yield f"{name}_sum {sum(values):.6f}"
    yield f"{name}_count {len(values)}"
