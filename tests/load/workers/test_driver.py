"""Who drives: one process, the number asked for, or as many as prove necessary."""

import dataclasses

import pytest

from phasegate.core.target import Target
from phasegate.load.driving import LoadResult
from phasegate.load.health import ClientHealth, WorkerHealth
from phasegate.load.workers.choice import WorkersAsked
from phasegate.load.workers.driver import (
    Auto,
    OneProcess,
    Several,
    calibrate_driver,
    driver_for,
    notes_of,
    worker_remark,
)
from phasegate.load.workers.job import Job
from phasegate.measure.own_error import Calibrations
from tests.load.workers.test_coordinator import requests
from tests.load.workers.thread_pool import ThreadPool
from tests.loopback import Loopback, steady

WELL = ClientHealth(0.001, 0.002, 0.1, 0.1, 0, 0.0, 100, 0.0001, 0.001)
LATE = dataclasses.replace(WELL, loop_lag_p99=0.2)
BUSY = dataclasses.replace(WELL, cpu_share=0.97, cpu_seconds=9.0)


def result(health: ClientHealth, *, workers: tuple[WorkerHealth, ...] = (), interrupted: bool = False) -> LoadResult:
    return LoadResult((), health, 4, 4, 0.0, 1.0, (), interrupted, {}, workers=workers)


@pytest.mark.parametrize("health", [LATE, BUSY])
def test_auto_doubles_while_the_client_is_the_limit_up_to_the_cores_but_one(health: ClientHealth) -> None:
    """Seven workers on eight cores: 1, 2, 4, 7."""
    auto = Auto(cores=8)
    counts = [auto.workers]
    while (said := auto.grow(result(health))) is not None:
        counts.append(auto.workers)
        assert f"{counts[-1]} worker processes instead of {counts[-2]}" in said
    assert counts == [1, 2, 4, 7]
    assert auto.setup == "7 worker processes"


def test_auto_stays_where_it_is_while_the_client_keeps_up() -> None:
    auto = Auto(cores=8)
    assert auto.grow(result(WELL)) is None
    assert auto.workers == 1
    assert auto.setup == ""
    assert notes_of(auto, result(WELL)) == ()


def test_a_stopped_run_asks_for_no_more_workers() -> None:
    assert Auto(cores=8).grow(result(BUSY, interrupted=True)) is None


@pytest.mark.parametrize(("cores", "words"), [(1, "on 1 core,"), (2, "on 2 cores,")])
def test_with_one_or_two_cores_auto_stays_at_one_and_says_so(cores: int, words: str) -> None:
    """Beside what made it want more."""
    auto = Auto(cores)
    assert auto.grow(result(BUSY)) is None
    warning, remark = notes_of(auto, result(BUSY))
    assert "97 % of a core" in warning
    assert f"--perf-workers auto stays at 1 {words}" in remark


def test_auto_drives_in_this_process_at_first() -> None:
    with Loopback(steady(2, first=0.01, gap=0.01)) as server:
        came = Auto(cores=8).drive(Job(Target(server.base_url, "m"), requests(4), 2))
    assert came.workers == ()
    assert len(came.recordings) == 4


def test_the_option_chooses_the_driver() -> None:
    assert isinstance(driver_for(WorkersAsked()), Auto)
    assert isinstance(driver_for(WorkersAsked(processes=1)), OneProcess)
    three = driver_for(WorkersAsked(processes=3))
    assert isinstance(three, Several)
    assert three.setup == "3 worker processes"
    three.close()


def test_every_worker_has_its_figures_in_the_remark() -> None:
    workers = (
        WorkerHealth(1, "a", 5, 0, None, WELL),
        WorkerHealth(2, "b", 5, 0, None, LATE),
        WorkerHealth(3, "b", 5, 5, "killed by signal 9", None),
    )
    assert worker_remark(result(LATE, workers=workers)) == (
        "sent by 3 workers on 2 machines: event loops late by 1.0 / 200.0 / - ms (p99), 10% / 10% / - of a core used"
    )


def test_that_several_sent_is_no_doubt_about_the_client() -> None:
    """A diagnosis would take it for one."""
    fine = result(WELL, workers=(WorkerHealth(1, "a", 5, 0, None, WELL),))
    assert notes_of(Several(ThreadPool(), 3), fine) == ()
    assert worker_remark(result(WELL)) is None


def test_workers_are_calibrated_as_they_send_and_under_their_own_name() -> None:
    """Against a server of known timing; workers elsewhere would not reach it, and are said to be uncalibrated."""
    calibrations = Calibrations()
    several = Several(ThreadPool(), 2)
    calibrate_driver(several, calibrations, [2], None, "auto")
    error = calibrations.at(2, setup="2 threads")
    assert error is not None
    assert error.lost == 0
    assert calibrations.at(2) is None

    class Elsewhere(ThreadPool):
        def local(self) -> bool:
            return False

    far = Calibrations()
    calibrate_driver(Several(Elsewhere(), 2), far, [2], None, "auto")
    assert far.known == {}
    assert "other machines" in (far.failed or "")
