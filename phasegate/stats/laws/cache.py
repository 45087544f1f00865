"""The law of the prefix cache: what was read before need not be read again, and nothing else gets faster.

Time is the proof, the server's count of cached tokens is evidence beside it, and a fresh prompt of the same length
is the control: if that is faster too, something other than the cache sped up.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from phasegate.core.units import format_percent
from phasegate.stats.blocks import MIN_BLOCKS, Table, table_of
from phasegate.stats.equivalence import Judged, above
from phasegate.stats.intervals import MeanInterval, mean_interval, more_needed
from phasegate.stats.laws.common import percent, remedy, sentence, too_few
from phasegate.stats.laws.margins import ALPHA, CACHE_CONTROL_MARGIN, CACHE_SAVING_MIN, CACHE_SLOWER_MIN
from phasegate.stats.outcome import LawResult, Outcome

CACHE_OFF = "cache_off"
SLOWER = "slower"
NO_SAVING = "no_saving"
CONTROL_FASTER = "control_faster"
CONTRADICTION = "contradiction"
KNOWN_MISS = "known_miss"


def cached_faster(
    cold: ArrayLike,
    cached: ArrayLike,
    control: ArrayLike,
    *,
    cached_tokens: Sequence[int | None] = (),
    minimum: float = CACHE_SAVING_MIN,
    control_margin: float = CACHE_CONTROL_MARGIN,
    alpha: float = ALPHA,
    known_miss: str = "",
    law: str = "a cached prefix is faster",
) -> LawResult:
    """The second call saves a material part of TTFT, and a fresh prompt of the same length does not.

    The effect is the share of TTFT saved, 1 - cached / cold. ``detail`` tells the ways it does not hold apart:
    ``cache_off`` (no saving, and no cached token reported), ``no_saving`` (cached tokens reported, time not saved),
    ``slower``, ``control_faster`` (a fresh prompt is faster too), ``contradiction`` (faster, yet the server reports
    that nothing was cached; more requests do not help, so ``needed`` is None), ``known_miss`` (no saving and no hit, as
    ``known_miss`` foretold: undecided, and more requests do not help either).

    Args:
        cold, cached, control: TTFT in seconds, n values each, one per block.
        cached_tokens: per cached call what the server reported; None where it reported nothing, 0 for no hit.
        minimum: least saving that counts, a fraction of the cold TTFT.
        control_margin: the control may be this much faster than cold, a fraction.
        alpha: error probability of each bound.
        known_miss: why nothing can come from the cache that was known beforehand, with the remedy; empty where it may.
        law: the claim in words.

    Raises:
        ValueError: the three differ in length or hold values that are not positive, finite seconds.
    """
    columns = [np.asarray(column, dtype=np.float64).ravel() for column in (cold, cached, control)]
    if len({column.size for column in columns}) != 1:
        raise ValueError(f"cold, cached and control have {[c.size for c in columns]} values; they must pair by block")
    table = table_of((0, 1, 2), np.stack(columns, axis=1))
    if table.blocks < MIN_BLOCKS:
        few = too_few(law, table.blocks, "fraction", alpha)
        return _told(few, known_miss, cached_tokens) if known_miss and not any(cached_tokens) else few
    faster = above(_log_ratio(table, 1, alpha), -math.log1p(-minimum))
    fresh = _not_faster(_log_ratio(table, 2, alpha), math.log1p(control_margin))
    outcome, detail = _outcome(faster, fresh, cached_tokens)
    if known_miss and _missed_all(faster, detail, cached_tokens):
        outcome, detail = Outcome.INCONCLUSIVE, KNOWN_MISS
    needed = _needed(outcome, detail, faster, fresh)
    saving = _as_saving(faster.interval)
    reason = sentence(
        f"the second call saves {percent(saving, signed=False)} of TTFT, {evidence(cached_tokens)}",
        f"a fresh prompt saves {percent(_as_saving(fresh.interval), signed=False)}",
        known_miss if detail == KNOWN_MISS else _explanation(detail, minimum, control_margin),
        remedy(table.blocks, needed),
    )
    return LawResult(
        law, outcome, reason, saving.mean, saving.low, saving.high, "fraction", 1 - alpha, table.blocks, needed,
        (*table.warnings(), *_missed(cached_tokens)), detail,
    )  # fmt: skip


def _log_ratio(table: Table, column: int, alpha: float) -> MeanInterval:
    """log(cold / column): positive where the column is faster."""
    return mean_interval(table.logs[:, 0] - table.logs[:, column], alpha)


def _not_faster(interval: MeanInterval, limit: float) -> Judged:
    tension = interval.mean / limit
    if interval.high < limit:
        return Judged(Outcome.PASS, interval, None, tension)
    if interval.low > limit:
        return Judged(Outcome.FAIL, interval, None, tension)
    return Judged(Outcome.INCONCLUSIVE, interval, more_needed(interval, [limit]), tension)


def _outcome(faster: Judged, fresh: Judged, cached_tokens: Sequence[int | None]) -> tuple[Outcome, str]:
    reported = [count for count in cached_tokens if count is not None]
    hit = any(reported)
    if faster.outcome is Outcome.PASS:
        if fresh.outcome is Outcome.FAIL:
            return Outcome.FAIL, CONTROL_FASTER
        if reported and not hit:
            return Outcome.INCONCLUSIVE, CONTRADICTION
        return fresh.outcome, ""
    if faster.interval.high < -math.log1p(CACHE_SLOWER_MIN):
        return Outcome.FAIL, SLOWER
    if faster.outcome is Outcome.FAIL:
        return Outcome.FAIL, NO_SAVING if hit else CACHE_OFF
    if reported and not hit:
        return Outcome.FAIL, CACHE_OFF
    return Outcome.INCONCLUSIVE, ""


def _missed_all(faster: Judged, detail: str, cached_tokens: Sequence[int | None]) -> bool:
    """Whether no hit was seen: none reported, no time proven saved, and no time lost either."""
    return not any(cached_tokens) and faster.outcome is not Outcome.PASS and detail in ("", CACHE_OFF)


def _told(few: LawResult, known_miss: str, cached_tokens: Sequence[int | None]) -> LawResult:
    """The result of too few blocks where more would miss as well."""
    reason = sentence(f"{few.n} complete blocks are too few to judge", evidence(cached_tokens), known_miss)
    return replace(few, reason=reason, needed=None, detail=KNOWN_MISS)


def _needed(outcome: Outcome, detail: str, faster: Judged, fresh: Judged) -> int | None:
    if outcome is not Outcome.INCONCLUSIVE or detail:
        return None
    return max(part.needed for part in (faster, fresh) if part.needed is not None)


def _explanation(detail: str, minimum: float, control_margin: float) -> str:
    return {
        CACHE_OFF: "prefix caching is off or was not hit: switch it on, or deselect this test",
        SLOWER: "the cached call is slower than the cold one: look at what a cache hit costs",
        NO_SAVING: f"the server reports a hit that saves less than {format_percent(minimum)}: look at what it skips",
        CONTROL_FASTER: f"a fresh prompt may be at most {format_percent(control_margin)} faster: not only the cache "
        "made the second call fast, look for prompts that are not new",
        CONTRADICTION: "time says cached and the server says not: look at how it reports cached tokens",
    }.get(detail, "")


def evidence(cached_tokens: Sequence[int | None]) -> str:
    """What the server says about cached tokens, in words."""
    reported = [count for count in cached_tokens if count is not None]
    if not reported:
        return "cached tokens not reported"
    return f"median of cached tokens {statistics.median(reported):g}"


def _missed(cached_tokens: Sequence[int | None]) -> tuple[str, ...]:
    reported = [count for count in cached_tokens if count is not None]
    missed = sum(1 for count in reported if count == 0)
    if not 0 < missed < len(reported):
        return ()
    return (f"{missed} of {len(reported)} second calls missed the cache; give the server a larger cache",)


def _as_saving(logs: MeanInterval) -> MeanInterval:
    """1 - 1 / exp(log ratio): the saved share."""
    return MeanInterval(
        -math.expm1(-logs.mean), -math.expm1(-logs.low), -math.expm1(-logs.high), logs.spread, logs.n, logs.confidence
    )
