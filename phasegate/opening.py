"""Opening a lab: start or attach the engine that the user named, and make everything ready to measure it."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from phasegate.engines.base import Engine
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
