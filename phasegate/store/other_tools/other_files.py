"""Files that lie beside results and hold none, or none that can be compared: what they are, and which file would do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from phasegate.store.other_tools.result import UnreadableResultError

KNOWN = (
    "a session file of phasegate, CSV with session,workload,metric,value, or a result of vLLM bench serve, "
    "SGLang bench_serving, AIPerf, GuideLLM, InferenceX or trtllm-bench"
)

_AIPERF = "give profile_export.jsonl or profile_export_aiperf.json of the same run"


def _has(*keys: str) -> Callable[[Any], bool]:
    return lambda document: isinstance(document, dict) and set(keys) <= set(document)


def _is_generated_text(document: Any) -> bool:
    return _has("data")(document) and isinstance(document["data"], list) and len(document) <= 2


_FILES: tuple[tuple[Callable[[Any], bool], str, str], ...] = (
    (_has("aggregation_type"), "an aggregate of AIPerf over several runs", _AIPERF),
    (
        lambda document: _has("metadata")(document) and _has("aggregation_type")(document["metadata"]),
        "an aggregate of AIPerf over several runs",
        "give the folder of its runs, which holds profile_export.jsonl or profile_export_aiperf.json of each",
    ),
    (_has("per_combination_metrics"), "an aggregate of AIPerf over a sweep", "give the folder of its runs"),
    (_is_generated_text, "the prompts or answers of a run of AIPerf, without times", _AIPERF),
    (_has("experiments", "version"), "the raw export of perf_analyzer", "give profile_export_genai_perf.json"),
    (_has("metadata", "responses"), "the raw export of AIPerf", _AIPERF),
    (
        _has("avg_latency", "percentiles"),
        "a result of vLLM bench latency, which times whole batches and no phases",
        "give one of vllm bench serve --save-result --save-detailed",
    ),
    (
        _has("elapsed_time", "requests_per_second"),
        "a result of vLLM bench throughput, which times no requests",
        "give one of vllm bench serve --save-result --save-detailed",
    ),
    (
        _has("benchmark", "model", "metric"),
        "a result of vLLM for PyTorch's dashboard",
        "give the JSON of vllm bench serve --save-result --save-detailed",
    ),
    (
        _has("batch_size", "prefill_latency"),
        "a result of SGLang bench_one_batch, which times batches without a server",
        "give one of sglang.bench_serving --output-file F --output-details",
    ),
)


def not_a_result(document: Any, source: str) -> UnreadableResultError:
    """Why a document of no reader cannot be used, and which file would do."""
    several = document[0] if isinstance(document, list) and document else document
    for recognises, what, remedy in _FILES:
        if recognises(several):
            return UnreadableResultError(f"{source}: {what}", remedy)
    return UnreadableResultError(
        f"{source}: not a result file that phasegate knows: it reads {KNOWN}", "give one of these"
    )
