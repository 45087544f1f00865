"""Whether a run reached the load that was asked for. One that did not proves nothing about the server.

Checked in the order in which one mistake hides another: an ended run, a server that is gone, the client itself, then
rate, delay and concurrency. What the server did to the requests (refusals, errors, slowness) is not checked here: that
is the measurement.
"""

from __future__ import annotations

from phasegate.load.driving import LoadResult
from phasegate.load.shapes import Shape
from phasegate.stats.percentile import nearest_rank
from phasegate.units import format_percent, format_rate, format_seconds

RATE_SHORTFALL = 0.05
"""Share by which the achieved rate may fall short: about what a percentile of latency moves by itself from run to
run near the knee of a queue."""

DELAY_LIMIT = 0.050
"""Schedule delay in seconds (p99) from which the arrivals are not those of the schedule. The timer's own resolution is
1 ms; 50 ms is a tenth of a common TTFT objective of 500 ms."""


def load_problem(result: LoadResult, asked: Shape, *, delay_limit: float = DELAY_LIMIT) -> str | None:
    """Why the run did not reach its load, in one line with the remedy; None where it did.

    Args:
        result: the run.
        asked: the load that was wanted.
        delay_limit: p99 of the schedule delay in seconds that is still on time.
    """
    return (
        _ended_early(result)
        or _client_too_slow(result)
        or (_off_schedule(result, asked, delay_limit) if result.scheduled else _too_few_at_once(result, asked))
    )


def _ended_early(result: LoadResult) -> str | None:
    done, planned = len(result.recordings), len(result.recordings) + len(result.unsent)
    if result.server_gone:
        return (
            f"the server stopped taking connections; {done} of {planned} requests were begun: "
            "see its log, start it again and measure once more"
        )
    if result.partial:
        return f"the run was stopped after {done} of {planned} requests; let it run to its end"
    if not planned:
        return "no request was planned; ask for at least one"
    return None


def _client_too_slow(result: LoadResult) -> str | None:
    warnings = result.health.warnings()
    return warnings[0] if warnings else None


def _off_schedule(result: LoadResult, asked: Shape, delay_limit: float) -> str | None:
    wanted, achieved = result.requested_rate, result.achieved_rate
    remedy = _open_loop_remedy(result, asked)
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


def _open_loop_remedy(result: LoadResult, asked: Shape) -> str:
    cap = asked.max_concurrency
    if cap is not None and result.peak_in_flight >= cap:
        return f"they waited for one of {cap} places: raise --perf-max-concurrency or lower --perf-request-rate"
    return "give the client a core of its own or lower --perf-request-rate"


def _too_few_at_once(result: LoadResult, asked: Shape) -> str | None:
    wanted = asked.max_concurrency if asked.max_concurrency is not None else result.max_concurrency
    if wanted is None or result.peak_in_flight >= wanted:
        return None
    begun = len(result.recordings)
    reached = f"{result.peak_in_flight} requests were in flight at a time where {wanted} were asked for"
    if begun < wanted:
        return f"{reached}: there were only {begun} requests; raise --perf-num-prompts to at least {wanted}"
    return f"{reached}; see the errors of the requests, or lower --perf-max-concurrency"
