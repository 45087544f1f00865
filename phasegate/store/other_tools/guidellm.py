"""Results of GuideLLM: ``benchmarks.json`` and ``benchmarks.yaml``, several benchmarks (loads) in one file.

Field names from the GuideLLM project (``src/guidellm/schemas/request_stats.py`` and
``benchmark/schemas/generative``). Beware of two of them: ``time_per_output_token_ms`` counts the first token in, so it
is *not* our tpot, while ``inter_token_latency_ms`` is (last - first token) / (tokens - 1) and is, with 0.0 where all
tokens came in one chunk; and ``request_latency`` is in seconds although its neighbours are in milliseconds. Requests
under ``incomplete`` were cut off by the end of the run and are neither counted as sent nor as failed. Where single
requests were not kept, ``metrics`` has their medians.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from phasegate.store.other_tools.gaps import check_times
from phasegate.store.other_tools.guidellm_load import load_of
from phasegate.store.other_tools.identity import Identity
from phasegate.store.other_tools.result import (
    Row,
    UnreadableResultError,
    count_of,
    length_or_none,
    mapping,
    shown,
    span_or_none,
    text_or_none,
)
from phasegate.store.other_tools.runs import ONLY_MEDIANS, Point, Remark, Run, point_of_medians, point_of_rows

REMEDY = "write benchmarks.json with all requests kept for single requests"

UNITS = {
    "ttft": ("time_to_first_token_ms", 1e-3),
    "tpot": ("inter_token_latency_ms", 1e-3),
    "e2el": ("request_latency", 1.0),
}
"""Our name -> GuideLLM's, and the seconds of its unit."""


def recognises(document: Any) -> bool:
    """Whether a document is such a file."""
    if not isinstance(document, dict) or not isinstance(document.get("benchmarks"), list):
        return False
    return all(isinstance(one, dict) and ("requests" in one or "metrics" in one) for one in document["benchmarks"])


def read(document: Mapping[str, Any], source: str, run_id: str) -> Run:
    """The file as one run, one load for each benchmark in it.

    Raises:
        UnreadableResultError: one line naming file, place and remedy.
    """
    points: list[Point] = []
    remarks: list[Remark] = []
    for number, benchmark in enumerate(document["benchmarks"], start=1):
        load = load_of(benchmark)
        where = f"{source}: benchmark {number}"
        rows = list(_rows(benchmark, where))
        if rows:
            points.append(point_of_rows(load, rows, where))
        else:
            points.append(_of_medians(benchmark, load, where))
            remarks = [Remark(source, f"{ONLY_MEDIANS}; {REMEDY}")]
    if not points:
        raise UnreadableResultError(f"{source}: no benchmark in it; nothing was measured")
    starts = [one["start_time"] for one in document["benchmarks"] if isinstance(one.get("start_time"), (int, float))]
    model = next((found for one in document["benchmarks"] if (found := _model(one))), _model(document))
    return Run(
        run_id,
        str(min(starts, default="")),
        source,
        tuple(points),
        server={"model": model} if model else {},
        client={"tool": "guidellm"},
        remarks=tuple(remarks),
    )


def _model(document: Mapping[str, Any]) -> str | None:
    """The model, wherever a version keeps it."""
    places = [mapping(document.get(key)) for key in ("config", "args", "benchmarker", "worker")]
    blocks = [*places, *(mapping(place.get("backend")) for place in places)]
    return next((found for block in blocks if (found := text_or_none(block.get("model")))), None)


def _rows(benchmark: Mapping[str, Any], where: str) -> Iterator[Row]:
    """Single requests; nothing where the file does not have them."""
    requests = mapping(benchmark.get("requests"))
    answered, errored = requests.get("successful") or [], requests.get("errored") or []
    if not isinstance(answered, list) or not isinstance(errored, list):
        raise UnreadableResultError(f"{where}: successful and errored must be lists of requests")
    totals = _totals(benchmark)
    if not answered and totals.get("successful"):
        return
    for number, request in enumerate(answered, start=1):
        yield _row(request, f"{where}: request {number}")
    # A file may keep a sample of its requests; their number is told apart.
    failed = max(len(errored), count_of(totals.get("errored") or 0, f"{where}: errored"))
    kept = len(answered) + len(errored)
    total = count_of(totals.get("successful") or 0, f"{where}: successful") + failed
    share = 1.0 if total <= kept or not answered else len(answered) / (total - failed)
    yield from [Row(failed=True)] * (len(errored) if share == 1.0 else round(failed * share))


def _totals(benchmark: Mapping[str, Any]) -> Mapping[str, Any]:
    metrics, state = mapping(benchmark.get("metrics")), mapping(benchmark.get("run_stats"))
    return mapping(metrics.get("request_totals") or benchmark.get("request_totals") or state.get("requests_made"))


def _row(request: Any, where: str) -> Row:
    if not isinstance(request, dict):
        raise UnreadableResultError(f"{where}: {shown(request)} is not a mapping")
    first, gap, latency = (
        span_or_none(request.get(key), f"{where}: {key}", factor) for key, factor in UNITS.values()
    )  # fmt: skip
    answer = length_or_none(request.get("output_tokens"))
    if first is not None:
        gaps = None if gap is None or answer is None else gap * (answer - 1)
        check_times(where, first=first, gaps=gaps, latency=latency, ends_with_last_token=False)
    return Row(
        ttft=first,
        tpot=gap,
        e2el=latency,
        prompt_tokens=length_or_none(request.get("prompt_tokens")),
        answer_tokens=answer,
    )


def _of_medians(benchmark: Mapping[str, Any], load: Identity, where: str) -> Point:
    metrics, totals = mapping(benchmark.get("metrics")), _totals(benchmark)
    medians = {
        ours: span_or_none(_median(metrics, key), f"{where}: {key}", factor) for ours, (key, factor) in UNITS.items()
    }
    lengths = {
        ours: length_or_none(_median(metrics, key))
        for ours, key in (("in", "prompt_token_count"), ("out", "output_token_count"))
    }
    answered, failed = (
        count_of(totals.get(key) or 0, f"{where}: {key}") for key in ("successful", "errored")
    )  # fmt: skip
    known = Identity(load.tool, load.asked, {**lengths, **load.seen})
    point = point_of_medians(known, medians, answered=answered, failed=failed)
    if not point.measurements:
        raise UnreadableResultError(f"{where}: no single requests in it, and no medians either", REMEDY)
    return point


def _median(metrics: Mapping[str, Any], key: str) -> Any:
    block = mapping(mapping(metrics.get(key)).get("successful"))
    return mapping(block.get("percentiles")).get("p50") if block.get("median") is None else block["median"]
