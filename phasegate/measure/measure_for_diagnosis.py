"""Measuring what a diagnosis needs: one kind of request alone, its prompt shorter, several users, shared beginnings.

The suite's own workloads measure laws; here a user's workload is measured so far that its phases, its waiting and its
cache can be told apart, and no further.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from phasegate.core.load_plan import LevelPlan
from phasegate.core.metric import Undefined, time_to_first_token
from phasegate.core.prompt import PromptWriter
from phasegate.core.timeline import Expected, Timeline
from phasegate.core.workload import Planned, Workload
from phasegate.diagnose import Observations, Repeats
from phasegate.diagnose.from_runs import observations_of
from phasegate.gate.slo import Objective
from phasegate.measure.load_runner import LoadRunner
from phasegate.measure.session_runner import MeasurementError, SessionRunner
from phasegate.stats.workload_run import WorkloadRun

LEVELS = (1, 4)
"""Users of the small look at load: two points show batching and queueing."""

ROUNDS = 2
"""Rounds of that look."""

SHORTER = 4
"""The prompt is measured at a fourth of its length as well, which tells reading from a fixed delay."""

BRIEF = 32
"""Tokens of the shorter prompt's answer: few, and enough for its TPOT, which tells what decode pays for the context."""

BEGINNINGS = 3
"""Shared beginnings of that traffic: few enough to fit into the slots of a small engine."""

LEAST_PROMPT = 32
"""No prompt is made shorter than this: a template and a question have at least as many tokens."""

Say = Callable[[str], None]


def quiet(_: str) -> None:
    """Nobody watches."""


@dataclass(frozen=True, slots=True)
class MeasuredForDiagnosis:
    """What was measured of one workload, and the situation that it is.

    Attributes:
        workload: what was asked.
        run: its requests.
        shorter: the same with a shorter prompt, or None where it is short already.
        situation: all of it, for the diagnosis.
    """

    workload: Workload
    run: WorkloadRun
    shorter: WorkloadRun | None
    observations: Observations


def measure_for_diagnosis(
    runner: SessionRunner,
    workload: Workload,
    *,
    levels: Sequence[int] = LEVELS,
    objectives: Sequence[Objective] = (),
    traffic: bool = False,
    say: Say = quiet,
) -> MeasuredForDiagnosis:
    """Measure one workload so far that it can be explained.

    Args:
        lab: a started engine.
        workload: what users ask; with several cells the longest one is asked by several users.
        levels: users at a time; empty for no load.
        objectives: what is wanted.
        traffic: also send traffic with the workload's shared beginnings, where it has any: what the server's cache
            holds of it shows whether the cache was emptied since an earlier sitting.
        say: told what is going on.

    Raises:
        MeasurementError, CalibrationError: as `SessionRunner.measure`.
    """
    repeats = None
    if traffic and workload.shared_tokens:
        say(f"{workload.name}: traffic with shared beginnings")  # First, while the cache is as users left it.
        repeats = _traffic(runner, workload)
    say(f"{workload.name}: one request after another")
    run = runner.measure(workload)
    # A model that reasons needs the whole length before it answers at all.
    reasons = any(line.reasoning_tokens for line in run.timelines())
    short = shorter(workload, brief=not reasons)
    say(f"{workload.name}: the same with a shorter prompt")
    other = runner.measure(short) if short is not None else None
    load = LoadRunner(runner)
    if levels:
        say(f"{workload.name}: {', '.join(map(str, levels))} at a time")
        one = _one_cell(workload)
        load.measure_levels(one, [LevelPlan(level, ROUNDS, max(2, level)) for level in levels])
    runs = [one for one in (run, other) if one is not None]
    host = runner.watch.report().disturbance() if runner.watch is not None else None
    observations = observations_of(
        runs,
        levels=load.levels.values(),
        repeats=repeats,
        objectives=objectives,
        host=(host,) if host is not None else (),
    )
    return MeasuredForDiagnosis(workload, run, other, observations)


def _traffic(runner: SessionRunner, workload: Workload) -> Repeats:
    shared, longest = workload.shared_tokens, max(workload.input_tokens)
    return measure_repeats(
        runner, shared_tokens=shared, own_tokens=longest - shared, beginnings=BEGINNINGS, endpoint=workload.endpoint
    )


def shorter(workload: Workload, *, brief: bool = True) -> Workload | None:
    """The workload with prompts of a fourth of the length and nothing shared; None where they are short already.

    ``brief`` makes answers a few tokens long: TTFT and TPOT are what it is measured for, not the whole request.
    """
    longest = max(workload.input_tokens)
    tokens = max(LEAST_PROMPT, longest // SHORTER)
    if len(workload.input_tokens) > 1 or tokens >= longest:
        return None
    return replace(
        workload,
        name=f"{workload.name}-short-prompt",
        input_tokens=(tokens,),
        output_tokens=(min(BRIEF, max(workload.output_tokens)) if brief else max(workload.output_tokens),),
        prefix="unique",
        shared_tokens=0,
    )


def _one_cell(workload: Workload) -> Workload:
    """The longest request of a workload, every prompt new."""
    return replace(
        workload,
        input_tokens=(max(workload.input_tokens),),
        output_tokens=(max(workload.output_tokens),),
        prefix="unique",
        shared_tokens=0,
        warmups=0,
    )


def measure_repeats(
    runner: SessionRunner,
    *,
    shared_tokens: int,
    own_tokens: int,
    output_tokens: int = 4,
    beginnings: int = 4,
    times: int = 3,
    endpoint: str | None = None,
) -> Repeats:
    """Traffic in which few long beginnings come up again and again, each time with another end.

    The beginnings are the same in every sitting, whatever its seed: what an earlier sitting left in the server's cache
    is what a user's system prompt finds there. Their first requests come first, then the others.

    Args:
        lab: a started engine.
        shared_tokens: length of a beginning, template included.
        own_tokens: what each request adds.
        output_tokens: length of each answer.
        beginnings: how many there are.
        times: requests of each; at least 2.
        endpoint: None for the lab's own.

    Raises:
        MeasurementError: a request fails.
        CalibrationError: prompts of these lengths cannot be written.
    """
    endpoint = endpoint or runner.endpoint
    runner.calibration(endpoint)  # which finds out how short an answer may be
    output_tokens = max(output_tokens, runner.least_answers.get(endpoint, 1))
    prompt_tokens = shared_tokens + own_tokens
    expected = Expected(endpoint=endpoint, max_tokens=output_tokens, prompt_tokens=prompt_tokens, cold_prompt=False)
    prompts = _repeated_prompts(runner, endpoint, shared_tokens, own_tokens, beginnings, times)
    marked = runner.mark_prefix
    requests = [
        runner.request(f"{start} {end}", expected, output_tokens, len(start) if marked else 0) for start, end in prompts
    ]
    result, lines, _ = runner.send(requests)
    if result.interrupted:
        raise KeyboardInterrupt
    early, later = lines[:beginnings], lines[beginnings:]
    shares = [_cached(part, prompt_tokens) for part in (early, later)]
    return Repeats(shared_tokens, prompt_tokens, _ttft(early), _ttft(later), *shares)


def _repeated_prompts(
    runner: SessionRunner, endpoint: str, shared: int, own: int, beginnings: int, times: int
) -> list[tuple[str, str]]:
    """Beginning and end of each prompt."""
    known = runner.calibration(endpoint)
    fixed, fresh = PromptWriter(known, 0, salt="beginnings"), PromptWriter(known, runner.prompt_seed, salt="ends")
    starts = [fixed.write(_planned(f"beginning {n}", shared)) for n in range(beginnings)]
    # An end stands behind other words, where each of its own is one token, so the template is not counted twice.
    ends = [fresh.write(_planned(f"end {n}", own + known.overhead)) for n in range(beginnings * times)]
    return [(starts[n % beginnings], end) for n, end in enumerate(ends)]


def _planned(key: str, tokens: int) -> Planned:
    return Planned(None, -1, tokens, 1, key, None, cold=False)


def _ttft(lines: Sequence[Timeline]) -> float:
    values = [time_to_first_token(line) for line in lines if line.status == "ok"]
    known = [value for value in values if not isinstance(value, Undefined)]
    if len(known) < len(lines):
        first = next(line for line in lines if line.status != "ok")
        raise MeasurementError(f"a request with a shared beginning failed: {first.error_message or first.error_kind}")
    return float(np.median(known))


def _cached(lines: Sequence[Timeline], prompt_tokens: int) -> float | None:
    """Median share of the prompt that came from the cache; None where the server does not tell."""
    told = [line.cached_tokens for line in lines if line.cached_tokens is not None]
    return float(np.median(told)) / prompt_tokens if told else None
