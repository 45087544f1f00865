"""Whether the times of one request can be true together: gaps between tokens, first token, and the whole request.

One check for every format. A file whose gaps are negative, or do not fill the time between the first token and the
end, was not written by one clock; no number of it can be trusted, so it is refused by name.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from phasegate.core.units import format_seconds
from phasegate.store.other_tools.result import LARGEST, UnreadableResultError, number, shown

_SHARE, _SECONDS = 0.02, 0.005
"""How far sums of rounded times may lie apart: a share of the request, and a time."""

_TAIL_SHARE, _TAIL_SECONDS = 0.5, 0.25
"""How long a request may go on after its last token, where a tool's clock stops at the end of the stream."""


def gap_total(gaps: Any, where: str, seconds_per_unit: float = 1.0) -> float:
    """The gaps of one request in all, in seconds.

    Raises:
        UnreadableResultError: no list of numbers, or a gap that is negative or not finite.
    """
    if not isinstance(gaps, list):
        raise UnreadableResultError(f"{where}: the gaps between its tokens must be a list")
    for index, gap in enumerate(gaps, start=1):
        size = number(gap, f"{where}: gap {index}")
        if size >= LARGEST:
            raise UnreadableResultError(f"{where}: gap {index} is larger than any number of seconds can be")
        if not size >= 0:
            raise UnreadableResultError(f"{where}: gap {index} is {shown(gap)}, but no token comes before the last one")
    return math.fsum(gaps) * seconds_per_unit


def check_times(
    where: str, *, first: float, gaps: float | None, latency: float | None, ends_with_last_token: bool
) -> None:
    """Refuse times of one request that cannot be true together.

    Args:
        where: the request, for messages.
        first: seconds until the first token.
        gaps: seconds from the first to the last token; None where unknown.
        latency: seconds of the whole request; None where unknown.
        ends_with_last_token: whether the tool's latency ends there, so that the gaps must fill it.

    Raises:
        UnreadableResultError: they contradict each other; the line says by how much.
    """
    if gaps is not None and gaps < 0:
        said = f"{where}: its gaps are {format_seconds(gaps)} in all, but no token comes before the last one"
        raise UnreadableResultError(said)
    if latency is None:
        return
    slack = _SHARE * latency + _SECONDS
    rest = latency - first - (gaps or 0.0)
    told = f"first token after {format_seconds(first)}"
    if gaps is not None:
        told += f", gaps of {format_seconds(gaps)} in all"
    told += f", request of {format_seconds(latency)}"
    if rest < -slack:
        raise UnreadableResultError(f"{where}: the times do not add up: {told}")
    allowed = slack if ends_with_last_token else _TAIL_SHARE * latency + _TAIL_SECONDS
    if gaps is not None and rest > allowed:
        raise UnreadableResultError(f"{where}: the gaps do not add up to the request: {told}")


def check_orders(where: str, first: Sequence[float], latency: Sequence[float]) -> None:
    """Refuse first tokens and whole requests of the same requests, in no known order, that cannot belong together.

    If every request ends after its first token, the n-th shortest request is no shorter than the n-th shortest time
    to the first token. Sides of unequal number say nothing.

    Raises:
        UnreadableResultError: they contradict each other.
    """
    if len(first) != len(latency):
        return
    for early, late in zip(sorted(first), sorted(latency), strict=True):
        if late < early * (1 - _SHARE) - _SECONDS:
            said = (
                f"{where}: e2el {format_seconds(late)} is shorter than ttft {format_seconds(early)}, "
                "but no request ends before its first token"
            )
            raise UnreadableResultError(said, "see whether one of the two has another unit")
