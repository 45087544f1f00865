"""What was measured, one figure each: the input of the diagnosis. None means not measured, which is not 0.

All figures are medians; times are seconds. Nothing here knows how they were measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from phasegate.gate.diagnose.thresholds import MATERIAL_SECONDS


@dataclass(frozen=True, slots=True)
class Steps:
    """How tokens leave the engine.

    Attributes:
        tokens_per_chunk: output tokens by token event; above 1 where one event carries several.
        tokens_per_step: output tokens by moment at which any left; above 1 with speculative decoding.
        drafted, accepted: guessed tokens, and those that were right, as the server counts them over all requests.
        chunks: (tokens, chunks with so many), ascending, where the server proved each chunk's tokens; else empty.
    """

    tokens_per_chunk: float | None = None
    tokens_per_step: float | None = None
    drafted: int | None = None
    accepted: int | None = None
    chunks: tuple[tuple[int, int], ...] = ()

    @property
    def acceptance(self) -> float | None:
        """Share of guessed tokens that were right; None where nothing was guessed or the server does not tell."""
        return self.accepted / self.drafted if self.drafted and self.accepted is not None else None


@dataclass(frozen=True, slots=True)
class Ask:
    """One kind of request, sent while the server did nothing else.

    Attributes:
        name: for readers.
        prompt_tokens, output_tokens: lengths.
        ttft, ttfo, tpot, total: as in the metric table; ``ttfo`` is the first token of the answer itself.
        reasoning_tokens: that the server counted.
        connect: connection set-up, about one round trip of the network.
        server_prefill, server_queue: the server's own times of this request.
        second_gap, usual_gap: gap before the second token, and the others' median.
        steps: how tokens leave.
    """

    name: str
    prompt_tokens: int | None = None
    output_tokens: float | None = None
    ttft: float | None = None
    ttfo: float | None = None
    tpot: float | None = None
    total: float | None = None
    reasoning_tokens: float | None = None
    connect: float | None = None
    server_prefill: float | None = None
    server_queue: float | None = None
    second_gap: float | None = None
    usual_gap: float | None = None
    steps: Steps | None = None

    @property
    def decode(self) -> float | None:
        """Seconds from the first token to the last."""
        if self.total is not None and self.ttft is not None:
            return max(0.0, self.total - self.ttft)
        if self.tpot is not None and self.output_tokens:
            return self.tpot * (self.output_tokens - 1)
        return None

    @property
    def streamed_thinking(self) -> float:
        """Seconds from the first token of any channel to the answer's first: reasoning that was sent."""
        return max(0.0, self.ttfo - self.ttft) if self.ttfo is not None and self.ttft is not None else 0.0

    @property
    def hidden_thinking(self) -> float:
        """Seconds of TTFT in which the model reasoned unseen, by the server's count of tokens at the answer's pace."""
        if self.ttft is None or self.tpot is None or not self.reasoning_tokens:
            return 0.0
        if self.streamed_thinking > MATERIAL_SECONDS:
            return 0.0
        return min(self.ttft, self.reasoning_tokens * self.tpot)

    @property
    def prefill_part(self) -> float | None:
        """TTFT without the reasoning that took place in it."""
        return None if self.ttft is None else self.ttft - self.hidden_thinking

    @property
    def decode_part(self) -> float | None:
        """Decode with the reasoning that nobody saw."""
        return None if self.decode is None else self.decode + self.hidden_thinking

    @property
    def outside(self) -> float | None:
        """Seconds of TTFT that the server's own prefill and queue do not account for; None where it tells neither."""
        if self.ttft is None or self.server_prefill is None:
            return None
        return max(0.0, self.ttft - self.server_prefill - (self.server_queue or 0.0))


@dataclass(frozen=True, slots=True)
class Level:
    """Several users at a time.

    Attributes:
        users: requests in flight.
        ttft, tpot, total: medians.
        token_rate: output tokens per second over all streams.
        usual_gap: median gap between token events.
        server_prefill, server_queue: the server's own times.
        streams_per_step: that got a token from a step of the engine, on average, by the server's own count.
    """

    users: float
    ttft: float | None = None
    tpot: float | None = None
    total: float | None = None
    token_rate: float | None = None
    usual_gap: float | None = None
    server_prefill: float | None = None
    server_queue: float | None = None
    streams_per_step: float | None = None

    @property
    def decoding(self) -> float | None:
        """Streams between their first and last token at a time, on average, by Little's law; None where unknown."""
        return self.token_rate * self.tpot if self.token_rate is not None and self.tpot is not None else None


@dataclass(frozen=True, slots=True)
class Stall:
    """What a long prompt did to running streams.

    Attributes:
        stall: longest gap of any stream meanwhile.
        alone: the same prompt's TTFT on the idle server.
        usual_gap: of the streams before.
        prompt_tokens: length of the long prompt.
    """

    stall: float
    alone: float
    usual_gap: float
    prompt_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class CacheCalls:
    """A prompt, the same beginning again, and a new prompt of the same length.

    Attributes:
        name: of the workload.
        prompt_tokens: length of each prompt.
        shared_tokens: how many the second call shares with the first.
        first, again, control: TTFT of each.
        cached_tokens: what the server reported of the second call.
        unmarked: why the API caches nothing of requests without a mark, as these are; empty where it may.
    """

    name: str
    prompt_tokens: int
    shared_tokens: int
    first: float
    again: float
    control: float | None = None
    cached_tokens: float | None = None
    unmarked: str = ""

    @property
    def saved(self) -> float:
        """Share of TTFT that the second call saved."""
        return 1 - self.again / self.first


@dataclass(frozen=True, slots=True)
class Repeats:
    """Traffic whose prompts share long beginnings, in two parts: each beginning's first request, and the later ones.

    Attributes:
        shared_tokens: length of the shared beginning.
        prompt_tokens: length of each prompt.
        early_ttft, later_ttft: medians of the two parts.
        early_cached, later_cached: share of the prompt that came from the cache, as the server reported.
    """

    shared_tokens: int
    prompt_tokens: int
    early_ttft: float
    later_ttft: float
    early_cached: float | None = None
    later_cached: float | None = None


@dataclass(frozen=True, slots=True)
class Machine:
    """How near the phases run to the hardware's limits, as fractions.

    Attributes:
        bandwidth: model bandwidth utilisation (MBU) of decode.
        compute: model FLOP/s utilisation (MFU) of prefill.
        decode_compute: the same of decode, one stream alone.
    """

    bandwidth: float | None = None
    compute: float | None = None
    decode_compute: float | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """What the user wants, where anything was said: seconds, and where it was said."""

    ttft: float | None = None
    tpot: float | None = None
    source: str = ""


@dataclass(frozen=True, slots=True)
class Situation:
    """Everything that was measured of a server in one sitting.

    Attributes:
        asks: requests sent alone, each kind once.
        levels: several users, by their number, ascending.
        stall: a long prompt among streams.
        caches: second calls.
        repeats: traffic with shared beginnings.
        machine: against the hardware.
        limits: what is wanted.
        client: remarks of the client about its own lateness; any makes the figures doubtful.
        host: remarks about a busy or disturbed host of the engine.
    """

    asks: tuple[Ask, ...] = ()
    levels: tuple[Level, ...] = ()
    stall: Stall | None = None
    caches: tuple[CacheCalls, ...] = ()
    repeats: Repeats | None = None
    machine: Machine = Machine()
    limits: Limits = Limits()
    client: tuple[str, ...] = ()
    host: tuple[str, ...] = ()

    @property
    def longest(self) -> Ask | None:
        """The kind of request that takes longest; None where no total is known."""
        known = [(ask.total or (ask.ttft or 0.0) + (ask.decode or 0.0), place) for place, ask in enumerate(self.asks)]
        seconds, place = max(known, default=(0.0, 0))
        return self.asks[place] if seconds > 0 else None

    def ask(self, name: str) -> Ask | None:
        """The kind of request of that name."""
        return next((one for one in self.asks if one.name == name), None)


@dataclass(frozen=True, slots=True)
class Line:
    """TTFT over the prompt's length: a part that every request pays, and seconds a token.

    Attributes:
        fixed: seconds; may come out below 0 where attention's share bends the line.
        per_token: seconds.
        shortest, longest: prompts between which it was fitted.
    """

    fixed: float
    per_token: float
    shortest: int
    longest: int

    def reading(self, tokens: int) -> float:
        """Seconds that reading so many tokens takes."""
        return self.per_token * tokens


def prefill_line(asks: Sequence[Ask]) -> Line | None:
    """Least squares of TTFT over prompt length; None with fewer than two lengths."""
    points = [(ask.prompt_tokens, ask.ttft) for ask in asks if ask.prompt_tokens and ask.ttft is not None]
    lengths = sorted({tokens for tokens, _ in points})
    if len(lengths) < 2:
        return None
    middle = sum(tokens for tokens, _ in points) / len(points)
    level = sum(seconds for _, seconds in points) / len(points)
    spread = sum((tokens - middle) ** 2 for tokens, _ in points)
    slope = sum((tokens - middle) * (seconds - level) for tokens, seconds in points) / spread
    return Line(level - slope * middle, slope, lengths[0], lengths[-1])
