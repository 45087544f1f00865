"""Results of AIPerf by request: ``profile_export.jsonl``, one request a line.

Field names from the AIPerf project's document "Working with Profile Export Files". Every value carries its unit, which
is "authoritative for the value's interpretation": it is converted where it is a span of time, and refused where it is
anything else. AIPerf's ``inter_token_latency`` of a request is (request latency - time to first token) / (output
tokens - 1), which is our tpot, with 0 where all tokens came in one chunk; its ``time_to_first_token`` and
``request_latency`` are ours too. The records do not say which load made them; `aiperf_load` finds it out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from phasegate.store.other_tools.aiperf_load import TOOL, load_beside, steady_concurrency
from phasegate.store.other_tools.gaps import check_times, gap_total
from phasegate.store.other_tools.identity import Identity
from phasegate.store.other_tools.result import (
    Row,
    UnreadableResultError,
    length_or_none,
    mapping,
    shown,
    span_or_none,
)
from phasegate.store.other_tools.runs import Run, point_of_rows

NAMES = {"ttft": "time_to_first_token", "tpot": "inter_token_latency", "e2el": "request_latency"}
"""Our name -> AIPerf's."""

_SECONDS_PER = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0}


def recognises(document: Any) -> bool:
    """Whether a JSON document is a line of ``profile_export.jsonl``."""
    return isinstance(document, dict) and isinstance(document.get("metadata"), dict) and "metrics" in document


def read(records: Sequence[tuple[int, Mapping[str, Any]]], path: Path, run_id: str) -> Run:
    """One run from (line number, record) pairs; warm-up requests are left out.

    Raises:
        UnreadableResultError: one line naming file, line and remedy.
    """
    measured = [
        (number, record) for number, record in records if record["metadata"].get("benchmark_phase") != "warmup"
    ]  # fmt: skip
    rows = [_row(record, f"{path}: line {number}") for number, record in measured]
    starts = [record["metadata"].get("request_start_ns") for _, record in measured]
    told = load_beside(path)
    asked = dict(told.asked)
    if asked.get("concurrency") is None and asked.get("rate") is None:
        asked["concurrency"] = steady_concurrency([record["metadata"] for _, record in measured])
    return Run(
        run_id,
        str(min((start for start in starts if isinstance(start, int)), default="")),
        str(path),
        (point_of_rows(Identity(TOOL, asked), rows, str(path)),),
        server={"model": told.model} if told.model else {},
        client={"tool": TOOL},
    )


def _row(record: Mapping[str, Any], where: str) -> Row:
    metrics = record.get("metrics")
    if record.get("error") or record["metadata"].get("was_cancelled") or not isinstance(metrics, dict):
        return Row(failed=True)
    first, gap, latency = (
        seconds(metrics[theirs], f"{where}: {theirs}") if theirs in metrics else None for theirs in NAMES.values()
    )
    answer = _length(metrics, "output_sequence_length")
    if first is not None:
        gaps = None if gap is None or answer is None else gap * (answer - 1)
        check_times(where, first=first, gaps=gaps, latency=latency, ends_with_last_token=True)
        chunks = _chunk_gaps(metrics, where)
        check_times(where, first=first, gaps=chunks, latency=latency, ends_with_last_token=False)
    return Row(
        ttft=first,
        tpot=gap,
        e2el=latency,
        prompt_tokens=_length(metrics, "input_sequence_length"),
        answer_tokens=answer,
    )


def _length(metrics: Mapping[str, Any], key: str) -> float | None:
    return length_or_none(mapping(metrics.get(key)).get("value"))


def _chunk_gaps(metrics: Mapping[str, Any], where: str) -> float | None:
    block = metrics.get("inter_chunk_latency")
    if not isinstance(block, dict) or not isinstance(block.get("value"), list):
        return None
    return gap_total(block["value"], f"{where}: inter_chunk_latency", _factor(block, where))


def _factor(block: Mapping[str, Any], where: str) -> float:
    factor = _SECONDS_PER.get(str(block.get("unit")))
    if factor is None:
        raise UnreadableResultError(f"{where}: the unit is {shown(block.get('unit'))}, not a unit of time")
    return factor


def seconds(block: Any, where: str, key: str = "value") -> float | None:
    """A value of AIPerf in seconds, by the unit it carries; None where it has none, or 0.

    Raises:
        UnreadableResultError: no value with a unit of time.
    """
    if not isinstance(block, dict):
        raise UnreadableResultError(f"{where}: {shown(block)} has no value and unit")
    return span_or_none(block.get(key), where, _factor(block, where))
