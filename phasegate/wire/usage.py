"""Where token counts come from: the server's usage reports, and the tokens that logprobs list.

Usage comes in an extra chunk, on the finish chunk, or running on every chunk; at the top level, inside a
choice, or under ``x_groq``. It is cumulative: the last report stands, reports are never added up, and
reasoning tokens are a part of the completion, never an addition. Only a non-negative integer is a count.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from phasegate.wire.numbers import count, length


class Ledger:
    """The counts of one answer, as they become known.

    Attributes:
        completion, prompt, total, cached, reasoning: last reported counts; None while unreported.
        shrank: a report took back tokens that an earlier one had counted.
        reports: number of reports with a completion count.
        on_choice: the last of them rode on a chunk that carried choices.
        listed: tokens that logprobs named.
    """

    __slots__ = (
        "_known",
        "cached",
        "completion",
        "listed",
        "on_choice",
        "prompt",
        "reasoning",
        "reports",
        "shrank",
        "total",
    )

    def __init__(self) -> None:
        self.completion: int | None = None
        self.prompt: int | None = None
        self.total: int | None = None
        self.cached: int | None = None
        self.reasoning: int | None = None
        self.shrank = False
        self.reports = 0
        self.on_choice = False
        self.listed = 0
        self._known: int | None = 0

    def take(self, usage: Mapping[str, Any], on_choice: bool) -> int | None:
        """Note one report; gives its completion count, or None where it has none."""
        completion = count(usage.get("completion_tokens"))
        if completion is not None:
            self.shrank = self.shrank or completion < (self.completion or 0)
            self.completion = completion
            self.reports += 1
            self.on_choice = on_choice
        self.prompt = _newest(count(usage.get("prompt_tokens")), self.prompt)
        self.total = _newest(count(usage.get("total_tokens")), self.total)
        self.cached = _newest(_cached(usage), self.cached)
        self.reasoning = _newest(_reasoning(usage), self.reasoning)
        return completion

    def proven_by(self, running: int | None, listed: int) -> int | None:
        """Tokens that one output event holds, by running usage or else by logprobs; None where unproven.

        Args:
            running: completion count of the usage report on the same chunk, or None.
            listed: tokens that the event's logprobs name.

        Running usage proves an event only when the output event before it had a report, too: the difference
        then is what came in between, frames without text included.
        """
        before, self._known = self._known, running
        if running is not None and before is not None and running >= before:
            return running - before
        return listed or None

    def contradicts(self, events: int) -> bool:
        """True when the completion count cannot be the count of all tokens of an answer with so many events."""
        if self.completion is None:
            return False
        return self.shrank or self.completion < max(self.listed, min(events, 1)) or self._leaves_reasoning_out()

    def _leaves_reasoning_out(self) -> bool:
        if not self.reasoning or self.completion is None:
            return False
        beside = self.prompt is not None and self.total == self.prompt + self.completion + self.reasoning
        return self.reasoning > self.completion or beside


def reports_in(payload: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The usage reports of one chunk, wherever they stand."""
    usage = payload.get("usage")
    if isinstance(usage, dict):
        return [usage]
    found = []
    groq = payload.get("x_groq")
    if isinstance(groq, dict) and isinstance(groq.get("usage"), dict):
        found.append(groq["usage"])
    choices = payload.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, dict) and isinstance(choice.get("usage"), dict):
            found.append(choice["usage"])
    return found


def listed_tokens(choice: Mapping[str, Any]) -> int:
    """Tokens that a choice's logprobs name: chat lists them as objects, completions as texts."""
    logprobs = choice.get("logprobs")
    if not isinstance(logprobs, dict):
        return 0
    return length(logprobs.get("content")) + length(logprobs.get("refusal")) or length(logprobs.get("tokens"))


def _newest(found: int | None, before: int | None) -> int | None:
    return before if found is None else found


def _cached(usage: Mapping[str, Any]) -> int | None:
    """Prompt tokens from a cache: OpenAI's place for them, else the names that others use."""
    details = usage.get("prompt_tokens_details")
    cached = count(details.get("cached_tokens")) if isinstance(details, dict) else None
    return _newest(cached, _newest(count(usage.get("cached_tokens")), count(usage.get("prompt_cache_hit_tokens"))))


def _reasoning(usage: Mapping[str, Any]) -> int | None:
    details = usage.get("completion_tokens_details")
    reasoning = count(details.get("reasoning_tokens")) if isinstance(details, dict) else None
    return _newest(reasoning, count(usage.get("reasoning_tokens")))
