"""What is wrong, or only odd, with the token counts of some answers, in one line each, with a witness.

`disproof` decides what cannot be true and `flags` names it; this says it to a reader, with the numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from phasegate.core.timeline import Timeline
from phasegate.wire.disproof import ENDED_AT_LIMIT

DISPROVED = "usage_inconsistent"

UNBELIEVED = "token counts of this server cannot be believed; TPOT is undefined"


def is_disproved(line: Timeline) -> bool:
    """Whether an answer's count contradicts the answer."""
    return line.status == "ok" and DISPROVED in line.flags


def disproof_words(lines: Sequence[Timeline]) -> str | None:
    """Which counts of some answers are disproved, by what, and what follows; None where none is."""
    denied = [line for line in lines if is_disproved(line)]
    if not denied:
        return None
    witness = max(denied, key=lambda line: len(line.tokens))
    answered = sum(line.status == "ok" for line in lines)
    return f"{_contradiction(witness)} ({len(denied)} of {answered} answers): {UNBELIEVED}"


def mostly_disproved(lines: Sequence[Timeline]) -> str | None:
    """`disproof_words` where more than half of the answers are disproved, so that little is left to be measured."""
    denied = sum(map(is_disproved, lines))
    return disproof_words(lines) if 2 * denied > sum(line.status == "ok" for line in lines) else None


def _contradiction(line: Timeline) -> str:
    if line.output_tokens is not None and (line.reasoning_tokens or 0) > line.output_tokens:
        return f"usage counts {line.reasoning_tokens} reasoning tokens among {line.output_tokens} output tokens"
    limit = line.expected.max_tokens if line.expected.max_tokens is not None else line.expected.output_tokens
    counted = line.output_tokens
    if limit is not None and counted != limit and line.choices == 1 and line.finish_reason in ENDED_AT_LIMIT:
        return f"usage counts {counted} tokens where the answer ended at its limit of {limit}"
    return f"usage counts {counted} tokens where {len(line.tokens)} token events came"


def doubts(lines: Sequence[Timeline]) -> list[str]:
    """What is odd about counts that are believed all the same; empty where nothing is."""
    return list(_doubts([line for line in lines if line.status == "ok" and not is_disproved(line)]))


def _doubts(lines: Sequence[Timeline]) -> Iterator[str]:
    cut = [line for line in lines if "limit_mismatch" in line.flags]
    if cut:
        yield (
            f"{_answers(cut)} ended at the limit by the server's word, with another number of tokens counted, such as "
            f"{_widest(cut, lambda line: line.expected.max_tokens)}; the server may have another limit, or counts wrong"
        )
    off = [line for line in lines if "osl_mismatch" in line.flags and line not in cut]
    if off:
        wanted = _widest(off, lambda line: line.expected.output_tokens)
        yield f"{_answers(off)} of another length than was forced, such as {wanted}"
    split = [line for line in lines if "split_tokens" in line.flags and not _is_borne_out(line)]
    if split:
        yield (
            f"{_answers(split)} with fewer tokens counted than token events came, such as "
            f"{_widest(split, lambda line: len(line.tokens))}; TPOT takes the server's word that tokens came in pieces"
        )


def _is_borne_out(line: Timeline) -> bool:
    """Whether the limit that ended an answer is its count."""
    return line.finish_reason in ENDED_AT_LIMIT and line.output_tokens == line.expected.max_tokens


def _answers(lines: Sequence[Timeline]) -> str:
    return f"{len(lines)} answer{'s' if len(lines) != 1 else ''}"


def _widest(lines: Sequence[Timeline], other: Callable[[Timeline], int | None]) -> str:
    """``128 of 256`` of the answer whose count lies furthest from the other number."""
    counted, wanted = max(
        ((line.output_tokens or 0, other(line) or 0) for line in lines), key=lambda pair: abs(pair[0] - pair[1])
    )
    return f"{counted} where {wanted} were due" if counted > wanted else f"{counted} of {wanted}"
