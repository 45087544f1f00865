"""The decision record's words on planted situations: it may not contradict itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

from phasegate.core.workload import parse_workload
from phasegate.diagnose import Ask, Level, Observations
from phasegate.measure.measure_for_diagnosis import MeasuredForDiagnosis
from phasegate.report.decision_record import Circumstances, decision_record

WORKLOAD = parse_workload("name: report\ninput_tokens: 200\noutput_tokens: 800\nrequests: 2\n", "report.yaml")
WHERE = Circumstances("phasegate decide report", "2026-01-01 00:00 UTC", "some server", "some client", 1)

REPORT = Ask("report[in=200,out=800]", 200, 800, ttft=0.0996, ttfo=0.0996, tpot=0.00475, total=3.893)
BRIEF = Ask("report-short-prompt[in=50,out=32]", 50, 32, ttft=0.0272, ttfo=0.0272, tpot=0.00462, total=0.17)
ALONE = Level(1, ttft=0.0978, tpot=0.00472, total=3.873, token_rate=206.4, usual_gap=0.00472)
DEAR = replace(ALONE, users=4, ttft=0.386, tpot=0.0221, total=18.08, token_rate=177.0, usual_gap=0.0221)
SHARED = replace(ALONE, users=4, ttft=0.15, tpot=0.0057, total=4.7, token_rate=690.0, usual_gap=0.0057)


def record(top: Level, **known: tuple[str, ...]) -> dict[str, str]:
    """Parts of the record by heading."""
    observations = Observations(asks=(REPORT, BRIEF), levels=(ALONE, top), **known)  # type: ignore[arg-type]
    text = decision_record(MeasuredForDiagnosis(WORKLOAD, None, None, observations), WHERE)  # type: ignore[arg-type]
    return {part.split("\n")[0]: part for part in text.split("\n## ")}


def test_what_will_not_help_is_not_decided_on() -> None:
    """Steps that cost in proportion to their streams: guessing is in vain, and is nowhere in the decision."""
    parts = record(DEAR)
    assert "low throughput with many users" in parts["What the figures show"]
    assert "peculative decoding: it acts on decode and saves nothing" in parts["What will not help"]
    assert "speculative" not in parts["Decision"]
    assert "First: **half the answer**" in parts["Decision"]
    assert "Bounds only, to be measured before they are believed: weights of half the bytes" in parts["Decision"]


def test_on_shared_steps_guessing_may_come_first_and_says_on_what_that_rests() -> None:
    """Nothing is found, so the server's levers come by what they save."""
    decision = record(SHARED)["Decision"]
    assert "First: **speculative decoding** (saves at most " in decision
    assert "rests on 4 guesses a step of which 70 % are right: assumed; a step's cost: measured" in decision


@pytest.mark.parametrize("known", [{"host": ("copy work changed by 30 %",)}, {"client": ("sent late",)}])
def test_doubtful_figures_are_measured_again_before_anything_is_decided(known: dict[str, tuple[str, ...]]) -> None:
    """The first finding is about the measurement; a quiet one has no such line."""
    assert "Only after measuring again" in record(DEAR, **known)["Decision"]
    assert "Only after" not in record(DEAR)["Decision"]


def test_only_a_simulated_server_is_called_so() -> None:
    """A reader must not take settings for an engine."""
    measured_for_diagnosis = MeasuredForDiagnosis(WORKLOAD, None, None, Observations(asks=(REPORT, BRIEF)))  # type: ignore[arg-type]
    assert "* Simulated: no model was run." in decision_record(measured_for_diagnosis, replace(WHERE, simulated=True))
    assert "Simulated" not in decision_record(measured_for_diagnosis, WHERE)
