"""Was the engine's host quiet? A short probe before and after a session, and what other processes used meanwhile.

The probe does fixed arithmetic and a fixed memory copy, so a host that throttles or is shared shows up as slower than
it was a minute ago. It speaks only of the host it runs on, that is of engines which the suite starts itself.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import psutil

from phasegate.core.identity import ServerIdentity, this_host
from phasegate.engines.embedded import engine_cores

FOREIGN_LIMIT = 0.25
"""Cores used by other processes above which a session counts as disturbed. Measured on a 2-core machine with the
engine pinned: below 0.2 nothing moves; above, single requests become several times slower."""

STEAL_LIMIT = 0.03
"""Share of time the hypervisor may take; latency moves by at least as much."""

SLOWER_LIMIT = 0.10
"""Slowdown of the fixed work, from before to after or against the run's best, that counts as a disturbance."""

NAMED, LEAST_NAMED = 3, 0.05
"""Other processes that are named at most, and the cores from which one is worth naming."""

_REPEATS = 40
"""Of which the best counts. On a quiet virtual machine the best of 5 copies differed by more than 10 % from one moment
to the next in 3 of 11 pairs, the best of 40 in none."""


@dataclass(frozen=True, slots=True)
class HostProbe:
    """What fixed work cost at one moment: best of a few, in seconds.

    Attributes:
        arithmetic: a fixed matrix product.
        copy: a copy of 16 MiB.
        frequency: clock of the first core in MHz, or None where the system does not tell.
    """

    arithmetic: float
    copy: float
    frequency: float | None


@dataclass(frozen=True, slots=True)
class HostReport:
    """A session's surroundings: a probe on either side and what happened between.

    Attributes:
        before, after: the probes.
        foreign: cores used on average by processes that are neither the suite nor its engine.
        steal: share of all cores' time taken by the hypervisor.
        users: names of the other processes that used most, and the cores each used; none where they cannot be seen.
    """

    before: HostProbe
    after: HostProbe
    foreign: float
    steal: float
    users: tuple[tuple[str, float], ...] = ()

    def disturbance(self) -> str | None:
        """Why a session with these surroundings must not be used silently, in one sentence, or None."""
        if self.foreign > FOREIGN_LIMIT:
            named = ", ".join(f"{name} {cores:.1f}" for name, cores in self.users)
            inside = "; ".join(filter(None, [named, f"limit {FOREIGN_LIMIT}"]))
            return f"other processes used {self.foreign:.2f} cores ({inside})"
        if self.steal > STEAL_LIMIT:
            return f"the hypervisor took {self.steal:.1%} of the time (limit {STEAL_LIMIT:.0%})"
        for name in ("arithmetic", "copy"):
            first, last = getattr(self.before, name), getattr(self.after, name)
            change = max(first, last) / min(first, last) - 1
            if change > SLOWER_LIMIT:
                return f"fixed {name} work changed by {change:.0%} during the session (limit {SLOWER_LIMIT:.0%})"
        return None


def probe_host(cores: Sequence[int] = ()) -> HostProbe:
    """Do the fixed work, on these cores where the system can pin (about 0.1 s)."""
    own = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    if own is not None and cores:
        os.sched_setaffinity(0, cores)
    try:
        matrix = np.linspace(0, 1, 192 * 192).reshape(192, 192)
        block = np.zeros(16 << 20, dtype=np.uint8)
        target = np.empty_like(block)
        return HostProbe(
            # Not ``matrix @ matrix``: that runs in threads of the library's own, which do not stay on these cores, and
            # two threads that meet on one core wait for each other a hundred times longer than the work takes.
            arithmetic=min(_seconds(lambda: np.einsum("ij,jk->ik", matrix, matrix)) for _ in range(_REPEATS)),
            copy=min(_seconds(lambda: np.copyto(target, block)) for _ in range(_REPEATS)),
            frequency=_frequency(),
        )
    finally:
        if own is not None:
            os.sched_setaffinity(0, own)


def _seconds(work: object) -> float:
    assert callable(work)
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _frequency() -> float | None:
    try:
        found = psutil.cpu_freq()
    except (OSError, NotImplementedError, RuntimeError):
        return None
    return round(found.current, 1) if found is not None and found.current else None


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment and the CPU seconds used until then.

    Attributes:
        at: the moment.
        busy, steal, own: used by anybody, by the hypervisor, by the suite and its engine.
        others: every other process, by its number and start -> its name and what it used.
    """

    at: float
    busy: float
    steal: float
    own: float
    others: Mapping[tuple[int, float], tuple[str, float]] = field(default_factory=dict)


class HostWatch:
    """Brackets a session: made before it, asked after it, or after a part of it."""

    def __init__(self, cores: Sequence[int] = ()) -> None:
        self._cores = tuple(cores)
        self._before = probe_host(self._cores)
        self._began = self.mark()

    def mark(self) -> Mark:
        """This moment, as the beginning of a part of the session."""
        return Mark(time.monotonic(), *_busy_seconds(), _own_seconds(), _other_processes())

    def report(self) -> HostReport:
        """What happened since the watch was made."""
        used = self._used_since(self._began)
        return HostReport(self._before, probe_host(self._cores), *used)

    def disturbed_since(self, began: Mark | None = None) -> str | None:
        """Why what was measured since a mark, or in the whole session, is in doubt; None where it is not.

        Only what others used, without a probe: quick, and a probe would fall among the next requests.
        """
        return HostReport(self._before, self._before, *self._used_since(began or self._began)).disturbance()

    def _used_since(self, began: Mark) -> tuple[float, float, tuple[tuple[str, float], ...]]:
        """Cores used by other processes, the share of all cores' time that the hypervisor took, and who used most."""
        now = self.mark()
        elapsed = max(now.at - began.at, 1e-9)
        foreign = max(0.0, (now.busy - began.busy) - (now.own - began.own)) / elapsed
        steal = max(0.0, now.steal - began.steal) / (elapsed * (os.cpu_count() or 1))
        return foreign, steal, _most_used(began, now, elapsed)


def watch_host(server: ServerIdentity) -> HostWatch | None:
    """A watch over the engine's host where that is this machine, else None."""
    return HostWatch(engine_cores()) if server.host == this_host() else None


def _most_used(began: Mark, now: Mark, elapsed: float) -> tuple[tuple[str, float], ...]:
    """The names that used most between two marks, and their cores; processes of one name count together."""
    cores: dict[str, float] = {}
    for key, (name, seconds) in now.others.items():
        _, before = began.others.get(key, (name, 0.0))
        cores[name] = cores.get(name, 0.0) + (seconds - before) / elapsed
    most = sorted(cores.items(), key=lambda one: one[1], reverse=True)[:NAMED]
    return tuple((name, used) for name, used in most if used >= LEAST_NAMED)


def _other_processes() -> dict[tuple[int, float], tuple[str, float]]:
    """Every process that is neither this one nor below it; of those that cannot be seen, nothing."""
    this = psutil.Process()
    own = {this.pid, *(child.pid for child in this.children(recursive=True))}
    found = {}
    for one in psutil.process_iter(["name", "cpu_times", "create_time"]):
        times = one.info["cpu_times"]
        if one.pid not in own and times is not None:
            key = (one.pid, one.info["create_time"] or 0.0)
            found[key] = (one.info["name"] or f"process {one.pid}", times.user + times.system)
    return found


def _busy_seconds() -> tuple[float, float]:
    """CPU seconds used by anybody since boot, and those the hypervisor took."""
    times = psutil.cpu_times()
    idle = times.idle + getattr(times, "iowait", 0.0)
    steal = getattr(times, "steal", 0.0)
    return sum(times[:8]) - idle - steal, steal


def _own_seconds() -> float:
    """CPU seconds used by this process and its children so far, those that have ended among them."""
    this = psutil.Process()
    total = sum(this.cpu_times()[:4])
    for child in this.children(recursive=True):
        try:
            total += sum(child.cpu_times()[:4])
        except psutil.Error:
            continue
    return total
