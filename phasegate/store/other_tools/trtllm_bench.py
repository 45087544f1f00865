"""Reports of ``trtllm-bench ... --report_json F``: one JSON object a run, summaries only.

Field names from the TensorRT-LLM project (``tensorrt_llm/bench/dataclasses/reporting.py``). Percentiles are in
milliseconds; ``tpot_percentiles`` is the mean gap of each request after its first token, which is our tpot. Without
``--streaming`` only whole requests are timed. The concurrency that was asked for is not in the report, so its mean
stands for it; the engine runs in the tool's own process, so these times are not those of a server.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from phasegate.store.other_tools.identity import Identity
from phasegate.store.other_tools.result import UnreadableResultError, count_of, length_or_none, mapping, span_or_none
from phasegate.store.other_tools.runs import NO_FAILURES, ONLY_MEDIANS, Remark, Run, point_of_medians

REMEDY = "run trtllm-bench with --streaming --report_json"
_SINGLE = "it writes no other file that would do"
_NO_PHASES = "only whole requests are timed, so neither phase can be judged; run trtllm-bench with --streaming"


def recognises(document: Any) -> bool:
    """Whether a JSON document is such a report."""
    return isinstance(document, dict) and {"engine", "request_info", "performance"} <= set(document)


def read(document: Mapping[str, Any], source: str, run_id: str) -> Run:
    """The run.

    Raises:
        UnreadableResultError: one line naming file, place and remedy.
    """
    asked, streaming = mapping(document["request_info"]), mapping(document.get("streaming_metrics"))
    performance = mapping(document["performance"])
    medians = {
        "ttft": _median(streaming, "ttft_percentiles", source),
        "tpot": _median(streaming, "tpot_percentiles", source),
        "e2el": _median(performance, "request_latency_percentiles_ms", source),
    }
    seen = {
        "in": length_or_none(asked.get("avg_input_length")),
        "out": length_or_none(asked.get("avg_output_length")),
        "concurrency": length_or_none(asked.get("avg_num_concurrent_requests")),
    }
    requests = count_of(asked.get("num_requests", 1), f"{source}: num_requests")
    point = point_of_medians(Identity("trtllm-bench", {}, seen), medians, answered=requests, failed=0)
    if not point.measurements:
        raise UnreadableResultError(f"{source}: no median of any time in it", REMEDY)
    remarks = [Remark(source, f"{ONLY_MEDIANS}; {_SINGLE}"), Remark(source, NO_FAILURES)]
    if not streaming:
        remarks.append(Remark(source, _NO_PHASES))
    return Run(
        run_id,
        "",
        source,
        (point,),
        server=_server(document),
        client={"tool": "trtllm-bench"},
        remarks=tuple(remarks),
    )


def _median(block: Mapping[str, Any], key: str, source: str) -> float | None:
    return span_or_none(mapping(block.get(key)).get("p50"), f"{source}: {key}", 1e-3)


def _server(document: Mapping[str, Any]) -> dict[str, Any]:
    engine, world = mapping(document["engine"]), mapping(document.get("world_info"))
    keys = ("dtype", "kv_cache_dtype", "quantization")
    sizes = ("tp_size", "pp_size", "ep_size", "world_size", "max_batch_size", "max_num_tokens")
    settings = {key: block[key] for block, names in ((engine, keys), (world, sizes)) for key in names if block.get(key)}
    facts = {
        "engine": "tensorrt-llm",
        "engine_version": engine.get("version"),
        "hardware": mapping(document.get("machine")).get("name"),
        "model": engine.get("model"),
        "settings": settings,
    }
    return {key: value for key, value in facts.items() if value}
