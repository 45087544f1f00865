"""Results of AIPerf: ``profile_export.jsonl`` (one request a line) and ``profile_export_aiperf.json`` (summaries).

Field names from the AIPerf project's documents "Working with Profile Export Files" and "JSON Export Schema". Every
value carries its unit, which is "authoritative for the value's interpretation": it is converted where it is a span of
time, and refused where it is anything else. AIPerf's ``inter_token_latency`` of a request is the mean gap per token
after the first, which is our tpot; its ``time_to_first_token`` and ``request_latency`` are ours too.

The summary holds a median for each metric, which is all a session needs to be compared, but no single requests: p95
and objectives cannot be judged from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from phasegate.interop.result import Row, UnreadableResultError, count_of, measurement, measurements_of, positive
from phasegate.interop.serving_lists import workload_name
from phasegate.session import Measurement, Session

_NAMES = {"ttft": "time_to_first_token", "tpot": "inter_token_latency", "e2el": "request_latency"}
"""Our name -> AIPerf's."""

_SECONDS_PER = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0}


def recognises_record(document: Any) -> bool:
    """Whether a JSON document is a line of ``profile_export.jsonl``."""
    return isinstance(document, dict) and isinstance(document.get("metadata"), dict) and "metrics" in document


def recognises_summary(document: Any) -> bool:
    """Whether a JSON document is a ``profile_export_aiperf.json``."""
    if not isinstance(document, dict):
        return False
    block = document.get("request_latency")
    return isinstance(block, dict) and "unit" in block and "avg" in block


def read_records(records: Sequence[tuple[int, Mapping[str, Any]]], source: str, session_id: str) -> Session:
    """One session from (line number, record) pairs; warm-up requests are left out.

    Raises:
        UnreadableResultError: one line naming file, line and remedy.
    """
    measured = [
        (number, record) for number, record in records if record["metadata"].get("benchmark_phase") != "warmup"
    ]  # fmt: skip
    rows = [_row(record, f"{source}: line {number}") for number, record in measured]
    starts = [record["metadata"].get("request_start_ns") for _, record in measured]
    return Session(
        session_id=session_id,
        recorded_at=str(min((start for start in starts if isinstance(start, int)), default="")),
        measurements=tuple(measurements_of("aiperf", rows, spec={}, source=source)),
        client={"tool": "aiperf"},
    )


def _row(record: Mapping[str, Any], where: str) -> Row:
    metrics = record.get("metrics")
    if record.get("error") or record["metadata"].get("was_cancelled") or not isinstance(metrics, dict):
        return Row(failed=True)
    values = {
        ours: _seconds(metrics[theirs], f"{where}: {theirs}") for ours, theirs in _NAMES.items() if theirs in metrics
    }  # fmt: skip
    return Row(ttft=values.get("ttft"), tpot=values.get("tpot"), e2el=values.get("e2el"))


def _seconds(block: Any, where: str, key: str = "value") -> float:
    if not isinstance(block, dict):
        raise UnreadableResultError(f"{where}: {block!r} has no value and unit")
    factor = _SECONDS_PER.get(str(block.get("unit")))
    if factor is None:
        raise UnreadableResultError(f"{where}: the unit is {block.get('unit')!r}, not a unit of time")
    return positive(block.get(key), where) * factor


def read_summary(document: Mapping[str, Any], source: str, session_id: str) -> Session:
    """One session from a summary: each metric's median stands for its requests.

    Raises:
        UnreadableResultError: one line naming file, place and remedy.
    """
    config = document.get("input_config")
    spec = {"concurrency": _find(config, "concurrency"), "rate": _find(config, "request_rate")}
    name = workload_name("aiperf", spec)
    failed = _error_count(document, source)
    found: list[Measurement] = []
    for ours, theirs in _NAMES.items():
        block = document.get(theirs)
        if isinstance(block, dict):
            median = _seconds(block, f"{source}: {theirs}", "p50")
            sent = _succeeded(block, document, source) + failed
            found.append(measurement(name, ours, (median,), requests=sent, failed=failed, spec=spec))
    if not found:
        raise UnreadableResultError(f"{source}: none of {', '.join(_NAMES.values())} in it; nothing was measured")
    return Session(session_id, str(document.get("start_time", "")), tuple(found), client={"tool": "aiperf"})


def _succeeded(block: Mapping[str, Any], document: Mapping[str, Any], source: str) -> int:
    """Requests behind a metric: its own count (schema 1.1 and later), or the run's."""
    if "count" in block:
        return count_of(block["count"], f"{source}: count")
    requests = document.get("request_count")
    return count_of(requests.get("avg"), f"{source}: request_count") if isinstance(requests, dict) else 1


def _error_count(document: Mapping[str, Any], source: str) -> int:
    block, summary = document.get("error_request_count"), document.get("error_summary")
    if isinstance(block, dict):
        return count_of(block.get("avg"), f"{source}: error_request_count")
    rows = summary if isinstance(summary, list) else []
    return sum(count_of(row.get("count"), f"{source}: error_summary") for row in rows if isinstance(row, dict))


def _find(config: Any, key: str) -> Any:
    """The first plain value of a key anywhere in the resolved configuration; layouts differ between versions."""
    if not isinstance(config, dict):
        return None
    value = config.get(key)
    if value is not None and not isinstance(value, (dict, list)):
        return value
    return next((found for child in config.values() if (found := _find(child, key)) is not None), None)
