"""The noise that the gate's simulation draws builds from: a host, sessions, requests, and now and then a bad session.

A session's log latency is the workload's level, plus what the whole host did (AR(1) from session to session, shared by
all workloads and by the sentinel), plus what this session did to this workload alone. Requests vary around that, each a
little like the one before. One session in fifty is bad: a neighbour slows each of its measurements with chance one
half, by a tenth to a half.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

METRICS = ("ttft", "tpot")
WORKLOADS = 10
COMPARISONS = len(METRICS) * WORKLOADS
LEVELS = np.array([0.200, 0.008])
"""Seconds: a TTFT and a TPOT of a middling server."""


@dataclass(frozen=True, slots=True)
class Noise:
    """Standard deviations of logs, for (ttft, tpot) each.

    Attributes:
        name: for the option and the output.
        host: of what a session's host does to all measurements alike.
        own: of what a session does to one workload alone.
        request: of requests inside a session.
        neighbour: correlation of host and own parts of neighbouring sessions.
        request_neighbour: correlation of neighbouring requests.
        slow_requests: share of requests that are 1.5 to 3 times slower.
        bad_sessions: share of bad sessions.
        candidate_scatter: how many times more the candidate's sessions deviate than the baseline's, by what host and
            session do to it; a sentinel, requests and bad sessions stay as they are.
    """

    name: str
    host: tuple[float, float]
    own: tuple[float, float]
    request: tuple[float, float]
    neighbour: float = 0.3
    request_neighbour: float = 0.2
    slow_requests: float = 0.01
    bad_sessions: float = 0.02
    candidate_scatter: float = 1.0


SERVER = Noise("server", host=(0.010, 0.008), own=(0.008, 0.004), request=(0.030, 0.023))
"""Assumed for a server on a host of its own."""

NOISIER = Noise("noisier-server", host=(0.012, 0.007), own=(0.010, 0.005), request=(0.030, 0.023))
"""A quarter more of the noise that a sentinel cannot remove."""

SMALL_HOST = Noise("small-host", host=(0.0035, 0.011), own=(0.0035, 0.011), request=(0.006, 0.023))
"""Totals as seen on a pinned llama.cpp on two cores over ten restarts: session medians vary by 0.35 to 0.5 % (TTFT)
and 1.5 to 1.7 % (TPOT), requests by 0.6 and 2.3 %. How they divide into host and own is assumed."""

PROFILES = {one.name: one for one in (SERVER, NOISIER, SMALL_HOST)}


@dataclass(frozen=True, slots=True)
class Drawn:
    """Some sessions.

    Attributes:
        requests: sessions x comparisons x requests, seconds; comparisons alternate TTFT and TPOT.
        sentinel: sessions x metrics: the frozen reference's median TTFT and TPOT, seconds.
    """

    requests: Floats
    sentinel: Floats


def autoregressive(rng: np.random.Generator, shape: tuple[int, ...], r: float, axis: int) -> Floats:
    """Standard normal values of which neighbours along ``axis`` correlate by r."""
    values = np.moveaxis(rng.standard_normal(shape), axis, 0)
    for index in range(1, values.shape[0]):
        values[index] = r * values[index - 1] + np.sqrt(1 - r * r) * values[index]
    return np.moveaxis(values, 0, axis)


def draw_sessions(rng: np.random.Generator, noise: Noise, baseline: int, candidate: int, requests: int) -> Drawn:
    """Sessions of an unchanged server, in time order: those of the baseline, then those of the candidate."""
    sessions = baseline + candidate
    metric = np.tile([0, 1], WORKLOADS)
    bad = rng.random(sessions) < noise.bad_sessions
    host = autoregressive(rng, (sessions, 2), noise.neighbour, 0) * noise.host
    own = autoregressive(rng, (sessions, COMPARISONS), noise.neighbour, 0) * np.array(noise.own)[metric]
    scatter = np.repeat([1.0, noise.candidate_scatter], [baseline, candidate])[:, None]
    level = np.log(LEVELS)[metric] + scatter * (host[:, metric] + own) + _hits(rng, bad, COMPARISONS)
    # The reference runs a workload of its own, with noise of its own.
    reference = autoregressive(rng, (sessions, 2), noise.neighbour, 0) * np.array(noise.own)
    seen = np.log(LEVELS) + host + reference + _hits(rng, bad, 2)
    return Drawn(
        _requests(rng, noise, level, metric, requests),
        np.asarray(np.median(_requests(rng, noise, seen, np.array([0, 1]), requests), axis=2)),
    )


def draw_blocks(rng: np.random.Generator, noise: Noise, blocks: int, requests: int) -> tuple[Floats, Floats]:
    """Blocks of two equal servers measured in turn: (reference, candidate), blocks x comparisons x requests.

    A block makes two visits to each side, which share its host and differ by half of what a session does to a
    workload. A bad block has one visit slowed.
    """
    metric = np.tile([0, 1], WORKLOADS)
    bad = rng.random(blocks) < noise.bad_sessions
    host = autoregressive(rng, (blocks, 2), noise.neighbour, 0) * noise.host
    sides = []
    slowed = rng.integers(0, 4, blocks)
    for side, scatter in enumerate((1.0, noise.candidate_scatter)):
        visits = []
        for visit in range(2):
            own = rng.standard_normal((blocks, COMPARISONS)) * np.array(noise.own)[metric] / 2
            hit = _hits(rng, bad & (slowed == 2 * side + visit), COMPARISONS)
            level = np.log(LEVELS)[metric] + scatter * (host[:, metric] + own) + hit
            visits.append(_requests(rng, noise, level, metric, requests // 2))
        sides.append(np.concatenate(visits, axis=2))
    return sides[0], sides[1]


def _hits(rng: np.random.Generator, bad: NDArray[np.bool_], width: int) -> Floats:
    """What bad sessions add to each of their measurements, as logs."""
    shape = (bad.size, width)
    hit = bad[:, None] & (rng.random(shape) < 0.5)
    return np.where(hit, np.log(rng.uniform(1.1, 1.5, shape)), 0.0)


def _requests(rng: np.random.Generator, noise: Noise, level: Floats, metric: NDArray[np.int_], requests: int) -> Floats:
    shape = (*level.shape, requests)
    spread = autoregressive(rng, shape, noise.request_neighbour, 2) * np.array(noise.request)[metric][None, :, None]
    slow = np.where(rng.random(shape) < noise.slow_requests, np.log(rng.uniform(1.5, 3.0, shape)), 0.0)
    return np.asarray(np.exp(level[:, :, None] + spread + slow))
