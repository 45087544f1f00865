"""Results of ``python -m sglang.bench_serving --output-file F``: JSON lines, one run a line.

Field names from the SGLang project (``python/sglang/bench_serving.py`` and its guide ``bench_serving.md``, section
"JSONL output format"). With ``--output-details`` a line holds lists in seconds (see `serving_lists`), without it
medians only. The tool spreads a chunk of several tokens evenly over its ``itls``, which leaves their sum, and so our
time per output token, as it was. Lengths are known as asked only for random data; with a range they are upper limits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from phasegate.store.other_tools.identity import Identity
from phasegate.store.other_tools.result import mapping
from phasegate.store.other_tools.runs import Run
from phasegate.store.other_tools.serving_lists import point_of

REMEDY = "run sglang.bench_serving with --output-details for single requests"

_MEDIANS = {"ttft": "median_ttft_ms", "tpot": "median_tpot_ms", "e2el": "median_e2e_latency_ms"}


def recognises(document: Any) -> bool:
    """Whether a JSON document is a line of such a result."""
    return isinstance(document, dict) and "total_output_tokens_retokenized" in document and "backend" in document


def read(document: Mapping[str, Any], source: str, run_id: str) -> Run:
    """The run.

    Raises:
        UnreadableResultError: one line naming file, place and remedy.
    """
    asked = {
        "endpoint": document.get("backend"),
        "dataset": document.get("dataset_name"),
        "rate": document.get("request_rate"),
        "concurrency": document.get("max_concurrency"),
    }
    if str(document.get("dataset_name", "")).startswith("random"):
        lengths = {"in": document.get("random_input_len"), "out": document.get("random_output_len")}
        asked |= {key: value for key, value in lengths.items() if value is not None}
        asked["range"] = document.get("random_range_ratio")
    point, remarks = point_of(document, Identity("sglang-bench", asked), _MEDIANS, source, REMEDY)
    model = mapping(document.get("server_info")).get("model_path") or document.get("model")
    return Run(
        run_id,
        "",
        source,
        (point,),
        server={"model": model} if model else {},
        client={"tool": "sglang.bench_serving"},
        remarks=remarks,
    )
