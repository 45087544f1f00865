"""The lab under load: several users at a time, a long prompt among running streams, and the search for the limit.

It borrows the lab's way of writing prompts and asking for an exact length. Levels are measured in rounds in which they
take turns in a random order; every prompt is new.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from phasegate.core.load_plan import LevelPlan
from phasegate.core.metric import Undefined, time_to_first_token
from phasegate.core.request import Request
from phasegate.core.timeline import Timeline
from phasegate.core.token_budget import LimitReachedError
from phasegate.core.units import format_seconds
from phasegate.core.workload import Workload
from phasegate.gate.slo import Objective
from phasegate.gate.slo_search import Limit, limits, next_level, next_rate
from phasegate.load.collision import run_collision
from phasegate.load.driving import LoadResult, OnDone
from phasegate.load.health import ClientHealth
from phasegate.load.load_check import load_problem, server_gone
from phasegate.load.mix import Mix, plan_mixed
from phasegate.load.pacing import Rate, poisson
from phasegate.load.route import route_to
from phasegate.load.shapes import Shape
from phasegate.load.watcher import LoadWatcher, Say
from phasegate.load.workers.driver import Driver, OneProcess, calibrate_driver, notes_of, worker_remark
from phasegate.load.workers.job import Job
from phasegate.measure.session_runner import MeasurementError, SessionRunner
from phasegate.stats.client_error import ClientError, Watched, joined
from phasegate.stats.counters import counted_together
from phasegate.stats.level_run import ChunkedPrefill, Collision, LevelRun, Round, wrong_prompts
from phasegate.wire.decoding import decode

SPARE_COLLISIONS = 3
"""Collisions that may miss (a stream was over too early) before it is given up."""

Asked = Workload | Mix
"""What users ask for: one workload, or several by weight."""


@dataclass
class LoadRunner:
    """Measures one lab's engine under load.

    Attributes:
        lab: the engine and how to talk to it.
        say: told what is going on; None where nobody watches.
        watched: whether it is told of ended requests too, inside the measured window.
        levels: what was measured with `measure_levels`, by requests in flight.
        collisions: what was measured with `collide`.
        chunked_prefill: the same on an engine that reads prompts in smaller pieces, or None.
        searched: levels of `find_limit` that were measured only for it.
        rates: levels of `find_rate`, by requests a second.
        found: what the searches found.
        driver: who sends levels and rates: this process, or several workers.
        cut: which limit of the run ended the levels before their plan was done; None for none.
    """

    runner: SessionRunner
    say: Say | None = None
    watched: bool = False
    levels: dict[int, LevelRun] = field(default_factory=dict)
    collisions: list[Collision] = field(default_factory=list)
    chunked_prefill: ChunkedPrefill | None = None
    searched: dict[int, LevelRun] = field(default_factory=dict)
    rates: dict[float, LevelRun] = field(default_factory=dict)
    found: list[Limit] = field(default_factory=list)
    driver: Driver = field(default_factory=OneProcess)
    cut: str | None = None
    _blocks: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    _workload_of: dict[str, str] = field(default_factory=dict)
    _warm: bool = False

    @property
    def uncalibrated(self) -> str | None:
        """Why the client's own error is not known, or None."""
        return self.runner.calibrations.failed

    @property
    def empty(self) -> bool:
        """Whether nothing was measured yet."""
        return not (self.levels or self.collisions or self.searched or self.rates)

    def measure_levels(self, workload: Asked, plans: Sequence[LevelPlan]) -> dict[int, LevelRun]:
        """Every level of the plan, measured once and remembered.

        Where a limit of the run ends it early, ``cut`` says which, and levels that were not begun are missing.

        Raises:
            KeyboardInterrupt: the user stopped; what was measured until then is kept in ``levels`` as partial.
            CalibrationError, MeasurementError: prompts cannot be written.
        """
        missing = [plan for plan in plans if plan.level not in self.levels]
        if not missing or self.cut is not None:
            return self.levels
        try:
            self._measure_rounds(workload, missing)
        except LimitReachedError as error:
            self.cut = str(error)
        return self.levels

    def _measure_rounds(self, workload: Asked, plans: Sequence[LevelPlan]) -> None:
        self.runner.traffic.must_allow(())
        self.calibrate(plan.level for plan in plans)
        self._warm_up(workload)
        rng = np.random.default_rng([self.runner.seed, *b"levels"])
        for number in range(max(plan.rounds for plan in plans)):
            for place in rng.permutation(len(plans)):
                plan = plans[int(place)]
                if number < plan.rounds:
                    self._visit(self.levels, workload, plan)

    def calibrate(self, levels: Iterable[int]) -> None:
        """Measure the client's own error at those concurrencies, where it is not known yet; the server idles."""
        target = self.runner.target
        proxied = target.transport == "auto" and route_to(target.base_url).proxy is not None

        def watcher(level: int, requests: Sequence[Request]) -> OnDone | None:
            return self._watcher(level, requests, "calibrating the client with")

        transport = "httpx2" if proxied else target.transport
        calibrate_driver(self.driver, self.runner.calibrations, levels, watcher, transport)

    def grown(self, result: LoadResult) -> bool:
        """Whether the client was the limit and has more workers now, so that the load is to be measured again."""
        said = self.driver.grow(result)
        if said is not None and self.say is not None:
            self.say(said)
        return said is not None

    def level_run(self, level: float, result: LoadResult, lines: Sequence[Timeline], asked: Shape) -> LevelRun:
        """What one round of load left behind, with what is known of the client at that concurrency.

        ``lines`` are the result's recordings, understood.

        Where nobody said how many would be in flight, the client is calibrated afterwards, at as many as there were,
        rounded up to a power of two.
        """
        users = asked.users if not asked.is_open else 2 ** math.ceil(math.log2(max(result.peak_in_flight, 1)))
        if not result.partial:
            self.calibrate([users])
        return LevelRun(
            level=level,
            rounds=(Round(tuple(lines)),),
            partial=result.partial,
            missed=load_problem(result, asked) or wrong_prompts(lines),
            notes=notes_of(self.driver, result),
            sent_by=worker_remark(result),
            client=ClientError(self.runner.calibrations.at(users, setup=self.driver.setup), watched(result.health)),
            workloads={
                one.request_id: name
                for one in result.recordings
                if (name := self._workload_of.get(one.request_id)) is not None
            },
        )

    def _watcher(self, level: int, requests: Sequence[Request], doing: str = "measuring") -> LoadWatcher | None:
        """What looks at ended requests; where nobody watches them, what begins is said all the same."""
        if self.say is None:
            return None
        if self.watched:
            return LoadWatcher(self.say, level, requests, doing=doing)
        self.say(f"{doing} {level} at a time: {len(requests)} requests")
        return None

    def _visit(self, runs: dict[int, LevelRun], workload: Asked, plan: LevelPlan) -> None:
        """One round at one level, added to what the level has."""
        requests = self.requests(workload, plan.per_round)
        watcher = self._watcher(plan.level, requests)
        view = self.runner.server_metrics
        counters = view.read()
        result, lines = self.drive(Job(self.runner.target, tuple(requests), plan.level), watcher)
        if self.grown(result):
            self._visit(runs, workload, plan)
            return
        self.runner.rate_limit.rest(result.recordings)
        run = self.level_run(plan.level, result, lines, Shape(max_concurrency=plan.level))
        cut = self.cut_off(result)
        if cut is not None:
            # The last requests of such a round had fewer beside them: it is kept only where there is no other.
            runs.setdefault(plan.level, replace(run, missed=None, partial=False))
            raise LimitReachedError(cut)
        runs[plan.level] = _joined(runs.get(plan.level), replace(run, server=view.since(counters)))
        _refuse_partial(result, runs[plan.level])

    def drive(self, job: Job, on_done: OnDone | None = None) -> tuple[LoadResult, list[Timeline]]:
        """Send a load, which begins only where the run's limits allow all of it; its answers come understood as well.

        Raises:
            LimitReachedError: they do not.
        """
        traffic = self.runner.traffic
        traffic.must_allow(job.requests)
        result = self.driver.drive(job, on_done=on_done, stop=traffic.out_of_time)
        lines = [decode(one, self.runner.target.api_key) for one in result.recordings]
        traffic.count(lines)
        return result, lines

    def cut_off(self, result: LoadResult) -> str | None:
        """Which limit of the run ended a load before its last request; None where none did."""
        by_limit = result.unsent and not (result.interrupted or result.server_gone)
        return self.runner.traffic.why_not() if by_limit else None

    def requests(self, workload: Asked, count: int) -> list[Request]:
        """So many requests with prompts that no other request of the run has; warm-ups are no exception."""
        if isinstance(workload, Mix):
            return self._mixed_requests(workload, count)
        (n_in,), (n_out,) = workload.input_tokens, workload.output_tokens
        endpoint = workload.endpoint or self.runner.endpoint
        first = next(self._blocks) * BLOCK_OF_REQUESTS
        return self.runner.fresh_requests(endpoint, n_in, n_out, count, name=workload.name, first=first)

    def _mixed_requests(self, mix: Mix, count: int) -> list[Request]:
        first = next(self._blocks) * BLOCK_OF_REQUESTS
        plan = plan_mixed(mix.parts, count, np.random.default_rng([self.runner.seed, first, *b"mix"]), first)
        requests = self.runner.requests_for(plan)
        for (workload, _), request in zip(plan, requests, strict=True):
            self._workload_of[request.request_id] = workload.name
        return requests

    def _warm_up(self, workload: Asked) -> None:
        if not self._warm and workload.warmups:
            self.runner.warm_up(self.requests(workload, workload.warmups))
        self._warm = True

    def collide(self, streams: Workload, long_prompt: Workload) -> list[Collision]:
        """Collisions of a long prompt with running streams, each beside the same prefill on the idle server.

        Measured once and remembered. A collision in which a stream was over before the long prompt was read is
        measured again, a few times.

        Raises:
            MeasurementError: collisions miss, or requests of them fail; one line with the remedy.
            LimitReachedError: the run's time or tokens are used up; what was measured until then is kept.
        """
        missed = 0
        while len(self.collisions) < long_prompt.requests:
            if self.say is not None:
                self.say(f"measuring collision {len(self.collisions) + 1} of {long_prompt.requests}")
            one = self._collide_once(streams, long_prompt)
            if one.hit:
                self.collisions.append(one)
                continue
            missed += 1
            if missed > SPARE_COLLISIONS:
                raise MeasurementError(
                    f"{missed} of {missed + len(self.collisions)} long prompts were not read while all "
                    f"{len(one.streams)} streams were being answered; give {streams.name} longer answers or fewer "
                    "requests, so that all fit beside the long prompt"
                )
        return self.collisions

    def _collide_once(self, streams: Workload, long_prompt: Workload) -> Collision:
        alone, intruder = self.requests(long_prompt, 2)
        running = self.requests(streams, streams.requests)
        self.runner.traffic.must_allow([alone, intruder, *running])
        idle, lines, _ = self.runner.send([alone])
        if idle.interrupted:
            raise KeyboardInterrupt
        line = lines[0]
        ttft = time_to_first_token(line)
        if line.status != "ok" or isinstance(ttft, Undefined):
            said = line.error_message or line.error_kind or line.status
            raise MeasurementError(
                f"{long_prompt.name}: a prompt of {long_prompt.input_tokens[0]} tokens failed: {said}"
            )
        came = run_collision(self.runner.target, running, intruder)
        lines = [decode(one, self.runner.target.api_key) for one in (came.intruder, *came.streams)]
        self.runner.traffic.count(lines)
        seen = Collision(lines[0], tuple(lines[1:]), ttft)
        wrong = wrong_prompts((line, seen.intruder)) or wrong_prompts(seen.streams)
        if wrong is not None:
            raise MeasurementError(f"{long_prompt.name} among {streams.name}: {wrong}")
        return seen

    def find_limit(
        self, workload: Asked, objectives: Sequence[Objective], *, requests: int, at_most: int
    ) -> list[Limit]:
        """How many users at a time each objective bears; levels measured before are used as they are.

        Args:
            workload: what each user asks.
            objectives: at least one.
            requests: of each level that is still to be measured.
            at_most: highest level that is measured.
        """
        self._warm_up(workload)
        known: list[LevelRun] = []
        try:
            while True:
                runs = {**self.searched, **self.levels}
                known = [run for level, run in runs.items() if level <= at_most]
                level = next_level(objectives, known, at_most=at_most)
                if level is None or level in runs:
                    break
                self.calibrate([level])
                self._visit(self.searched, workload, LevelPlan(level, 1, max(requests, 2 * level)))
        finally:  # also where a limit of the run ends the search: what it has found is told
            found = limits(objectives, known, at_most=at_most) if known else []
            self.found += found
        return found

    def find_rate(self, workload: Asked, objectives: Sequence[Objective], *, requests: int) -> list[Limit]:
        """How many requests a second, coming independently of each other, each objective bears.

        Begins at half of what a single user gets and ends at twice what all users together got, where no server
        keeps up; so levels must have been measured before.

        Args:
            workload: what each request asks.
            objectives: at least one.
            requests: of each rate.
        """
        single = self.levels[min(self.levels)]
        at_most = 2 * max(run.request_rate for run in self.levels.values())
        rng = np.random.default_rng([self.runner.seed, *b"rates"])
        while single.request_rate > 0:
            runs = list(self.rates.values())
            rate = next_rate(objectives, runs, first=single.request_rate / 2, at_most=at_most)
            if rate is None:
                break
            self._arrive(workload, rate, requests, rng)
        found = limits(objectives, list(self.rates.values()), at_most=at_most, single=single)
        self.found += found
        return found

    def _arrive(self, workload: Asked, rate: float, count: int, rng: np.random.Generator) -> None:
        """Requests at random moments at that mean rate, whether or not earlier ones were answered."""
        if self.say is not None:
            self.say(f"measuring {rate:.3g} requests/s: {count} requests in about {format_seconds(count / rate)}")
        shape = Shape(rate=Rate(rate, rate))
        offsets, requests = poisson(Rate(rate, rate), count, rng), tuple(self.requests(workload, count))
        view = self.runner.server_metrics
        counters = view.read()
        result, lines = self.drive(Job(self.runner.target, requests, None, offsets))
        if self.grown(result):
            self._arrive(workload, rate, count, rng)
            return
        cut = self.cut_off(result)
        if cut is not None:
            raise LimitReachedError(cut)
        run = self.level_run(rate, result, lines, shape)
        self.rates[rate] = replace(run, by_rate=True, server=view.since(counters))
        _refuse_partial(result, self.rates[rate])


BLOCK_OF_REQUESTS = 1_000_000
"""Numbers of prompts set aside for each run, so that no two runs share a prompt."""


def _refuse_partial(result: LoadResult, run: LevelRun) -> None:
    """Stop where the user stopped it, and where the server is gone."""
    if result.interrupted:
        raise KeyboardInterrupt
    if result.partial or server_gone(result):
        raise MeasurementError(f"{run.name}: {run.missed}")


def watched(health: ClientHealth) -> Watched:
    """What the client saw of itself, as the verdict uses it."""
    stamped = health.reads_stamped > 0
    return Watched(health.loop_lag_p99, health.read_wait_mean, stamped, health.cpu_share)


def _joined(before: LevelRun | None, after: LevelRun) -> LevelRun:
    if before is None:
        return after
    return replace(
        before,
        rounds=before.rounds + after.rounds,
        partial=before.partial or after.partial,
        missed=before.missed or after.missed,
        notes=tuple(dict.fromkeys(before.notes + after.notes)),
        sent_by=after.sent_by,
        client=joined(before.client, after.client),
        workloads={**before.workloads, **after.workloads},
        server=counted_together([before.server, after.server]),
    )
