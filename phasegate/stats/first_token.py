"""Where the time to first token went: the client's clock and the server's, put side by side.

The server knows how long a request waited and how long its prompt took to compute; the client knows when it asked and
when the first token came. The difference lies outside the computing: the connection and the HTTP server (measured on
requests of one token), splitting the text into tokens (measured at the tokenizer's door), and a first token that was
ready but came late because the engine had begun the next step (the server's own span of decoding against the client's).
What none of these explains is left over and shown as such; nothing is fitted, so it may be negative.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from phasegate.core.metric import Undefined, request_latency, time_to_first_token
from phasegate.core.timeline import Timeline
from phasegate.core.units import format_seconds
from phasegate.stats.counters import ServerCounts

CLOCK_ERROR, CLOCK_DRIFT = 0.001, 0.01
"""Seconds, and share of a time, that two hosts' clocks may differ by: timings come in milliseconds, and a clock that is
being set runs up to a thousandth too fast or slow. What the server takes is a part of what the client waits for, so a
server's time beyond that is of other requests, or in another unit."""

IMPOSSIBLE = "the server's own clock says more than the client measured"


@dataclass(frozen=True, slots=True)
class Overheads:
    """What a request costs outside the engine's own clock, in seconds; None where it was not measured.

    Attributes:
        http: connection to HTTP server and back, with the request's parsing and the template: the client's TTFT of
            requests with a prompt of a word or two, less what the server says it computed.
        tokenising: what splitting a text costs at the tokenizer's door beyond a text of one word: pairs of tokens and
            seconds, in order of tokens. It does not grow evenly, since a word that was met before is found faster.
        tokenised_inside: the server's own TTFT has the tokenising in it.
    """

    http: float | None = None
    tokenising: tuple[tuple[float, float], ...] | None = None
    tokenised_inside: bool = False

    def tokenising_of(self, tokens: float | None) -> float | None:
        """Seconds for a prompt of that many tokens, between the measured lengths and beyond them in proportion."""
        if self.tokenised_inside:
            return 0.0
        if not self.tokenising or tokens is None:
            return None
        lengths, seconds = zip(*self.tokenising, strict=True)
        if tokens > lengths[-1]:
            return float(seconds[-1] * tokens / lengths[-1])
        return float(np.interp(tokens, lengths, seconds))


@dataclass(frozen=True, slots=True)
class FirstToken:
    """A time to first token in parts, in seconds; None for parts that nobody knows.

    Attributes:
        client: as the client measured it.
        server: as the server did, from the arrival at the engine to the first token; None where it does not tell.
        http: see `Overheads`.
        tokenising: the prompt's text into tokens; 0.0 where the server counts it among its own time.
        queue: waiting for the engine.
        prefill: computing the prompt, the first token included.
        first_decode: the first token was ready, and came later because the next step had begun.
    """

    client: float
    server: float | None
    http: float | None = None
    tokenising: float | None = None
    queue: float | None = None
    prefill: float | None = None
    first_decode: float | None = None

    @property
    def outside(self) -> float | None:
        """What the client measured and the server did not."""
        return None if self.server is None else self.client - self.server

    @property
    def inside_rest(self) -> float | None:
        """What the server counts beyond queue and prefill: handing the request over and the token back."""
        if self.server is None or self.queue is None or self.prefill is None:
            return None
        return self.server - self.queue - self.prefill

    @property
    def unexplained(self) -> float | None:
        """What is left of `outside` when every known part is taken away; None where the server tells nothing."""
        if self.outside is None:
            return None
        return self.outside - sum(part or 0.0 for part in (self.http, self.tokenising, self.first_decode))

    @property
    def unknown(self) -> tuple[str, ...]:
        """Names of the parts that nobody knows."""
        return tuple(one.name for one in fields(self) if getattr(self, one.name) is None)

    def facts(self) -> dict[str, float | None]:
        """Every part with its name, and what is left over."""
        return {**{one.name: getattr(self, one.name) for one in fields(self)}, "unexplained": self.unexplained}


def split_by_timings(line: Timeline, overheads: Overheads | None = None) -> FirstToken | Undefined:
    """One request's TTFT in parts, by the timings that came with its answer.

    Undefined where none came, or where they are longer than what the client waited.

    llama.cpp sends ``prompt_ms`` (from the start of the prompt to the first token) and ``predicted_ms`` (from there to
    the last one); vLLM's per-request metrics ``queue_time_ms`` and ``time_to_first_token_ms`` (from the scheduling on).
    """
    client = time_to_first_token(line)
    if isinstance(client, Undefined):
        return client
    timings = line.server_timings or {}
    overheads = overheads or Overheads()
    tokenising = overheads.tokenising_of(line.prompt_tokens)
    prefill = _seconds(timings, "prompt_ms")
    if prefill is not None:
        # llama.cpp counts from the moment a slot takes the request; whether it waited before is not told.
        held = _held_back(line, timings)
        return _possible(FirstToken(client, prefill, overheads.http, tokenising, None, prefill, held))
    prefill, queue = _seconds(timings, "time_to_first_token_ms"), _seconds(timings, "queue_time_ms")
    if prefill is None:
        return Undefined("the answer carries no timings of the server")
    # These begin behind the tokenizer, also where the server's histogram of TTFT begins before it.
    text = None if overheads.tokenised_inside else tokenising
    return _possible(FirstToken(client, prefill + (queue or 0.0), overheads.http, text, queue, prefill))


def _possible(split: FirstToken) -> FirstToken | Undefined:
    """The split, unless the server's part is longer than the whole."""
    if split.server is None or split.server <= split.client * (1 + CLOCK_DRIFT) + CLOCK_ERROR:
        return split
    server, client = format_seconds(split.server), format_seconds(split.client)
    return Undefined(f"{IMPOSSIBLE} ({server} of a TTFT of {client}); it is not used")


def _held_back(line: Timeline, timings: Mapping[str, object]) -> float | None:
    """How much longer the server's span from the first to the last token is than the client's.

    The last token has no next step that could hold it back, so the difference is what the first one waited. None where
    the client saw no span.
    """
    span, client_ttft, client_total = (
        _seconds(timings, "predicted_ms"),
        time_to_first_token(line),
        request_latency(line),
    )
    if span is None or isinstance(client_ttft, Undefined) or isinstance(client_total, Undefined):
        return None
    if (line.output_tokens or 0) < 2:
        return 0.0
    return span - (client_total - client_ttft)


def server_decode(line: Timeline) -> float | None:
    """The server's own seconds a token from the first token to the last; None where the answer does not tell."""
    timings, further = line.server_timings or {}, (line.output_tokens or 0) - 1
    span = _seconds(timings, "predicted_ms") or _seconds(timings, "generation_time_ms")
    return span / further if span is not None and further > 0 else None


def _seconds(timings: Mapping[str, object], name: str) -> float | None:
    value = timings.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        return None
    return value / 1000


def split_by_counts(
    lines: Sequence[Timeline], counts: ServerCounts, overheads: Overheads | None = None
) -> FirstToken | Undefined:
    """The *mean* TTFT of some requests in parts, by what the server counted meanwhile.

    Histograms give means, so the client's mean stands beside them, not its median. Undefined where the server counted
    another number of requests than were sent (somebody else used it, or it counts something else), or more time than
    the client waited. Where every request passed several workers, waiting and prefill are the sums over them, and there
    is no TTFT of the server's: theirs may run beside each other, or one after the other.
    """
    values = [value for line in lines if not isinstance(value := time_to_first_token(line), Undefined)]
    if not values:
        return Undefined("no token came")
    seen = counts.observed.get("ttft") or counts.observed.get("prefill") or counts.observed.get("queue")
    passed = 1.0 if seen is None else round(seen) / len(values)
    if not (passed.is_integer() and 1 <= passed <= counts.workers):
        return Undefined(f"the server counted {seen:g} requests, the client {len(values)}: others used it meanwhile")
    if passed > 1:
        return _passed_several(values, counts)
    overheads = overheads or Overheads()
    told = [line.prompt_tokens for line in lines if line.prompt_tokens is not None]
    costs = [cost for tokens in told if (cost := overheads.tokenising_of(tokens)) is not None]
    tokenising = float(np.mean(costs)) if costs else None
    queue, prefill = (counts.mean(word, len(values)) for word in ("queue", "prefill"))
    server = counts.mean("ttft", len(values))
    if server is None and prefill is not None:
        server = prefill + (queue or 0.0)
    if server is None:
        return Undefined("the server tells neither its TTFT nor its prefill")
    held = _held_back_on_average(lines, counts)
    return _possible(FirstToken(float(np.mean(values)), server, overheads.http, tokenising, queue, prefill, held))


def _passed_several(values: Sequence[float], counts: ServerCounts) -> FirstToken | Undefined:
    queue, prefill = (counts.mean(word, len(values)) for word in ("queue", "prefill"))
    if queue is None and prefill is None:
        return Undefined("the workers tell neither waiting nor prefill")
    return FirstToken(float(np.mean(values)), None, queue=queue, prefill=prefill)


def _held_back_on_average(lines: Sequence[Timeline], counts: ServerCounts) -> float | None:
    """As `_held_back`, from the server's mean time of decoding; None unless it counted the same requests."""
    spans = [line.tokens[-1].at - line.tokens[0].at for line in lines if line.status == "ok" and line.tokens]
    decode = counts.mean("decode")
    if decode is None or round(counts.observed["decode"]) != len(spans) or not spans:
        return None
    return decode - float(np.mean(spans))


def median_split(splits: Sequence[FirstToken]) -> FirstToken | None:
    """Every part's median over requests; a part that some request does not know is None. None without a request.

    Medians of parts do not add up to the median of their sum exactly; what is missing shows up as unexplained.
    """
    if not splits:
        return None

    def middle(name: str) -> float | None:
        values = [getattr(one, name) for one in splits]
        return None if None in values else float(np.median(values))

    client = middle("client")
    assert client is not None
    names = [one.name for one in fields(FirstToken) if one.name != "client"]
    return FirstToken(client, **{name: middle(name) for name in names})
