"""Measure two candidate sessions, then more of those comparisons only that are not clearly harmless.

Stopping early happens only towards "nothing found", and rejections are made on the final sessions alone, so the plan
spends none of the build's chance of a false alarm; it costs a little power, which `sequence_detectable` accounts for.
"""

from __future__ import annotations

from collections.abc import Sequence

from phasegate.stats.compare_evidence import detectable
from phasegate.stats.compare_noise import Noise
from phasegate.stats.compare_types import ComparedRow, Decision, StoredComparison

FUTILE = 0.2
"""p from which on a comparison stops: a worsening worth finding would hardly leave so weak a trace."""


def needs_more(rows: Sequence[ComparedRow], comparisons: Sequence[StoredComparison], budget: int) -> tuple[str, ...]:
    """Names of the comparisons that need more candidate sessions.

    Args:
        rows, comparisons: of the sessions so far, in the same order. With ``planned_candidate`` set in the settings,
            a comparison that stops is judged by what the whole plan would have found.
        budget: candidate sessions that one comparison may use in all.
    """
    return tuple(
        row.name
        for row, one in zip(rows, comparisons, strict=True)
        if row.candidate_count < budget and _is_open(row, one)
    )


def _is_open(row: ComparedRow, one: StoredComparison) -> bool:
    if row.p is None or row.mde is None:
        return row.baseline_count > 0
    # A regression so far is open too: the plan's final test decides, and its p is far below the limit here.
    return row.decision is Decision.UNDECIDED or row.p < FUTILE or row.mde > one.tolerance


def sequence_detectable(
    k: int,
    m: int,
    planned: int,
    noise: Noise,
    level: float,
    power: float,
    leverage: float = 0.0,
    material: float = 0.0,
    beyond: float = 0.0,
) -> float:
    """Smallest worsening that the whole plan finds: that it goes on after m sessions, and rejects after ``planned``.

    Each of the two may fail half as often as the plan (Bonferroni).
    """
    half = 1.0 - (1.0 - power) / 2.0
    return max(
        detectable(k, m, noise, FUTILE, half, leverage, beyond=beyond),
        detectable(k, planned, noise, level, half, leverage, material, beyond),
    )
