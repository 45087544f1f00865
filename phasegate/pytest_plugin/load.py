"""Load inside a pytest run: what the options ask for, measured at the first question, and how each item ends."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from phasegate.core.load_plan import plan_levels, requests_wanted
from phasegate.core.prompt import CalibrationError
from phasegate.core.settings_file import SettingsError
from phasegate.core.token_budget import LimitReachedError
from phasegate.core.units import parse_duration
from phasegate.core.workload import Workload, load_workload
from phasegate.engines.base import EngineError
from phasegate.gate.break_cause import cause_of
from phasegate.gate.facts import facts_of
from phasegate.gate.policy import glob_matches
from phasegate.gate.slo import Objective, parse_objective
from phasegate.gate.slo_search import Limit, judge_limits
from phasegate.gate.slo_share import Kept, judge_level, requests_to_prove
from phasegate.gate.verdict import Verdict
from phasegate.load.mix import Mix, parse_mix
from phasegate.load.workers.choice import OPTION, WorkersAsked, workers_asked
from phasegate.load.workers.driver import driver_for
from phasegate.measure.load_runner import Asked, LoadRunner
from phasegate.measure.session_runner import MeasurementError, SessionRunner
from phasegate.pytest_plugin.home import suite_home
from phasegate.pytest_plugin.outcomes import Judged, NotJudged
from phasegate.stats import laws
from phasegate.stats.level_run import LevelRun, token_rates, wrong_prompts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from phasegate.pytest_plugin.state import PerfState
    from phasegate.stats.outcome import LawResult

LEVELS = (1, 4, 16)
"""Requests in flight that are measured unless ``--perf-concurrency`` names others."""

STALL_PREFILLS = 2.0
"""A long prompt may stall running streams by so many times its own prefill, measured on the idle server beside it,
unless ``--perf-max-stall`` says how long. Without chunked prefill the stall is one prefill; more means that the
streams waited for something else as well."""

FOLDER = Path("fixtures") / "load"

NO_SLO = "NO_SLO"

ONE_CORE = (
    "llama.cpp decodes on one CPU core here, where arithmetic and not the reading of weights is the limit, so "
    "there may be nothing to share; judge it all the same with --perf-batching-factor"
)
"""Why batching informs only there; docs/explanation/load.md has what was measured."""


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """What the user wants of load.

    Attributes:
        levels: requests in flight, ascending.
        objectives: of the options and the policy.
        requests: of every level, or None to plan them.
        find_limit: whether to search for the highest level.
        at_most: highest level of the search.
        max_stall: seconds, or None for `STALL_PREFILLS`.
        factor: what batching must reach, or None for the law's own.
        mix: what users ask for, where that is not the workload ``concurrency``; None where it is.
        workers: which processes send the load.
    """

    levels: tuple[int, ...]
    objectives: tuple[Objective, ...]
    requests: int | None
    find_limit: bool
    at_most: int
    max_stall: float | None
    factor: float | None
    mix: Mix | None = None
    workers: WorkersAsked = field(default_factory=WorkersAsked)


def load_options(state: PerfState) -> LoadOptions:
    """The options of load.

    Raises:
        ValueError: one line naming the option, its value and what would be right.
        SettingsError: a workload of a mix cannot be used.
    """
    take = state.config.getoption
    stall = take("--perf-max-stall")
    mix = mix_asked(state)
    names = ["concurrency"] if mix is None else [workload.name for workload, _ in mix.parts]
    promised = dict.fromkeys(one for name in names for one in state.policy.objectives_for(name))
    return LoadOptions(
        levels=_levels(take("--perf-concurrency")),
        objectives=_objectives(take("--perf-slo")) + tuple(promised),
        requests=_at_least_one("--perf-load-requests", take("--perf-load-requests")),
        find_limit=take("--perf-find-limit"),
        at_most=_at_least_one("--perf-max-level", take("--perf-max-level")) or 1,
        max_stall=None if stall is None else parse_duration(stall, source="--perf-max-stall"),
        factor=_factor(take("--perf-batching-factor")),
        mix=mix,
        workers=workers_asked(take(OPTION)),
    )


def mix_asked(state: PerfState) -> Mix | None:
    """The mix that ``--perf-mix`` asks for; None without one. Workloads come from `FOLDER`, else from the run's own.

    Raises:
        ValueError: one line naming the option, its value and what would be right.
        SettingsError: a workload file cannot be used.
    """
    given = state.config.getoption("--perf-mix")
    if given is None:
        return None
    weights = parse_mix(" ".join(given), source="--perf-mix")
    folder = state.config.rootpath / FOLDER
    known = {path.stem: path for path in sorted(folder.glob("*.yaml"))}
    parts = []
    for name, weight in weights.items():
        if name not in known and name not in state.workloads:
            there = ", ".join(sorted({*known, *state.workloads}))
            raise ValueError(f"--perf-mix: no workload {name!r}; there are: {there}; paths go before this option")
        workload = load_workload(known[name]) if name in known else state.workloads[name]
        parts.append((workload, weight))
    return Mix(tuple(parts))


def spoken_of(objective: Objective, run: LevelRun) -> LevelRun:
    """The requests of a level that an objective speaks of: of a mix only those of the workloads that it names."""
    names = [name for name in run.names() if glob_matches(objective.workload, name)]
    return run if len(names) == len(run.names()) else run.part(*names)


def _levels(given: Sequence[str] | None) -> tuple[int, ...]:
    if given is None:
        return LEVELS
    found = set()
    for word in " ".join(given).split():
        if not word.isdigit() or int(word) < 1:
            raise ValueError(
                f"--perf-concurrency: {word!r} is not a whole number of at least 1; paths go before this option"
            )
        found.add(int(word))
    return tuple(sorted(found))


def _objectives(given: Sequence[str] | None) -> tuple[Objective, ...]:
    words = " ".join(given or ()).split()
    return tuple(dict.fromkeys(parse_objective(word, source="--perf-slo") for word in words))


def _at_least_one(option: str, value: int | None) -> int | None:
    if value is not None and value < 1:
        raise ValueError(f"{option} is {value}; it must be at least 1")
    return value


def _factor(value: float | None) -> float | None:
    if value is not None and not 0 < value < 1e6:
        raise ValueError(f"--perf-batching-factor is {value:g}; it must be above 0, such as 1.2")
    return value


@dataclass
class PytestLoad:
    """The load of one run.

    Attributes:
        state: of the run.
        options: what the user wants.
        load: the lab under load.
        judged: objectives judged so far, for the summary.
        broken: those of them that levels broke, each with its level and what took the time.
    """

    state: PerfState
    options: LoadOptions
    load: LoadRunner
    judged: list[Kept] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    @classmethod
    def on(cls, runner: SessionRunner, state: PerfState) -> PytestLoad:
        """The load of a run on its lab; ends the item where the budget leaves no time for load."""
        if not state.with_load:
            raise NotJudged("ADVISORY", "--perf-budget leaves no time for load")
        options = state.load_options
        watched = state.live is not None and state.live.shows_ttft
        load = LoadRunner(runner, state.say, watched, driver=driver_for(options.workers))
        return cls(state, options, load)

    def judge_objective(self, level: int, objective: Objective | None) -> None:
        """End the item of one objective at one level; without any objective it is measured and not judged."""
        run = self._level(level)
        if objective is None:
            raise NotJudged(NO_SLO, "no objective is given; say --perf-slo ttft:p95:500ms tpot:p95:50ms")
        kept = judge_level(objective, spoken_of(objective, run))
        self.judged.append(kept)
        if kept.verdict is Verdict.PASS:
            return
        if kept.verdict is Verdict.SLO_BREACH:
            facts = facts_of(objective.metric)
            runs = [spoken_of(objective, one) for one in (self._level(self.options.levels[0]), run)]
            cause = cause_of(objective, *runs)
            self.broken.append(f"{objective.text} with {run.name} ({cause.cause.value})")
            phase = f"{objective.metric} ({facts.phase if facts else 'both'})"
            raise Judged("SLO_BREACH", f"{phase}: {kept.reason}; cause: {cause.cause.value}: {cause.reason}")
        if kept.verdict is Verdict.INCONCLUSIVE:
            raise self.state.undecided(kept.reason, self.load.cut)
        raise Judged(kept.verdict.value, kept.reason)

    def batching(self, level: int) -> LawResult:
        """The law of batching at a level against the lowest one."""
        single, several = self._level(self.options.levels[0]), self._level(level)
        rates = [token_rates(run) for run in (single, several)]
        if not all(all(column) for column in rates):
            raise self.state.invalid_run(f"a round without an answer at {single.name} or {several.name}")
        # Both were visited in every round, so they pair by round.
        return laws.amortises(
            *rates,
            factor=self.options.factor or laws.AMORTISE_MIN,
            law=f"batching amortises decode ({self.options.levels[0]} -> {level} at a time)",
        )

    def inform_only(self, result: LawResult) -> None:
        """End the item of batching where its failing would say nothing: on one CPU core, unless a factor is given."""
        engine_options, server = self.state.engine_options, self.load.runner.server
        started = engine_options.base_url is None and server.engine == "llama.cpp"
        one_core = started and (engine_options.engine == "embedded" or server.settings.get("threads") == 1)
        if one_core and self.options.factor is None and result.outcome.value != "PASS":
            raise NotJudged("ADVISORY", f"{result.reason}; informs only: {ONE_CORE}")

    def stall(self) -> LawResult:
        """The law of the bounded stall."""
        with self._said():
            collisions = self.load.collide(self._workload("streams"), self._workload("long-prompt"))
        bound = self.options.max_stall
        law = "a long prompt stalls running streams by a bounded gap"
        if bound is None:
            alone, gap = (
                float(np.median([getattr(one, name) for one in collisions])) for name in ("alone", "usual_gap")
            )
            bound = STALL_PREFILLS * alone + gap
            law = f"a long prompt stalls running streams by at most {STALL_PREFILLS:g} of its own prefills"
        return laws.stall_bounded([one.stall for one in collisions], bound=bound, law=law)

    def stall_in_pieces(self) -> LawResult:
        """The law that reading prompts in small pieces stalls running streams less than this engine does."""
        from phasegate.pytest_plugin.chunked_prefill import collide_chunked

        streams, long_prompt = (self._workload(name) for name in ("streams", "long-prompt"))
        with self._said():
            pieces = collide_chunked(self.state.engine_options, streams, long_prompt, self.load.say)
            usual = self.load.collide(streams, long_prompt)
        self.load.chunked_prefill = pieces
        return laws.stall_bounded(
            [one.stall for one in pieces.collisions],
            bound=float(np.median([one.stall for one in usual])),
            law=f"with {pieces.setting} a long prompt stalls running streams for less",
        )

    def judge_limits(self) -> None:
        """Search for the highest load, and end the item where an objective is proven kept at no level."""
        verdict, reason = judge_limits(self._limits())
        if verdict is Verdict.INCONCLUSIVE:
            raise self.state.undecided(reason)
        if verdict is not Verdict.PASS:
            raise Judged(verdict.value, reason)

    def _limits(self) -> list[Limit]:
        """What the search finds; ends the item where nothing was asked for."""
        if not self.options.find_limit:
            raise NotJudged("ADVISORY", "the search for the highest load takes --perf-find-limit and an objective")
        if not self.options.objectives:
            raise NotJudged(NO_SLO, "the search needs an objective; say --perf-slo ttft:p95:500ms")
        plans, workload, objectives = self._plans(), self.asked(), self.options.objectives
        requests = self.options.requests or requests_wanted(workload.requests, self._to_prove())
        with self._said():
            self.load.measure_levels(workload, plans)
            self.load.runner.traffic.must_allow(())
            by_users = self.load.find_limit(workload, objectives, requests=requests, at_most=self.options.at_most)
            self.load.find_rate(workload, objectives, requests=requests)
        return by_users

    def _plans(self) -> Any:
        workload = self.asked()
        return plan_levels(
            self.options.levels, workload.requests, to_prove=self._to_prove(), fixed=self.options.requests
        )  # fmt: skip

    def _to_prove(self) -> int:
        return max(map(requests_to_prove, self.options.objectives), default=0)

    def _level(self, level: int) -> LevelRun:
        with self._said():
            run = self.load.measure_levels(self.asked(), self._plans()).get(level)
        if run is None:
            raise self.state.cut_short(f"{level} at a time: nothing was measured: {self.load.cut}")
        if not any(line.status == "ok" for line in run.timelines):
            kinds = ", ".join(f"{count} x {kind}" for kind, count in run.failures().most_common())
            raise self.state.invalid_run(f"{run.name}: every request failed ({kinds})")
        wrong = wrong_prompts(run.timelines)
        if wrong is not None:
            raise self.state.invalid_run(f"{run.name}: {wrong}")
        return run

    @contextmanager
    def _said(self) -> Iterator[None]:
        """Measuring whose troubles end the item as INVALID_RUN; a limit of the run leaves it undecided."""
        try:
            yield
        except LimitReachedError as error:
            raise self.state.cut_short(str(error)) from None
        except (MeasurementError, CalibrationError, EngineError, ValueError, OSError) as error:
            raise self.state.invalid_run(str(error)) from None

    def asked(self) -> Asked:
        """What users ask for."""
        return self.options.mix or self._workload("concurrency")

    def _workload(self, name: str) -> Workload:
        return load_workload_named(self.state, name)


def load_workload_named(state: PerfState, name: str) -> Workload:
    """A workload of load, of one cell; ends the item where its file cannot be used."""
    try:
        workload = load_workload(suite_home(state.config) / FOLDER / f"{name}.yaml")
    except SettingsError as error:
        raise state.invalid_run(str(error)) from None
    if len(workload.cells) != 1:
        raise state.invalid_run(f"{FOLDER / name}.yaml: load needs one input and one output length")
    return workload


def objective_id(objective: Objective | None) -> str:
    """The objective in a test id."""
    return "no objective" if objective is None else objective.text
