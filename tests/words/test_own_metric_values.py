"""Values of a user's own metric that no ratio can be taken of: left out of the session, counted, and said once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest

from phasegate.core import metric as table
from phasegate.core.metric import Better, Metric, Phase, Undefined, register
from phasegate.core.timeline import Timeline
from phasegate.core.workload import Planned, parse_workload
from phasegate.report.run_words import remarks
from phasegate.stats.workload_run import Measured, WorkloadRun
from tests.timelines import timeline

NAME = "second_gap"


@pytest.fixture(autouse=True)
def _own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A metric that gives what stands in a timeline's ``server_timings``, for one test."""
    monkeypatch.setattr(table, "_OWN", {})

    def measure(line: Timeline) -> float | Undefined:
        assert line.server_timings is not None
        found = line.server_timings["own"]
        return Undefined("nothing") if found is None else float(found)

    register(Metric("second_token_gap", NAME, "s", Better.LOWER, Phase.DECODE, "a gap", measure))


def run_of(values: Sequence[float | None]) -> WorkloadRun:
    """A run whose requests have these values."""
    source = "name: chat\ndescription: d\ninput_tokens: 64\noutput_tokens: 5\nrequests: 8\nwarmups: 1\nprefix: unique\n"
    workload = parse_workload(source, "chat.yaml")
    (cell,) = workload.cells
    lines = [replace(timeline(), server_timings={"own": value}) for value in values]
    planned = [Planned(cell, n, 64, 5, f"p{n}", None, cold=True) for n in range(len(lines))]
    return WorkloadRun(workload, tuple(map(Measured, planned, lines)))


def test_values_above_0_are_stored_and_the_others_counted() -> None:
    """One value of 0 must not cost the whole session, which no gate would take with it."""
    run = run_of([0.004, 0.0, -0.001, math.nan, math.inf, None, 0.005])
    (stored,) = run.measurements([NAME])
    assert (stored.samples, stored.requests, stored.failed) == ((0.004, 0.005), 7, 0)
    said = [line for line in remarks(run) if NAME in line]
    assert said == [
        "note: second_gap: 4 of 6 values are not above 0 and finite, and changes are ratios; they are left out of the "
        "session: let the metric return Undefined, with the reason, where there is no value"
    ]


def test_nothing_is_said_where_every_value_can_be_stored() -> None:
    """Undefined is not 0, and is no value that was left out."""
    run = run_of([0.004, None])
    assert (run.left_out(), run.measurements([NAME])[0].samples) == ([], (0.004,))


def test_metrics_of_the_project_are_stored_as_before() -> None:
    """They have no value rather than 0."""
    assert len(run_of([0.0, 0.0]).measurements(["ttft"])[0].samples) == 2
