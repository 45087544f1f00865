"""Connect: start or attach the engine that the user named, and make everything ready to measure it."""

from __future__ import annotations

import argparse
import os
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from phasegate.core.identity import client_identity
from phasegate.engines.address import Address, address_of, target_at
from phasegate.engines.ask import same_server
from phasegate.engines.attached import AttachedEngine
from phasegate.engines.base import Engine, EngineError
from phasegate.engines.cache_mark import why_not_marked
from phasegate.engines.embedded import EmbeddedEngine, client_cores
from phasegate.engines.embedded_config import parse_config
from phasegate.engines.host_probe import watch_host
from phasegate.engines.managed.engine import ManagedEngine, ManagedSettings
from phasegate.engines.managed.kinds import KINDS
from phasegate.engines.profile import EngineProfile, profile_for
from phasegate.engines.profile_book import FOLDER
from phasegate.engines.simulator.config import SimulatorConfig, SimulatorConfigError
from phasegate.engines.simulator.engine import SimulatorEngine
from phasegate.load.rate_limit import RateLimit
from phasegate.load.traffic import Traffic
from phasegate.measure.session_runner import SessionRunner


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """What the user said about the engine and the run.

    Attributes:
        base_url: of a server that runs already, or None to start one.
        model: the model to ask for, or None to take the only one there is.
        engine: ``"embedded"``, ``"simulator"`` or a managed engine to start; with a ``base_url`` the name of the
            profile to talk to it in, and ``"auto"`` (or the default, ``"embedded"``) to find out.
        profiles: folder of the project's own engine profiles.
        engine_model: weights of the started engine, or None for the generated ones.
        engine_config: settings of the embedded engine or the simulator as ``key=value`` words.
        engine_args: arguments of a managed engine's server, as in a shell.
        engine_python: interpreter of the environment that a managed engine is installed in, or None to look for it.
        endpoint: endpoint of workloads that name none.
        mark_prefix: whether requests mark the beginnings that their workload shares, for caching.
        requests: overrides the repetitions of every workload; None leaves them.
        hardware: what the user says the server runs on, or None.
        seed: of orders and arrivals; the words of prompts are new each time a lab is opened.
        timeout, idle_timeout: seconds.
        own_engine: makes an engine of the user's own for the name in ``engine``, or gives None where it is not theirs.
        traffic: of the whole run: counts what is sent and ends it at the user's limits.
        metrics_urls: metrics pages of the workers behind the server, to read instead of its own; none for its own.
        own_key: environment variable for the key of a server that is not the one at the run's base URL; None for that
            one, whose key is found by its address.
    """

    base_url: str | None
    model: str | None = None
    engine: str = "embedded"
    profiles: Path = FOLDER
    engine_model: str | None = None
    engine_config: str = ""
    engine_args: str = ""
    engine_python: str | None = None
    endpoint: str = "chat"
    mark_prefix: bool = False
    requests: int | None = None
    hardware: str | None = None
    seed: int = 0
    timeout: float = 120.0
    idle_timeout: float = 60.0
    own_engine: Callable[[], Engine | None] | None = None
    traffic: Traffic = field(default_factory=Traffic)
    metrics_urls: tuple[str, ...] = field(default=(), repr=False)
    own_key: str | None = None


def with_settings(engine_options: EngineOptions, settings: str) -> EngineOptions:
    """The opening of another engine of the same kind with these settings, which are arguments where it is managed."""
    if engine_options.engine in KINDS:
        return replace(engine_options, base_url=None, engine_args=settings)
    return replace(engine_options, base_url=None, engine_config=settings)


STARTED_ONLY = ("engine_model", "engine_config", "engine_args", "engine_python")
"""Settings that only an engine which is started can take."""


def refuse_unused(engine_options: EngineOptions, prefix: str, but: Iterable[str] = ()) -> None:
    """Refuse settings of an engine to be started where a running server is measured: nothing would come of them.

    Args:
        prefix: of the command's options, ``"--"`` or ``"--perf-"``.
        but: of `STARTED_ONLY`, what another engine of the run is started with.

    Raises:
        EngineError: one line naming the option.
    """
    given = [name for name in STARTED_ONLY if getattr(engine_options, name) and name not in but]
    if engine_options.base_url and given:
        raise EngineError(
            f"{prefix}{given[0].replace('_', '-')} is for an engine that is started, and here a running server is "
            f"measured ({prefix}base-url or OPENAI_BASE_URL); leave one of them out"
        )


def options_for_probe(args: argparse.Namespace, base_url: str | None, seed: int) -> EngineOptions:
    """The opening that ``phasegate probe`` asks for."""
    return EngineOptions(
        base_url=base_url,
        model=args.model,
        endpoint=args.endpoint,
        seed=seed,
        timeout=args.timeout,
        idle_timeout=args.idle_timeout,
    )


@contextmanager
def connect(engine_options: EngineOptions, say: Callable[[str], None] | None = None) -> Iterator[SessionRunner]:
    """A lab on a started engine. A started engine is stopped when the context ends, however it ends.

    ``say`` is told what is being done, for a live line.

    Raises:
        EngineError: the engine cannot be started or reached; one line with the remedy.
    """
    engine = _engine(engine_options)
    if say is not None:
        say("starting the engine" if engine.can_restart else "looking for the server")
    own_cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    engine.start()
    try:
        left = _cores_left(engine)
        if left:
            os.sched_setaffinity(0, left)
        server = engine.identity()
        profile = engine.profile if isinstance(engine, AttachedEngine) else profile_for(server)
        _check_endpoint(engine_options.endpoint, profile)
        cannot = why_not_marked(profile, engine_options.endpoint) if engine_options.mark_prefix else None
        if cannot is not None:
            raise EngineError(cannot)
        yield SessionRunner(
            engine=engine,
            server=server,
            client=client_identity(),
            profile=profile,
            target=target_at(
                engine.base_url,
                profile,
                engine.model,
                engine.api_key,
                timeout=engine_options.timeout,
                idle_timeout=engine_options.idle_timeout,
                azure=engine.azure if isinstance(engine, AttachedEngine) else None,
            ),
            seed=engine_options.seed,
            nonce=secrets.token_hex(8),
            endpoint=engine_options.endpoint,
            mark_prefix=engine_options.mark_prefix,
            requests=engine_options.requests,
            watch=watch_host(server),
            traffic=engine_options.traffic,
            rate_limit=RateLimit(time_left=lambda: engine_options.traffic.time_left),
            metrics_urls=engine_options.metrics_urls,
            **_told_by(engine),
        )
    finally:
        if own_cores is not None:
            os.sched_setaffinity(0, own_cores)
        engine.stop()


def _told_by(engine: Engine) -> dict[str, Any]:
    """What only a server that is found running needs to say."""
    return {"key_name": engine.key_name, "warnings": engine.warnings} if isinstance(engine, AttachedEngine) else {}


def one_server(runner: SessionRunner, other: SessionRunner) -> str | None:
    """One line where two labs measure the same model of one server, so that no difference can come from it; or None."""
    here, there = runner.target.base_url, other.target.base_url
    same_path = urlsplit(here).path.rstrip("/") == urlsplit(there).path.rstrip("/")
    if runner.target.model != other.target.model or not (same_path and same_server(here, there)):
        return None
    return (
        f"candidate and reference are one server ({other.target.base_url}): this shows what the comparison makes of no "
        "change at all"
    )


def check_engine(engine_options: EngineOptions) -> EngineOptions:
    """Refuse settings that no engine could be started with, before anything is.

    Returns the opening to start from: an engine of the user's own is not made a second time for its first start.

    Raises:
        EngineError: one line naming the setting, where it came from and what is allowed.
    """
    make = engine_options.own_engine
    if make is None or engine_options.base_url:
        _engine(engine_options)
        return engine_options
    own = make()
    if own is None:
        _engine(replace(engine_options, own_engine=None))
        return replace(engine_options, own_engine=None)
    waiting = [own]
    return replace(engine_options, own_engine=lambda: waiting.pop() if waiting else make())


def _cores_left(engine: Engine) -> list[int]:
    """The cores for the client where the engine has others of its own; empty where it stays as it is.

    The simulator has none: its restarts would inherit the client's cores and share them with it.
    """
    if isinstance(engine, ManagedEngine):
        return engine.client_cores
    return client_cores() if isinstance(engine, EmbeddedEngine) else []


def _engine(engine_options: EngineOptions) -> Engine:
    """The engine, not started yet."""
    own = engine_options.own_engine() if engine_options.own_engine is not None and not engine_options.base_url else None
    if own is not None:
        return own
    if engine_options.base_url:
        at = address_for(engine_options)
        return AttachedEngine(
            engine_options.base_url, engine_options.model, os.environ.get(at.key_name), engine_options.hardware, at
        )
    if engine_options.engine == "auto":
        raise EngineError("--perf-engine auto finds out what a running server is; say where it is with --perf-base-url")
    if engine_options.engine in KINDS:
        return _managed(engine_options)
    if engine_options.engine_args or engine_options.engine_python:
        raise EngineError(
            f"--perf-engine-args and --perf-engine-python are for {', '.join(KINDS)}; "
            f"the engine {engine_options.engine} takes --perf-engine-config"
        )
    if engine_options.engine == "simulator":
        try:
            return SimulatorEngine(SimulatorConfig.from_words(engine_options.engine_config))
        except SimulatorConfigError as error:
            raise EngineError(f"--perf-engine-config: {error}") from None
    if engine_options.engine != "embedded":
        raise EngineError(
            f"--perf-engine {engine_options.engine!r} cannot be started; these can: embedded, simulator, "
            f"{', '.join(KINDS)}. Other names say what a running server is, beside --perf-base-url"
        )
    config = parse_config(engine_options.engine_config, source="--perf-engine-config")
    if engine_options.engine_model is not None:
        config = replace(config, model=engine_options.engine_model)
    return EmbeddedEngine(config)


def address_for(engine_options: EngineOptions) -> Address:
    """What is known of the server at the opening's address before it is asked.

    Raises:
        EngineError: no such engine, or an address or a profile that cannot be used; one line.
    """
    assert engine_options.base_url
    return address_of(
        engine_options.base_url, engine_options.engine, engine_options.profiles, os.environ, engine_options.own_key
    )


def _check_endpoint(endpoint: str, profile: EngineProfile) -> None:
    if endpoint not in profile.endpoints:
        raise EngineError(
            f"{profile.title or profile.name} is known to have no {endpoint} endpoint; use --perf-endpoint "
            f"{' or '.join(profile.endpoints)}, or a profile of your own in {FOLDER}"
        )


def _managed(engine_options: EngineOptions) -> ManagedEngine:
    if engine_options.engine_config:
        raise EngineError(
            f"--perf-engine-config is for the embedded engine and the simulator; give {engine_options.engine} its own "
            "arguments with --perf-engine-args"
        )
    settings = ManagedSettings(
        engine_options.engine_args, engine_options.engine_model, engine_options.engine_python, engine_options.hardware
    )
    return ManagedEngine(engine_options.engine, settings)
