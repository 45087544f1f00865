"""Where token counts come from: the server's usage reports, and the tokens that logprobs list.

Usage comes in an extra chunk, on the finish chunk, or running on every chunk; at the top level, inside a
choice, or under ``x_groq``. It is cumulative: the last report stands, reports are never added up, and
reasoning tokens are a part of the completion, never an addition. Only a non-negative integer is a count.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from phasegate.wire.messages import clean
from phasegate.wire.numbers import count, length

SHOWN = 60
"""Characters of a strange value that a message shows."""


class Ledger:
    """The counts of one answer, as they become known.

    Attributes:
        completion, prompt, total, cached, reasoning: last reported counts; None while unreported.
        shrank: a report took back tokens that an earlier one had counted.
        reports: number of reports with a completion count.
        on_choice: the last of them rode on a chunk that carried choices.
        closed: the last of them came by itself and repeated the one before it, which had ridden on choices.
        listed: tokens that logprobs named.
        problem: what the last report said in place of a completion count, free of secrets; None where it said one.
    """

    __slots__ = (
        "_known",
        "cached",
        "closed",
        "completion",
        "listed",
        "on_choice",
        "problem",
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
        self.problem: str | None = None
        self.closed = False
        self._known: int | None = 0

    def take(self, usage: Mapping[str, Any], on_choice: bool, called: str = "usage.completion_tokens") -> int | None:
        """Note one report; gives its completion count, or None where it has none.

        ``called`` is the count's name in the dialect that the report came in.
        """
        completion = count(usage.get("completion_tokens"))
        if "completion_tokens" in usage:
            self.problem = None if completion is not None else no_count(called, usage["completion_tokens"])
        elif self.completion is None:
            self.problem = f"{called} is missing"
        if completion is not None:
            self.shrank = self.shrank or completion < (self.completion or 0)
            self.closed = not on_choice and self.on_choice and completion == self.completion
            self.completion = completion
            self.reports += 1
            self.on_choice = on_choice
        self.prompt = _newest(count(usage.get("prompt_tokens")), self.prompt)
        self.total = _newest(count(usage.get("total_tokens")), self.total)
        self.cached = _newest(_cached(usage), self.cached)
        self.reasoning = _newest(_reasoning(usage), self.reasoning)
        return completion

    def note_no_report(self, usage: object) -> None:
        """Note what stands where a usage report belongs: anything that is neither absent nor an object."""
        if usage is not None and not isinstance(usage, dict) and self.completion is None:
            self.problem = f"usage is {_shown(usage)}, which is no report"

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
        return self.completion < max(self.listed, min(events, 1)) or self._leaves_reasoning_out()

    def _leaves_reasoning_out(self) -> bool:
        if not self.reasoning or self.completion is None:
            return False
        return self.reasoning > self.completion or self.counts_reasoning_beside

    @property
    def believed_cached(self) -> int | None:
        """The cached prompt tokens, unless they are more than the prompt has."""
        return None if self.caches_more_than_prompt else self.cached

    @property
    def caches_more_than_prompt(self) -> bool:
        """True when more prompt tokens are said to have come from a cache than the prompt has."""
        return self.cached is not None and self.prompt is not None and self.cached > self.prompt

    @property
    def counts_reasoning_beside(self) -> bool:
        """True when the total shows that reasoning is counted in addition to the completion, not as a part of it."""
        if not self.reasoning or None in (self.completion, self.prompt):
            return False
        return self.total == (self.prompt or 0) + (self.completion or 0) + self.reasoning


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


def no_count(called: str, value: object) -> str:
    """What stands in place of a count, in one short line: ``usage.completion_tokens is '48', which is no count``."""
    return f"{called} is {_shown(value)}, which is no count"


def _shown(value: object) -> str:
    """A value as JSON's readers know it, short and free of secrets."""
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else "a list"
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    shown = clean(repr(value))
    return shown if len(shown) <= SHOWN else shown[:SHOWN] + "…"


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
