"""Lists of one item per request, as the serving benchmarks of vLLM and SGLang write them.

Both descend from one script and agree on units: ``ttfts`` in seconds, ``itls`` a list of gaps in seconds for each
request, ``output_lens`` in tokens, ``errors`` an empty text where all went well. A failed request has a ttft of 0,
which is no measurement.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from phasegate.interop.result import Row, UnreadableResultError, number_list, positive


def rows_of(document: Mapping[str, Any], source: str, remedy: str) -> list[Row]:
    """One row per request.

    ``tpot`` is the sum of the gaps over (output tokens - 1), which is also our definition; the gaps themselves lie
    between chunks and may hold several tokens. ``e2el`` is ttft plus the gaps: the last token, not the last byte.

    Raises:
        UnreadableResultError: the lists are missing (``remedy`` says how to get them) or do not fit together.
    """
    ttfts = document.get("ttfts")
    if not isinstance(ttfts, list):
        raise UnreadableResultError(f"{source}: only summaries, no ttfts for each request; {remedy}")
    count = len(ttfts)
    itls = number_list(document, "itls", count, source)
    lengths = number_list(document, "output_lens", count, source)
    errors = number_list(document, "errors", count, source) if "errors" in document else [""] * count
    return [
        _row(ttft, gaps, length, error, f"{source}: request {index + 1}")
        for index, (ttft, gaps, length, error) in enumerate(zip(ttfts, itls, lengths, errors, strict=True))
    ]


def _row(ttft: Any, gaps: Any, length: Any, error: Any, where: str) -> Row:
    if error or not ttft:
        return Row(failed=True)
    if not isinstance(gaps, list) or not all(isinstance(gap, (int, float)) for gap in gaps):
        raise UnreadableResultError(f"{where}: itls must be a list of gaps in seconds")
    try:
        first, span = positive(ttft, f"{where}: ttft"), math.fsum(gaps)
        decodes = isinstance(length, int) and length >= 2 and span > 0
        return Row(ttft=first, tpot=span / (length - 1) if decodes else None, e2el=first + span)
    except OverflowError:  # JSON knows whole numbers beyond every float, as a gap and as a count of tokens
        raise UnreadableResultError(f"{where}: a value is larger than any number of seconds can be") from None


def workload_name(tool: str, parts: Mapping[str, Any]) -> str:
    """``tool[key=value,...]`` from whatever the file tells of the load."""
    told = ",".join(f"{key}={value:g}" if isinstance(value, float) else f"{key}={value}" for key, value in parts.items()
                    if value is not None)  # fmt: skip
    return f"{tool}[{told}]" if told else tool


def mean_length(values: Any) -> int | None:
    """The common length of a list of token counts, or None where they differ or are missing."""
    if isinstance(values, list) and values and len({str(value) for value in values}) == 1:
        return values[0] if isinstance(values[0], int) else None
    return None
