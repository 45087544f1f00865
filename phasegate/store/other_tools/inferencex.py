"""Points of InferenceX (formerly InferenceMAX): ``agg_*.json``, one point a file, or all points of a run as a list.

Field names from that project's ``utils/process_result.py``, which takes medians of a serving benchmark, from
milliseconds to seconds (``median_ttft``), and adds ``median_intvty``, the tokens a second that one user sees: the
reciprocal of ``median_tpot``. A point says what it ran on, so hardware, framework and parallelism must agree.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from phasegate.store.other_tools.identity import Identity
from phasegate.store.other_tools.result import UnreadableResultError, mapping, positive, span_or_none
from phasegate.store.other_tools.runs import NO_FAILURES, ONLY_MEDIANS, Remark, Run, point_of_medians

REMEDY = "give the result of the benchmark itself, written with --save-detailed, for single requests"

_SETTINGS = (
    "precision", "tp", "ep", "dp_attention", "mtp", "spec_decoding", "disagg", "is_multinode",
    "prefill_tp", "prefill_ep", "prefill_num_workers", "num_prefill_gpu",
    "decode_tp", "decode_ep", "decode_num_workers", "num_decode_gpu",
)  # fmt: skip


def recognises(document: Any) -> bool:
    """Whether a JSON document is such a point."""
    return isinstance(document, dict) and "conc" in document and ("hw" in document or "hardware" in document)


def read(document: Mapping[str, Any], source: str, run_id: str) -> Run:
    """The point.

    Raises:
        UnreadableResultError: one line naming file, place and remedy.
    """
    told = {**document, **mapping(document.get("metrics"))}
    asked = {"in": told.get("isl"), "out": told.get("osl"), "concurrency": told.get("conc")}
    medians = {
        "ttft": span_or_none(told.get("median_ttft"), f"{source}: median_ttft"),
        "tpot": _tpot(told, source),
        "e2el": span_or_none(told.get("median_e2el"), f"{source}: median_e2el"),
    }
    point = point_of_medians(Identity("inferencex", asked), medians, answered=1, failed=0)
    if not point.measurements:
        raise UnreadableResultError(f"{source}: no median_ttft, median_tpot or median_e2el in it", REMEDY)
    return Run(
        run_id,
        str(told.get("date", "")),
        source,
        (point,),
        server=_server(told),
        client={"tool": "InferenceX"},
        remarks=(Remark(source, f"{ONLY_MEDIANS}; {REMEDY}"), Remark(source, NO_FAILURES)),
    )


def _tpot(told: Mapping[str, Any], source: str) -> float | None:
    if told.get("median_tpot") is None and told.get("median_intvty"):
        return 1 / positive(told["median_intvty"], f"{source}: median_intvty")
    return span_or_none(told.get("median_tpot"), f"{source}: median_tpot")


def _server(told: Mapping[str, Any]) -> dict[str, Any]:
    settings = {key: told[key] for key in _SETTINGS if told.get(key) not in (None, "")}
    facts = {
        "engine": told.get("framework"),
        "engine_version": told.get("image"),
        "hardware": told.get("hw") or told.get("hardware"),
        "model": told.get("model"),
        "settings": settings,
    }
    return {key: value for key, value in facts.items() if value}
