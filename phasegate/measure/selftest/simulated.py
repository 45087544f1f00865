"""Sessions of the simulator without waiting: its model of time gives the moments, the product's own code the rest.

Plan, prompts, metrics and measurements are those of a real run; only the wire and the clock are left out. Requests
come one after another, as a lab sends them. The pass over HTTP (`measured`) covers what is skipped here.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone

import numpy as np

from phasegate.core.prompt import PromptWriter, calibrate_known
from phasegate.core.prompt_vocabulary import COMMON_WORDS
from phasegate.core.session import Measurement, Session
from phasegate.core.timeline import Channel, Expected, Timeline, TokenEvent
from phasegate.core.workload import Planned, Workload, plan_blocks
from phasegate.engines.simulator import words
from phasegate.engines.simulator.config import SimulatorConfig
from phasegate.engines.simulator.model import Arrival, Departure
from phasegate.engines.simulator.prefix_cache import block_keys
from phasegate.engines.simulator.timetable import simulate
from phasegate.measure.measure_session import METRICS
from phasegate.stats.workload_run import Measured, WorkloadRun
from phasegate.store.fingerprint import fingerprint_of

SPACING = 60.0
"""Simulated seconds between two requests: more than any of them takes, so that each has the engine to itself."""

FIRST_DAY = datetime(2000, 1, 1, tzinfo=timezone.utc)
"""When session 0 of a simulated series was; the others follow by the hour."""


def simulated_sessions(
    config: SimulatorConfig, workloads: Sequence[Workload], count: int, first: int = 0
) -> list[Session]:
    """Sessions ``first``, ``first + 1``, ... of one engine, each with a session effect of its own."""
    return [_session(config.changed(session=number), workloads) for number in range(first, first + count)]


def _session(config: SimulatorConfig, workloads: Sequence[Workload]) -> Session:
    plans = [(workload, _plan(workload, config)) for workload in workloads]
    prompts = [_prompts(workload, plan, config) for workload, plan in plans]
    arrivals = [
        Arrival(
            number, number * SPACING, len(tokens), planned.output_tokens, block_keys(tokens, config.cache_block_tokens)
        )
        for number, (planned, tokens) in enumerate(itertools.chain.from_iterable(prompts), 1)
    ]
    left = simulate(config, arrivals)
    numbers = iter(arrivals)
    rows: list[Measurement] = []
    for workload, plan in plans:
        lines = [_timeline(arrival, left[arrival.number]) for arrival in itertools.islice(numbers, len(plan))]
        measured = tuple(Measured(planned, line) for planned, line in zip(plan, lines, strict=True))
        rows += WorkloadRun(workload, measured).measurements(METRICS)
    server = {"engine": "simulator", "model": config.model, "hardware": "simulated", "settings": config.identifying()}
    at = FIRST_DAY + timedelta(hours=config.session)
    return Session(
        session_id=f"{at:%Y%m%dT%H%M%SZ}-selftest",
        recorded_at=at.isoformat(timespec="seconds"),
        measurements=tuple(rows),
        server=server,
        fingerprint=fingerprint_of(server),
        host="simulated",
    )


def _plan(workload: Workload, config: SimulatorConfig) -> list[Planned]:
    rng = np.random.default_rng([config.seed, config.session, *workload.name.encode()])
    return plan_blocks(workload, rng)


def _prompts(
    workload: Workload, plan: Sequence[Planned], config: SimulatorConfig
) -> list[tuple[Planned, tuple[str, ...]]]:
    """Each planned request with the tokens of its prompt, the chat template's included."""
    template = words.template(config.template_tokens)
    known = calibrate_known(COMMON_WORDS, lambda text: len(template) + len(words.tokenize(text)))
    writer = PromptWriter(known, config.seed, salt=f"{config.session}/{workload.name}")
    return [(planned, (*template, *words.tokenize(writer.write(planned, workload.shared_tokens)))) for planned in plan]


def _timeline(arrival: Arrival, left: Sequence[Departure]) -> Timeline:
    """The request as a client without any delay of its own would have seen it."""
    events = tuple(TokenEvent(one.at, Channel.CONTENT, "word", tokens=one.tokens) for one in left)
    return Timeline(
        request_id=f"r{arrival.number}", status="ok", error_kind=None, error_message=None, due=arrival.at,
        sent=arrival.at, connect_time=0.0, tokens=events, output_tokens=arrival.output_tokens, token_source="usage",
        output_tokens_estimate=None, prompt_tokens=arrival.prompt_tokens, cached_tokens=None, reasoning_tokens=None,
        finish_reason="length", choices=1, flags=(), malformed_events=0, first_byte=events[0].at,
        stream_end=events[-1].at, server_timings=None, model="simulated", sample_valid=True, expected=Expected(),
    )  # fmt: skip
