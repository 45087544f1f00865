"""The lab: runs workloads against one engine and keeps what came back.

One lab is one session. It knows how to write prompts for its engine (calibration), how to ask for an exact output
length (the engine's profile), and it measures each workload once, however many tests ask for it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from phasegate.core.identity import ClientIdentity, ServerIdentity
from phasegate.core.metric import metric_named
from phasegate.core.prompt import Calibration, PromptWriter, UncountableError, calibrate, calibrate_known, seed_of
from phasegate.core.prompt_vocabulary import COMMON_WORDS
from phasegate.core.request import Request
from phasegate.core.target import Target
from phasegate.core.timeline import Expected, Recording, Timeline
from phasegate.core.token_budget import LimitReachedError
from phasegate.core.workload import Planned, Workload, plan_blocks, plan_warmups
from phasegate.engines.base import Engine
from phasegate.engines.cache_mark import content, too_short_reason, unmarked_reason, why_not_marked
from phasegate.engines.host_probe import HostWatch, watch_host
from phasegate.engines.metrics.page import MetricsPages
from phasegate.engines.profile import EngineProfile
from phasegate.load.driving import LoadResult, OnDone
from phasegate.load.health import no_garbage_collection
from phasegate.load.rate_limit import RateLimit, run_within_rate_limit
from phasegate.load.traffic import Traffic
from phasegate.measure.own_error import Calibrations
from phasegate.measure.prompt_counting import CountingError, count_tokens
from phasegate.measure.server_metrics import ServerMetrics
from phasegate.stats.counters import counted_together
from phasegate.stats.first_token import Overheads
from phasegate.stats.workload_run import Measured, WorkloadRun, usable_value
from phasegate.wire.decoding import decode

SEED_STEP = 0x9E3779B9
"""From the seed of one session to that of the next: large and odd, so that neighbouring seeds of users never meet."""


class MeasurementError(RuntimeError):
    """Measuring cannot go on. The message is one line that says what happened and what to do."""


class Progress(Protocol):
    """Told about every request as it ends.

    Attributes:
        shows_ttft: whether it shows the running median, for which answers are decoded between requests.
    """

    @property
    def shows_ttft(self) -> bool:
        """See above."""

    def __call__(self, workload: str, done: int, planned: int, ttft_p50: float | None) -> None:
        """``done`` of ``planned`` requests have ended; ``ttft_p50`` is the running median in seconds, if known."""


@dataclass
class SessionRunner:
    """One session of measuring against one engine.

    Attributes:
        engine: a started engine.
        server: who the engine says it is, asked when it started.
        client: this machine and process, as they measure.
        profile: how to talk to the engine.
        target: where requests go and how long they may take.
        seed: decides orders and arrivals; differs between runs unless the user fixes it.
        nonce: of this run alone: no prompt of another run has the words of this one's, whatever the seed.
        endpoint: the endpoint for workloads that name none.
        mark_prefix: whether requests of workloads that share beginnings mark them for caching.
        requests: overrides the repetitions of every workload; None leaves them.
        progress: told about every request, or None.
        sentinel: the lab of a frozen reference that is measured in every session, or None.
        watch: looks after the engine's host since this session began; None where the engine runs elsewhere.
        plan: how a budget of time was divided, in one sentence, for the report; None without a budget.
        traffic: counts what is sent and ends it at the user's limits; shared by everything this run opens.
        patience: waits where the server limits the rate.
        calibrations: the client's own error, as far as it was measured; shared by all sessions of a run.
        metrics_urls: metrics pages of the workers behind the server, to read instead of its own; none for its own.
        key_name: the variable that holds the key, for messages.
        warnings: what a reader must know of the server, a line each.
        least_answers: endpoint -> the lowest output limit that the server is known to accept.
    """

    engine: Engine
    server: ServerIdentity
    client: ClientIdentity
    profile: EngineProfile
    target: Target
    seed: int
    nonce: str = ""
    endpoint: str = "chat"
    mark_prefix: bool = False
    requests: int | None = None
    progress: Progress | None = None
    sentinel: SessionRunner | None = None
    watch: HostWatch | None = None
    plan: str | None = None
    traffic: Traffic = field(default_factory=Traffic)
    rate_limit: RateLimit = field(default_factory=RateLimit)
    calibrations: Calibrations = field(default_factory=Calibrations)
    metrics_urls: tuple[str, ...] = field(default=(), repr=False)
    key_name: str = "OPENAI_API_KEY"
    warnings: tuple[str, ...] = ()
    least_answers: dict[str, int] = field(default_factory=dict)
    runs: dict[str, WorkloadRun] = field(default_factory=dict)
    _calibrations: dict[str, Calibration | UncountableError] = field(default_factory=dict)
    _overheads: dict[str, Overheads | None] = field(default_factory=dict)
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    @cached_property
    def server_metrics(self) -> ServerMetrics:
        """What the server tells about itself; what its requests cost is learnt once for all sessions of a run."""
        key, headers = self.profile.asking(self.engine.api_key)
        door = MetricsPages(self.engine.base_url, self.server.engine, key, self.metrics_urls, headers)
        return ServerMetrics(door, self._overheads)

    @property
    def prompt_seed(self) -> int:
        """Decides the words of prompts. A server that lives longer than a run may have those of the last one in a cache
        that it does not report, so they are new even where the seed is not."""
        return seed_of(self.seed, self.nonce)

    def measure(self, workload: Workload) -> WorkloadRun:
        """What the workload measures on this engine; measured at the first call, remembered after.

        Where a limit of the run ends it early, it comes back with what was measured until then.

        Raises:
            MeasurementError: the server refuses the workload or too much of the run failed to be judged.
            CalibrationError: prompts of the wanted length cannot be written.
            LimitReachedError: the run's time or tokens are used up, and nothing of it was measured.
            KeyboardInterrupt: the user stopped; what was measured until then is kept in ``runs``.
        """
        done = self._measured(workload)
        if done.cut and not done.measured:
            raise LimitReachedError(f"{workload.name}: nothing was measured: {done.cut}")
        problem = done.problem()
        if problem is not None:
            raise MeasurementError(problem)
        return done

    def _measured(self, workload: Workload) -> WorkloadRun:
        done = self.runs.get(workload.name)
        if done is None:
            done = self.runs[workload.name] = self._run(self._resolved(workload))
        if done.partial:
            raise KeyboardInterrupt
        return done

    def measure_whole(self, workload: Workload) -> WorkloadRun:
        """As `measure`, for sessions, which hold every planned request or none.

        Raises:
            MeasurementError, CalibrationError, KeyboardInterrupt: as `measure`.
            LimitReachedError: the run's time or tokens were used up before its end.
        """
        run = self.measure(workload)
        if run.cut is not None:
            raise LimitReachedError(run.cut)
        return run

    def visit(self, workloads: Sequence[Workload]) -> list[WorkloadRun]:
        """Measure workloads of which more is measured later: one unfit answer among so few is no problem yet.

        Raises:
            MeasurementError: the server refuses a workload, or not one request of the visit ended well.
            CalibrationError, KeyboardInterrupt: as `measure`.
            LimitReachedError: as `measure_whole`.
        """
        runs = []
        with no_garbage_collection():  # once, and not before each of many short runs
            for workload in workloads:
                run = self._measured(workload)
                if run.cut is not None:
                    raise LimitReachedError(run.cut)
                runs.append(run)
        if not any(line.status == "ok" for run in runs for line in run.timelines()):
            raise MeasurementError(next(filter(None, (run.problem() for run in runs)), "nothing was measured"))
        return runs

    def extend(self, workload: Workload) -> WorkloadRun:
        """Measure a workload that is measured already as often again, with new prompts, and remember both.

        Raises:
            MeasurementError, CalibrationError, KeyboardInterrupt: as `measure`.
        """
        done = self.measure(workload)
        assert done.workload.endpoint is not None
        writer = PromptWriter(self.calibration(done.workload.endpoint), self.prompt_seed)
        first = 1 + max(one.planned.block for one in done.measured)
        rng = np.random.default_rng([self.seed, first, *workload.name.encode()])
        before, disturbance = self.server_metrics.read(), self._watched()
        result, more, cut = self._send(done.workload, plan_blocks(done.workload, rng, first), writer)
        server = counted_together([done.server, self.server_metrics.since(before)])
        self.runs[workload.name] = replace(
            done,
            measured=(*done.measured, *more),
            partial=result.interrupted,
            cut=cut,
            gone=result.server_gone,
            notes=tuple(dict.fromkeys([*done.notes, *result.health.warnings()])),
            server=server,
            disturbed=done.disturbed or disturbance(),
        )
        return self.measure(workload)

    def renewed(self, *, restart: bool = True) -> SessionRunner:
        """The lab of a next session: a fresh engine where it can be had, new prompts, nothing measured yet.

        ``restart=False`` keeps the engine as it runs, for the blocks of one sitting.
        """
        if restart and self.engine.can_restart:
            self.engine.restart()
        return replace(
            self,
            target=replace(self.target, base_url=self.engine.base_url),
            seed=(self.seed + SEED_STEP) % 2**63,
            watch=watch_host(self.server),
            runs={},
        )

    def follow_engine(self) -> None:
        """Go on at the engine's present address: later sessions, with labs of their own, may have restarted it."""
        if self.engine.can_restart:
            self.target = replace(self.target, base_url=self.engine.base_url)
            self.__dict__["server_metrics"] = replace(self).server_metrics

    def _resolved(self, workload: Workload) -> Workload:
        """The workload with its open ends filled in: endpoint, repetitions, and whether its requests are marked."""
        endpoint, marked = workload.endpoint or self.endpoint, self.mark_prefix and workload.prefix != "unique"
        problem = why_not_marked(self.profile, endpoint) if marked else None
        if problem is not None:
            raise MeasurementError(f"{workload.name}: {problem}")
        return replace(workload.with_requests(self.requests), endpoint=endpoint, mark_prefix=marked)

    def _run(self, workload: Workload) -> WorkloadRun:
        assert workload.endpoint is not None
        writer = PromptWriter(self.calibration(workload.endpoint), self.prompt_seed)
        rng = np.random.default_rng([self.seed, *workload.name.encode()])
        warmups = self._warmed_up(workload, writer)
        plan = plan_blocks(workload, rng)
        before, disturbance = self.server_metrics.read(), self._watched()
        result, measured, cut = self._send(workload, plan, writer)
        run = WorkloadRun(
            workload=workload,
            measured=tuple(measured),
            warmups=warmups,
            partial=result.interrupted,
            cut=cut,
            gone=result.server_gone,
            notes=result.health.warnings(),
            server=self.server_metrics.since(before),
            disturbed=disturbance(),
            **self._known_misses(workload),
        )
        if not (run.partial or run.gone):
            self.server_metrics.learn(self, workload.endpoint, run.timelines())
        return run

    def _watched(self) -> Callable[[], str | None]:
        """Look after the engine's host from now on; what this gives tells what disturbed it until then, if it knows."""
        watch = self.watch
        if watch is None:
            return lambda: None
        began = watch.mark()
        return lambda: watch.disturbed_since(began)

    def _known_misses(self, workload: Workload) -> dict[str, str]:
        """Why nothing that these requests share can be cached, as far as the profile knows; see `WorkloadRun`."""
        if workload.prefix == "unique" or workload.endpoint is None:
            return {}
        tokens = workload.shared_tokens or max(workload.input_tokens)
        return {
            "unmarked": unmarked_reason(self.profile, workload.endpoint, marked=workload.mark_prefix),
            "too_short": too_short_reason(self.profile, tokens),
        }

    def calibration(self, endpoint: str) -> Calibration:
        """How prompts of exact length are written for an endpoint of this engine; measured once, or refused once."""
        known = self._calibrations.get(endpoint)
        if known is None:
            try:
                known = self._calibrated(endpoint)
            except UncountableError as error:
                known = error
            self._calibrations[endpoint] = known
        if isinstance(known, UncountableError):
            raise known
        return known

    def _calibrated(self, endpoint: str) -> Calibration:
        words, count = self.engine.words, self._counter(endpoint)
        with no_garbage_collection():  # once, and not before each of some dozen requests
            return calibrate_known(words, count) if words else calibrate(COMMON_WORDS, count)

    def _counter(self, endpoint: str) -> Callable[[str], int]:
        """Counts prompt tokens by asking."""

        def count(prompt: str) -> int:
            try:
                return count_tokens(self, prompt, endpoint)
            except CountingError as error:
                raise MeasurementError(str(error)) from None

        return count

    def fresh_requests(
        self, endpoint: str, input_tokens: int, output_tokens: int, count: int, *, name: str = "probe", first: int = 0
    ) -> list[Request]:
        """Requests outside any workload, each with a prompt of that many tokens that no other name and number has."""
        workload = Workload(name, "", (input_tokens,), (output_tokens,), count, 0, "unique", 0, endpoint)
        writer = PromptWriter(self.calibration(endpoint), self.prompt_seed)
        plan = plan_blocks(workload, np.random.default_rng(self.seed), first)
        return [self._planned_request(planned, workload, writer) for planned in plan]

    def requests_for(self, plan: Sequence[tuple[Workload, Planned]]) -> list[Request]:
        """The requests of a plan over several workloads, in its order; prompts as the plan's keys say."""
        writers: dict[str, PromptWriter] = {}
        requests = []
        for workload, planned in plan:
            resolved = self._resolved(workload)
            assert resolved.endpoint is not None
            known = self.calibration(resolved.endpoint)
            writer = writers.setdefault(resolved.endpoint, PromptWriter(known, self.prompt_seed))
            requests.append(self._planned_request(planned, resolved, writer))
        return requests

    def prompt_line(self) -> str:
        """How prompts were written, in one line, for the report."""
        return (
            "; ".join(
                f"{endpoint}: {known.how}, template {known.overhead} tokens"
                for endpoint, known in self._calibrations.items()
                if isinstance(known, Calibration)
            )
            or "none written"
        )

    def send_one(self, prompt: str, expected: Expected, output_tokens: int) -> Timeline:
        """Send a single request outside any workload and understand the answer."""
        result, lines, cut = self.send([self.request(prompt, expected, output_tokens)])
        if cut is not None and not lines:
            raise LimitReachedError(cut)
        if result.interrupted:
            raise KeyboardInterrupt
        return lines[0]

    def send(
        self, requests: Sequence[Request], *, on_done: OnDone | None = None
    ) -> tuple[LoadResult, list[Timeline], str | None]:
        """Send requests one at a time, as many as the run's limits allow.

        Returns the result, its answers understood, and which limit ended it before the last request, or None.
        """
        count, cut = self.traffic.allowed(requests)
        result = run_within_rate_limit(
            self.target, requests[:count], self.rate_limit, on_done=on_done, stop=self.traffic.out_of_time
        )
        lines = [decode(recording, self.target.api_key) for recording in result.recordings]
        self.traffic.count(lines, alone=True)
        if len(lines) < count and not (result.interrupted or result.server_gone):
            cut = self.traffic.why_not()
        return result, lines, cut

    def warm_up(self, requests: Sequence[Request]) -> list[Timeline]:
        """Send requests that only warm the server, and understand their answers, good ones or not.

        Raises:
            KeyboardInterrupt: the user stopped.
        """
        result, lines, _ = self.send(requests)
        if result.interrupted:
            raise KeyboardInterrupt
        return lines

    def request(self, prompt: str, expected: Expected, output_tokens: int, reusable: int = 0) -> Request:
        """The request for a prompt, in the engine's dialect; its first ``reusable`` characters marked for caching."""
        body: dict[str, object] = dict(self.profile.request_extras(expected.endpoint, output_tokens))
        if expected.endpoint != "ollama":  # whose temperature is one of its options
            body["temperature"] = 0
        if expected.endpoint == "completions":
            body["prompt"] = prompt
        else:
            said = content(prompt, reusable, self.profile.cache_mark.get(expected.endpoint))
            body["messages"] = [{"role": "user", "content": said}]
        return Request(f"r{next(self._numbers)}", expected.endpoint, self.profile.allowed(body), expected)

    def _planned_request(self, planned: Planned, workload: Workload, writer: PromptWriter) -> Request:
        assert workload.endpoint is not None
        expected = Expected(
            endpoint=workload.endpoint,
            max_tokens=planned.output_tokens,
            output_tokens=planned.output_tokens if self.profile.forces_length(workload.endpoint) else None,
            prompt_tokens=planned.input_tokens,
            cold_prompt=planned.cold,
            # The template's own tokens stand at the start of every prompt and are always cached, and the first
            # word may come up again; neither is what makes a prompt warm.
            tolerated_cached_tokens=writer.calibration.overhead + 1,
        )
        beginning, rest = writer.parts(planned, workload.shared_tokens)
        # All requests of such a workload are marked alike, so that what marking costs falls on each of them.
        reusable = len(beginning) if workload.mark_prefix else 0
        return self.request(beginning + rest, expected, planned.output_tokens, reusable)

    def _warmed_up(self, workload: Workload, writer: PromptWriter) -> tuple[Measured, ...]:
        plan = plan_warmups(workload)
        lines = self.warm_up([self._planned_request(planned, workload, writer) for planned in plan])
        return tuple(Measured(planned, line) for planned, line in zip(plan, lines, strict=False))

    def _send(
        self, workload: Workload, plan: Sequence[Planned], writer: PromptWriter
    ) -> tuple[LoadResult, list[Measured], str | None]:
        requests = [self._planned_request(planned, workload, writer) for planned in plan]
        watcher = _Watcher(self.progress, workload.name, len(plan)) if self.progress is not None else None
        result, lines, cut = self.send(requests, on_done=watcher)
        # A stopped run has fewer recordings than the plan has requests.
        return result, [Measured(p, line) for p, line in zip(plan, lines, strict=False)], cut


@dataclass
class _Watcher:
    """Turns finished recordings into progress, between requests and not inside one."""

    progress: Progress
    workload: str
    planned: int
    done: int = 0
    ttfts: list[float] = field(default_factory=list)

    def __call__(self, place: int, recording: Recording) -> None:
        self.done = place + 1
        if not self.progress.shows_ttft:
            self.progress(self.workload, self.done, self.planned, None)
            return
        value = usable_value(decode(recording), metric_named("ttft"))
        if value is not None:
            self.ttfts.append(value)
        median = float(np.median(self.ttfts)) if self.ttfts else None
        self.progress(self.workload, self.done, self.planned, median)
