"""The summary fields of pytest-benchmark's tables, by its own definitions (quartiles by halves, Tukey fences)."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Any


def summary_fields(samples: Sequence[float], rounded: Callable[[float], float]) -> dict[str, Any]:
    """Every field of pytest-benchmark's ``stats`` except the data.

    Args:
        samples: at least one value.
        rounded: how to round what is written.
    """
    ordered = sorted(samples)
    low, high = _quartiles(ordered)
    spread = statistics.stdev(ordered) if len(ordered) > 1 else 0.0
    mean, total = statistics.fmean(ordered), sum(ordered)
    fences = (low - 1.5 * (high - low), high + 1.5 * (high - low))
    inside = [value for value in ordered if fences[0] <= value <= fences[1]] or ordered
    far = sum(1 for value in ordered if abs(value - mean) > spread)
    outside = len(ordered) - sum(1 for value in ordered if fences[0] <= value <= fences[1])
    values = {
        "min": ordered[0],
        "max": ordered[-1],
        "mean": mean,
        "stddev": spread,
        "median": statistics.median(ordered),
        "iqr": high - low,
        "q1": low,
        "q3": high,
        "ld15iqr": inside[0],
        "hd15iqr": inside[-1],
        "ops": len(ordered) / total,
        "total": total,
    }
    counts = {
        "rounds": len(ordered),
        "iqr_outliers": outside,
        "stddev_outliers": far,
        "outliers": f"{far};{outside}",
    }
    return {**{key: rounded(value) for key, value in values.items()}, **counts}


def _quartiles(ordered: Sequence[float]) -> tuple[float, float]:
    """Lower and upper quartile: medians of the halves, interpolated for odd counts as pytest-benchmark does."""
    count = len(ordered)
    if count == 1:
        return ordered[0], ordered[0]
    if count % 2 == 0:
        return statistics.median(ordered[: count // 2]), statistics.median(ordered[count // 2 :])
    n = count // 4
    if count % 4 == 1:
        return (
            0.25 * ordered[n - 1] + 0.75 * ordered[n],
            0.75 * ordered[3 * n] + 0.25 * ordered[3 * n + 1],
        )
    return (
        0.75 * ordered[n] + 0.25 * ordered[n + 1],
        0.25 * ordered[3 * n + 1] + 0.75 * ordered[3 * n + 2],
    )
