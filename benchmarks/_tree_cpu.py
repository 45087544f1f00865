"""CPU and memory of a tool that runs in several processes, over the stretch in which it really measured.

A load tool spends seconds on starting, tokenizers and reports. That is not the price of a chunk, so the tree of its
processes is looked at ten times a second, and what it had spent is read off at the moments that the server's log gives.
"""

from __future__ import annotations

import contextlib
import threading
from dataclasses import dataclass, field
from time import monotonic
from types import TracebackType

import numpy as np
import psutil

EVERY = 0.1
"""Seconds between two looks; each costs some milliseconds, in the benchmark's own process."""


@dataclass
class TreeCpu:
    """Watches the process of that number and all that it starts, while the context is open."""

    pid: int
    _moments: list[float] = field(default_factory=list)
    _seconds: list[float] = field(default_factory=list)
    _memory: list[int] = field(default_factory=list)
    _spent: dict[int, float] = field(default_factory=dict)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> TreeCpu:
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        assert self._thread is not None
        self._thread.join()

    def between(self, begin: float, end: float) -> tuple[float, float]:
        """(CPU seconds spent, bytes of growth of the resident memory) from one moment to another.

        Moments between two looks are interpolated, so either end is known to about a tenth of a second.
        """
        cpu = np.interp([begin, end], self._moments, self._seconds)
        before = float(np.interp(begin, self._moments, self._memory))
        inside = [size for at, size in zip(self._moments, self._memory, strict=True) if begin <= at <= end]
        return float(cpu[1] - cpu[0]), max(0.0, max(inside, default=before) - before)

    def _watch(self) -> None:
        while not self._stop.wait(EVERY):
            self._look()

    def _look(self) -> None:
        memory = 0
        with contextlib.suppress(psutil.Error):
            root = psutil.Process(self.pid)
            for process in (root, *root.children(recursive=True)):
                with contextlib.suppress(psutil.Error):
                    times = process.cpu_times()
                    # A process that is gone keeps what it had spent when it was last seen.
                    self._spent[process.pid] = times.user + times.system
                    memory += process.memory_info().rss
        self._moments.append(monotonic())
        self._seconds.append(sum(self._spent.values()))
        self._memory.append(memory)
