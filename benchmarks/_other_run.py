"""How a load tool of somebody else is run: once, in a folder of its own, on one core, watched."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from benchmarks._tree_cpu import TreeCpu

PATIENCE = 240.0
"""Seconds that a tool may take for one run, starting and reporting included."""

LAST_WORDS = 300
"""Characters of a failed tool's output that a message quotes."""


class ToolFailedError(RuntimeError):
    """A tool did not run to its end or reported nothing. The message is one line."""


@dataclass(frozen=True, slots=True)
class Told:
    """One request as a tool reported it.

    Attributes:
        name: which request of the server's log it is.
        ttft: time to first token, seconds.
        tpot: time per output token after the first, seconds.
    """

    name: str
    ttft: float
    tpot: float


@dataclass(frozen=True, slots=True)
class Job:
    """One run: so many requests at once, each answered with so many tokens.

    Attributes:
        url: of the server, with ``/v1``.
        count, tokens: requests, and tokens of each answer.
        core: where the tool may run, or None for anywhere.
        folder: for its files; removed after.
    """

    url: str
    count: int
    tokens: int
    core: int | None
    folder: Path

    @property
    def root(self) -> str:
        """Of the server, without ``/v1``."""
        return self.url.removesuffix("/v1")


@dataclass(frozen=True, slots=True)
class Ran:
    """What a run left behind.

    Attributes:
        told: the requests that it reports as successful.
        spent: (CPU seconds, bytes of memory growth) between two moments.
    """

    told: list[Told]
    spent: Callable[[float, float], tuple[float, float]]


class Tool(Protocol):
    """A load tool.

    Attributes:
        label: its row's name, without the version.
        about: what is run and how its requests are matched with the server's log, in one sentence.
    """

    label: str
    about: str

    def install(self) -> str:
        """Make it ready to run; returns its version.

        Raises:
            NotInstalledError: it cannot be had.
        """
        ...

    def run(self, job: Job) -> Ran:
        """Send everything and read its report.

        Raises:
            ToolFailedError: it did not run to its end, or its report cannot be read.
        """
        ...


def run_command(words: Sequence[object], job: Job, extra: Mapping[str, str] | None = None) -> tuple[str, TreeCpu]:
    """Run a command line in the job's folder, watched; returns what it printed.

    Raises:
        ToolFailedError: it failed or took too long; with its last words.
    """
    environment = {**os.environ, "NO_COLOR": "1", "TERM": "dumb", **(extra or {})}
    printed, said = job.folder / "printed.txt", job.folder / "said.txt"
    with printed.open("wb") as output, said.open("wb") as errors:
        process = subprocess.Popen(
            [str(word) for word in words],
            cwd=job.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
        )
        if job.core is not None:
            os.sched_setaffinity(process.pid, {job.core})
        with TreeCpu(process.pid) as watched:
            try:
                status = process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                raise ToolFailedError(f"not done after {PATIENCE:.0f} s") from None
    text = printed.read_text(encoding="utf-8", errors="replace")
    if status:
        last = " ".join((text + said.read_text(encoding="utf-8", errors="replace")).split())[-LAST_WORDS:]
        raise ToolFailedError(f"exit status {status}: {last}")
    return text, watched
