"""Counting a prompt's tokens by asking: the shortest answer that the server writes, and its ``usage.prompt_tokens``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from phasegate.core.timeline import Expected, Timeline
from phasegate.engines.profile import LIMITS
from phasegate.engines.refusal import refusal_words

if TYPE_CHECKING:
    from phasegate.measure.session_runner import SessionRunner

LEAST_ANSWERS = (1, 16, 64)
"""Output limits to ask with until one is accepted: one token is cheapest, and some servers refuse less than 16."""

PERHAPS_TOO_SHORT = frozenset({"http_400", "http_422", "http_500", "stream_error"})
"""Kinds of refusal behind which the limit may stand. Which it is, only another limit can tell: words are not read."""

PERHAPS_A_NAME = frozenset({"http_400", "http_422"})
"""Kinds behind which the name of the limit's parameter may stand: newer servers refuse ``max_tokens``, older ones know
nothing else."""


class CountingError(RuntimeError):
    """A prompt's tokens cannot be counted. The message is one line that says what happened and what to do."""


def shortest_answer(runner: SessionRunner, prompt: str, endpoint: str) -> Timeline:
    """The answer to a request for as few tokens as the server is willing to write; the limit is found out once.

    Where every limit is refused, by the one name of the parameter and then by the other, the answer to the first one.
    """
    known = runner.least_answers.get(endpoint)
    line = _shortest(runner, prompt, endpoint, LEAST_ANSWERS if known is None else (known,))
    if known is not None or endpoint != "chat" or line.error_kind not in PERHAPS_A_NAME:
        return line
    usual = runner.profile
    (other,) = {*LIMITS} - {usual.limit}
    runner.profile = replace(usual, limit=other)
    renamed = _shortest(runner, prompt, endpoint, LEAST_ANSWERS)
    if renamed.status != "error":
        return renamed
    runner.profile = usual
    return line


def _shortest(runner: SessionRunner, prompt: str, endpoint: str, limits: Sequence[int]) -> Timeline:
    """The answer to the first of these limits that is accepted; where none is, to the first one."""
    first: Timeline | None = None
    for limit in limits:
        line = runner.send_one(prompt, Expected(endpoint=endpoint, max_tokens=limit, cold_prompt=False), limit)
        if line.error_kind not in PERHAPS_TOO_SHORT:
            if line.status != "error":
                runner.least_answers[endpoint] = limit
            return line if first is None or line.status != "error" else first
        first = first or line
    assert first is not None
    return first


def count_tokens(runner: SessionRunner, prompt: str, endpoint: str) -> int:
    """Tokens of a prompt, template included, as the server counts them.

    Raises:
        CountingError: no answer, or none with a count.
    """
    line = shortest_answer(runner, prompt, endpoint)
    # A model that reasons unseen spends the one token on that: an empty answer, with its counts.
    if line.status != "ok" and not (line.status == "empty" and line.prompt_tokens is not None):
        raise CountingError("; ".join((_failure(runner, line), *runner.warnings)))
    if line.prompt_tokens is None:
        raise CountingError("the server does not tell how many tokens a prompt has: no usage in its answer")
    return line.prompt_tokens


def _failure(runner: SessionRunner, line: Timeline) -> str:
    kind = line.error_kind or line.status
    said = f": {line.error_message}" if line.error_message else ""
    status = kind.removeprefix("http_")
    meant = refusal_words(int(status), runner.key_name) if status != kind else None
    return f"a first request, to count its tokens, failed ({kind}){said}" + (f"; {meant}" if meant else "")
