"""What was measured, one figure each: the input of the diagnosis. None means not measured, which is not 0.

All figures are medians; times are seconds. Nothing here knows how they were measured.
"""

from __future__ import annotations

from dataclasses import dataclass

from phasegate.diagnose.thresholds import MATERIAL_SECONDS, ONE_SIZE, SEVERAL_TOKENS


@dataclass(frozen=True, slots=True)
class Steps:
    """How tokens leave the engine.

    Attributes:
        tokens_per_chunk: output tokens by token event; above 1 where one event carries several.
        tokens_per_step: output tokens by moment at which any left; above 1 with speculative decoding.
        drafted, accepted: guessed tokens, and those that were right, as the server counts them over all requests.
        chunks: (tokens, chunks with so many), ascending, where the server proved each chunk's tokens; else empty.
        usual_size: share of these that have the commonest size, each answer's first and last chunk left out; None where
            chunks do not leave one by one.
        first_chunk: output tokens in the first token event, which TPOT takes for one.
    """

    tokens_per_chunk: float | None = None
    tokens_per_step: float | None = None
    drafted: int | None = None
    accepted: int | None = None
    chunks: tuple[tuple[int, int], ...] = ()
    usual_size: float | None = None
    first_chunk: float = 1.0

    @property
    def acceptance(self) -> float | None:
        """Share of guessed tokens that were right; None where nothing was guessed or the server does not tell."""
        return self.accepted / self.drafted if self.drafted and self.accepted is not None else None

    @property
    def guessing(self) -> bool:
        """Whether tokens are seen to be guessed ahead: the server counts guesses, or proves steps of several sizes.

        Tokens that merely came at one moment show nothing: a busy client sees several steps as one, and an engine may
        send every so many tokens in one chunk. So without the server's count each step must be one chunk, its tokens
        proven, with clearly more than one on average and no size that nearly all have.
        """
        if self.drafted:
            return True
        if self.usual_size is None or self.tokens_per_step is None:
            return False
        return self.tokens_per_step >= SEVERAL_TOKENS and self.usual_size <= ONE_SIZE

    @property
    def yielded(self) -> float:
        """Tokens that a step of the engine yields: above 1 only where guesses are seen."""
        return (self.tokens_per_step or 1.0) if self.guessing else 1.0


@dataclass(frozen=True, slots=True)
class Ask:
    """One kind of request, sent while the server did nothing else.

    Attributes:
        name: for readers.
        prompt_tokens, output_tokens: lengths.
        ttft, ttfo, tpot, total: as in the metric table; ``ttfo`` is the first token of the answer itself.
        reasoning_tokens: that the server counted.
        connect: connection set-up, about one round trip of the network.
        server_prefill, server_queue, server_handoff: the server's own times of this request; the last one is the move
            of its KV cache from one worker to another.
        others: requests of somebody else that the server answered meanwhile, by its own count.
        second_gap, usual_gap, longest_gap: gap before the second token, the others' median, and the longest of the
            others in the middle one of the answers.
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
    server_handoff: float | None = None
    others: float | None = None
    second_gap: float | None = None
    usual_gap: float | None = None
    longest_gap: float | None = None
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
    def own_start(self) -> float | None:
        """TTFT without unseen reasoning and without the wait that the server tells: reading the prompt, and the way."""
        return None if self.prefill_part is None else max(0.0, self.prefill_part - (self.server_queue or 0.0))

    @property
    def crowded(self) -> bool:
        """Whether others were served meanwhile and there was a wait: its mean is everybody's, the rest is unclear."""
        return self.others is not None and bool(self.server_queue)

    @property
    def outside(self) -> float | None:
        """Seconds of `own_start` beyond the server's own prefill; None where it does not tell that."""
        if self.own_start is None or self.server_prefill is None:
            return None
        return max(0.0, self.own_start - self.server_prefill)


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
        waiting, running: requests queued and in work at a moment, on average, by the server's own times.
        requests: sent at this level.
        preemptions: times that the server threw a request out of its KV memory, by its own count.
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
    waiting: float | None = None
    running: float | None = None
    requests: int | None = None
    preemptions: float | None = None

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
        hit_rate: share of all prompt tokens of the workload, first calls too, that came from its prefix cache by the
            server's own count.
        unmarked: why the API caches nothing of requests without a mark, as these are; empty where it may.
    """

    name: str
    prompt_tokens: int
    shared_tokens: int
    first: float
    again: float
    control: float | None = None
    cached_tokens: float | None = None
    hit_rate: float | None = None
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
class Observations:
    """Everything measured of a server in one sitting.

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
