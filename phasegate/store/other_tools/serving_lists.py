"""Lists of one item per request, and medians, as the serving benchmarks of vLLM and SGLang write them.

Both descend from one script and agree on units: ``ttfts`` in seconds, ``itls`` a list of gaps in seconds for each
request, ``input_lens`` and ``output_lens`` in tokens, ``errors`` an empty text where all went well. A failed request
has a ttft of 0, which is no measurement. Summaries such as ``median_ttft_ms`` are in milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from phasegate.store.other_tools.gaps import check_times, gap_total
from phasegate.store.other_tools.identity import Identity
from phasegate.store.other_tools.result import (
    Row,
    UnreadableResultError,
    count_of,
    length_or_none,
    number,
    number_list,
    positive,
    span,
    span_or_none,
)
from phasegate.store.other_tools.runs import NO_FAILURES, ONLY_MEDIANS, Point, Remark, point_of_medians, point_of_rows

_LATENCIES = ("e2els", "latencies")
"""Lists under which forks of the script keep whole requests; the script itself does not keep them."""


def point_of(
    document: Mapping[str, Any], identity: Identity, medians: Mapping[str, str], source: str, remedy: str
) -> tuple[Point, tuple[Remark, ...]]:
    """The load of a result: from its lists, or from its medians where the tool was told to write no lists.

    Args:
        document: the result.
        identity: what was asked.
        medians: our short name -> the tool's key of a median in milliseconds.
        source: the file, for messages.
        remedy: how to get lists.

    Raises:
        UnreadableResultError: neither is there, or they do not fit together.
    """
    if "ttfts" in document:
        return point_of_rows(identity, rows_of(document, source), source), ()
    found = {ours: _median(document, theirs, source) for ours, theirs in medians.items()}
    answered = _count(document, "completed", source)
    failed = _failed(document, answered, source)
    lengths = {"in": "total_input_tokens", "out": "total_output_tokens"}
    seen = {
        ours: total / answered
        for ours, theirs in lengths.items()
        if ours not in identity.asked and answered and (total := length_or_none(document.get(theirs)))
    }
    known = Identity(identity.tool, identity.asked, {**seen, **identity.seen})
    point = point_of_medians(known, found, answered=1 if answered is None else answered, failed=failed or 0)
    if not point.measurements:
        keys = ", ".join(medians.values())
        raise UnreadableResultError(f"{source}: neither times of single requests nor {keys} in it", remedy)
    remarks = [Remark(source, f"{ONLY_MEDIANS}; {remedy}")]
    return point, tuple(remarks if failed is not None else [*remarks, Remark(source, NO_FAILURES)])


def _median(document: Mapping[str, Any], key: str, source: str) -> float | None:
    return span_or_none(document.get(key), f"{source}: {key}", 1e-3)


def _failed(document: Mapping[str, Any], answered: int | None, source: str) -> int | None:
    """Requests that failed: as the tool says, or those sent that were not completed; None where nothing tells."""
    told, sent = _count(document, "failed", source), _count(document, "num_prompts", source)
    unanswered = None if sent is None or answered is None else max(0, sent - answered)
    return max((count for count in (told, unanswered) if count is not None), default=None)


def _count(document: Mapping[str, Any], key: str, source: str) -> int | None:
    return None if document.get(key) is None else count_of(document[key], f"{source}: {key}")


def rows_of(document: Mapping[str, Any], source: str) -> list[Row]:
    """One row per request.

    ``tpot`` is the sum of the gaps over (output tokens - 1), which is also our definition; the gaps themselves lie
    between chunks and may hold several tokens. ``e2el`` is ttft plus the gaps: the last token, not the last byte.

    Raises:
        UnreadableResultError: the lists do not fit together, or a request's times contradict each other.
    """
    ttfts = document["ttfts"]
    if not isinstance(ttfts, list):
        raise UnreadableResultError(f"{source}: ttfts must be a list with one item per request")
    count = len(ttfts)
    itls = number_list(document, "itls", count, source)
    answers = number_list(document, "output_lens", count, source)
    prompts = number_list(document, "input_lens", count, source) if "input_lens" in document else [None] * count
    errors = number_list(document, "errors", count, source) if "errors" in document else [""] * count
    latencies: list[Any] = next((document[key] for key in _LATENCIES if isinstance(document.get(key), list)), [])
    whole = latencies if len(latencies) == count else [None] * count
    longest = length_or_none(document.get("duration"))
    return [
        _row(one, longest, f"{source}: request {index}")
        for index, one in enumerate(zip(ttfts, itls, answers, prompts, errors, whole, strict=True), start=1)
    ]


def _row(one: tuple[Any, ...], longest: float | None, where: str) -> Row:
    ttft, gaps, answer, prompt, error, latency = one
    if error or ttft is None or number(ttft, f"{where}: ttft") == 0:
        return Row(failed=True)
    first, total = span(ttft, f"{where}: ttft"), gap_total(gaps, where)
    whole = span_or_none(latency, f"{where}: latency")
    check_times(where, first=first, gaps=total, latency=whole, ends_with_last_token=False)
    if longest is not None and first + total > longest * 1.02 + 0.1:
        said = f"{where}: ttft and gaps make {first + total:.3g} s, but the whole run took {longest:.3g} s"
        raise UnreadableResultError(f"{said}: the gaps do not add up")
    decodes = isinstance(answer, int) and answer >= 2 and total > 0
    if decodes and answer >= 1e15:
        raise UnreadableResultError(f"{where}: its tokens are a count larger than any number of seconds can hold")
    tpot = span(total / (answer - 1), f"{where}: time per token") if decodes else None
    return Row(
        ttft=first,
        tpot=tpot,
        e2el=positive(first + total, where),
        prompt_tokens=length_or_none(prompt),
        answer_tokens=length_or_none(answer),
    )
