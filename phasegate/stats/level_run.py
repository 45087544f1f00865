"""What a level of load left behind, ready for judgement: latencies with failures as infinity, rates, and the client.

A level is measured in rounds, and the levels take turns within a round, so that a drift of the machine falls on all of
them. Each round has its own window, from the first request sent to the last token; the pauses between rounds belong to
no window. Latencies here are what a user sees: every request that was sent counts, also one that the lab would not
take for a sample.

No fault of a server may make it look better than it is (`value_of`): what failed, or stopped short of the length it was
told to write, is never fast, and a count that the server got wrong divides nothing.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from phasegate.core.metric import Undefined, inter_chunk_latencies, metric_named
from phasegate.core.timeline import Timeline
from phasegate.stats.client_error import ClientError
from phasegate.stats.counters import ServerCounts
from phasegate.stats.percentile import PercentileInterval, percentile_interval
from phasegate.stats.summary import MAX_ERROR_RATE
from phasegate.wire.answer_words import other_prompt_words, share_of_other_prompts
from phasegate.wire.count_words import is_disproved, mostly_disproved

PROMPT_MS = "prompt_ms"
"""llama.cpp's own time of a prefill among ``timings``, in milliseconds."""


SHORT_ANSWER = "short_answer"
"""The name under which answers are counted that stopped before the length they were told to have."""

NO_ANSWER = "no_answer"
"""The name of requests that a silent server let run into the idle deadline; one that falls silent later is an
``idle_timeout``."""


def ended_well(line: Timeline) -> bool:
    """Whether a request was answered, and in full: as long as it was told to be, where it was told."""
    return line.status == "ok" and not _stopped_short(line)


def _stopped_short(line: Timeline) -> bool:
    wanted = line.expected.output_tokens
    if wanted is None or is_disproved(line):  # a count that is wrong does not say that the answer is short
        return False
    return "osl_mismatch" in line.flags and (line.output_tokens or 0) < wanted


def value_of(line: Timeline, metric: str) -> float | None:
    """What a request counts with in a metric; None where it counts as infinity.

    Beyond the definition of the metric, that is where the request failed or stopped short, and for TPOT where the
    server counts more tokens than it was told to write and more than came. Tokens that came in one read with the first
    one say nothing of the pace, so TPOT is spread over the others: an answer that was held back is not decoded faster
    for it.
    """
    if not ended_well(line):
        return None
    value = metric_named(metric).measure(line)
    if isinstance(value, Undefined):
        return None
    return _paced(line, value) if metric_named(metric).short == "tpot" else value


def _paced(line: Timeline, tpot: float) -> float | None:
    events, wanted = len(line.tokens), line.expected.output_tokens
    if line.output_tokens is None or (wanted is not None and line.output_tokens > max(wanted, events)):
        return None
    held = sum(1 for event in line.tokens if event.at == line.tokens[0].at) - 1
    steps = line.output_tokens - 1
    paced = steps - held * line.output_tokens / events
    return tpot * steps / paced if held < events - 1 and paced > 0 else None


def failure_of(line: Timeline) -> str:
    """The name under which a request that did not end well is counted."""
    if line.status == "ok":
        return SHORT_ANSWER
    if line.error_kind == "idle_timeout" and line.first_byte is None:
        return NO_ANSWER
    return line.error_kind or line.status


@dataclass(frozen=True, slots=True)
class Round:
    """One uninterrupted run at a level: the requests in the order in which they were begun.

    Attributes:
        timelines: the requests.
        of_whole: seconds of the window where these are only some of the requests that were under way; None where
            they are all.
    """

    timelines: tuple[Timeline, ...]
    of_whole: float | None = None

    @property
    def window(self) -> float:
        """Seconds from the first request sent to the last token of any; 0.0 where no token came."""
        if self.of_whole is not None:
            return self.of_whole
        sent = [line.sent for line in self.timelines if line.sent is not None]
        ends = [line.tokens[-1].at for line in self.timelines if line.tokens]
        return max(ends) - min(sent) if sent and ends else 0.0

    @property
    def output_tokens(self) -> int:
        """Proven output tokens of the answers; never more of one than it was told to have."""
        return sum(_tokens_of(line) for line in self.timelines if line.status == "ok")

    @property
    def token_rate(self) -> float:
        """Output tokens per second over the window; 0.0 where there is none."""
        return self.output_tokens / self.window if self.window > 0 else 0.0


def rounded(rate: float) -> str:
    """A rate with three digits, and without an exponent: 2000 and not 2e+03."""
    return f"{float(f'{rate:.3g}'):g}"


def _tokens_of(line: Timeline) -> int:
    told, wanted = line.output_tokens or 0, line.expected.output_tokens
    return told if wanted is None else min(told, wanted)


@dataclass(frozen=True, slots=True)
class LevelRun:
    """Everything measured at one level of load.

    Attributes:
        level: requests in flight, or requests a second where ``by_rate``.
        rounds: in the order of measuring.
        by_rate: whether the level is a rate of arrivals (open loop).
        partial: True when it was stopped before its plan was done.
        missed: why the load is not the one that was asked for, which was not reached or had other prompts, or None.
        notes: remarks of the client about itself.
        client: what is known of the client's own error at this level; None where nothing is.
        workloads: request id -> workload, of a mix; empty where all requests are of one.
        server: what the server counted in all rounds together; None where it does not tell.
        sent_by: which workers sent it, and how each did in the last round; None for the run's own process.
    """

    level: float
    rounds: tuple[Round, ...]
    by_rate: bool = False
    partial: bool = False
    missed: str | None = None
    notes: tuple[str, ...] = ()
    client: ClientError | None = None
    workloads: Mapping[str, str] = field(default_factory=dict)
    server: ServerCounts | None = None
    sent_by: str | None = None

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
        return f"{rounded(self.level)} requests/s" if self.by_rate else f"{self.level:g} at a time"

    def samples(self, metric: str) -> list[float]:
        """Values of a metric, one per request that ended well and has it (`value_of`)."""
        return [value for line in self.timelines if (value := value_of(line, metric)) is not None]

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
        return self.rate_of(sum(map(ended_well, self.timelines)))

    def disproved(self) -> str | None:
        """Why no token count of this level can be believed, in one line; None while most of them stand."""
        return mostly_disproved(self.timelines)

    def failures(self) -> Counter[str]:
        """Error kind -> failed requests."""
        return Counter(failure_of(line) for line in self.timelines if not ended_well(line))

    def remarks(self) -> Counter[str]:
        """Flag -> answered requests that carry it (`wire.flags.FLAGS`)."""
        return Counter(flag for line in self.timelines if ended_well(line) for flag in line.flags)

    def usual_tokens(self) -> float:
        """Median output tokens of the answers that ended well; 0.0 without any."""
        counts = [line.output_tokens for line in self.timelines if ended_well(line) and line.output_tokens]
        return float(np.median(counts)) if counts else 0.0

    def names(self) -> tuple[str, ...]:
        """The workloads of a mix, each once, in alphabetical order; empty where all requests are of one."""
        return tuple(sorted(set(self.workloads.values())))

    def part(self, *names: str) -> LevelRun:
        """The requests of some workloads of a mix, with the windows of the whole."""
        rounds = tuple(
            Round(tuple(line for line in one.timelines if self.workloads.get(line.request_id) in names), one.window)
            for one in self.rounds
        )
        return replace(self, rounds=rounds)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def wrong_prompts(lines: Sequence[Timeline]) -> str | None:
    """Which prompts of a load the server counted otherwise than they were written; None while they are few."""
    return other_prompt_words(lines) if share_of_other_prompts(lines) > MAX_ERROR_RATE else None


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


@dataclass(frozen=True, slots=True)
class ChunkedPrefill:
    """The same collisions on an engine that reads prompts in smaller pieces.

    Attributes:
        setting: what was set for it, such as ``n_batch=64``.
        collisions: as on the engine of the run.
    """

    setting: str
    collisions: tuple[Collision, ...]


def token_rates(run: LevelRun) -> Sequence[float]:
    """Output tokens per second of each round, in order."""
    return [one.token_rate for one in run.rounds]
