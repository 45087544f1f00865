"""The simulation behind docs/explanation/laws.md, in small: healthy engines pass, planted violations fail."""

from __future__ import annotations

import pytest

from benchmarks import laws_calibration as calibration
from phasegate.stats.outcome import Outcome, combined

HEALTHY, PLANTED, MARGIN = calibration.healthy_rows(), calibration.planted_rows(), calibration.margin_rows()


def _ids(rows: list[calibration.Row]) -> list[str]:
    return [f"{row.law}: {row.engine}" for row in rows]


@pytest.mark.parametrize("row", HEALTHY, ids=_ids(HEALTHY))
def test_a_healthy_engine_passes(row: calibration.Row) -> None:
    """In each of 40 sessions of 8 blocks."""
    assert calibration.count(row, 8, calibration.QUIET, 40, seed=11).share == 1.0


@pytest.mark.parametrize("row", PLANTED, ids=_ids(PLANTED))
def test_a_planted_violation_fails(row: calibration.Row) -> None:
    """In each of 40 sessions of 8 blocks."""
    assert calibration.count(row, 8, calibration.QUIET, 40, seed=12).share == 1.0


@pytest.mark.parametrize("row", MARGIN, ids=_ids(MARGIN))
def test_an_engine_on_the_margin_seldom_passes(row: calibration.Row) -> None:
    """In at most 12 % of 200 sessions: 5 % and 4 to 5 standard errors of the count."""
    assert calibration.count(row, 8, calibration.QUIET, 200, seed=13).share <= 0.12


def test_the_check_can_fail() -> None:
    """A planted violation, asked for a PASS, gives none."""
    broken = PLANTED[0]
    asked = calibration.Row(broken.law, broken.engine, Outcome.PASS, broken.judge)
    assert calibration.count(asked, 8, calibration.QUIET, 20, seed=14).share == 0.0


def test_the_table_prints_every_row() -> None:
    """Two sessions a cell, to see that the program runs to its end."""
    text = "\n".join(calibration.table(2, seed=1, blocks=(5,)))
    for row in (*HEALTHY, *PLANTED, *MARGIN):
        assert row.law in text
    assert "all 8 laws pass" in text


def test_a_law_of_several_parts_ends_as_its_worst_part() -> None:
    """FAIL before INCONCLUSIVE before PASS, and no part at all is refused."""
    assert combined([Outcome.PASS, Outcome.INCONCLUSIVE]) is Outcome.INCONCLUSIVE
    assert combined([Outcome.FAIL, Outcome.INCONCLUSIVE]) is Outcome.FAIL
    assert combined([Outcome.PASS, Outcome.PASS]) is Outcome.PASS
    with pytest.raises(ValueError, match="at least one part"):
        combined([])
