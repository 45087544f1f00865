"""Summaries of AIPerf and GenAI-Perf: ``profile_export_aiperf.json`` or ``.csv``, a median for each metric.

Field names from the AIPerf project's document "JSON Export Schema" and its ``exporters/metrics_csv_exporter.py``;
GenAI-Perf, its predecessor, writes the same blocks. A summary holds no single requests: p95 and objectives cannot be
judged from it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from phasegate.store.other_tools.aiperf import NAMES, seconds
from phasegate.store.other_tools.aiperf_load import TOOL, Told, load_beside, load_in
from phasegate.store.other_tools.identity import Identity
from phasegate.store.other_tools.result import UnreadableResultError, count_of, length_or_none, mapping
from phasegate.store.other_tools.runs import ONLY_MEDIANS, Remark, Run, point_of_medians
from phasegate.store.other_tools.table_text import table_number, table_rows

REMEDY = "give AIPerf's profile_export.jsonl for single requests"
_CANCELLED = "the run was cancelled, so its values are those of the requests until then"

_COLUMNS = ("metric", "avg", "p50")
_TITLE = re.compile(r"(?P<name>.*?)\s*(?:\((?P<unit>[^()]*)\))?")
_LENGTHS = {"in": "input_sequence_length", "out": "output_sequence_length"}


def recognises(document: Any) -> bool:
    """Whether a JSON document is a ``profile_export_aiperf.json``."""
    block = document.get("request_latency") if isinstance(document, dict) else None
    return isinstance(block, dict) and "unit" in block and "avg" in block


def recognises_table(text: str) -> bool:
    """Whether a table is a ``profile_export_aiperf.csv``."""
    first = [cell.strip().strip('"').lower() for cell in text.lstrip().split("\n", 1)[0].split(",")]
    return set(_COLUMNS) <= set(first)


def read(document: Mapping[str, Any], path: Path, run_id: str) -> Run:
    """One run from a summary: each metric's median stands for its requests.

    Raises:
        UnreadableResultError: one line naming file, place and remedy.
    """
    told = load_in(document.get("input_config"))
    if not told.model and not any(value is not None for value in told.asked.values()):
        told = load_beside(path)
    medians = {
        ours: seconds(document[theirs], f"{path}: {theirs}", "p50")
        for ours, theirs in NAMES.items()
        if isinstance(document.get(theirs), dict)
    }
    answered = max((_answered(document, theirs, str(path)) for theirs in NAMES.values()), default=1)
    remarks = [Remark(str(path), f"{ONLY_MEDIANS}; {REMEDY}")]
    if document.get("was_cancelled") is True:
        remarks.append(Remark(str(path), _CANCELLED))
    return _run(
        document, told, medians, path, run_id, (answered, _error_count(document, str(path))), tuple(remarks)
    )  # fmt: skip


def _run(
    document: Mapping[str, Any],
    told: Told,
    medians: Mapping[str, float | None],
    path: Path,
    run_id: str,
    counts: tuple[int, int],
    remarks: tuple[Remark, ...],
) -> Run:
    lengths = {ours: length_or_none(mapping(document.get(theirs)).get("p50")) for ours, theirs in _LENGTHS.items()}
    point = point_of_medians(Identity(TOOL, told.asked, lengths), medians, answered=counts[0], failed=counts[1])
    if not point.measurements:
        raise UnreadableResultError(f"{path}: no median of {', '.join(NAMES.values())} in it", REMEDY)
    return Run(
        run_id,
        str(document.get("start_time", "")),
        str(path),
        (point,),
        server={"model": told.model} if told.model else {},
        client={"tool": TOOL},
        remarks=remarks,
    )


def _answered(document: Mapping[str, Any], metric: str, source: str) -> int:
    """Requests behind a metric: its own count (schema 1.1 and later), or the run's."""
    block, requests = mapping(document.get(metric)), mapping(document.get("request_count"))
    if "count" in block:
        return count_of(block["count"], f"{source}: count")
    return count_of(requests.get("avg"), f"{source}: request_count") if requests else 1


def _error_count(document: Mapping[str, Any], source: str) -> int:
    block, summary = document.get("error_request_count"), document.get("error_summary")
    if isinstance(block, dict):
        return count_of(block.get("avg"), f"{source}: error_request_count")
    rows = summary if isinstance(summary, list) else []
    return sum(count_of(row.get("count"), f"{source}: error_summary") for row in rows if isinstance(row, dict))


def read_table(text: str, path: Path, run_id: str) -> Run:
    """One run from a summary as a table: sections of ``Metric,avg,...`` and of ``Metric,Value``.

    Raises:
        UnreadableResultError: one line naming file, line and remedy.
    """
    blocks: dict[str, dict[str, Any]] = {}
    header: list[str] = []
    for line, fields in table_rows(text, str(path)):
        cells = [field.strip() for field in fields]
        if cells[0].lower() == "metric":
            header = ["avg" if cell.lower() == "value" else cell.lower() for cell in cells[1:]]
        elif header and len(cells) == len(header) + 1:
            name, unit = _title(cells[0])
            if name in (*NAMES.values(), *_LENGTHS.values(), "request_count", "error_request_count"):
                values = {key: _cell(cell, f"{path}: line {line}") for key, cell in zip(header, cells[1:], strict=True)}
                blocks.setdefault(name, {"unit": unit, **{key: one for key, one in values.items() if one is not None}})
    return read(blocks, path, run_id)


def _title(text: str) -> tuple[str, str]:
    """A metric's name and unit from its title: ``Time to First Token (ms)``."""
    found = _TITLE.fullmatch(text)
    assert found is not None
    return found["name"].lower().replace(" ", "_"), found["unit"] or ""


def _cell(text: str, where: str) -> float | None:
    # GenAI-Perf writes thousands with a comma.
    return table_number(text.replace(",", ""), where) if text else None
