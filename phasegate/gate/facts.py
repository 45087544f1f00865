"""What the gate must know of a metric to judge it: unit, phase, and which way is better.

Latencies come from the metric table. Rates, which other tools report and which have no `Timeline` of their own, stand
here; a policy may name more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from phasegate.core.metric import METRICS, Better, Metric, own_metrics


@dataclass(frozen=True, slots=True)
class MetricFacts:
    """One metric as the gate sees it.

    Attributes:
        name: the short name, as used in findings.
        unit: unit of its values.
        phase: ``prefill``, ``decode``, ``both`` or ``client``.
        better: which way is better.
    """

    name: str
    unit: str
    phase: str
    better: Better

    @property
    def is_latency(self) -> bool:
        """Whether values are spans of time."""
        return self.unit.startswith("s")


RATES = (
    MetricFacts("output_token_throughput", "tokens/s", "decode", Better.HIGHER),
    MetricFacts("request_throughput", "requests/s", "both", Better.HIGHER),
    MetricFacts("goodput", "requests/s", "both", Better.HIGHER),
)
"""Rates over a measured window, by the names the field uses."""


def _facts(row: Metric) -> MetricFacts:
    return MetricFacts(row.short, row.unit, row.phase.value, row.better)


_TABLE: dict[str, MetricFacts] = {
    **{row.short: _facts(row) for row in METRICS},
    **{row.name: _facts(row) for row in METRICS},
    **{facts.name: facts for facts in RATES},
}

PHASES = ("prefill", "decode", "both")
"""Phases a gated metric may have."""


def facts_of(metric: str, declared: Mapping[str, MetricFacts] | None = None) -> MetricFacts | None:
    """Facts of a metric by long or short name, or None where nobody has declared it."""
    return (declared or {}).get(metric) or _TABLE.get(metric) or _own().get(metric)


def _own() -> dict[str, MetricFacts]:
    return {name: _facts(row) for row in own_metrics() for name in (row.short, row.name)}


def known_metrics(declared: Mapping[str, MetricFacts] | None = None) -> tuple[str, ...]:
    """Short names of all metrics that can be judged."""
    return tuple(dict.fromkeys([facts.name for facts in (*_TABLE.values(), *_own().values())] + list(declared or {})))
