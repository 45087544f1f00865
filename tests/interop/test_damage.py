"""Damaged result files of every kind: read, or refused in one line, and never anything else."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from phasegate.gate.judge import judge
from phasegate.gate.policy import Policy
from phasegate.store import session_text
from phasegate.store.other_tools.reading import read_side
from phasegate.store.other_tools.result import UnreadableResultError
from tests.interop import foreign
from tests.sessions import measurement, session

DATA = Path(__file__).parent / "data"

WHOLE: dict[str, str] = {
    "session.json": session_text(session(1, measurement("a", "ttft", [0.1, 0.2]), measurement("a", "tpot", [0.02]))),
    "vllm.json": (DATA / "vllm_bench.json").read_text(encoding="utf-8"),
    "sglang.jsonl": (DATA / "sglang_bench.jsonl").read_text(encoding="utf-8").splitlines()[0],
    "guidellm.json": (DATA / "guidellm_benchmarks.json").read_text(encoding="utf-8"),
    "aiperf.json": (DATA / "profile_export_aiperf.json").read_text(encoding="utf-8"),
    "aiperf.jsonl": (DATA / "aiperf_run" / "profile_export.jsonl").read_text(encoding="utf-8").splitlines()[1],
    "vllm-summary.json": json.dumps(foreign.without_requests(foreign.vllm(1))),
    "sglang-summary.jsonl": json.dumps(foreign.without_requests(foreign.sglang(1))),
    "guidellm-summary.json": json.dumps(foreign.guidellm_medians(1, streams=(1, 2))),
    "aiperf-phases.json": json.dumps(foreign.aiperf_summary(4)),
    "inferencex.json": json.dumps(foreign.inferencex(1)),
    "trtllm.json": json.dumps(foreign.trtllm(1)),
}

ODD: list[Any] = [None, True, -1, 0, 1e-9, 10**400, float("inf"), float("nan"), "x", "", [], {}, [None], {"a": 1}]


def damage(document: Any, draw: Any) -> None:
    """Replace or delete one value anywhere inside."""
    node = document
    while True:
        key = draw(st.sampled_from(sorted(node) if isinstance(node, dict) else range(len(node))))
        child = node[key]
        if not isinstance(child, (dict, list)) or not child or draw(st.integers(0, 3)) == 0:
            break
        node = child
    if draw(st.integers(0, 4)) == 0:
        del node[key]
    else:
        node[key] = copy.deepcopy(draw(st.sampled_from(ODD)))


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data(), st.sampled_from(sorted(WHOLE)))
def test_a_damaged_file_is_read_or_refused_in_one_line(tmp_path: Path, data: st.DataObject, name: str) -> None:
    document = json.loads(WHOLE[name])
    for _ in range(data.draw(st.integers(1, 3))):
        if document:
            damage(document, data.draw)
    path = tmp_path / name
    path.write_text(json.dumps(document), encoding="utf-8")
    refusal = ""
    try:
        sessions = read_side(path)
    except UnreadableResultError as error:
        refusal = str(error)
    if refusal:
        assert "\n" not in refusal
        assert str(path) in refusal
        return
    json.dumps(judge(sessions, sessions, Policy()).as_json(), allow_nan=False)


@pytest.mark.parametrize("name", sorted(WHOLE))
def test_every_whole_file_is_read(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(WHOLE[name], encoding="utf-8")
    assert read_side(path)


@pytest.mark.parametrize(("field", "value"), [("itls", [0.01, 10**400]), ("output_lens", 10**400)])
def test_a_value_beyond_any_number_of_seconds_is_refused_in_one_line(tmp_path: Path, field: str, value: Any) -> None:
    document = json.loads(WHOLE["vllm.json"])
    document[field][0] = value
    path = tmp_path / "vllm.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(UnreadableResultError, match="larger than any number of seconds"):
        read_side(path)
