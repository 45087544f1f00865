"""What a level of load left behind, ready for judgement: latencies with failures as infinity, rates, and the client.

A level is measured in rounds, and the levels take turns within a round, so that a drift of the machine falls on all of
them. Each round has its own window, from the first request sent to the last token; the pauses between rounds belong to
no window. Latencies here are what a user sees: every request that was sent counts, also one that the lab would not
take for a sample.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from phasegate.metric import Undefined, inter_chunk_latencies, metric_named
from phasegate.stats.percentile import PercentileInterval, percentile_interval
from phasegate.timeline import Timeline

PROMPT_MS = "prompt_ms"
"""llama.cpp's own time of a prefill among ``timings``, in milliseconds."""


@dataclass(frozen=True, slots=True)
class Round:
    """One uninterrupted run at a level: the requests in the order in which they were begun."""

    timelines: tuple[Timeline, ...]

    @property
    def window(self) -> float:
        """Seconds from the first request sent to the last token of any; 0.0 where no token came."""
        sent = [line.sent for line in self.timelines if line.sent is not None]
        ends = [line.tokens[-1].at for line in self.timelines if line.tokens]
        return max(ends) - min(sent) if sent and ends else 0.0

    @property
    def output_tokens(self) -> int:
        """Proven output tokens of the answers that ended well."""
        return sum(line.output_tokens or 0 for line in self.timelines if line.status == "ok")

    @property
    def token_rate(self) -> float:
        """Output tokens per second over the window; 0.0 where there is none."""
        return self.output_tokens / self.window if self.window > 0 else 0.0


@dataclass(frozen=True, slots=True)
class LevelRun:
    """Everything measured at one level of load.

    Attributes:
        level: requests in flight, or requests a second where ``by_rate``.
        rounds: in the order of measuring.
        by_rate: whether the level is a rate of arrivals (open loop).
        partial: True when it was stopped before its plan was done.
        missed: why the load that was asked for was not reached, or None.
        notes: remarks of the client about itself.
    """

    level: float
    rounds: tuple[Round, ...]
    by_rate: bool = False
    partial: bool = False
    missed: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def timelines(self) -> tuple[Timeline, ...]:
        """Every request of every round."""
        return tuple(line for one in self.rounds for line in one.timelines)

    @property
    def sent(self) -> int:
        """Requests begun, failures included."""
        return len(self.timelines)

    @property
    def name(self) -> str:
        """The level in words."""
        return f"{self.level:.3g} requests/s" if self.by_rate else f"{self.level:g} at a time"

    def samples(self, metric: str) -> list[float]:
        """Values of a metric, one per request that ended well and has it."""
        row = metric_named(metric)
        measured = (row.measure(line) for line in self.timelines if line.status == "ok")
        return [value for value in measured if not isinstance(value, Undefined)]

    def without(self, metric: str) -> int:
        """Requests that have no value of a metric: failures, and answers that do not define it."""
        return self.sent - len(self.samples(metric))

    def percentile(self, metric: str, percent: float) -> PercentileInterval | None:
        """A percentile over all requests sent, those without a value as infinity; None where none was sent."""
        if not self.sent:
            return None
        return percentile_interval(self.samples(metric), percent, failed=self.without(metric))

    def median(self, metric: str) -> float | None:
        """Median of the values there are; None without any."""
        values = self.samples(metric)
        return float(np.median(values)) if values else None

    def median_gap(self) -> float | None:
        """Median gap between token events, those inside one network read left out; None without any."""
        gaps = [gap for line in self.timelines if line.status == "ok" for gap in inter_chunk_latencies(line) if gap > 0]
        return float(np.median(gaps)) if gaps else None

    def median_server_prefill(self) -> float | None:
        """Median of the prefill time that the server itself reports, in seconds; None where it reports none."""
        told = [line.server_timings for line in self.timelines if line.status == "ok" and line.server_timings]
        values = [float(timings[PROMPT_MS]) / 1e3 for timings in told if _is_number(timings.get(PROMPT_MS))]
        return float(np.median(values)) if values else None

    @property
    def window(self) -> float:
        """Seconds measured: the windows of the rounds together."""
        return sum(one.window for one in self.rounds)

    @property
    def token_rate(self) -> float:
        """Output tokens per second over the measured window; 0.0 where there is none."""
        return sum(one.output_tokens for one in self.rounds) / self.window if self.window > 0 else 0.0

    def rate_of(self, count: int) -> float:
        """So many requests per second of the measured window; 0.0 where there is none."""
        return count / self.window if self.window > 0 else 0.0

    @property
    def request_rate(self) -> float:
        """Requests that ended well, per second of the measured window."""
        return self.rate_of(sum(1 for line in self.timelines if line.status == "ok"))

    def failures(self) -> Counter[str]:
        """Error kind -> failed requests."""
        return Counter(line.error_kind or line.status for line in self.timelines if line.status != "ok")


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


@dataclass(frozen=True, slots=True)
class Collision:
    """A long prompt sent among streams that were being answered.

    Attributes:
        intruder: the long prompt's own request.
        streams: the requests that it ran into.
        alone: TTFT in seconds of an equally long prompt on the idle server, measured next to it.
    """

    intruder: Timeline
    streams: tuple[Timeline, ...]
    alone: float

    @property
    def hit(self) -> bool:
        """Whether every stream was between its first and its last token while the long prompt was read."""
        if self.intruder.sent is None or not self.intruder.tokens:
            return False
        sent, read = self.intruder.sent, self.intruder.tokens[0].at
        return all(line.tokens and line.tokens[0].at < sent and line.tokens[-1].at > read for line in self.streams)

    @property
    def stall(self) -> float:
        """The longest gap in seconds of any stream that overlaps the reading of the long prompt."""
        assert self.intruder.sent is not None
        sent, read = self.intruder.sent, self.intruder.tokens[0].at
        return max(
            later.at - earlier.at
            for line in self.streams
            for earlier, later in zip(line.tokens, line.tokens[1:], strict=False)
            if later.at > sent and earlier.at < read
        )

    @property
    def usual_gap(self) -> float:
        """Median gap of the streams before the long prompt was sent; 0.0 where there was none."""
        assert self.intruder.sent is not None
        gaps = [
            later.at - earlier.at
            for line in self.streams
            for earlier, later in zip(line.tokens, line.tokens[1:], strict=False)
            if later.at <= self.intruder.sent and later.at > earlier.at
        ]
        return float(np.median(gaps)) if gaps else 0.0


def token_rates(run: LevelRun) -> Sequence[float]:
    """Output tokens per second of each round, in order."""
    return [one.token_rate for one in run.rounds]
