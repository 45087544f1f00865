"""Levels of load made to measure, and a small lab under load on the simulator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from phasegate.core.identity import client_identity
from phasegate.core.target import Target
from phasegate.core.timeline import Timeline
from phasegate.core.workload import Workload, parse_workload
from phasegate.engines.profile import profile_for
from phasegate.engines.simulator.config import SimulatorConfig
from phasegate.engines.simulator.engine import SimulatorEngine
from phasegate.measure.load_runner import LoadRunner
from phasegate.measure.session_runner import SessionRunner
from phasegate.stats.level_run import LevelRun, Round
from tests.timelines import failed, timeline

SPEED = 5.0
"""Simulated seconds in one real second: a token takes 1.6 ms, a prompt of 64 tokens 8 ms."""


def level_run(
    level: float, ttfts: Sequence[float], *, tpot: float = 0.01, failures: int = 0, **changes: Any
) -> LevelRun:
    """A level in one round with these TTFTs, all requests sent together."""
    lines = [timeline(ttft=ttft, tpot=tpot, request_id=f"r{i}") for i, ttft in enumerate(ttfts)]
    return replace(LevelRun(level, (Round((*lines, *[failed()] * failures)),)), **changes)


def with_server_prefill(run: LevelRun, seconds: float) -> LevelRun:
    """The same level on a server that tells how long its prefills took."""
    told: list[Timeline] = [replace(line, server_timings={"prompt_ms": seconds * 1e3}) for line in run.timelines]
    return replace(run, rounds=(Round(tuple(told)),))


def small(name: str, input_tokens: int, output_tokens: int, requests: int = 3) -> Workload:
    """A workload of one cell."""
    text = f"input_tokens: {input_tokens}\noutput_tokens: {output_tokens}\nrequests: {requests}\nwarmups: 1\n"
    return parse_workload(text, f"{name}.yaml")


@contextmanager
def load_lab_on(**settings: Any) -> Iterator[LoadRunner]:
    """A lab under load on a simulated server with those settings."""
    config = SimulatorConfig(seed=7, speed=SPEED).changed(**settings)
    with SimulatorEngine(config) as engine:
        target = Target(base_url=engine.base_url, model=engine.model, timeout=30.0, idle_timeout=10.0)
        server = engine.identity()
        yield LoadRunner(SessionRunner(engine, server, client_identity(), profile_for(server), target, seed=3))
