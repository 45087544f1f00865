"""Situations planted in a simulated server and measured over HTTP with the product's own lab.

The simulator passes `SPEED` simulated seconds in a real one, so what is wanted of it is wanted that much faster.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from phasegate.core.load_plan import LevelPlan
from phasegate.core.workload import Workload, parse_workload
from phasegate.diagnose import Observations, Repeats
from phasegate.diagnose.from_runs import observations_of
from phasegate.diagnose.thresholds import START_LIMIT, STREAM_LIMIT
from phasegate.gate.slo import Objective
from phasegate.measure.load_runner import LoadRunner
from phasegate.measure.measure_for_diagnosis import measure_repeats
from tests.load_runs import SPEED, load_lab_on, small

WANTED = (Objective("ttft", 50.0, START_LIMIT / SPEED), Objective("tpot", 50.0, STREAM_LIMIT / SPEED))
"""What interactive use wants, at the simulator's speed."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured of a server.

    Attributes:
        prompts, output: lengths of single requests; no prompt for none.
        shared: tokens of a beginning that two requests share, in prompts of 64 tokens more; 0 for no such calls.
        users: levels of load.
        collide: length of a long prompt among streams; 0 for none.
        traffic: length of beginnings that come up again and again; 0 for no such traffic.
    """

    prompts: tuple[int, ...] = ()
    output: int = 24
    shared: int = 0
    users: tuple[int, ...] = ()
    collide: int = 0
    traffic: int = 0


def measured(plan: Plan, **settings: Any) -> Observations:
    """A server with those settings, measured by a plan."""
    with load_lab_on(report_timings=settings.pop("report_timings", False), **settings) as load:
        repeats = None
        if plan.traffic:
            traffic(load, plan)  # What users asked before: a server in service has its cache full.
            repeats = traffic(load, plan)
        return look(load, plan, repeats)


def before_and_after_restart(plan: Plan, *, restart: bool, **settings: Any) -> tuple[Observations, Observations]:
    """Traffic on a server in service, and the same after it was deployed anew, or just later."""
    with load_lab_on(**settings) as load:
        traffic(load, plan)
        before = look(load, plan, traffic(load, plan))
        later = LoadRunner(load.runner.renewed(restart=restart))
        return before, look(later, plan, traffic(later, plan))


def traffic(load: LoadRunner, plan: Plan) -> Repeats:
    """Requests with the plan's shared beginnings."""
    return measure_repeats(load.runner, shared_tokens=plan.traffic, own_tokens=32)


def look(load: LoadRunner, plan: Plan, repeats: Repeats | None) -> Observations:
    """What the plan asks of a running server."""
    runs = [load.runner.measure(workload) for workload in _workloads(plan)]
    if plan.users:
        plans = [LevelPlan(level, 2, 2 * level) for level in plan.users]
        load.measure_levels(small("users", 64, plan.output), plans)
    if plan.collide:
        load.collide(small("streams", 32, 120, requests=2), small("long", plan.collide, 2, requests=2))
    return replace(
        observations_of(
            runs, levels=load.levels.values(), collisions=load.collisions, repeats=repeats, objectives=WANTED
        ),
        # Other work on the machine that tests may delay the client; here the planted cause is what is asked for.
        client=(),
    )  # fmt: skip


def _workloads(plan: Plan) -> Sequence[Workload]:
    found = []
    if plan.prompts:
        text = f"input_tokens: {list(plan.prompts)}\noutput_tokens: {plan.output}\nrequests: 3\nwarmups: 1\n"
        found.append(parse_workload(text, "lengths.yaml"))
    if plan.shared:
        text = (
            f"input_tokens: {plan.shared + 64}\nshared_tokens: {plan.shared}\noutput_tokens: 8\nrequests: 3\n"
            "warmups: 1\nprefix: shared\n"
        )
        found.append(parse_workload(text, "support.yaml"))
    return found
