"""What the pages written by benchmarks have in common: the machine, the moment, and writing in one step."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

import psutil

from phasegate.core.atomic_write import write_atomic
from phasegate.core.identity import client_identity


def host_line() -> str:
    """The machine in one line."""
    client = client_identity()
    memory = psutil.virtual_memory().total / 2**30
    return f"{client.cpu}, {client.cores} cores, {memory:.0f} GiB memory, {client.system}, Python {client.python}"


def now_line() -> str:
    """The moment in one line."""
    return f"{datetime.now(timezone.utc):%Y-%m-%d %H:%M} UTC"


def load_line() -> str:
    """How busy the machine was over the last minute, for a reader who wonders about a figure."""
    return f"load average {os.getloadavg()[0]:.1f}"


def row(cells: Sequence[str]) -> str:
    """One line of a Markdown table."""
    return f"| {' | '.join(cells)} |"


def write_page(path: Path, text: str) -> None:
    """The page in one step: a reader, or a kill, sees the old one or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, text)
