"""Every random factor of the simulator, drawn from the seed and a name, never from the order of calls.

A lognormal factor has median 1, so noise does not move what a median measures.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from phasegate.engines.simulator.config import SimulatorConfig


def rng_for(config: SimulatorConfig, *name: object) -> random.Random:
    """A generator that depends on seed, session and name alone."""
    return random.Random("/".join(str(part) for part in (config.seed, config.session, *name)))


def lognormal(cv: float, rng: random.Random) -> float:
    """A positive factor with median 1 and this coefficient of variation; exactly 1 when it is 0."""
    if cv == 0:
        return 1.0
    return math.exp(math.sqrt(math.log1p(cv * cv)) * rng.gauss(0.0, 1.0))


@dataclass(frozen=True, slots=True)
class SessionEffect:
    """What a session does to every request in it.

    Attributes:
        prefill, decode: factors on the cost of each phase.
        bad: whether the session is a bad one (its factor is already in both).
    """

    prefill: float
    decode: float
    bad: bool


def session_effect(config: SimulatorConfig) -> SessionEffect:
    """The effect of the session that the settings name."""
    rng = rng_for(config, "session")
    prefill = lognormal(config.session_prefill_cv, rng)
    decode = lognormal(config.session_decode_cv, rng)
    bad = rng.random() < config.bad_session_probability
    factor = config.bad_session_factor if bad else 1.0
    return SessionEffect(prefill * factor, decode * factor, bad)


@dataclass(frozen=True, slots=True)
class RequestEffect:
    """What chance and drift do to one request: factors on the cost of each phase, session included."""

    prefill: float
    decode: float


def request_effect(config: SimulatorConfig, session: SessionEffect, number: int) -> RequestEffect:
    """The effect on the request of that number, counted from 1."""
    rng = rng_for(config, "request", number)
    drift = max(0.01, 1.0 + config.drift_per_request * (number - 1))
    prefill = lognormal(config.prefill_cv, rng)
    decode = lognormal(config.decode_cv, rng)
    return RequestEffect(
        prefill=session.prefill * drift * config.prefill_factor * prefill,
        decode=session.decode * drift * config.decode_factor * decode,
    )
