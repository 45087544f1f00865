"""Small arithmetic of the document: estimates, lines through samples, and the histogram of gaps."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from phasegate.report.document.model import Estimate, Fit, Gaps
from phasegate.stats.intervals import MedianInterval
from phasegate.stats.percentile import PercentileInterval, nearest_rank

BINS = 32
"""Bins of the histogram of gaps: finer ones would be empty with a few hundred gaps."""


def finite(value: float | None) -> float | None:
    """The number where it is finite, else None."""
    return value if value is not None and math.isfinite(value) else None


def estimate(found: MedianInterval | PercentileInterval | None) -> Estimate | None:
    """A median or percentile with its interval; infinite parts become None."""
    if found is None:
        return None
    value = found.median if isinstance(found, MedianInterval) else found.value
    return Estimate(finite(value), finite(found.low), finite(found.high), found.n)


def line_through(metric: str, over: str, points: Sequence[tuple[float, Sequence[float]]]) -> Fit | None:
    """A straight line by least squares, weighted with 1 / median squared of each length: noise is a share of a value.

    Args:
        metric: short name.
        over: what the length is.
        points: a length and the values measured there, in seconds; lengths without values are left out.

    None with fewer than two lengths.
    """
    known = [(x, values) for x, values in points if values]
    if len({x for x, _ in known}) < 2:
        return None
    xs = np.array([x for x, values in known for _ in values], dtype=np.float64)
    ys = np.array([value for _, values in known for value in values], dtype=np.float64)
    weights = np.array([1 / max(float(np.median(values)), 1e-12) for _, values in known for _ in values])
    slope, intercept = np.polyfit(xs, ys, 1, w=weights)
    return Fit(metric, over, float(intercept), float(slope), int(ys.size))


def gaps_of(found: Iterable[Sequence[float]]) -> Gaps | None:
    """Percentiles and histogram of gaps, in bins of equal ratio; None without a gap."""
    gaps = [gap for row in found for gap in row]
    if not gaps:
        return None
    apart = [gap for gap in gaps if gap > 0]
    edges: tuple[float, ...] = ()
    counts: tuple[int, ...] = ()
    if apart:
        low, high = min(apart), max(apart)
        bounds = np.geomspace(low, high if high > low else low * 1.01, BINS + 1)
        # The first and last bound exactly, so that rounding leaves no gap out.
        bounds[0], bounds[-1] = low, max(high, low * 1.01)
        edges = tuple(float(one) for one in bounds)
        counts = tuple(int(one) for one in np.histogram(apart, bounds)[0])
    p50, p95, p99 = (nearest_rank(gaps, percent) for percent in (50, 95, 99))
    return Gaps(len(gaps), len(gaps) - len(apart), p50, p95, p99, max(gaps), edges, counts)
