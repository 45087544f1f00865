"""The noise model of the A/A builds: what sessions were seen to do, and new sessions drawn from it.

The logarithm of a session's value is the level of its workload and metric, plus what the whole host did to that metric
in that session, plus what the session did to this workload alone. Both parts are normal with the deviations that the
sessions showed; neighbouring sessions correlate as the comparison assumes at least. Now and then a session is bad: each
of its values is slowed, or not, by chance. The model has no drift and no change of level, which real hosts have.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from phasegate.core.session import Measurement, Session
from phasegate.gate.levels import Key, Side
from phasegate.stats.autocorrelation import LEAST_CORRELATION
from phasegate.stats.compare_noise import DEVIATION_FLOOR
from phasegate.stats.winsor import winsorised

BAD_SESSIONS = 0.02
"""Share of bad sessions: few sessions cannot show it, so it is assumed."""

BAD_FACTORS = (1.1, 1.5)
"""How much slower a bad session's values are, uniform between these."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class NoiseSeen:
    """The noise of some sessions of an unchanged server.

    Attributes:
        template: a session with every measurement of the others; drawn ones keep all of it but the samples.
        keys: workload and metric of each measurement that is drawn.
        levels: seconds, one for each key.
        host: metric -> deviation of logs that all its workloads share.
        own: metric -> deviation of logs of a single workload.
        sessions: how many it was seen in.
    """

    template: Session
    keys: tuple[Key, ...]
    levels: tuple[float, ...]
    host: dict[str, float]
    own: dict[str, float]
    sessions: int

    def line(self) -> str:
        """The model in one sentence."""
        parts = ", ".join(
            f"{metric} {100 * self.host[metric]:.2f} % by host and {100 * self.own[metric]:.2f} % by workload"
            for metric in self.host
        )
        low, high = (100 * (factor - 1) for factor in BAD_FACTORS)
        return (
            f"session logs normal, deviations as seen in {self.sessions} sessions ({parts}), neighbours correlate by "
            f"{LEAST_CORRELATION:g}, {100 * BAD_SESSIONS:g} % of sessions slowed by {low:.0f} to {high:.0f} %"
        )


def noise_of(sessions: Sequence[Session]) -> NoiseSeen:
    """The noise of sessions of one unchanged server.

    Only what every session measured takes part. At least 3 sessions; far ones are pulled in, as in a comparison.

    Raises:
        ValueError: fewer than 3 sessions, or nothing that all of them measured.
    """
    side = Side.of(sessions)
    keys = measured_alike(sessions)
    if len(sessions) < 3 or not keys:
        raise ValueError(f"noise is seen in 3 sessions that measured the same; got {len(sessions)}")
    logs = np.array([[math.log(value) for value in side.levels(key).values()] for key in keys])
    host, own = {}, {}
    for metric in dict.fromkeys(metric for _, metric in keys):
        rows = logs[[index for index, key in enumerate(keys) if key[1] == metric]]
        host[metric], own[metric] = _split(rows)
    levels = tuple(float(np.exp(np.median(row))) for row in logs)
    return NoiseSeen(sessions[-1], keys, levels, host, own, len(sessions))


def measured_alike(sessions: Sequence[Session]) -> tuple[Key, ...]:
    """Workload and metric of what every session measured."""
    side = Side.of(sessions)
    return tuple(key for key in side.by_key if len(side.levels(key)) == len(sessions))


def _split(rows: Floats) -> tuple[float, float]:
    """(host, own) deviations of the logs of one metric, workloads x sessions."""
    calmed = np.array([winsorised(row)[0] for row in rows])
    centred = calmed - calmed.mean(axis=1, keepdims=True)
    workloads, sessions = centred.shape
    total = float((centred**2).sum()) / (workloads * (sessions - 1))
    if workloads == 1:
        # One workload cannot tell the two apart; to a comparison they are the same.
        return 0.0, max(math.sqrt(total), DEVIATION_FLOOR)
    shared = float(centred.mean(axis=0).var(ddof=1))
    own = max(0.0, total - shared) * workloads / (workloads - 1)
    host = max(0.0, total - own)
    return math.sqrt(host), max(math.sqrt(own), DEVIATION_FLOOR)


def draw_sessions(seen: NoiseSeen, count: int, rng: np.random.Generator) -> list[Session]:
    """Sessions of the unchanged server, in time order; each sample is its session's one value."""
    metrics = list(seen.host)
    column = np.array([metrics.index(metric) for _, metric in seen.keys])
    host = _neighbours(rng, count, len(metrics)) * np.array([seen.host[metric] for metric in metrics])
    own = _neighbours(rng, count, len(seen.keys)) * np.array([seen.own[metric] for metric in metrics])[column]
    bad = rng.random(count) < BAD_SESSIONS
    hit = bad[:, None] & (rng.random(own.shape) < 0.5)
    slowed = np.where(hit, np.log(rng.uniform(*BAD_FACTORS, own.shape)), 0.0)
    values = np.exp(np.log(seen.levels) + host[:, column] + own + slowed)
    return [_session(seen, number, row) for number, row in enumerate(values)]


def _neighbours(rng: np.random.Generator, count: int, width: int) -> Floats:
    """Standard normal values, sessions x width, of which neighbouring sessions correlate."""
    values = rng.standard_normal((count, width))
    for index in range(1, count):
        values[index] = LEAST_CORRELATION * values[index - 1] + math.sqrt(1 - LEAST_CORRELATION**2) * values[index]
    return values


def _session(seen: NoiseSeen, number: int, values: Floats) -> Session:
    wanted = dict(zip(seen.keys, values, strict=True))
    rows = tuple(
        _drawn(one, float(wanted[one.workload, one.metric]))
        for one in seen.template.measurements
        if (one.workload, one.metric) in wanted
    )
    at = f"2000-01-01T{number // 60:02d}:{number % 60:02d}:00+00:00"
    return replace(seen.template, session_id=f"drawn-{number:04d}", recorded_at=at, measurements=rows, disturbed=None)


def _drawn(one: Measurement, value: float) -> Measurement:
    return replace(one, samples=(value,), requests=1, failed=0, invalid=0)
