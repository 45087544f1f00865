"""Results of GuideLLM: ``benchmarks.json``, several benchmarks (rates or concurrencies) in one file.

Field names from the GuideLLM project (``src/guidellm/schemas/request_stats.py`` and
``benchmark/schemas/generative``). Beware of two of them: ``time_per_output_token_ms`` counts the first token in, so it
is *not* our tpot, while ``inter_token_latency_ms`` is (last - first token) / (tokens - 1) and is; and
``request_latency`` is in seconds although its neighbours are in milliseconds. Requests under ``incomplete`` were cut
off by the end of the run and are neither counted as sent nor as failed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from phasegate.interop.result import Row, UnreadableResultError, measurements_of, positive
from phasegate.interop.serving_lists import workload_name
from phasegate.session import Measurement, Session


def recognises(document: Any) -> bool:
    """Whether a JSON document is such a file."""
    if not isinstance(document, dict) or not isinstance(document.get("benchmarks"), list):
        return False
    return all(isinstance(one, dict) and "requests" in one for one in document["benchmarks"])


def read(document: Mapping[str, Any], source: str, session_id: str) -> Session:
    """The file as one session, one workload for each benchmark in it.

    Raises:
        UnreadableResultError: one line naming file, place and remedy.
    """
    found: list[Measurement] = []
    names: set[str] = set()
    for number, benchmark in enumerate(document["benchmarks"], start=1):
        spec = _load(benchmark)
        name = workload_name("guidellm", spec)
        name = name if name not in names else f"{name}#{number}"
        names.add(name)
        found += measurements_of(name, _rows(benchmark, f"{source}: {name}"), spec=spec, source=source)
    if not found:
        raise UnreadableResultError(f"{source}: no benchmark in it; nothing was measured")
    starts = [one["start_time"] for one in document["benchmarks"] if isinstance(one.get("start_time"), (int, float))]
    return Session(
        session_id, str(min(starts, default="")), tuple(found), client={"tool": "guidellm"}
    )  # fmt: skip


def _load(benchmark: Mapping[str, Any]) -> dict[str, Any]:
    """What decides the load: the strategy's type with its rate or number of streams."""
    config = benchmark.get("config") or benchmark.get("args") or {}
    strategy = config.get("strategy") if isinstance(config, dict) else None
    strategy = strategy if isinstance(strategy, dict) else {}
    plain = {key: value for key, value in strategy.items() if isinstance(value, (int, float, str))}
    return {
        "strategy": plain.get("type_"),
        "rate": plain.get("rate"),
        "streams": plain.get("streams", plain.get("max_concurrency")),
    }


def _rows(benchmark: Mapping[str, Any], where: str) -> list[Row]:
    requests = benchmark["requests"]
    if not isinstance(requests, dict) or not isinstance(requests.get("successful"), list):
        raise UnreadableResultError(f"{where}: no single requests in it; write benchmarks.json with all requests kept")
    rows = [_row(request, f"{where}: request {n}") for n, request in enumerate(requests["successful"], start=1)]
    errored = requests.get("errored") or []
    if not isinstance(errored, list):
        raise UnreadableResultError(f"{where}: errored must be a list of requests")
    return rows + [Row(failed=True)] * len(errored)


def _row(request: Any, where: str) -> Row:
    if not isinstance(request, dict):
        raise UnreadableResultError(f"{where}: {request!r} is not a mapping")
    return Row(
        ttft=_scaled(request.get("time_to_first_token_ms"), 1e-3, f"{where}: time_to_first_token_ms"),
        tpot=_scaled(request.get("inter_token_latency_ms"), 1e-3, f"{where}: inter_token_latency_ms"),
        e2el=_scaled(request.get("request_latency"), 1.0, f"{where}: request_latency"),
    )


def _scaled(value: Any, factor: float, where: str) -> float | None:
    return None if value is None else positive(value, where) * factor
