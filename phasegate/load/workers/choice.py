"""What ``--perf-workers`` asks for: a number of processes, as many as prove necessary, or a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec

OPTION = "--perf-workers"

RAY_ADDRESS = "ray://"

MOST_PROCESSES = 512
"""More processes than any machine has cores for; a larger number is a slip of the keyboard."""


@dataclass(frozen=True, slots=True)
class WorkersAsked:
    """The choice.

    Attributes:
        processes: that many worker processes; 1 measures in this process; None: as many as prove necessary.
        ray: address of a Ray cluster; empty for the one of the environment or a new local one; None without Ray.
    """

    processes: int | None = None
    ray: str | None = None


def parse_workers(text: str | None, *, source: str = OPTION) -> WorkersAsked:
    """The choice that a text makes: a whole number, ``auto`` (also for None), ``ray`` or ``ray://host:port``.

    Raises:
        ValueError: one line with the option, its value and what would be right.
    """
    word = "auto" if text is None else text.strip()
    if word == "auto":
        return WorkersAsked()
    if word == "ray":
        return WorkersAsked(ray="")
    if word.startswith(RAY_ADDRESS):
        if not word.removeprefix(RAY_ADDRESS).strip("/"):
            raise ValueError(f"{source} {word!r} names no host; write ray://host:10001, or ray for a local cluster")
        return WorkersAsked(ray=word)
    if not (word.isascii() and word.isdecimal() and 1 <= int(word) <= MOST_PROCESSES):
        raise ValueError(
            f"{source} {word!r} is not possible; give a whole number from 1 to {MOST_PROCESSES}, auto, ray, or "
            "ray://host:port"
        )
    return WorkersAsked(processes=int(word))


def workers_asked(text: str | None, *, source: str = OPTION) -> WorkersAsked:
    """`parse_workers`, which also refuses Ray where it is not installed, before anything is measured.

    Raises:
        ValueError: one line with the remedy.
    """
    asked = parse_workers(text, source=source)
    if asked.ray is not None and find_spec("ray") is None:
        raise ValueError(f"{source} {text} needs Ray, which is not installed; run: pip install 'phasegate[ray]'")
    return asked
