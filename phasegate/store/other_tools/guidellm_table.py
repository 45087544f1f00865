"""Tables of GuideLLM: ``benchmarks.csv``, one benchmark a row, medians only.

Newer versions write three lines of header (group, name, statistic), older ones a single one; names from
``src/guidellm/benchmark/outputs/csv.py`` and, before it, ``benchmark/output.py``.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from typing import Any

from phasegate.store.other_tools.guidellm import REMEDY
from phasegate.store.other_tools.guidellm_load import load_of_row, model_of_row
from phasegate.store.other_tools.identity import Identity
from phasegate.store.other_tools.result import UnreadableResultError, count_of, length_or_none, span_or_none
from phasegate.store.other_tools.runs import ONLY_MEDIANS, Point, Remark, Run, point_of_medians
from phasegate.store.other_tools.table_text import table_number, table_rows

_NEW = {
    "ttft": ("time to first token|successful ms|median", 1e-3),
    "tpot": ("inter token latency|successful ms|median", 1e-3),
    "e2el": ("request latency|successful sec|median", 1.0),
}
_OLD = {
    "ttft": ("successful time to first token ms median", 1e-3),
    "tpot": ("successful inter token latency ms median", 1e-3),
    "e2el": ("successful request latency median", 1.0),
}
_LENGTHS = {
    "in": ("token metrics|successful input tokens|median", "successful prompt token count median"),
    "out": ("token metrics|successful output tokens|median", "successful output token count median"),
}
_COUNTS = {
    "answered": ("request counts|successful", "successful requests"),
    "failed": ("request counts|errored", "errored requests"),
}
_START = ("timings|start time", "start time")


def recognises(text: str) -> bool:
    """Whether a table is one of GuideLLM's."""
    first = [cell.strip().lower() for cell in next(csv.reader(io.StringIO(text[:100_000])), [])]
    return {"run info", "request latency"} <= set(first) or _OLD["e2el"][0] in first


def read(text: str, source: str, run_id: str) -> Run:
    """The table as one run, one load a row.

    Raises:
        UnreadableResultError: one line naming file, place and remedy.
    """
    rows = list(table_rows(text, source))
    is_new = "run info" in (cell.strip().lower() for cell in rows[0][1])
    heads = rows[: 3 if is_new else 1]
    names = ["|".join(part for part in parts if part) for parts in _columns([cells for _, cells in heads])]
    points, starts, model = [], [], None
    for line, cells in rows[len(heads) :]:
        where = f"{source}: line {line}"
        if len(cells) != len(names):
            raise UnreadableResultError(f"{where}: {len(cells)} fields where the header has {len(names)}")
        found = dict(zip(names, cells, strict=True))
        points.append(_point(found, _NEW if is_new else _OLD, where))
        starts.append(next((found[key] for key in _START if found.get(key)), ""))
        model = model or model_of_row(found)
    if not points:
        raise UnreadableResultError(f"{source}: no benchmark below the header; nothing was measured")
    return Run(
        run_id,
        min(starts),
        source,
        tuple(points),
        server={"model": model} if model else {},
        client={"tool": "guidellm"},
        remarks=(Remark(source, f"{ONLY_MEDIANS}; {REMEDY}"),),
    )


def _columns(heads: list[list[str]]) -> list[tuple[str, ...]]:
    width = max(len(head) for head in heads)
    return [tuple(head[at].strip().lower() if at < len(head) else "" for head in heads) for at in range(width)]


def _point(cells: Mapping[str, str], columns: Mapping[str, tuple[str, float]], where: str) -> Point:
    medians = {
        ours: span_or_none(_number(cells, (key,), where), f"{where}: {key}", factor)
        for ours, (key, factor) in columns.items()
    }
    load = load_of_row(cells)
    lengths = {ours: length_or_none(_number(cells, keys, where)) for ours, keys in _LENGTHS.items()}
    answered, failed = (count_of(_number(cells, keys, where) or 0, where) for keys in _COUNTS.values())
    point = point_of_medians(
        Identity(load.tool, load.asked, {**lengths, **load.seen}), medians, answered=answered, failed=failed
    )
    if not point.measurements:
        raise UnreadableResultError(f"{where}: no median of any time in it", REMEDY)
    return point


def _number(cells: Mapping[str, str], keys: tuple[str, ...], where: str) -> Any:
    text = next((cells[key] for key in keys if cells.get(key)), "")
    return table_number(text, where) if text else None
