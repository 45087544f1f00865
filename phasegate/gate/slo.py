"""Service-level objectives: parsing ``ttft:p95:500ms`` and deciding whether samples keep it.

An objective promises that a share of **all** requests stays within a limit. Requests that failed were sent as well, so
they count as misses; a server cannot meet an objective by failing its slow requests. The share carries a Wilson score
interval (Wilson 1927, JASA 22:209), which stays sensible for small counts and for shares of 0 and 1.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from phasegate.core.units import format_percent, format_seconds, parse_duration
from phasegate.gate.facts import facts_of, known_metrics
from phasegate.stats.percentile import nearest_rank

_PERCENTILE = re.compile(r"^p(\d{1,2}(?:\.\d+)?)$")

Z_95 = 1.959963984540054
"""Two-sided 95 % point of the normal distribution."""


@dataclass(frozen=True, slots=True)
class Objective:
    """One objective.

    Attributes:
        metric: short name of a latency.
        percentile: in per cent, above 0 and below 100: 95.0 promises 95 % of requests.
        limit: in seconds.
        workload: glob over workload names; ``*`` for all.
        source: where it was given: ``file:line`` or an option.
    """

    metric: str
    percentile: float
    limit: float
    workload: str = "*"
    source: str = ""

    @property
    def text(self) -> str:
        """The objective as it is written in files and findings."""
        limit = f"{self.limit * 1e3:g}ms"
        return f"{self.metric}:p{self.percentile:g}:{limit}"

    @property
    def share(self) -> float:
        """The promised share of requests within the limit."""
        return self.percentile / 100


def parse_objective(text: str, *, source: str, workload: str = "*") -> Objective:
    """The objective meant by ``METRIC:PERCENTILE:DURATION``, such as ``ttft:p95:500ms``.

    Raises:
        ValueError: one line naming the text, its source and what would be right.
    """
    parts = text.split(":")
    if len(parts) != 3:
        raise ValueError(f"{source}: {text!r} is not an objective; write METRIC:PERCENTILE:LIMIT, as in ttft:p95:500ms")
    metric, percentile, limit = (part.strip() for part in parts)
    facts = facts_of(metric)
    if facts is None or not facts.is_latency:
        latencies = ", ".join(name for name in known_metrics() if _is_latency(name))
        raise ValueError(f"{source}: {metric!r} in {text!r} is not a latency; known: {latencies}")
    return Objective(facts.name, parse_percentile(percentile, source=source), parse_duration(limit, source=source),
                     workload, source)  # fmt: skip


def parse_percentile(text: str, *, source: str) -> float:
    """Per cent meant by ``p95``: above 0 and below 100.

    Raises:
        ValueError: not of that form, or 0.
    """
    match = _PERCENTILE.match(text)
    if match is None or float(match.group(1)) == 0:
        raise ValueError(f"{source}: {text!r} is not a percentile; write p50, p95 or p99.9")
    return float(match.group(1))


def _is_latency(name: str) -> bool:
    facts = facts_of(name)
    return facts is not None and facts.is_latency


@dataclass(frozen=True, slots=True)
class Attainment:
    """How often an objective was kept.

    Attributes:
        kept, sent: requests within the limit, and all requests sent.
        low, high: 95 % Wilson interval of the share kept.
        value: the percentile itself by nearest rank with failures as infinity, in seconds; None without requests.
    """

    kept: int
    sent: int
    low: float
    high: float
    value: float | None

    @property
    def share(self) -> float:
        """Share of all requests sent that stayed within the limit; NaN without requests."""
        return self.kept / self.sent if self.sent else math.nan


def attainment(objective: Objective, samples: Sequence[float], failed: int) -> Attainment:
    """How often the samples of a workload keep an objective.

    Args:
        objective: the promise.
        samples: values of its metric in seconds, one per request that ended well.
        failed: requests without a value, each a miss.
    """
    kept = sum(1 for value in samples if value <= objective.limit)
    sent = len(samples) + failed
    low, high = wilson(kept, sent)
    return Attainment(
        kept, sent, low, high, nearest_rank(samples, objective.percentile, failed=failed) if sent else None
    )


def wilson(kept: int, sent: int) -> tuple[float, float]:
    """95 % Wilson score interval of a share; (0, 1) without observations."""
    if sent == 0:
        return 0.0, 1.0
    share, z2 = kept / sent, Z_95**2
    middle = share + z2 / (2 * sent)
    half = Z_95 * math.sqrt(share * (1 - share) / sent + z2 / (4 * sent**2))
    # At the ends the formula gives exactly 0 and 1 but for rounding.
    low = 0.0 if kept == 0 else (middle - half) / (1 + z2 / sent)
    high = 1.0 if kept == sent else (middle + half) / (1 + z2 / sent)
    return low, high


def describe(objective: Objective, found: Attainment) -> str:
    """One clause with the numbers: ``95.0 % within 500 ms promised, 91.2 % kept (interval ...)``."""
    return (
        f"{format_percent(objective.share)} of requests within {format_seconds(objective.limit)} promised, "
        f"{found.kept} of {found.sent} kept it ({format_percent(found.share)}, 95 % interval "
        f"{format_percent(found.low)} to {format_percent(found.high)}); p{objective.percentile:g} is "
        f"{format_seconds(found.value)}"
    )
