"""Results of ``vllm bench serve --save-result --save-detailed``: one JSON object a file, one run each.

Field names from the vLLM project's benchmark script (``vllm/benchmarks/serve.py``: the ``result`` dictionary of
``benchmark`` and the metadata that ``main_async`` adds). Lists in seconds (see `serving_lists`); summaries such as
``median_ttft_ms`` in milliseconds, unused here. Without ``--save-detailed`` the tool drops the lists.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from phasegate.interop.result import measurements_of
from phasegate.interop.serving_lists import mean_length, rows_of, workload_name
from phasegate.session import Session

REMEDY = "run vllm bench serve with --save-detailed"


def recognises(document: Any) -> bool:
    """Whether a JSON document is such a result."""
    return isinstance(document, dict) and "total_input_tokens" in document and "request_throughput" in document


def read(document: Mapping[str, Any], source: str, session_id: str) -> Session:
    """The run as one session.

    Raises:
        UnreadableResultError: one line naming file, place and remedy.
    """
    spec = {
        "in": mean_length(document.get("input_lens")),
        "out": mean_length(document.get("output_lens")),
        "rate": document.get("request_rate"),
        "concurrency": document.get("max_concurrency"),
    }
    name = workload_name("vllm-bench", spec)
    rows = rows_of(document, source, REMEDY)
    # The lengths that came back are a result; what was asked for is not in the file beyond rate and concurrency.
    asked = {key: spec[key] for key in ("in", "rate", "concurrency")}
    model = document.get("model_id")
    return Session(
        session_id=session_id,
        recorded_at=str(document.get("date", "")),
        measurements=tuple(measurements_of(name, rows, spec=asked, source=source)),
        server={"model": model} if model else {},
        client={"tool": "vllm bench serve", "backend": document.get("backend") or document.get("endpoint_type")},
    )
