"""Whether a run reached the load that was asked for. One that did not proves nothing about the server.

Checked in the order in which one mistake hides another: an ended run, a server that is gone, the client itself, then
rate, delay and concurrency. What the server did to the requests (refusals, errors, slowness) is not checked here: that
is the measurement.
"""

from __future__ import annotations

from typing import Any

from phasegate.core.timeline import Ending
from phasegate.core.units import format_percent, format_rate, format_seconds
from phasegate.load.driving import GONE_AFTER, LoadResult
from phasegate.load.shapes import PYTEST_PREFIX, Shape
from phasegate.stats.percentile import nearest_rank

RATE_SHORTFALL = 0.05
"""Share by which the achieved rate may fall short: about what a percentile of latency moves by itself from run to
run near the knee of a queue."""

DELAY_LIMIT = 0.050
"""Schedule delay in seconds (p99) from which the arrivals are not those of the schedule. The timer's own resolution is
1 ms; 50 ms is a tenth of a common TTFT objective of 500 ms."""


def load_problem(
    result: LoadResult, asked: Shape, *, delay_limit: float = DELAY_LIMIT, prefix: str = PYTEST_PREFIX
) -> str | None:
    """Why the run did not reach its load, in one line with the remedy; None where it did.

    Args:
        result: the run.
        asked: the load that was wanted.
        delay_limit: p99 of the schedule delay in seconds that is still on time.
        prefix: how the options that would help begin.
    """
    return (
        _ended_early(result)
        or _worker_lost(result)
        or _client_too_slow(result)
        or (
            _off_schedule(result, asked, delay_limit, prefix)
            if result.scheduled and not asked.saturates
            else _too_few_at_once(result, asked, prefix)
        )
    )


def _ended_early(result: LoadResult) -> str | None:
    done, planned = len(result.recordings), len(result.recordings) + len(result.unsent)
    if result.server_gone:
        return (
            f"the server stopped taking connections; {done} of {planned} requests were begun: "
            "see its log, start it again and measure once more"
        )
    if server_gone(result):
        refused = sum(one.ending is Ending.CONNECT_FAILED for one in result.recordings)
        return (
            f"the server takes no connection any more, {refused} of {planned} requests found none: see its log, start "
            "it again and measure once more"
        )
    if result.partial:
        return f"the run was stopped after {done} of {planned} requests; let it run to its end"
    if not planned:
        return "no request was planned; ask for at least one"
    return None


def _worker_lost(result: LoadResult) -> str | None:
    """A load that part of the client stopped sending is another load, and the fault is not the server's."""
    dead = [worker for worker in result.workers if worker.lost is not None]
    if not dead:
        return None
    names = ", ".join(f"worker {worker.number} ({worker.lost})" for worker in dead)
    return (
        f"{names} died with {sum(worker.unreported for worker in dead)} of {len(result.recordings)} requests "
        "unreported, which count as failed; see what killed it (memory?), and measure again"
    )


def server_gone(result: LoadResult) -> bool:
    """Whether the server was gone at the end: noticed while it ran, or a closed loop that found only closed doors.

    A closed loop takes its next request the moment a connection is refused, so a whole list may be over before the
    time that tells a dead server from a busy one.
    """
    if result.server_gone:
        return True
    if result.scheduled or not result.recordings:
        return False
    last = sorted(result.recordings, key=lambda one: one.ended_at)[-GONE_AFTER:]
    return all(one.ending is Ending.CONNECT_FAILED for one in last)


def _client_too_slow(result: LoadResult) -> str | None:
    warnings = result.health.warnings()
    return warnings[0] if warnings else None


def _off_schedule(result: LoadResult, asked: Shape, delay_limit: float, prefix: str) -> str | None:
    wanted, achieved = result.requested_rate, result.achieved_rate
    remedy = _open_loop_remedy(result, asked, prefix)
    if wanted is not None and achieved is not None and achieved < wanted * (1 - RATE_SHORTFALL):
        return (
            f"{format_rate(achieved, 'requests')} were sent where {format_rate(wanted, 'requests')} were due "
            f"({format_percent(achieved / wanted - 1, signed=True)}, at most -{format_percent(RATE_SHORTFALL)} "
            f"is allowed); {remedy}"
        )
    delays = result.schedule_delays
    if delays and (late := nearest_rank(sorted(delays), 99)) > delay_limit:
        return (
            f"requests were sent up to {format_seconds(late)} after they were due (p99; "
            f"the limit is {format_seconds(delay_limit)}); {remedy}"
        )
    return None


def _open_loop_remedy(result: LoadResult, asked: Shape, prefix: str) -> str:
    cap = asked.max_concurrency
    if cap is not None and result.peak_in_flight >= cap:
        return f"they waited for one of {cap} places: raise {prefix}max-concurrency or lower {prefix}request-rate"
    return f"give the client a core of its own or lower {prefix}request-rate"


def _too_few_at_once(result: LoadResult, asked: Shape, prefix: str) -> str | None:
    wanted = asked.max_concurrency if asked.max_concurrency is not None else result.max_concurrency
    if wanted is None or result.peak_in_flight >= wanted:
        return None
    begun = len(result.recordings)
    reached = f"{result.peak_in_flight} requests were in flight at a time where {wanted} were asked for"
    if begun < wanted:
        return f"{reached}: there were only {begun} requests; raise {prefix}num-prompts to at least {wanted}"
    return f"{reached}; see the errors of the requests, or lower {prefix}max-concurrency"


def load_line(result: LoadResult, asked: Shape) -> str:
    """What was asked and what came of it, in one line for the report."""
    parts = [asked.describe()]
    if result.requested_rate is not None:
        achieved = format_rate(result.achieved_rate, "requests")
        parts.append(f"sent {achieved} of {format_rate(result.requested_rate, 'requests')} due")
    parts.append(f"in flight {result.mean_in_flight:.3g} on average, {result.peak_in_flight} at most")
    if result.scheduled and result.schedule_delays:
        p50, p99 = (format_seconds(nearest_rank(sorted(result.schedule_delays), percent)) for percent in (50, 99))
        parts.append(f"sent {p50} (p50) and {p99} (p99) after due")
    return "; ".join(parts)


def load_record(result: LoadResult, asked: Shape, *, prefix: str = PYTEST_PREFIX) -> dict[str, Any]:
    """The same for JSON: rates in requests a second, times in seconds, None for what is undefined."""
    delays = sorted(result.schedule_delays) if result.scheduled else []
    return {
        "asked": asked.describe(),
        "requested_rate": result.requested_rate,
        "achieved_rate": result.achieved_rate,
        "max_concurrency": result.max_concurrency,
        "peak_in_flight": result.peak_in_flight,
        "mean_in_flight": result.mean_in_flight,
        "schedule_delay_p50": nearest_rank(delays, 50) if delays else None,
        "schedule_delay_p99": nearest_rank(delays, 99) if delays else None,
        "unsent": len(result.unsent),
        "problem": load_problem(result, asked, prefix=prefix),
    }
