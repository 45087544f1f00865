"""What the simulator can do wrong on purpose: every fault by name, and the rules that say which request it hits.

A fault changes how one answer is delivered, never how fast other answers are computed. Which requests are hit is
decided by their number and the seed alone, so a run with faults can be repeated.
"""

from __future__ import annotations

import enum
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


class Fault(str, enum.Enum):
    """One way an answer can go wrong. What each does stands in `FAULTS`."""

    HTTP_429 = "http_429"
    HTTP_500 = "http_500"
    HTTP_503 = "http_503"
    NO_ANSWER = "no_answer"
    RESET_BEFORE_HEADERS = "reset_before_headers"
    RESET_MID_STREAM = "reset_mid_stream"
    HALF_CLOSE = "half_close"
    CUT_CHUNK = "cut_chunk"
    TRUNCATED = "truncated"
    EARLY_DONE = "early_done"
    SILENT_STALL = "silent_stall"
    SLOW_LORIS = "slow_loris"
    SLOW_BODY = "slow_body"
    ERROR_IN_STREAM = "error_in_stream"
    NOT_HTTP = "not_http"
    GARBAGE = "garbage"
    MALFORMED_EVENT = "malformed_event"
    EMPTY_ANSWER = "empty_answer"
    MISSING_USAGE = "missing_usage"
    WRONG_USAGE = "wrong_usage"
    BUFFERED = "buffered"
    EARLY_EOS = "early_eos"
    ROLE_EARLY = "role_early"
    NO_DONE = "no_done"
    NOT_STREAMED = "not_streamed"


FAULTS: Mapping[Fault, str] = {
    Fault.HTTP_429: "answers 429 at once, with a Retry-After header of `seconds`",
    Fault.HTTP_500: "answers 500 at once",
    Fault.HTTP_503: "answers 503 at once",
    Fault.NO_ANSWER: "reads the request, never answers, and keeps the connection open",
    Fault.RESET_BEFORE_HEADERS: "resets the connection (RST) before a byte of the answer",
    Fault.RESET_MID_STREAM: "resets the connection (RST) after `after_tokens` tokens",
    Fault.HALF_CLOSE: "closes its sending side (FIN) after `after_tokens` tokens, inside the chunked body",
    Fault.CUT_CHUNK: "closes its sending side (FIN) in the middle of a chunk, after `after_tokens` tokens",
    Fault.TRUNCATED: "ends the answer in order after `after_tokens` tokens, [DONE] included, without a finish reason",
    Fault.EARLY_DONE: "sends [DONE] after `after_tokens` tokens and then goes on as if nothing was",
    Fault.SILENT_STALL: "sends nothing more after `after_tokens` tokens and keeps the connection open",
    Fault.SLOW_LORIS: "sends its response head one byte every `seconds`, then what has piled up since",
    Fault.SLOW_BODY: "sends the whole answer, head and body, one byte every `seconds`",
    Fault.ERROR_IN_STREAM: "sends an error object as an event after `after_tokens` tokens, then [DONE]",
    Fault.NOT_HTTP: "answers with bytes that are not HTTP and closes",
    Fault.GARBAGE: "sends bytes that are no events after `after_tokens` tokens, and ends in order",
    Fault.MALFORMED_EVENT: "sends an event of cut-off JSON after `after_tokens` tokens, then goes on as if nothing was",
    Fault.EMPTY_ANSWER: "ends with a finish reason and no token at all",
    Fault.MISSING_USAGE: "leaves the usage out though it was asked for",
    Fault.WRONG_USAGE: "reports half as many completion tokens again as were sent",
    Fault.BUFFERED: "holds the whole body back and sends it in one piece at the end",
    Fault.EARLY_EOS: "ends after `after_tokens` tokens with the finish reason stop, whatever was asked",
    Fault.ROLE_EARLY: "sends the role chunk at once on arrival, before the prompt is read",
    Fault.NO_DONE: "leaves out the final [DONE]",
    Fault.NOT_STREAMED: "answers with one JSON object though a stream was asked for",
}
"""Every fault -> what the server does, in one sentence."""

REFUSALS: Mapping[Fault, tuple[int, str]] = {
    Fault.HTTP_429: (429, "too many requests"),
    Fault.HTTP_500: (500, "the simulated engine failed"),
    Fault.HTTP_503: (503, "the simulated engine is overloaded"),
}
"""Faults that answer an error status -> that status and the words beside it."""

BREAKS_AT_TOKEN = frozenset(
    {
        Fault.RESET_MID_STREAM,
        Fault.HALF_CLOSE,
        Fault.CUT_CHUNK,
        Fault.TRUNCATED,
        Fault.SILENT_STALL,
        Fault.ERROR_IN_STREAM,
        Fault.GARBAGE,
    }
)
"""Faults after which no token follows."""


@dataclass(frozen=True, slots=True)
class FaultRule:
    """Which requests a fault hits. A request is hit when any of the three conditions holds.

    Attributes:
        fault: what goes wrong.
        every: every k-th generation request, counted from 1; 0 for never.
        at: these generation requests, counted from 1.
        probability: each generation request with this chance, 0 to 1.
        after_tokens: for faults inside a stream: after so many tokens of the answer, 1 or more.
        seconds: for 429 the Retry-After; for slow loris and a slow body the time between two bytes.
    """

    fault: Fault
    every: int = 0
    at: tuple[int, ...] = ()
    probability: float = 0.0
    after_tokens: int = 4
    seconds: float = 1.0

    def hits(self, number: int, rng: random.Random) -> bool:
        """Whether the rule hits the request of that number; draws from ``rng`` exactly once."""
        drawn = rng.random() < self.probability
        return drawn or number in self.at or (self.every > 0 and number % self.every == 0)

    def problem(self) -> str | None:
        """What is wrong with the rule in one clause, or None."""
        if self.every < 0:
            return f"every is {self.every}; it must be 0 (never) or more"
        if any(number < 1 for number in self.at):
            return f"at is {list(self.at)}; requests are counted from 1"
        if not 0 <= self.probability <= 1:
            return f"probability is {self.probability}; it must be 0 to 1"
        if self.after_tokens < 1:
            return f"after_tokens is {self.after_tokens}; it must be 1 or more"
        if not 0 <= self.seconds < float("inf"):
            return f"seconds is {self.seconds}; it must be 0 or more"
        return None


def rule_for(rules: Sequence[FaultRule], number: int, seed: int, session: int) -> FaultRule | None:
    """The first rule that hits the generation request of that number (counted from 1), or None."""
    rng = random.Random(f"{seed}/{session}/fault/{number}")
    hit = [rule for rule in rules if rule.hits(number, rng)]
    return hit[0] if hit else None
