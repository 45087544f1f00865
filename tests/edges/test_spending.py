"""What a run would cost is said beforehand and is what it then costs at most; a cap ends it before it is passed."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from phasegate.core.token_budget import Spending, load_spending, spending_of
from phasegate.core.workload import parse_workload, plan_blocks, plan_warmups
from tests.edges.quick_pytest import QuickPytest

WORKLOAD = parse_workload("input_tokens: [64, 256]\noutput_tokens: 8\nrequests: 3\nwarmups: 1\nprefix: repeated\n", "w")

SIMULATED = ("-q", "--perf-engine", "simulator", "--perf-engine-config", "speed=1")


def test_a_session_costs_what_its_plan_asks_for() -> None:
    plan = [*plan_warmups(WORKLOAD), *plan_blocks(WORKLOAD, np.random.default_rng(5))]
    assert spending_of(WORKLOAD) == Spending(
        len(plan), sum(one.input_tokens for one in plan), sum(one.output_tokens for one in plan)
    )
    assert spending_of(WORKLOAD, 5).requests == 1 + 5 * 2 * 3


def test_load_costs_its_blocks_and_never_less_than_what_is_begun() -> None:
    assert load_spending(WORKLOAD, 6) == Spending(6, 3 * 64 + 3 * 256, 48)
    assert load_spending(WORKLOAD, 7) == load_spending(WORKLOAD, 6) + Spending(1, 256, 8)


def test_a_dry_run_says_what_the_items_ask_for_and_sends_nothing(quick: QuickPytest, small: Path) -> None:
    done = quick.run("perf_tests/test_rows.py", *SIMULATED, "--perf-workloads", small, "--perf-dry-run")
    assert done.status == 0, done.output
    assert re.search(r"small +3 +192 +24\b", done.output), done.output
    assert re.search(r"counting prompt tokens +2 ", done.output), "the simulator's vocabulary is known"
    assert re.search(r"in all +5 +\d+ +26\b", done.output)
    assert "Nothing was sent" in done.output
    assert "passed" not in done.output
    assert "server   " not in done.output


def test_a_dry_run_of_the_gate_counts_sessions_and_says_what_they_may_come_to(
    quick: QuickPytest, small: Path, tmp_path: Path
) -> None:
    words = ("--perf-workloads", small, "--perf-baselines", tmp_path / "baselines")
    alone = quick.run("perf_tests/test_regression.py", *SIMULATED, *words, "--perf-dry-run")
    assert re.search(r"small +3 +192 +24\b", alone.output), (
        "nothing is stored that more sessions could be compared with"
    )
    session = tmp_path / "baselines" / "some-server" / "session.json"
    session.parent.mkdir(parents=True)
    session.write_text("{}")
    done = quick.run("perf_tests/test_regression.py", *SIMULATED, *words, "--perf-dry-run")
    assert re.search(r"small, 2 sessions +6 +384 +48\b", done.output), done.output
    assert "5 sessions instead of 2" in done.output


def test_a_run_within_its_cap_shows_what_it_spent(quick: QuickPytest, small: Path) -> None:
    words = ("--perf-workloads", small, "--perf-max-tokens-spent", "100000")
    done = quick.run("perf_tests/test_rows.py", *SIMULATED, *words)
    assert done.status == 0, done.output
    spent = re.search(r"sent +5 requests, 0 failed; at most ([\d,]+) of 100,000 tokens", done.output)
    assert spent is not None
    assert int(spent[1].replace(",", "")) >= 216


def test_a_run_that_would_pass_its_cap_is_undecided_and_says_what_to_do(quick: QuickPytest, small: Path) -> None:
    words = ("--perf-workloads", small, "--perf-max-tokens-spent", "130")
    done = quick.run("perf_tests/test_rows.py", *SIMULATED, *words)
    assert done.status == 13, done.output
    assert "--perf-max-tokens-spent 130 is used up" in done.output
    assert "2 inconclusive" in done.output
    assert "Traceback" not in done.output


def test_a_cap_that_is_no_number_of_tokens_is_wrong_usage(quick: QuickPytest, small: Path) -> None:
    words = ("--perf-workloads", small, "--perf-max-tokens-spent", "0")
    done = quick.run("perf_tests/test_rows.py", *SIMULATED, *words)
    assert done.status == 4
    assert "--perf-max-tokens-spent is 0; it must be at least 1" in done.output
