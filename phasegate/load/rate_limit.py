"""Keeping to a server's rate limit without letting it into a latency.

A hosted API answers 429 and says in ``Retry-After`` how long to wait. Inside a measurement that wait would be a latency
of nobody's. So requests that go one at a time are stopped at the first refusal; the wait happens between requests, and
the refused one is sent again under an id of its own. The refusals are counted and told.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime

from phasegate.core.request import Request
from phasegate.core.target import Target
from phasegate.core.timeline import Recording
from phasegate.core.units import format_seconds
from phasegate.load.closed import run_closed
from phasegate.load.driving import LoadResult, OnDone
from phasegate.load.workers.merge import worst

TOO_MANY = 429

WITHOUT_A_WORD = 1.0
"""Seconds after the first refusal of a server that names no time; doubled with each further one."""

LONGEST = 120.0
"""Seconds that are waited at most: a longer wait is a quota that is used up, not a rate."""

TRIES = 6
"""Refusals of one request after which it counts as failed, as 429."""


def asked_pause(recording: Recording, now: datetime) -> float | None:
    """Seconds that ``Retry-After`` asks for (RFC 9110, section 10.2.3: a number or a date); None where it does not."""
    said = recording.header("retry-after")
    if said is None:
        return None
    try:
        seconds = float(said)
    except ValueError:
        try:
            moment = parsedate_to_datetime(said)
        except ValueError:
            return None
        seconds = (moment - now).total_seconds() if moment.tzinfo else math.nan
    return max(0.0, seconds) if math.isfinite(seconds) else None


@dataclass
class RateLimit:
    """Waits, and remembers how often and how long.

    Attributes:
        pause: lets so many seconds pass; raises KeyboardInterrupt when the user stops.
        say: told before each wait.
        time_left: seconds that the run still has, or None: no wait is longer.
        refusals: requests that were answered with 429, every try counted.
        waited: seconds in all.
    """

    pause: Callable[[float], None] = time.sleep
    say: Callable[[str], None] | None = None
    time_left: Callable[[], float | None] = lambda: None
    refusals: int = 0
    waited: float = 0.0
    _in_a_row: int = field(default=0, repr=False)

    def accepts(self, recording: Recording) -> bool:
        """Wait as the server asks. False where it asks for too much, or refused too often: then the refusal stands."""
        self.refusals += 1
        self._in_a_row += 1
        asked = asked_pause(recording, datetime.now(timezone.utc))
        seconds = WITHOUT_A_WORD * 2.0 ** (self._in_a_row - 1) if asked is None else asked
        if self._in_a_row >= TRIES or seconds > LONGEST:
            return False
        if self.say is not None:
            self.say(f"the server asks for a pause of {format_seconds(seconds)} (429)")
        self._wait(seconds)
        return True

    def rest(self, recordings: Sequence[Recording]) -> None:
        """Wait before the next round of a load, as long as the longest refusal of this one asks; its refusals stand."""
        now = datetime.now(timezone.utc)
        refused = [one for one in recordings if one.http_status == TOO_MANY]
        if not refused:
            return
        self.refusals += len(refused)
        asked = [pause for one in refused if (pause := asked_pause(one, now)) is not None]
        self._wait(min(LONGEST, max(asked, default=WITHOUT_A_WORD)))

    def _wait(self, seconds: float) -> None:
        left = self.time_left()
        seconds = seconds if left is None else min(seconds, left)
        self.pause(seconds)
        self.waited += seconds

    def answered(self) -> None:
        """A request got through."""
        self._in_a_row = 0

    @property
    def note(self) -> str | None:
        """What a report says of it; None where the server refused nothing."""
        if not self.refusals:
            return None
        times = "once" if self.refusals == 1 else f"{self.refusals} times"
        return f"the server refused {times} with 429; {format_seconds(self.waited)} were waited, between requests"


def run_within_rate_limit(
    target: Target,
    requests: Sequence[Request],
    rate_limit: RateLimit,
    *,
    on_done: OnDone | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> LoadResult:
    """Send requests one at a time, as `run_closed` does, pausing between them where the server asks for it.

    The result has one recording for each request that was begun: its last try. ``stop`` is asked before each.
    """
    if not requests:
        return run_closed(target, requests, max_concurrency=1)
    parts: list[LoadResult] = []
    done: list[Recording] = []
    left = list(requests)
    while left:
        part = _until_refused(target, left, len(done), on_done, stop)
        parts.append(part)
        refused = part.recordings[-1] if part.recordings and part.recordings[-1].http_status == TOO_MANY else None
        answered = part.recordings if refused is None else part.recordings[:-1]
        done += answered
        if answered:
            rate_limit.answered()
        left = left[len(answered) :]
        if refused is None or part.interrupted or stop():
            break
        if rate_limit.accepts(refused):
            left[0] = replace(left[0], request_id=f"{requests[len(done)].request_id}.{rate_limit.refusals + 1}")
            continue
        done.append(refused)
        left = left[1:]
        rate_limit.answered()
    return _joined(parts, done, left)


def _until_refused(
    target: Target, requests: Sequence[Request], begun: int, on_done: OnDone | None, stop: Callable[[], bool]
) -> LoadResult:
    refused = False

    def look(place: int, recording: Recording) -> None:
        nonlocal refused
        refused = recording.http_status == TOO_MANY
        if on_done is not None and not refused:
            on_done(begun + place, recording)

    return run_closed(target, requests, max_concurrency=1, on_done=look, stop=lambda: refused or stop())


def _joined(parts: Sequence[LoadResult], done: Sequence[Recording], left: Sequence[Request]) -> LoadResult:
    last = parts[-1]
    if len(parts) == 1:
        return last
    return replace(
        last,
        recordings=tuple(done),
        health=worst([part.health for part in parts]),
        started=parts[0].started,
        unsent=tuple(one.request_id for one in left) if last.partial else (),
        interrupted=any(part.interrupted for part in parts),
        peak_in_flight=max(part.peak_in_flight for part in parts),
        server_gone=last.server_gone,
    )
