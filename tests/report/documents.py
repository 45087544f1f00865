"""Documents made to measure: what a run would have left behind, without a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from phasegate.core.identity import ClientIdentity, ServerIdentity
from phasegate.core.session import Session
from phasegate.core.target import Target
from phasegate.core.workload import Planned, Workload
from phasegate.engines.base import Engine
from phasegate.engines.profile import profile_for
from phasegate.gate.judge import judge
from phasegate.gate.policy import Policy
from phasegate.gate.slo import parse_objective
from phasegate.gate.slo_search import limits
from phasegate.gate.slo_share import judge_level
from phasegate.measure.load_runner import LoadRunner
from phasegate.measure.session_runner import SessionRunner
from phasegate.report.document.build import Finished, build
from phasegate.report.document.model import Document, Failure
from phasegate.stats.counters import ServerCounts
from phasegate.stats.outcome import LawResult, Outcome
from phasegate.stats.workload_run import Measured, WorkloadRun
from tests.load_runs import level_run
from tests.sessions import sessions
from tests.timelines import timeline

CREATED = "2026-01-02T03:04:05+00:00"

OBJECTIVE = parse_objective("ttft:p95:500ms", source="--perf-slo")

LONG, ANSWER = "prompt-length[in=512,out=8]", "output-length[in=64,out=96]"


def sides(ttft: float = 1.0, tpot: float = 1.0, spread: float = 0.002) -> tuple[list[Session], list[Session]]:
    """Eight baseline sessions and three of a candidate whose phases are so many times as slow."""

    def levels(count: int, prefill: float, decode: float) -> dict[tuple[str, str], list[float]]:
        wobble = [1 + spread * ((7 * index) % 5 - 2) for index in range(count)]
        first, token = [0.2 * prefill * one for one in wobble], [0.008 * decode * one for one in wobble]
        return {
            (LONG, "ttft"): first,
            (LONG, "tpot"): token,
            (LONG, "e2el"): [a + 7 * b for a, b in zip(first, token, strict=True)],
            (ANSWER, "ttft"): [one / 8 for one in first],
            (ANSWER, "tpot"): token,
            (ANSWER, "e2el"): [a / 8 + 95 * b for a, b in zip(first, token, strict=True)],
        }

    return sessions(levels(8, 1.0, 1.0)), sessions(levels(3, ttft, tpot))


def workload_run(name: str, inputs: Sequence[int], outputs: Sequence[int], requests: int = 6) -> WorkloadRun:
    """A workload whose TTFT is 10 ms and 0.1 ms a prompt token, and whose TPOT is 8 ms."""
    workload = Workload(name, "", tuple(inputs), tuple(outputs), requests, 0, "unique", 0, "chat")
    measured = [
        Measured(
            Planned(cell, block, cell.input_tokens, cell.output_tokens, f"p{block}", None, cold=True),
            timeline(
                ttft=(0.01 + 1e-4 * cell.input_tokens) * (1 + 0.01 * block),
                tpot=0.008,
                tokens=cell.output_tokens,
                prompt_tokens=cell.input_tokens,
                request_id=f"{cell.label}/{block}",
            ),
        )
        for cell in workload.cells
        for block in range(requests)
    ]
    return WorkloadRun(workload, tuple(measured))


def runner() -> SessionRunner:
    """A lab that has measured two workloads of growing length and one of a cached prefix; its engine is gone."""
    server = ServerIdentity("simulator", "1", "tiny", {"slots": 1}, "cpu-4", sources={"engine": "/props"})
    made = SessionRunner(
        engine=cast("Engine", None),
        server=server,
        client=ClientIdentity("0.1.0", "3.11", "3.57", "Linux", "cpu", 4, (1,)),
        profile=profile_for(server),
        target=Target("http://127.0.0.1:8000/v1", "tiny"),
        seed=11,
    )
    lengths = workload_run("prompt-length", (128, 512), (8,)), workload_run("output-length", (64,), (16, 96))
    told = replace(cache_run(), server=ServerCounts({"cached_tokens": 30.0, "prompt_tokens": 90.0}))
    made.runs.update({run.workload.name: run for run in (*lengths, told)})
    return made


def cache_run() -> WorkloadRun:
    """Prompts sent twice beside a new one: the second call's TTFT is a fifth of the first's."""
    workload = Workload("prefix-cache", "", (512,), (8,), 6, 0, "repeated", 0, "chat")
    cost = {"cold": 0.06, "cached": 0.012, "control": 0.061}
    measured = [
        Measured(
            Planned(cell, block, 512, 8, f"p{block}", None, cold=False),
            timeline(ttft=cost[cell.role] * (1 + 0.01 * block), tpot=0.008, tokens=8, prompt_tokens=512),
        )
        for cell in workload.cells
        for block in range(6)
    ]
    return WorkloadRun(workload, tuple(measured))


def law(outcome: Outcome = Outcome.PASS, name: str = "TTFT rises with prompt length") -> LawResult:
    """A law that ended so."""
    return LawResult(name, outcome, "137 ms per 1,000 tokens", 0.137, 0.13, 0.144, "s per 1,000 tokens", 0.95, 8, None)


def load_of(*, broken: bool) -> dict[str, Any]:
    """Three levels of load, of which the highest breaks the objective where asked."""
    runs = {1: level_run(1, [0.1] * 60), 4: level_run(4, [0.2] * 60)}
    runs[16] = level_run(16, [0.9 if broken else 0.3] * 60, failures=2 if broken else 0)
    runs[16] = replace(runs[16], server=level_counts(runs[16].window))
    load = LoadRunner(cast("SessionRunner", None), levels=runs)
    load.found = limits([OBJECTIVE], list(runs.values()), at_most=64)
    return {"load": load, "objectives": [OBJECTIVE], "judged": [judge_level(OBJECTIVE, one) for one in runs.values()]}


def level_counts(window: float) -> ServerCounts:
    """What a server with two pools counted: twelve requests ran and three waited at any moment of the level."""
    grown = {
        "queue": 3 * window,
        "inference": 12 * window,
        "handoff": 4.8,
        "handoff_bytes": 60 * 12.5e6,
        "preemptions": 7.0,
        "steps": 100.0,
        "step_streams": 950.0,
        "drafted_tokens": 400.0,
        "accepted_tokens": 100.0,
        "cache_queries": 1000.0,
        "cache_hits": 250.0,
    }
    counted = dict.fromkeys(("queue", "inference", "handoff", "handoff_bytes"), 60.0)
    return ServerCounts(grown, counted, reset=("prompt_tokens",))


def document(ttft: float = 1.0, tpot: float = 1.0, spread: float = 0.002, **more: Any) -> Document:
    """A run whose candidate is so many times as slow as its baseline."""
    old, new = sides(ttft, tpot, spread)
    policy = Policy()
    values: dict[str, Any] = {
        "created": CREATED,
        "exit_status": 0,
        "runner": runner(),
        "laws": [("test_law", law())],
        "result": judge(old, new, policy),
        "baseline": old,
        "candidate": new,
        "policy": policy,
        "commands": ["pytest perf_tests --perf-seed 11"],
        "duration": 12.5,
        "outcomes": {"passed": 4},
    }
    return build(Finished(**{**values, **more}))


def full_document() -> Document:
    """A document with something in every part."""
    return document(
        1.4,
        failures=[Failure("perf_tests/test_x.py::test_y", "REGRESSION", "TTFT is slower")],
        remarks=["stored nothing"],
        diagnosis=[
            {
                "rule": "prefill",
                "symptom": "slow to start",
                "cause": "prefill",
                "phase": "prefill",
                "evidence": ["TTFT 280 ms"],
                "levers": [{"name": "chunked prefill", "cannot": ""}, {"name": "a|b", "cannot": ""}, {"name": "third"}],
            },
            {"symptom": "the longest request", "cause": "prefill takes 80 % of it", "phase": "prefill"},
        ],
        server_timings={LONG: {"TTFT": 0.28, "prefill": 0.25, "unexplained": -0.001}},
        roofline={"verdict": "decode runs at 60 % of its limit", "arithmetic": ["a step: 125 MB"]},
        exit_status=1,
        **load_of(broken=True),
    )
