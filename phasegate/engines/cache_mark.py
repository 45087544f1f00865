"""Marks in a request that say how far its prompt may be cached, for APIs that cache only, or better, what is marked.

A mark is put on a text part of a message, and stands for everything up to the end of that part. A marked prompt is the
same text as a plain one, cut in two parts, so it has the same tokens: the second part keeps the space before its first
word. Which mark an API understands is the profile's knowledge (``cache_mark``).

Sources: https://platform.claude.com/docs/en/build-with-claude/prompt-caching,
https://developers.openai.com/api/docs/guides/prompt-caching.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from phasegate.engines.profile import EngineProfile

OPTION = "--perf-mark-prefix"
"""The suite's option; ``phasegate decide`` has the same without ``perf-``."""

IN_PARTS = ("chat", "messages")
"""Endpoints whose messages may consist of parts; only a part can carry a mark."""

WANTED_MARKS = "a mapping for chat or messages, such as {messages: {cache_control: {type: ephemeral}}}"

_OF_THE_PART = frozenset({"type", "text"})
"""Keys that every text part has; a mark that brought its own would change what is said."""


def marks(value: Any) -> dict[str, dict[str, Any]]:
    """A converter for a profile's ``cache_mark``.

    Raises:
        TypeError, ValueError: not an endpoint with parts, or nothing to put on a part.
    """
    if not isinstance(value, dict) or not set(value) <= set(IN_PARTS):
        raise TypeError
    for mark in value.values():
        if not isinstance(mark, dict) or not mark or not all(isinstance(key, str) for key in mark):
            raise TypeError
        if _OF_THE_PART & set(mark):
            raise ValueError
    return {endpoint: dict(mark) for endpoint, mark in value.items()}


def content(prompt: str, reusable: int, mark: Mapping[str, Any] | None) -> str | list[dict[str, Any]]:
    """The content of a message: the prompt as it is, or in parts of which the first carries the mark.

    Args:
        prompt: the whole text.
        reusable: how many of its first characters may be cached; 0 for a prompt without a mark.
        mark: what is put on the first part; None for no mark.
    """
    if not reusable or mark is None:
        return prompt
    texts = [part for part in (prompt[:reusable], prompt[reusable:]) if part]
    first, *rest = ({"type": "text", "text": part} for part in texts)
    return [{**first, **mark}, *rest]


def why_not_marked(profile: EngineProfile, endpoint: str) -> str | None:
    """Why prompts at this endpoint cannot be marked, in one line with the remedy; None where they can."""
    if endpoint in profile.cache_mark:
        return None
    known = " or ".join(profile.cache_mark)
    name = profile.title or profile.name
    remedy = f"use --perf-endpoint {known}, or leave the option out" if known else "leave the option out"
    return (
        f"{OPTION}: the profile {profile.name} ({name}) knows no mark for the {endpoint} endpoint; {remedy}, or give "
        "cache_mark in a profile of your own (fixtures/engines)"
    )


def unmarked_reason(profile: EngineProfile, endpoint: str, *, marked: bool) -> str:
    """Why nothing of these requests is cached, where the API caches only what is marked; empty where it may be."""
    if marked or profile.caches_unmarked is not False:
        return ""
    told = f"{profile.title or profile.name} caches only what a request marks"
    if endpoint in profile.cache_mark:
        return f"{told}, and these were sent without a mark: run with {OPTION}"
    known = " or ".join(profile.cache_mark)
    remedy = f": run with --perf-endpoint {known} {OPTION}" if known else ""
    return f"{told}, and on its {endpoint} endpoint nothing can be marked{remedy}"


def too_short_reason(profile: EngineProfile, tokens: int) -> str:
    """Why a beginning of so many prompt tokens is not cached, where only longer ones are; empty where it may be."""
    if tokens >= profile.cache_from:
        return ""
    return (
        f"{profile.title or profile.name} caches beginnings from {profile.cache_from:,} prompt tokens on, and these "
        f"have {tokens:,}: measure longer ones (--perf-workloads)"
    )
