"""The check of the fitted simulator: what is fitted, what is predicted, and what the page says of it."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks._fit_cells import FITTED, HELD_OUT, Cell, CellRun
from benchmarks._fit_page import Facts, page, predictions, summary
from benchmarks._page import write_page
from benchmarks.simulator_fit import _words, base_for, fit_to
from phasegate.engines.embedded_config import EmbeddedConfig
from phasegate.engines.simulator.config import SimulatorConfig
from phasegate.measure.session_runner import MeasurementError
from tests.timelines import timeline


def step_of(streams: int) -> float:
    """An engine with a faster way for one request."""
    return 0.005 if streams == 1 else 0.018 + 0.001 * streams


def ran(cell: Cell) -> CellRun:
    """An engine with 0.5 ms a prompt token, 4 ms a prompt, and the steps above; whole waves are read in one step."""
    ttft = 0.002 + 0.0005 * cell.prompt * cell.streams + 0.004 * cell.streams + 0.004
    line = timeline(ttft=ttft, tpot=step_of(cell.streams), tokens=cell.output)
    return CellRun(cell, [[line] * cell.requests])


def test_no_cell_is_both_fitted_and_predicted() -> None:
    assert not {(c.prompt, c.streams) for c in FITTED} & {(c.prompt, c.streams) for c in HELD_OUT}


def test_the_costs_come_from_the_fitted_cells() -> None:
    """Settings as the operator chose them; costs as the engine showed them."""
    base = base_for(EmbeddedConfig(n_parallel=4, n_batch=512), template=22)
    assert (base.max_sequences, base.step_token_budget, base.template_tokens) == (4, 512, 22)
    fitted = fit_to({cell: ran(cell) for cell in FITTED}, base)
    assert 1 / fitted.prefill_tokens_per_second == pytest.approx(0.0005, rel=0.01)
    assert fitted.prompt_seconds == pytest.approx(0.004, rel=0.1)
    for streams in (1, 2, 4):
        together = fitted.together_seconds if streams > 1 else 0.0
        assert fitted.step_seconds + streams * fitted.sequence_seconds + together == pytest.approx(
            step_of(streams), rel=0.02
        )
    assert SimulatorConfig.from_words(_words(fitted)) == fitted


def test_streams_that_never_decode_together_give_no_step() -> None:
    cell = Cell(64, 8, streams=2, requests=2)
    first, second = timeline(tokens=8), timeline(tokens=8, ttft=5.0)
    with pytest.raises(MeasurementError, match="never decoded together"):
        CellRun(cell, [[first, second]]).step()
    assert CellRun(cell, [[first, second]]).joint_first_token() is None


def test_predictions_are_summed_up_by_what_was_predicted() -> None:
    """A simulator that is 10 % slower in everything."""
    cells = (Cell(128, 24), Cell(128, 24, streams=2, requests=4), Cell(96, 16, streams=8, requests=16))
    engine = {cell: ran(cell) for cell in cells}
    slower = {
        cell: CellRun(
            cell,
            [[timeline(ttft=1.1 * one.median("ttft"), tpot=1.1 * one.median("tpot"), tokens=cell.output)] * 4],
        )
        for cell, one in engine.items()
    }
    rows = predictions(cells, engine, slower, slots=4)
    assert {row.kind.partition(" ")[2] for row in rows} == {"alone", "in company", "with a queue"}
    assert all(row.error == pytest.approx(0.1) for row in rows)
    assert summary(rows)[-1] == "| all | 10 | 10.0 % | 10.0 % |"
    assert math.isnan(next(row for row in rows if row.figure == "TTFT p95").repeats)


def test_the_page_says_when_the_machine_was_busy(tmp_path: Path) -> None:
    cell = HELD_OUT[0]
    rows = predictions([cell], {cell: ran(cell)}, {cell: ran(cell)}, slots=4)
    facts = Facts("python -m benchmarks.simulator_fit", "today", "0.1", "llama.cpp", "a machine", 3, disturbed=0)
    quiet = page(rows, SimulatorConfig(), facts)
    assert "**Median error 0.0 %, worst 0.0 %, over 2 figures.**" in quiet
    assert "Not quiet" not in quiet
    assert "during 2 visits" in page(rows, SimulatorConfig(), replace(facts, disturbed=2))
    write_page(tmp_path / "page.md", quiet)
    assert [path.name for path in tmp_path.iterdir()] == ["page.md"]
