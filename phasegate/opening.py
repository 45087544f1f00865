"""Opening a lab: start or attach the engine that the user named, and make everything ready to measure it."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from phasegate.engines.attached import AttachedEngine
from phasegate.engines.base import Engine, EngineError
from phasegate.engines.embedded import EmbeddedEngine, client_cores
from phasegate.engines.embedded_config import parse_config
from phasegate.engines.host_probe import watch_host
from phasegate.engines.identity import client_identity
from phasegate.engines.profile import profile_for
from phasegate.engines.simulator.config import SimulatorConfig, SimulatorConfigError
from phasegate.engines.simulator.engine import SimulatorEngine
from phasegate.lab import Lab
from phasegate.load.target import Target


@dataclass(frozen=True, slots=True)
class Opening:
    """What the user said about the engine and the run.

    Attributes:
        base_url: of a server that runs already, or None to start one.
        model: the model to ask for, or None to take the only one there is.
        engine: ``"embedded"`` or ``"simulator"``; counts only without ``base_url``.
        engine_model: weights of the embedded engine, or None for the generated ones.
        engine_config: settings of the started engine as ``key=value`` words.
        endpoint: endpoint of workloads that name none.
        requests: overrides the repetitions of every workload; None leaves them.
        hardware: what the user says the server runs on, or None.
        seed: of prompts and order.
        timeout, idle_timeout: seconds.
    """

    base_url: str | None
    model: str | None = None
    engine: str = "embedded"
    engine_model: str | None = None
    engine_config: str = ""
    endpoint: str = "chat"
    requests: int | None = None
    hardware: str | None = None
    seed: int = 0
    timeout: float = 120.0
    idle_timeout: float = 60.0


def opening_for_probe(args: argparse.Namespace, base_url: str | None, seed: int) -> Opening:
    """The opening that ``phasegate probe`` asks for."""
    return Opening(
        base_url=base_url,
        model=args.model,
        endpoint=args.endpoint,
        seed=seed,
        timeout=args.timeout,
        idle_timeout=args.idle_timeout,
    )


@contextmanager
def open_lab(opening: Opening, say: Callable[[str], None] | None = None) -> Iterator[Lab]:
    """A lab on a started engine. A started engine is stopped when the context ends, however it ends.

    ``say`` is told what is being done, for a live line.

    Raises:
        EngineError: the engine cannot be started or reached; one line with the remedy.
    """
    engine = _engine(opening)
    if say is not None:
        say("starting the engine" if engine.can_restart else "looking for the server")
    own_cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    engine.start()
    try:
        if isinstance(engine, EmbeddedEngine) and client_cores():
            # The engine has a core of its own; the client keeps off it. The simulator has none: its restarts would
            # inherit the client's cores and share them with it.
            os.sched_setaffinity(0, client_cores())
        server = engine.identity()
        yield Lab(
            engine=engine,
            server=server,
            client=client_identity(),
            profile=profile_for(server),
            target=Target(
                base_url=engine.base_url,
                model=engine.model,
                api_key=engine.api_key,
                timeout=opening.timeout,
                idle_timeout=opening.idle_timeout,
            ),
            seed=opening.seed,
            endpoint=opening.endpoint,
            requests=opening.requests,
            watch=watch_host(server),
        )
    finally:
        if own_cores is not None:
            os.sched_setaffinity(0, own_cores)
        engine.stop()


def check_engine(opening: Opening) -> None:
    """Refuse settings that no engine could be started with, before anything is.

    Raises:
        EngineError: one line naming the setting, where it came from and what is allowed.
    """
    _engine(opening)


def _engine(opening: Opening) -> Engine:
    """The engine, not started yet."""
    if opening.base_url:
        return AttachedEngine(opening.base_url, opening.model, os.environ.get("OPENAI_API_KEY"), opening.hardware)
    if opening.engine == "simulator":
        try:
            return SimulatorEngine(SimulatorConfig.from_words(opening.engine_config))
        except SimulatorConfigError as error:
            raise EngineError(f"--perf-engine-config: {error}") from None
    config = parse_config(opening.engine_config, source="--perf-engine-config")
    if opening.engine_model is not None:
        config = replace(config, model=opening.engine_model)
    return EmbeddedEngine(config)
