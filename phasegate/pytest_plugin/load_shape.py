"""The load that the options of arrivals ask for, inside a pytest run: measured once, judged by the run's objectives.

Levels of concurrency (`pytest_load`) are measured anyway. This is the load that only the user can name: a rate, bursts,
a ramp, or a recorded trace.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from phasegate.core.prompt import CalibrationError
from phasegate.core.request import Request
from phasegate.core.token_budget import LimitReachedError
from phasegate.engines.base import EngineError
from phasegate.gate.slo import Objective
from phasegate.gate.slo_share import judge_level
from phasegate.gate.verdict import Verdict
from phasegate.load.load_check import load_line
from phasegate.load.mix import Mix
from phasegate.load.shapes import Shape, shape_from
from phasegate.load.trace_prompts import trace_requests
from phasegate.load.workers.job import shaped
from phasegate.pytest_plugin.load import NO_SLO, spoken_of
from phasegate.pytest_plugin.outcomes import Judged, NotJudged
from phasegate.stats.level_run import LevelRun

if TYPE_CHECKING:
    from phasegate.measure.load_runner import Asked, LoadRunner
    from phasegate.pytest_plugin.load import PytestLoad


@dataclass
class PytestShape:
    """The asked load of one run.

    Attributes:
        load: the load of the run; the level measured here joins its table.
        shape: what the options ask for.
        run: what was measured, None before the first question.
        line: what was asked and reached, in words.
    """

    load: PytestLoad
    shape: Shape
    run: LevelRun | None = None
    line: str = ""

    @classmethod
    def on(cls, load: PytestLoad, config: Any) -> PytestShape:
        """The asked load of a run on its load; `asked_shape` has checked the options before."""
        return cls(load, asked_shape(config))

    def judge_objective(self, objective: Objective | None) -> None:
        """End the item of one objective at the asked load; without an objective it is measured and not judged."""
        if not self.shape.is_open:
            raise NotJudged("ADVISORY", "no load is asked for; say --perf-request-rate or --perf-trace")
        run = self._measured()
        if objective is None:
            if run.missed is not None:
                raise self.load.state.invalid_run(run.missed)
            raise NotJudged(NO_SLO, f"{self.line}; no objective is given; say --perf-slo ttft:p95:500ms")
        kept = judge_level(objective, spoken_of(objective, run))
        if kept.verdict is Verdict.PASS:
            return
        reason = f"{self.line}: {kept.reason}"
        if kept.verdict is Verdict.INCONCLUSIVE and not self.load.state.policy.inconclusive_fails:
            raise NotJudged("INCONCLUSIVE", reason)
        if kept.verdict is Verdict.INVALID_RUN:
            raise self.load.state.invalid_run(reason)
        raise Judged(kept.verdict.value, reason)

    def _measured(self) -> LevelRun:
        if self.run is None:
            try:
                self.run, self.line = measure_shape(self.load.load, self.load.asked(), self.shape)
            except LimitReachedError as error:
                raise self.load.state.cut_short(str(error)) from None
            except (CalibrationError, EngineError, ValueError, OSError) as error:
                raise self.load.state.invalid_run(str(error)) from None
        if self.run.partial:
            raise KeyboardInterrupt
        return self.run


def asked_shape(config: Any) -> Shape:
    """The shape of the options.

    Raises:
        SettingsError, ValueError: one line naming the option, its value and what would be right.
    """
    shape = shape_from(config.getoption)
    shares = shape.trace is not None and any(one.blocks for one in shape.trace.requests)
    if shares and config.getoption("--perf-mark-prefix"):
        raise ValueError(
            "--perf-mark-prefix marks what workloads share, not the blocks that requests of a trace share; leave it or "
            "--perf-trace out"
        )
    if not shape.is_open:
        for option in ("--perf-max-concurrency", "--perf-num-prompts", "--perf-num-warmups"):
            value = config.getoption(option)
            if value is not None:
                raise ValueError(
                    f"{option} {value} belongs to --perf-request-rate or --perf-trace; closed loops take "
                    "--perf-concurrency and --perf-load-requests"
                )
    return shape


def measure_shape(load: LoadRunner, workload: Asked, shape: Shape, attempt: int = 0) -> tuple[LevelRun, str]:
    """Drive the shape once; the level joins ``load.rates``. A trace brings its own lengths, a rate the workload's.

    Where the client proves to be the limit and can take more workers, the shape is driven again, as a next attempt.
    """
    runner = load.runner
    warmups = workload.warmups if shape.warmups is None else shape.warmups
    warm = load.requests(workload, warmups)
    requests = _requests(load, workload, shape, attempt)
    if load.say is not None:
        load.say(f"measuring {len(requests)} requests: {shape.describe()}")
    runner.traffic.must_allow([*warm, *requests])
    if warm:
        runner.warm_up(warm)
    result, lines = load.drive(shaped(runner.target, requests, shape, np.random.default_rng([runner.seed, *b"shape"])))
    if load.grown(result):
        return measure_shape(load, workload, shape, attempt + 1)
    rate = result.requested_rate
    if shape.rate is not None and rate is not None and not shape.rate.is_ramp:
        rate = shape.rate.last  # also where the run ended early, and the schedule's own first part had another
    # Everything at once has no rate; then the level is how many that is, or how many of them are let in at a time.
    level = rate if rate is not None else float(min(len(requests), shape.max_concurrency or len(requests)))
    run = replace(load.level_run(level, result, lines, shape), by_rate=rate is not None, partial=result.interrupted)
    load.rates[level] = run
    cut = load.cut_off(result)
    if cut is not None:
        raise LimitReachedError(cut)
    return run, load_line(result, shape)


def _requests(load: LoadRunner, workload: Asked, shape: Shape, attempt: int) -> list[Request]:
    if shape.trace is None:
        return load.requests(workload, shape.count or workload.requests)
    runner = load.runner
    endpoint = (None if isinstance(workload, Mix) else workload.endpoint) or runner.endpoint
    trace = replace(shape.trace, requests=shape.trace.requests[: shape.count])
    return trace_requests(
        trace, runner.calibration(endpoint), runner.prompt_seed + attempt, runner.request,
        endpoint=endpoint, length_is_forced=runner.profile.forces_length(endpoint),
    )  # fmt: skip
