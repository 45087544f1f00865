"""Sessions: one sitting after another, each on a fresh engine where that can be had, each with its surroundings.

A session measures every workload once. Between sessions the engine is restarted and prompts are new, so that sessions
differ as builds differ: by start, by clock speed, by neighbour.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from typing import Any

from phasegate.core.metric import own_metrics
from phasegate.core.session import Measurement, Session
from phasegate.core.token_budget import NOTHING, spending_of
from phasegate.core.workload import Workload
from phasegate.engines.host_probe import HostReport
from phasegate.gate.client_growth import OWN_ERROR
from phasegate.measure.server_metrics import observed
from phasegate.measure.session_runner import SessionRunner
from phasegate.stats.workload_run import WorkloadRun
from phasegate.store.fingerprint import fingerprint_of

METRICS = ("ttft", "tpot", "e2el")
"""What a session stores of every cell, beside the metrics of the user's own."""

REPEATS = 2
"""How often a disturbed session is measured again before it is kept and marked."""


SENTINEL = Workload(
    name="sentinel",
    description="A frozen reference, measured in every session: what moves it moved the host.",
    input_tokens=(256,),
    output_tokens=(32,),
    requests=12,
    warmups=2,
    prefix="unique",
    shared_tokens=0,
    endpoint=None,
)
"""What is asked of a sentinel. Its name begins as the policy's ``sentinel`` glob says."""


@dataclass(frozen=True, slots=True)
class MeasuredSession:
    """A session with the lab that measured it.

    Attributes:
        session: what is stored and judged.
        lab: where it was measured; its runs hold every request.
        surroundings: of the engine's host; None where the engine runs elsewhere.
    """

    session: Session
    runner: SessionRunner
    surroundings: HostReport | None


def sit(
    runner: SessionRunner,
    workloads: Sequence[Workload],
    *,
    fresh: bool = True,
    say: Callable[[str], None] | None = None,
    repeats: int = REPEATS,
) -> MeasuredSession:
    """Measure every workload in a new session; again where the host was disturbed, at most ``repeats`` times.

    ``fresh=False`` goes on with the lab as it is: what it has measured already counts as this session.

    A repetition must leave room for what the run has planned besides.

    Raises:
        MeasurementError, CalibrationError: as `SessionRunner.measure`.
        LimitReachedError: the run's time or tokens were used up before the session was whole.
    """
    for attempt in range(repeats + 1):
        current = runner.renewed() if fresh or attempt else runner
        measured_session = _sit_once(current, workloads)
        if measured_session.session.disturbed is None or attempt == repeats:
            return measured_session
        if (
            runner.traffic.why_not_more(sum((spending_of(one, runner.requests) for one in workloads), NOTHING))
            is not None
        ):
            return measured_session
        if say is not None:
            say(f"measuring the session again: {measured_session.session.disturbed}")
    raise AssertionError("unreachable")


def _sit_once(runner: SessionRunner, workloads: Sequence[Workload]) -> MeasuredSession:
    runs = [runner.measure_whole(workload) for workload in workloads]
    if runner.sentinel is not None:
        # Renewed for its prompts: the reference still has those of the last session in its cache.
        runner.sentinel = runner.sentinel.renewed(restart=False)
        runs.append(runner.sentinel.measure_whole(SENTINEL))
    surroundings = runner.watch.report() if runner.watch is not None else None
    return MeasuredSession(session_of(runner, runs, surroundings), runner, surroundings)


def session_of(runner: SessionRunner, runs: Sequence[WorkloadRun], surroundings: HostReport | None) -> Session:
    """The session that these runs are."""
    now = datetime.now(timezone.utc)
    server = server_facts(runner)
    told = (
        observed(runner.server_metrics, [run for run in runs if run.workload.name in runner.runs])
        if runner.runs
        else {}
    )
    measurements: list[Measurement] = [one for run in runs for one in run.measurements(_names())]
    client = {**asdict(runner.client), "seed": runner.seed}
    if runner.calibrations.known:
        client[OWN_ERROR] = runner.calibrations.as_json()
    if surroundings is not None:
        client["surroundings"] = asdict(surroundings)
    return Session(
        session_id=f"{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}",
        recorded_at=now.isoformat(timespec="seconds"),
        measurements=tuple(measurements),
        # Not part of the fingerprint: it is what was measured, not what was measured on.
        server={**server, "observed": told} if told else server,
        client=client,
        fingerprint=fingerprint_of(server),
        host=runner.server.host,
        disturbed=surroundings.disturbance() if surroundings is not None else None,
    )


def _names() -> tuple[str, ...]:
    return (*METRICS, *(metric.short for metric in own_metrics()))


def server_facts(runner: SessionRunner) -> dict[str, Any]:
    """The server's facts as sessions keep them; unknown facts are left out."""
    told = runner.server
    return {
        "engine": told.engine,
        "engine_version": told.version,
        "model": told.model,
        "hardware": None if told.hardware == "unknown" else told.hardware,
        "settings": dict(told.settings),
        "sources": dict(told.sources),
    }
