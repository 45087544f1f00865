"""Predicted against measured, as rows, as lines for a terminal and as a page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks._fit_cells import FITTED, Cell, CellRun
from benchmarks._page import row
from phasegate.core.units import format_percent, format_seconds
from phasegate.engines.simulator.config import SimulatorConfig
from phasegate.stats.percentile import nearest_rank

FITTED_COSTS = (
    "step_seconds",
    "sequence_seconds",
    "together_seconds",
    "kv_seconds_per_token",
    "prefill_tokens_per_second",
    "attention_seconds_per_token_pair",
    "prompt_seconds",
    "request_overhead_seconds",
)


@dataclass(frozen=True, slots=True)
class Prediction:
    """One figure of one held-out cell, from both engines, in seconds.

    Attributes:
        cell: the cell.
        figure: such as ``"TTFT p50"``.
        kind: what was predicted: ``"TTFT alone"``, ``"TPOT alone"``, ``"TTFT in company"``, ``"TPOT in company"``
            or ``"TTFT with a queue"``, ``"TPOT with a queue"``.
        measured, predicted: seconds.
        repeats: how far the engine's own visits were from their median, as a fraction; NaN where not told.
    """

    cell: Cell
    figure: str
    kind: str
    measured: float
    predicted: float
    repeats: float

    @property
    def error(self) -> float:
        """Predicted against measured, as a fraction."""
        return self.predicted / self.measured - 1


@dataclass(frozen=True, slots=True)
class Facts:
    """What a page says of its own making.

    Attributes:
        command, when, version, engine, host: as printed.
        rounds: visits of every cell.
        disturbed: visits of either engine during which other processes were busy.
    """

    command: str
    when: str
    version: str
    engine: str
    host: str
    rounds: int
    disturbed: int


def predictions(
    cells: Sequence[Cell], engine: dict[Cell, CellRun], simulator: dict[Cell, CellRun], slots: int
) -> list[Prediction]:
    """Every figure of every cell."""
    rows = []
    for cell in cells:
        real, guessed = engine[cell], simulator[cell]
        where = "alone" if cell.alone else "in company" if cell.streams <= slots else "with a queue"
        for metric in ("ttft", "tpot"):
            name = metric.upper()
            rows.append(
                Prediction(
                    cell,
                    f"{name} p50",
                    f"{name} {where}",
                    real.median(metric),
                    guessed.median(metric),
                    real.repeats(metric),
                )
            )
            if not cell.alone:
                p95 = [nearest_rank(run.values(metric), 95) for run in (real, guessed)]
                rows.append(Prediction(cell, f"{name} p95", f"{name} {where}", p95[0], p95[1], math.nan))
    return rows


COLUMNS = ("prompt", "answer", "at a time", "figure", "engine", "simulator", "error", "engine repeats within")


def table(rows: Sequence[Prediction]) -> list[str]:
    """Every prediction as a line of Markdown."""
    lines = [row(COLUMNS), "|---:|---:|---:|---|---:|---:|---:|---:|"]
    for one in rows:
        lines.append(
            row(
                (
                    str(one.cell.prompt),
                    str(one.cell.output),
                    str(one.cell.streams),
                    one.figure,
                    format_seconds(one.measured),
                    format_seconds(one.predicted),
                    format_percent(one.error, signed=True),
                    "" if math.isnan(one.repeats) else format_percent(one.repeats),
                )
            )
        )
    return lines


def summary(rows: Sequence[Prediction]) -> list[str]:
    """Median and worst error by kind, and of all."""
    lines = [row(("predicted", "figures", "median error", "worst error")), "|---|---:|---:|---:|"]
    kinds = list(dict.fromkeys(one.kind for one in rows))
    for kind in (*kinds, "all"):
        errors = [abs(one.error) for one in rows if kind in (one.kind, "all")]
        worst = max(errors)
        lines.append(
            row((kind, str(len(errors)), format_percent(float(np.median(errors))), format_percent(worst)))
        )  # fmt: skip
    return lines


def summary_lines(rows: Sequence[Prediction]) -> list[str]:
    """Both tables."""
    return [*table(rows), "", *summary(rows)]


EXPLANATION = """\
The simulator's costs are fitted to the embedded engine in a few cells. Then both are measured in other cells, by the
same client with the same prompts, and the error is predicted / measured - 1. Nothing is fitted to the held-out cells.
In company, prompts are read while other requests are answered; with more requests than slots there is a queue as
well. None of that is in the fitted cells.
"""

REPEATS = """\
The last column is the furthest that the engine's own median of one round was from its median of all: no prediction
can be expected to be closer than that. A p95 is a single request and repeats less well.
"""


def page(rows: Sequence[Prediction], fitted: SimulatorConfig, facts: Facts) -> str:
    """The whole page."""
    cells = ", ".join(f"{c.prompt} in {c.output} out x {c.streams}" for c in FITTED)
    costs = [row((f"`{name}`", f"{getattr(fitted, name):.4g}")) for name in FITTED_COSTS]
    errors = [abs(one.error) for one in rows]
    middle, worst = format_percent(float(np.median(errors))), format_percent(max(errors))
    parts = [
        "# How well a fitted simulator predicts a real engine\n",
        f"Written by `{facts.command}` on {facts.when}, phasegate {facts.version}.\n",
        f"Engine: {facts.engine}. Machine: {facts.host}. Rounds: {facts.rounds}.\n",
        *(
            [f"**Not quiet:** during {facts.disturbed} visits of a cell other processes were busy.\n"]
            * bool(facts.disturbed)
        ),
        EXPLANATION,
        f"**Median error {middle}, worst {worst}, over {len(errors)} figures.**\n",
        *summary(rows),
        "\n## Every prediction\n",
        *table(rows),
        "",
        REPEATS,
        "## What was fitted\n",
        f"Cells (prompt and answer in tokens, requests at a time): {cells}.",
        "TTFT comes from the cells with one request at a time and from waves that were read in one step, the cost of a",
        "step from the stretch of a cell in which all requests decode.\n",
        row(("cost", "fitted")),
        "|---|---:|",
        *costs,
        "",
    ]
    return "\n".join(parts)
