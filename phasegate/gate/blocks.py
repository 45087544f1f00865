"""Pairing the two sides of a run that measured both servers in one sitting, block by block."""

from __future__ import annotations

from collections.abc import Sequence

from phasegate.core.session import Session

ORDER_KEY = "block_order"
"""Key of a candidate session's client facts that holds the order of its block: ``ABBA`` or ``BAAB``."""


def paired_blocks(
    baseline: Sequence[Session], candidate: Sequence[Session]
) -> tuple[list[Session], list[Session], str | None]:
    """Both sides, block by block, and a remark where some had to be left out.

    Blocks belong together by their session id. Where no id is on both sides, equal numbers of blocks are paired in the
    given order; of different numbers, nothing can be paired.
    """
    there = {session.session_id: session for session in candidate}
    shared = [session for session in baseline if session.session_id in there]
    if shared:
        left_out = len(baseline) + len(candidate) - 2 * len(shared)
        remark = f"{left_out} blocks were measured on one side only and are left out" if left_out else None
        return shared, [there[session.session_id] for session in shared], remark
    if len(baseline) == len(candidate):
        return list(baseline), list(candidate), None
    return [], [], None


def orders(candidate: Sequence[Session]) -> tuple[str | None, ...]:
    """The order in which each block visited the two servers, None where it was not recorded."""
    found = (session.client.get(ORDER_KEY) for session in candidate)
    return tuple(order if order in ("ABBA", "BAAB") else None for order in found)
