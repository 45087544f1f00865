"""Whether a server sends text again that it sent before: each chunk the whole so far, or a call once more at its end.

Moments and counts of such an answer are right; its joined text is not.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Sequence
from typing import Any

from phasegate.core.timeline import Channel
from phasegate.wire.streamed import StreamedAnswer


def is_cumulative(answer: StreamedAnswer) -> bool:
    """Whether the joined text of any channel, or the arguments of any call, hold text twice."""
    return any(texts_grow(answer, channel) for channel in Channel) or any(map(_is_resent, answer.calls.values()))


def texts_grow(answer: StreamedAnswer, channel: Channel) -> bool:
    """Whether each of three or more different texts of a channel begins with the one before it and goes on."""
    first = min(answer.choices, default=0)
    return _grow(event.text for event in answer.tokens if event.channel is channel and event.choice == first)


def _grow(texts: Iterable[str]) -> bool:
    grown = 0
    for earlier, later in itertools.pairwise(texts):
        if not later.startswith(earlier):
            return False
        grown += len(later) > len(earlier)
    return grown >= 2


def _is_resent(pieces: Sequence[str]) -> bool:
    """Whether a call's arguments were sent again: they grow, or the last piece alone is all of them."""
    if len(pieces) < 2:
        return False
    whole = pieces[-1].startswith(pieces[0]) and _is_object(pieces[-1]) and not _is_object("".join(pieces))
    return whole or _grow(pieces) or _objects_grow(pieces)


def _objects_grow(pieces: Sequence[str]) -> bool:
    """Whether every piece is a whole object, each with all that the one before it has, and more at last."""
    objects = list(map(_object, pieces))
    pairs = list(itertools.pairwise(objects))
    return pieces[0] != pieces[-1] and all(_extends(later, earlier) for earlier, later in pairs)


def _extends(later: Any, earlier: Any) -> bool:
    """Whether a value is another one or goes on behind it."""
    if isinstance(earlier, dict) and isinstance(later, dict):
        return all(key in later and _extends(later[key], value) for key, value in earlier.items())
    if isinstance(earlier, list) and isinstance(later, list):
        pairs = zip(later, earlier, strict=False)
        return len(later) >= len(earlier) and all(_extends(new, old) for new, old in pairs)
    if isinstance(earlier, str) and isinstance(later, str):
        return later.startswith(earlier)
    return earlier is not None and bool(earlier == later)


def _is_object(text: str) -> bool:
    return _object(text) is not None


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
