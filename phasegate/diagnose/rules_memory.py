"""A rule about KV memory under load: requests that are thrown out of it and begin again, by the server's own count."""

from __future__ import annotations

from phasegate.core.units import format_percent, format_seconds
from phasegate.diagnose.explanation import Case, Confidence, Explanation, Rule
from phasegate.diagnose.observations import Level
from phasegate.diagnose.remedies import MORE_COMPUTE, REMEDIES
from phasegate.diagnose.rules_load import longest_wait
from phasegate.diagnose.thresholds import PREEMPTED_SHARE


def memory_full(case: Case) -> Explanation | None:
    """KV memory ran out under load: the server threw requests out of it, which then read everything again."""
    told = [one for one in case.now.levels if _preempted(one) >= PREEMPTED_SHARE]
    if not told:
        return None
    top = max(told, key=_preempted)
    alone, waiting = case.now.levels[0].ttft or 0.0, longest_wait(case)
    evidence = [
        f"KV memory ran out: {top.preemptions or 0:,.0f} preemptions of {top.requests:,} requests with {top.users:g} "
        "users, by the server's own count"
    ]
    # What a request had is read again, which takes at least a prompt's own time.
    seconds = _preempted(top) * alone
    if waiting is not None and waiting[1] is top:
        _, _, waited, how, _ = waiting
        seconds = max(seconds, waited)
        evidence.append(
            f"TTFT {format_seconds(top.ttft)} with {top.users:g} users, {format_seconds(alone)} alone; {how}"
        )
    else:
        again = format_seconds(seconds)
        evidence.append(f"reading a prompt takes {format_seconds(alone)} alone: at least {again} a request more")
    return Explanation(
        "kv-memory-full", "slow under load", "KV memory runs out: requests are thrown out, wait for it and are read "
        "again", "queueing", seconds, f"{top.users:g} users", tuple(evidence), Confidence.SURE, REMEDIES["kv-memory"],
        (MORE_COMPUTE, "more slots (max_num_seqs): they share the same KV memory"),
    )  # fmt: skip


def _preempted(level: Level) -> float:
    """Preemptions a request; 0.0 where the server does not tell."""
    return (level.preemptions or 0.0) / level.requests if level.requests else 0.0


KV_FULL = Rule(
    "kv-memory-full",
    f"the server threw at least {format_percent(PREEMPTED_SHARE, digits=0)} of the requests out of its KV memory",
    "queueing",
    "a level of load; the server's count of preemptions",
    "kv-memory",
    memory_full,
)
