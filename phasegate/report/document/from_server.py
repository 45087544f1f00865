"""The server's own clock in the document: for every cell the parts of TTFT that it tells, in seconds."""

from __future__ import annotations

from collections.abc import Iterable

from phasegate.report import run_words
from phasegate.report.server_lines import ServerRow, server_rows
from phasegate.run import WorkloadRun
from phasegate.server_view import ServerView


def server_timings_of(view: ServerView, runs: Iterable[WorkloadRun]) -> dict[str, dict[str, float]] | None:
    """Cell -> part -> seconds (``TPOT`` and ``decode``: seconds a token); None where the server tells nothing."""
    rows = [row for run in sorted(runs, key=run_words.reading_order) if run.measured for row in server_rows(run, view)]
    return {row.label: _parts(row) for row in rows} or None


def _parts(row: ServerRow) -> dict[str, float]:
    """The parts that are known, in the order of the terminal's table."""
    split = row.split
    parts = {
        "TTFT": split.client,
        "server": split.server,
        "queue": split.queue,
        "prefill": split.prefill,
        "http": split.http,
        "tokenising": split.tokenising,
        "held back": split.first_decode,
        "unexplained": split.unexplained,
        "TPOT": row.tpot,
        "decode": row.decode,
    }
    return {name: value for name, value in parts.items() if value is not None}
