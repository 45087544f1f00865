"""What one pytest run with measuring knows: options, workload files, the lab, laws and verdict words."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import pytest

from phasegate.core.budget import Choice
from phasegate.core.faults import fault_line, traceback_wanted
from phasegate.core.naming import path_name
from phasegate.core.settings_file import SettingsError
from phasegate.core.token_budget import NOTHING, spending_of
from phasegate.core.units import parse_duration
from phasegate.core.workload import Workload, load_workload
from phasegate.engines.ask import same_server
from phasegate.engines.base import EngineError
from phasegate.engines.metrics.page import page_url
from phasegate.engines.profile_book import FOLDER
from phasegate.gate.policy import Policy
from phasegate.load.route import RouteError
from phasegate.measure.compare_paired import LEAST_BLOCKS, MOST_BLOCKS
from phasegate.measure.connect import EngineOptions, check_engine, refuse_unused, with_settings
from phasegate.pytest_plugin.extensions import own_engine, register_metrics, with_own_workloads
from phasegate.pytest_plugin.hardware_limit import RunLimits, check_facts, limits_of
from phasegate.pytest_plugin.home import WORKLOADS, check_places, suite_home
from phasegate.pytest_plugin.outcomes import Judged, NotJudged, NotMeasurable
from phasegate.pytest_plugin.plan import Wanted
from phasegate.pytest_plugin.token_cap import traffic_of
from phasegate.store.policy_source import read_policy

if TYPE_CHECKING:
    from phasegate.measure.session_runner import SessionRunner
    from phasegate.pytest_plugin.gate import PytestGate
    from phasegate.pytest_plugin.load import LoadOptions, PytestLoad
    from phasegate.report.progress import Progress
    from phasegate.stats.outcome import LawResult

OTHER_SIDE = 0xB5297A4D
"""From the seed of the candidate's prompts to that of the reference's: prompts of its own for each side, so that one
server may stand on both, and so that a cache behind both helps neither."""

POLICY = "fixtures/policy.yaml"

REFERENCE_KEY, SENTINEL_KEY = "PERF_REFERENCE_API_KEY", "PERF_SENTINEL_API_KEY"
"""Environment variables with the keys of a reference and of a sentinel at another server than the base URL's."""


def options_from(config: pytest.Config) -> EngineOptions:
    """The engine and the run as the command line and the environment describe them.

    Raises:
        ValueError: one line naming the option, its value and what would be right.
    """
    take = config.getoption
    requests = take("--perf-requests")
    if requests is not None and requests < 1:
        raise ValueError(f"--perf-requests is {requests}; it must be at least 1")
    seed = take("--perf-seed")
    return EngineOptions(
        base_url=take("--perf-base-url") or os.environ.get("OPENAI_BASE_URL") or None,
        model=take("--perf-model"),
        engine=take("--perf-engine"),
        profiles=suite_home(config) / FOLDER,
        engine_model=take("--perf-engine-model"),
        engine_config=take("--perf-engine-config"),
        engine_args=take("--perf-engine-args"),
        engine_python=take("--perf-engine-python"),
        endpoint=take("--perf-endpoint"),
        mark_prefix=take("--perf-mark-prefix"),
        own_engine=lambda: own_engine(config),
        traffic=traffic_of(config),
        requests=requests,
        hardware=take("--perf-hardware"),
        seed=secrets.randbits(32) if seed is None else seed,
        timeout=parse_duration(take("--perf-timeout"), source="--perf-timeout"),
        idle_timeout=parse_duration(take("--perf-idle-timeout"), source="--perf-idle-timeout"),
        metrics_urls=tuple(map(page_url, take("--perf-metrics-url") or ())),
    )


def _policy_of(config: pytest.Config) -> Policy:
    """The policy of the named file, of ``fixtures/policy.yaml`` where there is one, or the built-in one."""
    given: str | None = config.getoption("--perf-policy")
    if given is not None:
        return read_policy(given)
    home = suite_home(config)
    return read_policy(POLICY if (home / POLICY).exists() else None, root=home)


@dataclass
class PerfState:
    """The state of one run; lives in the pytest config."""

    config: pytest.Config
    engine_options: EngineOptions
    workloads: dict[str, Workload]
    folder: Path = WORKLOADS
    laws: list[tuple[str, LawResult]] = field(default_factory=list)
    asked: dict[str, list[str]] = field(default_factory=dict)
    invalid: list[str] = field(default_factory=list)
    policy: Policy = field(default_factory=Policy)
    blocks: int = MOST_BLOCKS
    say: Callable[[str], None] = print
    live: Progress | None = None
    wanted: Wanted = field(default_factory=Wanted)
    choice: Choice = field(default_factory=Choice)
    with_load: bool = True
    start_seconds: float = 0.0
    gate: PytestGate | None = None
    load: PytestLoad | None = None
    runner: SessionRunner | None = None
    disturbed: str | None = None
    cut_items: int = 0
    not_more: dict[str, str] = field(default_factory=dict)

    @classmethod
    def from_config(cls, config: pytest.Config) -> PerfState:
        """Check options and read every workload file.

        Raises:
            SettingsError, ValueError: one line for the user.
            RouteError: no way leads to the server.
            UnwritableError: what the run is to write has no place; one line.
        """
        given = config.getoption("--perf-workloads")
        folder = Path(given) if given else suite_home(config) / WORKLOADS
        pinned = config.getoption("--perf-pinned")
        if pinned is not None:
            path_name(pinned, "--perf-pinned")
        given_blocks = config.getoption("--perf-blocks")
        blocks = MOST_BLOCKS if given_blocks is None else given_blocks
        if blocks < LEAST_BLOCKS:
            raise ValueError(f"--perf-blocks is {blocks}; fewer than {LEAST_BLOCKS} cannot show their own spread")
        engine_options = options_from(config)
        try:
            # A reference with settings of its own is started, beside a server that runs already.
            started = config.getoption("--perf-reference-config") is not None
            refuse_unused(engine_options, "--perf-", ("engine_model", "engine_python") if started else ())
            engine_options = check_engine(engine_options)
        except RouteError:
            raise  # The address may be right: what the environment says of the way to it is not.
        except EngineError as error:
            raise SettingsError(str(error)) from None
        check_facts(config)
        register_metrics(config)
        policy = _policy_of(config)
        workloads = with_own_workloads(config, read_workloads(folder))
        check_places(config)
        state = cls(config, engine_options, workloads, folder, policy=policy, blocks=blocks)
        state._check_elsewhere()
        _ = state.load_options  # read now, so that a wrong option is said before anything starts
        return state

    def workload(self, name: str) -> Workload:
        """The workload of that name; ends the item as INVALID_RUN where no file has it."""
        if name not in self.workloads:
            there = ", ".join(self.workloads)
            raise self.invalid_run(
                f"no workload {name!r} in {self.folder}, which has: {there}; write {name}.yaml, or deselect the item"
            )
        return self.workloads[name]

    @contextmanager
    def connect(self) -> Iterator[SessionRunner]:
        """A lab on a started engine; the engine is stopped when the context ends, however it ends."""
        from phasegate.core.prompt import CalibrationError
        from phasegate.measure.connect import connect
        from phasegate.measure.session_runner import MeasurementError
        from phasegate.pytest_plugin.budget import make_plan, plan_line
        from phasegate.report.progress import progress_of

        live = progress_of(self.config, self.engine_options.traffic, lambda: plan_line(self))
        began = monotonic()
        try:
            with connect(self.engine_options, live.say) as runner:
                self.start_seconds = monotonic() - began if runner.engine.can_restart else 0.0
                self.runner = runner
                runner.rate_limit.say = live.say
                runner.progress, self.say, self.live = live, live.say, live
                make_plan(self, runner)
                yield runner
                # While the engine still runs: its own time counts as ours only as long as it does.
                self.disturbed = runner.watch.report().disturbance() if runner.watch is not None else None
        except (EngineError, MeasurementError, CalibrationError) as error:
            raise NotMeasurable(str(error)) from None
        except Exception as error:
            if traceback_wanted():
                raise
            raise NotMeasurable(fault_line(error)) from None
        finally:
            live.close()

    @cached_property
    def load_options(self) -> LoadOptions:
        """What the options say of load.

        Raises:
            ValueError: one line for the user.
        """
        from phasegate.pytest_plugin.load import load_options

        return load_options(self)

    @cached_property
    def limits(self) -> RunLimits:
        """What was measured against the hardware's limits; asked for when nothing is measured any more."""
        return limits_of(self.config, self.runner, self.disturbed)

    def reference_options(self) -> EngineOptions | None:
        """How the reference of a paired comparison is opened, or None where stored sessions are compared with."""
        url, settings = (self.config.getoption(f"--perf-reference-{name}") for name in ("url", "config"))
        if url and settings is not None:
            raise pytest.UsageError("give --perf-reference-url or --perf-reference-config, not both")
        other = replace(self.engine_options, metrics_urls=(), seed=(self.engine_options.seed + OTHER_SIDE) % 2**63)
        if url:
            model = self.config.getoption("--perf-reference-model") or self.engine_options.model
            return replace(other, **self._elsewhere(url, REFERENCE_KEY), model=model)
        if settings is not None:
            return with_settings(other, settings)
        return None

    def keep_law(self, nodeid: str, result: LawResult) -> None:
        """Remember how a law ended; a later judgement of the same item takes the place of the former."""
        self.laws[:] = [*((other, law) for other, law in self.laws if other != nodeid), (nodeid, result)]

    def measure_more(self, nodeid: str) -> bool:
        """Measure the workloads that an item asked for as often again.

        False where it asked for none, where the user fixed the number of repetitions, and where a limit of the run
        leaves no room for more.
        """
        names = self.asked.get(nodeid, [])
        if self.runner is None or self.engine_options.requests is not None or not names:
            return False
        more = sum((spending_of(replace(self.runner.runs[name].workload, warmups=0)) for name in names), NOTHING)
        limit = self.engine_options.traffic.why_not_more(more)
        if limit is not None:
            self.not_more[nodeid] = limit
            return False
        for name in names:
            self.say(f"{name}: not decided yet, measuring as often again")
            self.runner.extend(self.workload(name))
        return True

    def what_ended(self, nodeid: str) -> str | None:
        """Which limit of the run kept an item from measuring all it wanted; None where none did."""
        runs = self.runner.runs if self.runner is not None else {}
        cut = (runs[name].cut for name in self.asked.get(nodeid, []) if name in runs)
        return next((one for one in cut if one is not None), self.not_more.get(nodeid))

    def invalid_run(self, reason: str) -> Judged:
        """The end of an item whose numbers prove nothing; the reason is kept for the summary, once."""
        if reason not in self.invalid:
            self.invalid.append(reason)
        return Judged("INVALID_RUN", reason)

    def undecided(self, reason: str, limit: str | None = None) -> Judged | NotJudged:
        """The end of an item that is not decided; ``limit`` is what kept the run from measuring more, if anything."""
        said = f"{reason}; {limit}" if limit else reason
        self.cut_items += limit is not None
        if self.policy.inconclusive_fails:
            return Judged("INCONCLUSIVE", said, names_limit=limit is not None)
        return NotJudged("INCONCLUSIVE", said)

    def cut_short(self, reason: str) -> Judged:
        """The end of an item for which the run's time or tokens were used up; ``reason`` says which."""
        self.cut_items += 1
        return Judged("INCONCLUSIVE", reason, names_limit=True)

    def with_limit(self, judged: Judged, nodeid: str) -> Judged:
        """The same end of an item, with the limit that kept it from being decided."""
        limit = self.what_ended(nodeid)
        if limit is None or judged.word != "INCONCLUSIVE" or judged.names_limit:
            return judged
        return self.cut_short(f"{judged.reason}; {limit}")

    def disproved_counts(self, nodeid: str) -> str | None:
        """Why no token count of what an item measured can be believed, in one line; None where they can."""
        runs = self.runner.runs if self.runner is not None else {}
        reasons = (runs[name].disproved() for name in self.asked.get(nodeid, []) if name in runs)
        return next((reason for reason in reasons if reason is not None), None)

    def disturbance(self, nodeid: str) -> str | None:
        """What disturbed the host while an item's workloads were measured; in the session where it has none."""
        if self.runner is None:
            return None
        names = [name for name in self.asked.get(nodeid, []) if name in self.runner.runs]
        if names:
            return next((why for name in names if (why := self.runner.runs[name].disturbed) is not None), None)
        return None if self.runner.watch is None else self.runner.watch.disturbed_since()

    def sentinel_options(self) -> EngineOptions | None:
        """How the frozen reference of every session is opened, or None where there is none."""
        url, model = (self.config.getoption(f"--perf-sentinel-{name}") for name in ("url", "model"))
        # Its own workload shares nothing, and it need not be of an API that knows marks.
        if not url:
            return None
        changes = {"model": model, "requests": None, "mark_prefix": False}
        return replace(self.engine_options, **self._elsewhere(url, SENTINEL_KEY), **changes)

    def _elsewhere(self, url: str, own_key: str) -> dict[str, Any]:
        """What is different at another URL. The key of the base URL is for its server, and is shown to no other."""
        here = self.engine_options.base_url
        is_same = here is not None and same_server(url, here)
        return {"base_url": url, "metrics_urls": (), "own_key": None if is_same else own_key}

    def _check_elsewhere(self) -> None:
        """Refuse an address of a reference or a sentinel that could not be used, before anything is measured."""
        for option, engine_options in (
            ("--perf-reference-url", self.reference_options()),
            ("--perf-sentinel-url", self.sentinel_options()),
        ):
            if (
                engine_options is not None
                and engine_options.base_url != self.engine_options.base_url
                and engine_options.base_url
            ):
                try:
                    check_engine(engine_options)
                except RouteError:
                    raise
                except EngineError as error:
                    raise SettingsError(f"{option}: {error}") from None

    def close(self) -> None:
        """Stop the client's workers and the engine if they still run; safe to call twice."""
        if self.load is not None:
            self.load.load.driver.close()
        if self.runner is not None:
            self.runner.engine.stop()


def read_workloads(folder: Path) -> dict[str, Workload]:
    """All workload files of a folder, by name.

    Raises:
        SettingsError: no folder, no file in it, or a file that cannot be used.
    """
    paths = sorted(folder.glob("*.yaml"))
    if not folder.is_dir():
        raise SettingsError(f"{folder}: no such folder; workload files are looked for in it (--perf-workloads DIR)")
    if not paths:
        raise SettingsError(f"{folder}: no workload file (*.yaml) here; say where they are with --perf-workloads")
    return {workload.name: workload for workload in map(load_workload, paths)}
