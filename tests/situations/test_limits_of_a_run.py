"""A cap on tokens and a budget of time end a run with what it has: reported, kept where it is whole, never INVALID_RUN
(A1, A2, issue 17)."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from phasegate.engines.simulator.engine import SimulatorEngine
from tests.edges.quick_pytest import Done, QuickPytest

STEADY = "step_seconds=0.005 prefill_tokens_per_second=20000"

TWO = ("first", "second")


@pytest.fixture
def server() -> Iterator[SimulatorEngine]:
    """A simulator whose log tells what it was really asked."""
    with SimulatorEngine.from_words(STEADY) as engine:
        yield engine


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two workloads of six requests each, 420 tokens a session, in this order."""
    (tmp_path / "workloads").mkdir()
    for name in TWO:
        text = "input_tokens: 64\noutput_tokens: 6\nrequests: 6\nwarmups: 0\n"
        (tmp_path / "workloads" / f"{name}.yaml").write_text(text)
    return tmp_path


def run(quick: QuickPytest, server: SimulatorEngine, folder: Path, *words: str) -> Done:
    return quick.run(
        "-q", "-rs", "--perf-base-url", server.base_url, "--perf-workloads", folder / "workloads",
        "--perf-baselines", folder / "baselines", "--perf-report", folder / "report.json", *words,
    )  # fmt: skip


def asked(server: SimulatorEngine) -> int:
    return sum(one.prompt_tokens + one.output_tokens for one in server.truths())


def counting(server: SimulatorEngine, quick: QuickPytest, folder: Path) -> int:
    """Tokens that a run sets aside before its first workload."""
    dry = run(quick, server, folder, "perf_tests/test_rows.py", "--perf-dry-run")
    found = re.search(r"^counting prompt tokens +26 +([\d,]+) +26$", dry.output, re.MULTILINE)
    assert found is not None, dry.output
    return int(found[1].replace(",", "")) + 26


def test_a_cap_reached_half_way_reports_what_was_measured(
    server: SimulatorEngine, folder: Path, quick: QuickPytest
) -> None:
    """A2: at the cap, everything that was already paid for was thrown away."""
    cap = counting(server, quick, folder) + 420 + 2 * 70
    done = run(quick, server, folder, "perf_tests/test_rows.py", "--perf-max-tokens-spent", str(cap))
    assert done.status in (0, 13), done.output
    assert asked(server) <= cap
    assert "INVALID_RUN" not in done.output
    report = json.loads((folder / "report.json").read_text())
    assert {one["name"] for one in report["workloads"]} == set(TWO), "both are shown, the second with what it has"


@pytest.mark.slow
def test_a_cap_below_the_first_workload_is_named_and_undecided(
    server: SimulatorEngine, folder: Path, quick: QuickPytest
) -> None:
    done = run(quick, server, folder, "perf_tests/test_rows.py", "--perf-max-tokens-spent", "300")
    assert done.status == 13, done.output
    assert "--perf-max-tokens-spent 300 is used up" in done.output
    assert asked(server) <= 300


def test_a_cap_in_the_middle_of_blocks_leaves_the_build_undecided_with_the_numbers_there_are(
    server: SimulatorEngine, folder: Path, quick: QuickPytest
) -> None:
    """Issue 17: INCONCLUSIVE with the cap named, and not INVALID_RUN without a number."""
    (folder / "workloads" / "second.yaml").unlink()
    # What counting costs is guessed high, by less than one of these blocks.
    text = "input_tokens: 400\noutput_tokens: 6\nrequests: 6\nwarmups: 0\n"
    (folder / "workloads" / "first.yaml").write_text(text)
    cap = 2 * counting(server, quick, folder) + 3 * 4 * 406
    with SimulatorEngine.from_words(STEADY) as other:
        done = run(
            quick, server, folder, "perf_tests/test_regression.py",
            "--perf-reference-url", other.base_url, "--perf-max-tokens-spent", str(cap),
        )  # fmt: skip
        assert asked(server) + asked(other) <= cap
    assert done.status == 13, done.output
    assert f"--perf-max-tokens-spent {cap} is used up" in done.output
    gate = json.loads((folder / "report.json").read_text())["gate"]
    assert gate["verdict"] == "INCONCLUSIVE"
    assert gate["rows"]
    assert all(row["ratio"] is not None for row in gate["rows"]), "what the whole blocks showed is told"


@pytest.mark.slow
def test_a_cap_that_two_workloads_do_not_fit_in_decides_one_and_names_the_other(
    server: SimulatorEngine, folder: Path, quick: QuickPytest
) -> None:
    """Better one of two decided than both of them begun; the build does not pass with half of it."""
    cap = 2 * counting(server, quick, folder) + 3 * 2 * 4 * 70
    with SimulatorEngine.from_words(STEADY) as other:
        done = run(
            quick, server, folder, "perf_tests/test_regression.py", "--perf-blocks", "5",
            "--perf-reference-url", other.base_url, "--perf-max-tokens-spent", str(cap),
        )  # fmt: skip
        assert asked(server) + asked(other) <= cap
    assert done.status == 13, done.output
    assert f"--perf-max-tokens-spent {cap} leaves no tokens for second" in " ".join(done.output.split())
    gate = json.loads((folder / "report.json").read_text())["gate"]
    assert gate["verdict"] == "INCONCLUSIVE"
    assert {(row["workload"], row["candidate_sessions"]) for row in gate["rows"]} == {("first[in=64,out=6]", 5)}


def test_sessions_that_were_measured_whole_are_stored_where_a_cap_ends_an_update(
    server: SimulatorEngine, folder: Path, quick: QuickPytest
) -> None:
    cap = counting(server, quick, folder) + 3 * 840 + 300
    done = run(
        quick, server, folder, "perf_tests/test_regression.py", "--update-baselines", "--perf-sessions", "5",
        "--perf-max-tokens-spent", str(cap),
    )  # fmt: skip
    assert done.status == 13, done.output
    assert len(list((folder / "baselines").rglob("*.json"))) == 3
    assert re.search(r"stored 3 of 5 sessions in .*--perf-max-tokens-spent", " ".join(done.output.split()))


@pytest.mark.slow
def test_a_candidate_whose_first_session_was_cut_is_undecided_and_no_broken_run(
    server: SimulatorEngine, folder: Path, quick: QuickPytest
) -> None:
    stored = run(quick, server, folder, "perf_tests/test_regression.py", "--update-baselines", "--perf-sessions", "2")
    assert stored.status == 0, stored.output
    cap = counting(server, quick, folder) + 420 + 100
    done = run(quick, server, folder, "perf_tests/test_regression.py", "--perf-max-tokens-spent", str(cap), "-v")
    assert done.status == 13, done.output
    rows = json.loads((folder / "report.json").read_text())["gate"]["rows"]
    missing = [row for row in rows if row["workload"].startswith("second") and row["gated"]]
    assert missing
    assert all(row["verdict"] == "INCONCLUSIVE" for row in missing)
    assert all(f"was not measured: --perf-max-tokens-spent {cap}" in row["reason"] for row in missing)


@pytest.mark.slow
def test_levels_that_a_cap_ended_keep_their_rounds(server: SimulatorEngine, folder: Path, quick: QuickPytest) -> None:
    cap = counting(server, quick, folder) + 16 * 76
    done = run(
        quick, server, folder, "perf_tests/test_slo.py", "--perf-slo", "ttft:p95:30s", "--perf-concurrency", "1", "2",
        "--perf-load-requests", "40", "--perf-max-tokens-spent", str(cap),
    )  # fmt: skip
    assert done.status == 13, done.output
    assert f"--perf-max-tokens-spent {cap} is used up" in done.output
    assert asked(server) <= cap
    assert json.loads((folder / "report.json").read_text())["load"]["levels"], "what was measured is in the report"


SLOW = "step_seconds=0.02 prompt_seconds=0.2 prefill_tokens_per_second=20000"


@pytest.mark.slow
def test_a_paired_run_ends_at_its_budget_with_what_it_has(folder: Path, quick: QuickPytest) -> None:
    """A1: planned "about 22.6 s" of a budget of 30 s, it took 136 s. Here a block takes 2.7 s, and 5 are the least."""
    with SimulatorEngine.from_words(SLOW) as one, SimulatorEngine.from_words(SLOW) as other:
        began = time.monotonic()
        done = run(
            quick, one, folder, "perf_tests/test_regression.py",
            "--perf-reference-url", other.base_url, "--perf-budget", "17s",
        )  # fmt: skip
        took = time.monotonic() - began
    assert done.status == 13, done.output
    assert "stopped  --perf-budget 17.0 s" in done.output
    assert "too short" in done.output, "the plan says so beforehand"
    assert took < 17 * 1.5, f"{took} s; the start of pytest and the report come on top"


@pytest.mark.slow
def test_blocks_beyond_the_first_need_room_in_the_budget(folder: Path, quick: QuickPytest) -> None:
    """Blocks that undecided comparisons would get are measured only where the budget leaves time for them."""
    (folder / "policy.yaml").write_text("tolerance: {prefill: 0.0005, decode: 0.0005, both: 0.0005}\ngate: always\n")
    with SimulatorEngine.from_words(STEADY) as one, SimulatorEngine.from_words(STEADY) as other:
        began = time.monotonic()
        done = run(
            quick, one, folder, "perf_tests/test_regression.py", "--perf-policy", str(folder / "policy.yaml"),
            "--perf-reference-url", other.base_url, "--perf-blocks", "400", "--perf-budget", "25s",
        )  # fmt: skip
        took = time.monotonic() - began
    assert done.status == 13, done.output
    assert "stopped  --perf-budget 25.0 s" in done.output
    assert took < 25 * 1.5


@pytest.mark.slow
def test_a_law_does_not_extend_itself_beyond_the_budget(tmp_path: Path, quick: QuickPytest) -> None:
    """A law that three blocks cannot decide would be measured twice more; there is no time for it."""
    (tmp_path / "workloads").mkdir()
    text = "input_tokens: [32, 64]\noutput_tokens: 32\nrequests: 4\nwarmups: 0\n"
    (tmp_path / "workloads" / "prompt-length.yaml").write_text(text)
    with SimulatorEngine.from_words(SLOW) as one:
        began = time.monotonic()
        law = "perf_tests/test_prefill.py::test_ttft_rises_with_prompt_length"
        done = run(quick, one, tmp_path, law, "--perf-budget", "19s")
        took = time.monotonic() - began
    assert done.status == 13, done.output
    assert "--perf-budget 19.0 s" in done.output
    assert took < 19 * 1.5
