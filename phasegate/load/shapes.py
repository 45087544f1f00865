"""The shape of a load, read from options: what is asked of the server and when. No clock, no server.

Three shapes: a closed loop (so many users, each waiting for an answer), an open loop (so many requests a second,
evenly, at random or in bursts, or on a ramp), and the replay of a recorded trace. An open loop and a replay may have
a cap on requests in flight.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from phasegate.core.settings_file import SettingsError
from phasegate.core.units import parse_duration
from phasegate.load.pacing import POISSON, Rate, bursty, replay
from phasegate.load.trace import Trace, read_trace

PYTEST_PREFIX = "--perf-"
"""How the options of the suite begin; the words behind it are those of the field's tools."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How requests are to come.

    Attributes:
        rate: arrivals of an open loop; None for a closed loop and for a trace.
        burstiness: shape of the gaps' gamma distribution; 1 is Poisson, infinity is even.
        max_concurrency: users of a closed loop; cap of an open loop or a trace, where None means no cap.
        count: requests to measure; None where the caller decides (of a trace: all of it).
        warmups: requests to send before measuring; None where the caller decides.
        trace: the recorded arrivals, or None.
        trace_scale: what a trace's times are multiplied with; 0.5 replays twice as fast.
    """

    rate: Rate | None = None
    burstiness: float = POISSON
    max_concurrency: int | None = None
    count: int | None = None
    warmups: int | None = None
    trace: Trace | None = None
    trace_scale: float = 1.0

    @property
    def is_open(self) -> bool:
        """Whether requests come by a schedule and do not wait for answers."""
        return self.rate is not None or self.trace is not None

    @property
    def saturates(self) -> bool:
        """Whether all requests are due at once and a cap lets in so many at a time: a closed loop in other words."""
        return self.rate is not None and math.isinf(self.rate.first) and self.max_concurrency is not None

    @property
    def users(self) -> int:
        """Requests in flight of a closed loop: what was asked for, or 1."""
        return 1 if self.max_concurrency is None else self.max_concurrency

    def offsets(self, count: int, rng: np.random.Generator) -> tuple[float, ...]:
        """When ``count`` requests are due, in seconds from the start; deterministic for one state of ``rng``.

        Raises:
            ValueError: a closed loop has no schedule, or the trace has fewer requests.
        """
        if self.trace is not None:
            if count > len(self.trace.requests):
                raise ValueError(
                    f"{self.trace.source} has {len(self.trace.requests)} requests; {count} cannot be replayed from it"
                )
            return replay([one.at for one in self.trace.requests[:count]], self.trace_scale)
        if self.rate is None:
            raise ValueError("a closed loop has no schedule; ask for a request rate or a trace")
        return bursty(self.rate, count, self.burstiness, rng)

    def describe(self) -> str:
        """The shape in words, for the report."""
        if not self.is_open:
            return f"closed loop, {self.users} at a time"
        what = self._describe_trace() if self.trace is not None else self._describe_rate()
        return what if self.max_concurrency is None else f"{what}, at most {self.max_concurrency} at a time"

    def _describe_trace(self) -> str:
        assert self.trace is not None
        count = len(self.trace.requests) if self.count is None else self.count
        return f"replay of {count} requests of {self.trace.source}, times x {self.trace_scale:g}"

    def _describe_rate(self) -> str:
        assert self.rate is not None
        if math.isinf(self.rate.first):
            return "open loop, all requests at once"
        rate = f"{self.rate.last:g} requests/s"
        if self.rate.is_ramp:
            rate = f"{self.rate.first:g} to {self.rate.last:g} requests/s over {self.rate.span:g} s"
        gaps = {POISSON: "Poisson arrivals", math.inf: "even arrivals"}
        return f"open loop, {gaps.get(self.burstiness, f'gamma arrivals (burstiness {self.burstiness:g})')}, {rate}"


def shape_from_options(
    *,
    request_rate: str | float | None = None,
    max_concurrency: str | int | None = None,
    burstiness: str | float | None = None,
    num_prompts: str | int | None = None,
    num_warmups: str | int | None = None,
    trace: str | Path | None = None,
    trace_scale: str | float | None = None,
    prefix: str = PYTEST_PREFIX,
) -> Shape:
    """The shape that the options describe; every one may be None, which leaves its default.

    ``request_rate`` is a number of requests a second, ``inf`` for all at once, or a ramp such as ``1:10:60s`` (from 1
    to 10 within 60 seconds). Texts and numbers are both understood. ``prefix`` begins the options' names in errors.

    Raises:
        SettingsError: one line with the option, its value and the remedy.
    """
    rate = None if request_rate is None else _rate(f"{prefix}request-rate", str(request_rate))
    _refuse_contradictions(prefix, rate, burstiness, trace, trace_scale)
    count = _whole(f"{prefix}num-prompts", num_prompts, least=1)
    recorded = None if trace is None else _recorded(f"{prefix}num-prompts", Path(trace), count)
    return Shape(
        rate=rate,
        burstiness=POISSON if burstiness is None else _positive(f"{prefix}burstiness", burstiness, infinite=True),
        max_concurrency=_whole(f"{prefix}max-concurrency", max_concurrency, least=1),
        count=count,
        warmups=_whole(f"{prefix}num-warmups", num_warmups, least=0),
        trace=recorded,
        trace_scale=1.0 if trace_scale is None else _positive(f"{prefix}trace-scale", trace_scale),
    )


def shape_from(take: Callable[[str], str | None]) -> Shape:
    """The shape of a pytest run; ``take`` gives the text of an option, such as ``config.getoption``.

    Raises:
        SettingsError: one line with the option, its value and the remedy.
    """
    return shape_from_options(
        request_rate=take("--perf-request-rate"),
        max_concurrency=take("--perf-max-concurrency"),
        burstiness=take("--perf-burstiness"),
        num_prompts=take("--perf-num-prompts"),
        num_warmups=take("--perf-num-warmups"),
        trace=take("--perf-trace"),
        trace_scale=take("--perf-trace-scale"),
    )


def _refuse_contradictions(
    prefix: str, rate: Rate | None, burstiness: object, trace: object, trace_scale: object
) -> None:
    if rate is not None and trace is not None:
        raise SettingsError(f"give {prefix}request-rate or {prefix}trace, not both: a trace has its own arrivals")
    if burstiness is not None and rate is None:
        raise SettingsError(f"{prefix}burstiness {burstiness} needs {prefix}request-rate: it says how requests come")
    if trace_scale is not None and trace is None:
        raise SettingsError(f"{prefix}trace-scale {trace_scale} needs {prefix}trace: it stretches the trace's times")


def _rate(option: str, text: str) -> Rate:
    parts = text.split(":")
    try:
        if len(parts) not in (1, 3):
            raise ValueError("write one number, or three parts as in 1:10:60s")
        first, last = (_number(part) for part in (parts * 2)[:2])
        span = parse_duration(parts[2], source="its span") if len(parts) == 3 else 0.0
        return Rate(first, last, span)
    except ValueError as error:
        raise SettingsError(f"{option} {text!r}: {error}") from None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number of requests a second (inf: all at once)") from None


def _recorded(option: str, path: Path, count: int | None) -> Trace:
    trace = read_trace(path, count)
    if count is not None and len(trace.requests) < count:
        raise SettingsError(f"{option} is {count}, but {path} has only {len(trace.requests)} requests; ask for fewer")
    return trace


def _whole(option: str, value: str | int | None, *, least: int) -> int | None:
    if value is None:
        return None
    try:
        number = int(str(value))
    except ValueError:
        number = least - 1
    if number < least:
        raise SettingsError(f"{option} {str(value)!r} is not a whole number of at least {least}")
    return number


def _positive(option: str, value: str | float, *, infinite: bool = False) -> float:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not number > 0 or (math.isinf(number) and not infinite):
        raise SettingsError(f"{option} {str(value)!r} is not a number above 0")
    return number
