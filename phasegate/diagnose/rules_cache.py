"""Rules about traffic with shared beginnings in two sittings: a cache that was emptied, and one that is gone.

The server's own count of cached tokens decides where it tells one; else times do, and the word is likely.
"""

from __future__ import annotations

from phasegate.core.units import format_percent, format_seconds
from phasegate.diagnose.explanation import Case, Confidence, Explanation, Rule
from phasegate.diagnose.observations import Repeats
from phasegate.diagnose.pairs import slower
from phasegate.diagnose.prefill_line import prefill_line
from phasegate.diagnose.remedies import FEWER_TOKENS, MORE_BANDWIDTH, REMEDIES
from phasegate.diagnose.thresholds import HIT_SHARE, MISS_SHARE
from phasegate.stats.laws.margins import CACHE_SAVING_MIN


def cache_reset(case: Case) -> Explanation | None:
    """Shared beginnings were cached before, are not at first now, and are again later: the cache was emptied."""
    old, new = _repeats(case)
    if old is None or new is None or not slower(case, new.early_ttft, old.early_ttft):
        return None
    if not (_hits(old.early_cached, old.early_ttft, new.early_ttft) and _warms_up(new)):
        return None
    later = f"later requests take {format_seconds(new.later_ttft)} again"
    return _cache_change(
        "cache-reset", "the cache of shared beginnings was emptied (a deploy, a restart)",
        new.early_ttft - old.early_ttft, (_first_requests(old, new), later), "reset",
        told=_told(old.early_cached, new.early_cached),
    )  # fmt: skip


def cache_lost(case: Case) -> Explanation | None:
    """Shared beginnings were cached before, and now they are not even on later requests."""
    old, new = _repeats(case)
    if old is None or new is None or not slower(case, new.later_ttft, old.later_ttft) or _warms_up(new):
        return None
    if not _lost(case, old, new):
        return None
    later = (
        f"later requests take {format_seconds(new.later_ttft)}, {format_seconds(old.later_ttft)} before"
        f"{_shares(old.later_cached, new.later_cached)}"
    )
    return _cache_change(
        "cache-lost", "shared beginnings are no longer cached", new.later_ttft - old.later_ttft,
        (_first_requests(old, new), later), "cache", told=_told(old.later_cached, new.later_cached),
    )  # fmt: skip


def _lost(case: Case, old: Repeats, new: Repeats) -> bool:
    """Whether later requests came from the cache and do not now: by the server's count, else by their time.

    By time also against what reading the whole prompt takes, where that is known: slower is not yet uncached.
    """
    if new.later_cached is not None and new.later_cached >= HIT_SHARE:
        return False
    if not _hits(old.later_cached, old.later_ttft, new.later_ttft):
        return False
    line = prefill_line(case.now.asks) if new.later_cached is None else None
    return line is None or new.later_ttft >= HIT_SHARE * line.reading(new.prompt_tokens)


def _repeats(case: Case) -> tuple[Repeats | None, Repeats | None]:
    return (case.before.repeats if case.before is not None else None), case.now.repeats


def _hits(share: float | None, fast: float, slow: float) -> bool:
    """Whether a part of the traffic was served from the cache: by the server's count, else by its time."""
    return share >= HIT_SHARE if share is not None else fast <= slow * (1 - CACHE_SAVING_MIN)


def _warms_up(one: Repeats) -> bool:
    """Whether first requests miss and later ones hit."""
    missed = one.early_cached is None or one.early_cached < MISS_SHARE
    return missed and _hits(one.later_cached, one.later_ttft, one.early_ttft)


def _told(old: float | None, new: float | None) -> bool:
    """Whether the server reports cached tokens in both sittings."""
    return old is not None and new is not None


def _shares(old: float | None, new: float | None) -> str:
    """Shares of the prompt from the cache in words; empty where one sitting does not tell."""
    if old is None or new is None:
        return ""
    before, now = (format_percent(one, digits=0) for one in (old, new))
    return f"; from the cache: {before} of the prompt before, {now} now"


def _cache_change(
    rule: str, cause: str, seconds: float, evidence: tuple[str, ...], levers: str, *, told: bool
) -> Explanation:
    return Explanation(
        rule, "slower to start than before", cause, "prefill", seconds, "shared beginnings", evidence,
        Confidence.SURE if told else Confidence.LIKELY, REMEDIES[levers], (MORE_BANDWIDTH, FEWER_TOKENS), change=True,
    )  # fmt: skip


def _first_requests(old: Repeats, new: Repeats) -> str:
    return (
        f"the first request of each shared beginning ({new.shared_tokens:,} tokens) takes "
        f"{format_seconds(new.early_ttft)}, {format_seconds(old.early_ttft)} before"
        f"{_shares(old.early_cached, new.early_cached)}"
    )


CACHE_RESET = Rule(
    "cache-reset",
    f"first requests of shared beginnings came from the cache before ({format_percent(HIT_SHARE, digits=0)} of the "
    "prompt or more), do not now, and later ones do again",
    "prefill",
    "both sittings: traffic with shared beginnings",
    "reset",
    cache_reset,
)
CACHE_LOST = Rule(
    "cache-lost",
    "later requests of shared beginnings got slower; they came from the cache before "
    f"({format_percent(HIT_SHARE, digits=0)} of the prompt or more) and do not now",
    "prefill",
    "both sittings: traffic with shared beginnings",
    "cache",
    cache_lost,
)
