"""A law that breaks while other processes use the engine's host is not called broken, and never kept either."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from phasegate.engines.host_probe import FOREIGN_LIMIT, HostWatch, Mark
from phasegate.stats.laws import held_back
from phasegate.stats.outcome import LawResult, Outcome
from tests.edges.quick_pytest import QuickPytest

WHY = "other processes used 1.60 cores (limit 0.25)"

FLAT = "perf_tests/test_decode.py::test_tpot_is_flat_in_output_length"


@pytest.mark.parametrize("outcome", list(Outcome))
@pytest.mark.parametrize("disturbed", [None, WHY])
def test_only_a_breach_is_held_back_and_nothing_becomes_a_pass(outcome: Outcome, disturbed: str | None) -> None:
    """What was seen stays in the reason, behind what to do."""
    given = LawResult("a law", outcome, "surely beyond 10 %", 0.3, 0.2, 0.4, "fraction", 0.95, 8, None)
    told = held_back(given, disturbed)
    if disturbed is None or outcome is Outcome.PASS:
        assert told == given
    elif outcome is Outcome.INCONCLUSIVE:
        assert told.reason == f"{WHY} meanwhile: measure on a quieter machine; seen: {given.reason}"
        assert told.outcome is Outcome.INCONCLUSIVE
    else:
        assert told.outcome is Outcome.INCONCLUSIVE
        assert told.reason == f"{WHY} meanwhile, so no breach is proven: measure on a quieter machine; seen: " + (
            given.reason
        )
        assert (told.effect, told.needed) == (given.effect, None)


def test_who_used_the_host_is_named() -> None:
    """Numbers alone send nobody to the right process (A15); those of one name count together."""
    watch = Steady()
    others = {(1, 0.0): ("backup", 5.0), (2, 0.0): ("cc1", 0.0), (3, 0.0): ("idle", 7.0)}
    watch.now = began = Mark(0.0, 0.0, 0.0, 0.0, others)
    later = {(1, 0.0): ("backup", 9.0), (2, 0.0): ("cc1", 6.0), (3, 0.0): ("idle", 7.1), (4, 5.0): ("cc1", 6.0)}
    watch.now = Mark(10.0, 16.0, 0.0, 0.0, later)
    said = watch.disturbed_since(began)
    assert said == "other processes used 1.60 cores (cc1 1.2, backup 0.4; limit 0.25)"


def test_this_process_is_not_among_the_others() -> None:
    found = HostWatch().mark().others
    assert os.getpid() not in {pid for pid, _ in found}
    assert all(seconds >= 0 for _, seconds in found.values())


class Steady(HostWatch):
    """A watch whose clocks a test moves."""

    def __init__(self) -> None:
        self.now = Mark(0.0, 0.0, 0.0, 0.0)
        super().__init__()

    def mark(self) -> Mark:
        """What the test says."""
        return self.now


def test_a_watch_tells_a_busy_part_of_a_session_from_a_quiet_one() -> None:
    """Ten minutes of which the last ten seconds were busy: the whole hides them, the part does not."""
    watch = Steady()
    watch.now = last = Mark(600.0, 60.0, 0.0, 55.0)
    assert watch.disturbed_since() is None
    watch.now = Mark(610.0, 86.0, 0.0, 65.0)
    assert watch.disturbed_since(last) == WHY
    assert watch.disturbed_since() is None
    assert FOREIGN_LIMIT == 0.25
    watch.now = Mark(610.0, 70.0, 0.05 * 10 * (os.cpu_count() or 1), 65.0)
    assert watch.disturbed_since(last) == "the hypervisor took 5.0% of the time (limit 3%)"


def test_a_broken_law_on_a_busy_host_ends_inconclusive(quick: QuickPytest, tmp_path: Path) -> None:
    """The same server is called broken where nobody watches: with the watch, its items say who else was at work."""
    text = "input_tokens: 64\noutput_tokens: [8, 48]\nrequests: 5\nwarmups: 0\n"
    (tmp_path / "output-length.yaml").write_text(text, encoding="utf-8")
    options = (FLAT, "--perf-workloads", tmp_path, "--perf-engine", "simulator", "--perf-requests", "5")
    server = ("--perf-engine-config", "speed=8 tpot_growth_seconds=0.001")
    alone = quick.run(*options, *server)
    assert alone.status == 1, alone.output
    busy = quick.run(*options, *server, "-p", "tests.edges.busy_host")
    assert busy.status == 13, busy.output
    assert "other processes used 1.60 cores (limit 0.25) meanwhile" in " ".join(busy.output.split())
