"""Results of ``python -m sglang.bench_serving --output-file F --output-details``: JSON lines, one run a line.

Field names from the SGLang project (``python/sglang/bench_serving.py`` and its guide ``bench_serving.md``, section
"JSONL output format"). Lists in seconds (see `serving_lists`). The tool spreads a chunk of several tokens evenly over
its ``itls``, which leaves their sum, and so our time per output token, as it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from phasegate.interop.result import measurements_of
from phasegate.interop.serving_lists import rows_of, workload_name
from phasegate.session import Session

REMEDY = "run sglang.bench_serving with --output-details"


def recognises(document: Any) -> bool:
    """Whether a JSON document is a line of such a result."""
    return isinstance(document, dict) and "total_output_tokens_retokenized" in document and "backend" in document


def read(document: Mapping[str, Any], source: str, session_id: str) -> Session:
    """The run as one session.

    Raises:
        UnreadableResultError: one line naming file, place and remedy.
    """
    is_random = str(document.get("dataset_name", "")).startswith("random")
    spec = {
        "dataset": document.get("dataset_name"),
        "in": document.get("random_input_len") if is_random else None,
        "out": document.get("random_output_len") if is_random else None,
        "rate": document.get("request_rate"),
        "concurrency": document.get("max_concurrency"),
    }
    name = workload_name("sglang-bench", spec)
    asked = {**spec, "range": document.get("random_range_ratio")}
    rows = rows_of(document, source, REMEDY)
    info = document.get("server_info")
    model = info.get("model_path") if isinstance(info, dict) else document.get("model")
    return Session(
        session_id=session_id,
        recorded_at="",
        measurements=tuple(measurements_of(name, rows, spec=asked, source=source)),
        server={"model": model} if model else {},
        client={"tool": "sglang.bench_serving", "backend": document.get("backend")},
    )
