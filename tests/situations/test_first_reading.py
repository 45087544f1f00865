"""Lines that a new user misread, each as it is to be read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from phasegate.cli import main
from phasegate.gate.break_cause import cause_of
from phasegate.gate.slo import parse_objective
from phasegate.report.wrapping import wrapped
from tests.edges.quick_pytest import QuickPytest
from tests.load_runs import level_run

SIMULATOR = ("--perf-engine", "simulator", "--perf-engine-config", "speed=5")

TABLE = "session,workload,metric,value\n" + "".join(
    f"s{session},chat,ttft,0.{100 + session + row}\n" for session in range(4) for row in range(5)
)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A readable result in a folder of its own."""
    path = tmp_path / "results" / "one.csv"
    path.parent.mkdir()
    path.write_text(TABLE)
    return path


def refused(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str]:
    """Status and the line on stderr, or on stdout where the result was judged."""
    status = main([*map(str, arguments)])
    said = capsys.readouterr()
    return status, said.err or said.out


@pytest.mark.parametrize("of", ["the folder", "a link to it"])
def test_a_result_that_judges_itself_is_remarked(table: Path, of: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A baseline folder that holds the candidate as well was a green result without a word."""
    table.with_name("two.csv").write_text(TABLE.replace("0.10", "0.11"))
    (table.parent.parent / "link").symlink_to(table.parent)
    baseline = {"the folder": table.parent, "a link to it": table.parent.parent / "link"}[of]
    _, said = refused(capsys, "compare", baseline, table)
    assert f"warning: {table} lies in the baseline {baseline} and is judged by itself as well; move it out" in said
    _, said = refused(capsys, "compare", table, table.with_name("two.csv"))
    assert "judged by itself" not in said


def test_a_missing_table_is_not_recorded_by_pytest(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command that was suggested would have written something else elsewhere."""
    status, said = refused(capsys, "compare", table.with_name("none.csv"), table)
    assert status == 4
    assert "correct the path, or keep the results of an accepted build there" in said
    assert "pytest perf_tests" not in said


@pytest.mark.parametrize("command", ["compare", "report", "explain"])
@pytest.mark.parametrize("page", ["<!doctype html>\n<title>report</title>", "\n<?xml version='1.0'?><testsuites/>"])
def test_a_page_is_no_table(
    table: Path, command: str, page: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was one whose column 'session' is missing."""
    path = tmp_path / "report.html"
    path.write_text(page)
    status, said = refused(capsys, command, *([table] if command == "compare" else []), path)
    assert status == (5 if command == "compare" else 2)
    assert f"{path}: is a page for readers" in said
    assert "name the .json or the sessions of that run" in said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--perf-budget", "0s"), "--perf-budget is 0s; it must be more than nothing"),
        (("--perf-workloads", "nowhere"), "nowhere: no such folder; workload files are looked for in it"),
    ],
)
def test_what_is_not_there_is_said_so(quick: QuickPytest, options: tuple[str, ...], said: str) -> None:
    """Before anything is measured."""
    done = quick.run("perf_tests/test_regression.py", *SIMULATOR, *options)
    assert done.status == 4
    assert said in done.output


ADDRESSES = ["127.0.0.1:1/v1", "ftp://127.0.0.1/v1", "http://127.0.0.1:1/v1/chat/completions"]


@pytest.mark.parametrize("address", ADDRESSES)
def test_what_is_no_address_is_wrong_usage_of_a_probe(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    """2, whatever is wrong with it; it was 5, as of a server that does not answer."""
    status, said = refused(capsys, "probe", "--base-url", address, "--model", "m")
    assert status == 2
    assert said.startswith(f"phasegate probe: base URL '{address}'")


def test_what_is_no_address_is_wrong_usage_of_a_run(quick: QuickPytest) -> None:
    """4, whatever is wrong with it; without http:// it was 15."""
    for address in ADDRESSES:
        done = quick.run("perf_tests/test_regression.py", "--perf-base-url", address)
        assert done.status == 4, done.output
        assert f"ERROR: base URL '{address}'" in done.output


def test_a_dry_run_says_what_the_budget_changes(quick: QuickPytest, small: Path) -> None:
    """It counted everything and said nothing of the budget beside it."""
    asked = ("perf_tests/test_regression.py", *SIMULATOR, "--perf-workloads", small, "--perf-dry-run")
    assert "Within --perf-budget it may be less" in quick.run(*asked, "--perf-budget", "1m").output
    assert "--perf-budget" not in quick.run(*asked).output


def test_a_broken_objective_is_never_beside_a_line_that_nothing_is_slow(quick: QuickPytest, small: Path) -> None:
    """Also where one user alone breaks it, so that no rule about load looks."""
    done = quick.run(
        "perf_tests/test_slo.py", *SIMULATOR, "--perf-workloads", small,
        "--perf-concurrency", "1", "--perf-load-requests", "10", "--perf-slo", "ttft:p50:1ms",
    )  # fmt: skip
    said = " ".join(done.output.split())
    assert done.status == 1
    assert "nothing that was measured is slow" not in said
    assert "broken objectives: ttft:p50:1ms with 1 at a time (prefill)" in said


@pytest.mark.parametrize(
    ("single", "level", "said"),
    [
        (1.0, 8.0, "TTFT is 900 ms, 100.0 ms from one user; "),
        (4.0, 8.0, "TTFT is 900 ms, 100.0 ms with 4 at a time; "),
        (8.0, 8.0, "TTFT is 900 ms; "),
    ],
)
def test_a_cause_names_the_level_that_it_compares_with(single: float, level: float, said: str) -> None:
    """It called every lowest level one user, and compared a level with itself."""
    few, many = level_run(single, [0.1] * 10), level_run(level, [0.9] * 10)
    found = cause_of(parse_objective("ttft:p50:200ms", source="test"), few, many)
    assert found.reason.startswith(said)
    assert "explains 900 ms" not in found.reason


def test_a_cause_of_throughput_names_its_rate() -> None:
    """An open loop has no users."""
    few, many = (replace(level_run(rate, [ttft] * 10), by_rate=True) for rate, ttft in ((1.0, 0.1), (6.0, 0.9)))
    found = cause_of(parse_objective("ttft:p50:200ms", source="test"), few, many)
    assert found.reason.startswith("TTFT is 900 ms, 100.0 ms at 1 requests/s; ")


def test_no_unit_begins_a_line() -> None:
    """``above the tolerance of 10.0`` and below it ``%``."""
    text = "95 % interval -3.3 % to +4.1 %; above the tolerance of 10.0 %; 2.59 s, 4 ms and 7.91 ms/token; 4 sessions"
    for width in range(12, 60):
        lines = wrapped(text, width)
        assert " ".join(lines) == text
        assert not any(line.split()[0].rstrip(";,") in ("%", "s", "ms", "ms/token") for line in lines)


def test_a_command_is_never_cut() -> None:
    """It is copied from there."""
    command = "--perf-baselines=/a/path/that/is/longer-than-the-whole-line"
    assert command in wrapped(f"record one with: pytest {command}", 30)
