"""Results of ``vllm bench serve --save-result``: one JSON object a run; with ``--append-result``, one a line.

Field names from the vLLM project's benchmark script (``vllm/benchmarks/serve.py``: the ``result`` dictionary of
``benchmark`` and the metadata that ``main_async`` adds). With ``--save-detailed`` it holds lists in seconds (see
`serving_lists`), without it medians only. The file says what rate and concurrency were asked for, not which lengths.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from phasegate.store.other_tools.identity import Identity
from phasegate.store.other_tools.runs import Run
from phasegate.store.other_tools.serving_lists import point_of

REMEDY = "run vllm bench serve with --save-detailed for single requests"

_MEDIANS = {"ttft": "median_ttft_ms", "tpot": "median_tpot_ms", "e2el": "median_e2el_ms"}


def recognises(document: Any) -> bool:
    """Whether a JSON document is such a result."""
    return isinstance(document, dict) and "total_input_tokens" in document and "request_throughput" in document


def read(document: Mapping[str, Any], source: str, run_id: str) -> Run:
    """The run.

    Raises:
        UnreadableResultError: one line naming file, place and remedy.
    """
    rate, burstiness = document.get("request_rate"), document.get("burstiness")
    asked = {
        "endpoint": document.get("backend") or document.get("endpoint_type"),
        "rate": rate,
        # Only requests that are spread over time can come in bursts.
        "burstiness": burstiness if burstiness != 1 and str(rate) != "inf" else None,
        "concurrency": document.get("max_concurrency"),
    }
    point, remarks = point_of(document, Identity("vllm-bench", asked), _MEDIANS, source, REMEDY)
    model = document.get("model_id")
    return Run(
        run_id,
        str(document.get("date", "")),
        source,
        (point,),
        server={"model": model} if model else {},
        client={"tool": "vllm bench serve"},
        remarks=remarks,
    )
