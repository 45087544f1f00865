"""A run ends with one word: its exit status, its summary and its report say the same, and what it covers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.edges.desk import SPEED, Desk
from tests.edges.quick_pytest import Done, QuickPytest
from tests.situations.planted import Oddities, planted

SLOWER = "decode_factor=2.5"

STEADY = Oddities(first=0.03, gap=0.005)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory, quick: QuickPytest) -> Desk:
    """A desk with four accepted sessions of a healthy server."""
    desk = Desk(tmp_path_factory.mktemp("desk"), quick)
    done = desk.run("", "--update-baselines", "--perf-sessions", "4")
    assert done.status == 0, done.output
    assert ended(done) == ("PASS", 0)
    return desk


def ended(done: Done) -> tuple[str, int]:
    """The word and the status that the summary names."""
    section = done.output.rpartition("- result -")[2]
    line = next(line for line in section.splitlines() if "exit status" in line)
    word, _, rest = line.partition("exit status")
    return word.strip(), int(rest.split(":")[0])


def headline(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))["headline"]


def said(done: Done) -> str:
    """The output with its line breaks gone."""
    return " ".join(done.output.split())


@pytest.mark.alone
@pytest.mark.parametrize(
    "selection",
    [
        ("-k", "ttft"),
        pytest.param(("-k", "everything"), marks=pytest.mark.slow),
        pytest.param(("-m", "perf", "-k", "not tpot"), marks=pytest.mark.slow),
        pytest.param(
            ("--deselect", "perf_tests/test_regression.py::test_no_regression[small[in=96,out=8]-tpot]"),
            marks=pytest.mark.slow,
        ),
    ],
    ids=["-k ttft", "-k everything", "-m and -k", "--deselect"],
)
def test_a_regression_counts_whichever_tests_of_the_gate_were_chosen(
    desk: Desk, tmp_path: Path, selection: tuple[str, ...]
) -> None:
    """C047: the test of the metric that got slower is left out."""
    done = desk.run(SLOWER, *selection, "--perf-report", str(tmp_path / "r.json"))
    assert done.status == 1, done.output
    assert ended(done) == ("REGRESSION", 1)
    # The other selections keep the test that speaks of whole requests, which got slower as well.
    assert ("whose test was left out" in said(done)) is (selection == ("-k", "ttft"))
    head = headline(tmp_path / "r.json")
    assert head["verdict"] == "REGRESSION"
    assert head["judged"] == ["3 of 3 comparisons"]


@pytest.mark.alone
def test_a_gate_that_was_left_out_is_named_as_not_judged(desk: Desk, tmp_path: Path) -> None:
    """A green run says what it is green about: here a test of one's own, and no comparison."""
    own = tmp_path / "test_own.py"
    own.write_text("def test_it(perf_run):\n    assert perf_run('small').measured\n", encoding="utf-8")
    done = desk.run(SLOWER, str(own), "-k", "test_it", "--perf-report", str(tmp_path / "r.json"))
    assert done.status == 0, done.output
    assert ended(done) == ("PASS", 0)
    head = headline(tmp_path / "r.json")
    assert head["verdict"] == "PASS"
    assert head["judged"] == ["1 other test"]
    assert "whether it got slower (no test of it was chosen)" in head["not_judged"]


@pytest.mark.parametrize(("ci", "status"), [("false", 0), ("true", 14)])
def test_only_a_pipeline_fails_without_a_baseline(tmp_path: Path, quick: QuickPytest, ci: str, status: int) -> None:
    """C023: CI=false is no pipeline. The word is the same either way, and never a PASS."""
    desk = Desk(tmp_path, quick)
    done = desk.run("", "-k", "everything", "--perf-report", str(tmp_path / "r.json"), ci=ci)
    assert done.status == status, done.output
    assert ended(done) == ("NO_BASELINE", status)
    head = headline(tmp_path / "r.json")
    assert head["verdict"] == "NO_BASELINE"
    assert "whether it got slower (no baseline)" in head["not_judged"]


def test_an_undecided_law_stands_above_a_missing_baseline_that_is_let_pass(tmp_path: Path, quick: QuickPytest) -> None:
    """The report said NO_BASELINE while the exit status was that of INCONCLUSIVE."""
    own = tmp_path / "test_own.py"
    own.write_text(
        "from phasegate.pytest_plugin.outcomes import Judged\n\n\n"
        "def test_law(perf_lab):\n    raise Judged('INCONCLUSIVE', 'measure 8 more repetitions')\n",
        encoding="utf-8",
    )
    done = Desk(tmp_path, quick).run(
        "", str(own), "--missing-baseline", "skip", "--perf-report", str(tmp_path / "r.json"),
        "--perf-report", str(tmp_path / "r.md"),
    )  # fmt: skip
    assert done.status == 13, done.output
    assert ended(done) == ("INCONCLUSIVE", 13)
    assert headline(tmp_path / "r.json")["verdict"] == "INCONCLUSIVE"
    assert "INCONCLUSIVE:" in (tmp_path / "r.md").read_text(encoding="utf-8").splitlines()[0]


def test_a_comparison_that_gates_nothing_is_inconclusive(desk: Desk, tmp_path: Path) -> None:
    """Every row only informs, so every test is skipped with a word; that was green."""
    policy = tmp_path / "policy.yaml"
    policy.write_text("rules:\n  - {workload: '*', gate: never}\n", encoding="utf-8")
    done = desk.run("", "--perf-policy", str(policy), "--perf-report", str(tmp_path / "r.json"))
    assert done.status == 13, done.output
    assert ended(done) == ("INCONCLUSIVE", 13)
    assert headline(tmp_path / "r.json")["verdict"] == "INCONCLUSIVE"


SIMULATOR = ("-q", "--perf-engine", "simulator", "--perf-engine-config", f"{SPEED} speed=20")


@pytest.mark.parametrize(
    ("tests", "options", "word"),
    [
        ("perf_tests/test_decode.py", ("--benchmark-only",), "NOT_MEASURED"),
        ("perf_tests/test_rows.py", ("--benchmark-skip",), "NOT_MEASURED"),
        ("perf_tests/test_arrivals.py", (), "NOT_MEASURED"),
    ],
    ids=["all skipped", "rows skipped", "nothing asked"],
)
def test_nothing_measured_is_not_green(
    quick: QuickPytest, small: Path, tmp_path: Path, tests: str, options: tuple[str, ...], word: str
) -> None:
    report = tmp_path / "r.json"
    done = quick.run(tests, *SIMULATOR, "--perf-workloads", small, "--perf-report", report, *options)
    assert done.status == 15, done.output
    assert ended(done) == (word, 15)
    assert "none came to measure" in said(done)
    head = headline(report)
    assert head["verdict"] == word
    assert "none came to measure" in head["how_much"]


def test_rows_are_measured_under_benchmark_only(quick: QuickPytest, small: Path, tmp_path: Path) -> None:
    """C020: pytest-benchmark skipped the tests that show its rows, and the run was green without a file."""
    rows = tmp_path / "rows.json"
    done = quick.run(
        "perf_tests/test_rows.py", "perf_tests/test_decode.py", *SIMULATOR, "--perf-workloads", small,
        "--benchmark-only", f"--benchmark-json={rows}",
    )  # fmt: skip
    assert done.status == 0, done.output
    assert len(json.loads(rows.read_text(encoding="utf-8"))["benchmarks"]) == 2
    assert "2 passed, 4 skipped" in done.output
    assert ended(done) == ("NOT_JUDGED", 0), "rows show what was measured and claim nothing"
    assert "4 tests skipped" in said(done)


ENDS_EARLY = """\
import pytest


def test_a(perf_run):
    perf_run("small")


def test_b(perf_run):
    pytest.exit("enough", returncode={status})
"""


@pytest.mark.parametrize("status", [0, 1])
@pytest.mark.parametrize("update", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_run_that_something_ended_early_is_no_pass(
    quick: QuickPytest, small: Path, tmp_path: Path, status: int, update: bool
) -> None:
    """`pytest.exit` after the first test: it was a PASS with status 0, and an update stored its sessions."""
    (tmp_path / "test_it.py").write_text(ENDS_EARLY.format(status=status), encoding="utf-8")
    report, kept = tmp_path / "r.json", tmp_path / "baselines"
    more = ("perf_tests/test_regression.py", "--update-baselines", "--perf-sessions", "1") if update else ()
    with planted(STEADY) as server:
        done = quick.run(
            *more, tmp_path / "test_it.py", "-q", "--perf-base-url", server.base_url, "--perf-model", "m",
            "--perf-workloads", small, "--perf-baselines", kept, "--perf-report", report,
        )  # fmt: skip
    assert done.status == 2, done.output
    assert ended(done) == ("INTERRUPTED", 2)
    assert "test not reached" in said(done) or "tests not reached" in said(done)
    assert headline(report)["verdict"] == "INTERRUPTED"
    assert not kept.exists()


@pytest.mark.parametrize("selection", [("-k", "zzz"), ("-m", "not perf"), ("--deselect", "perf_tests")])
def test_a_selection_that_leaves_out_every_test_says_so(
    quick: QuickPytest, small: Path, tmp_path: Path, selection: tuple[str, ...]
) -> None:
    """The reports said NOT_MEASURED and the terminal said nothing."""
    report = tmp_path / "r.json"
    done = quick.run("perf_tests", *SIMULATOR, "--perf-workloads", small, "--perf-report", report, *selection)
    assert done.status == 5, done.output
    assert ended(done) == ("NOT_MEASURED", 5)
    assert "the selection left out every test" in said(done)
    assert headline(report)["verdict"] == "NOT_MEASURED"


@pytest.mark.parametrize("option", ["--perf-reference-url=http://127.0.0.1:9/v1", "--perf-reference-config=speed=2"])
def test_an_update_with_a_reference_is_refused_before_it_measures(
    quick: QuickPytest, small: Path, tmp_path: Path, option: str
) -> None:
    """C022: the reference was passed over without a word, and the run was a PASS."""
    done = quick.run(
        "perf_tests", *SIMULATOR, "--perf-workloads", small, "--perf-baselines", tmp_path / "b",
        "--update-baselines", option,
    )  # fmt: skip
    assert done.status == 4, done.output
    assert f"{option.split('=')[0]} compares with a reference and --update-baselines records" in done.output
    assert not (tmp_path / "b").exists()


def test_an_update_and_a_gate_of_which_nothing_can_be_used_say_why(
    quick: QuickPytest, small: Path, tmp_path: Path
) -> None:
    """They said that no test came to measure, that there was no baseline, and that a test had judged something."""
    own = tmp_path / "test_own.py"
    own.write_text("def test_it(perf_run):\n    perf_run('small')\n", encoding="utf-8")
    with planted(Oddities(fail_every=2)) as server:
        where = ("-q", "--perf-base-url", server.base_url, "--perf-model", "m", "--perf-workloads", small)
        update = quick.run("perf_tests/test_regression.py", *where, "--update-baselines", "--perf-sessions", "1")
        judged = quick.run("perf_tests/test_regression.py", own, *where)
    for done in (update, judged):
        assert done.status == 15, done.output
        assert ended(done) == ("INVALID_RUN", 15)
        assert " judged:" not in said(done).rpartition("- result -")[2].replace("not judged:", "")
    assert "baselines not updated: no session could be measured" in said(update)
    assert "whether it got slower (the run is invalid)" in said(judged)


def test_a_missing_workload_is_named_where_the_test_that_says_so_was_left_out(
    quick: QuickPytest, small: Path, tmp_path: Path
) -> None:
    """Status 15 stood there without a reason."""
    with planted(STEADY) as server:
        options = (
            "perf_tests/test_regression.py", "-q", "--perf-base-url", server.base_url, "--perf-model", "m",
            "--perf-workloads", small, "--perf-baselines", tmp_path / "b", "--perf-sessions", "1",
        )  # fmt: skip
        assert quick.run(*options, "--update-baselines").status == 0
        (small / "small.yaml").rename(small / "other.yaml")
        done = quick.run(*options, "-k", "ttft")
    assert done.status == 15, done.output
    assert ended(done) == ("INVALID_RUN", 15)
    assert "small" in said(done).rpartition("exit status 15:")[2].split(" not judged:")[0]


@pytest.mark.parametrize(
    ("tests", "options"),
    [
        ("perf_tests/test_decode.py", ("--update-baselines",)),
        ("perf_tests", ("--update-baselines", "-k", "prefill")),
        ("perf_tests", ("--update-baselines", "--ignore=perf_tests/test_regression.py")),
        ("tests/words/test_units.py", ("--update-baselines",)),
        ("perf_tests/test_decode.py", ("--perf-slo", "ttft:p95:1ms")),
        ("perf_tests/test_prefill.py", ("--perf-reference-url=http://127.0.0.1:9/v1",)),
    ],
)
def test_an_option_that_no_chosen_test_hears_ends_the_run_before_it_measures(
    quick: QuickPytest, tmp_path: Path, tests: str, options: tuple[str, ...]
) -> None:
    """C022: an update with a selection that stores nothing was green."""
    done = quick.run(tests, *SIMULATOR, "--perf-baselines", tmp_path, *options)
    assert done.status == 4, done.output
    assert "which was not chosen" in done.output
    assert options[0].split("=")[0] in done.output
    assert list(tmp_path.iterdir()) == []


def test_an_update_whose_tests_are_all_skipped_is_not_green(quick: QuickPytest, small: Path, tmp_path: Path) -> None:
    """The tests of the gate are chosen, and something else skips them."""
    (tmp_path / "test_it.py").write_text(
        "import pytest\n\n\ndef test_run(perf_run):\n    perf_run('small')\n\n\n"
        "@pytest.mark.skip\ndef test_gate(perf_gate):\n    pass\n",
        encoding="utf-8",
    )
    done = quick.run(tmp_path / "test_it.py", *SIMULATOR, "--perf-workloads", small, "--update-baselines", cwd=tmp_path)
    assert done.status == 15, done.output
    assert ended(done) == ("INVALID_RUN", 15)
    assert "baselines not updated" in said(done)


def test_a_run_in_parallel_measures_nothing_and_says_so_once(quick: QuickPytest, small: Path, tmp_path: Path) -> None:
    """C021: status 1 is that of a regression."""
    pytest.importorskip("xdist")
    report = tmp_path / "r.json"
    done = quick.run(
        "perf_tests/test_decode.py", *SIMULATOR, "--perf-workloads", small, "-n", "2", "--perf-report", report
    )
    assert done.status == 15, done.output
    assert ended(done) == ("NOT_MEASURED", 15)
    assert said(done).count("measuring in parallel would measure the neighbours") == 1
    assert headline(report)["verdict"] == "NOT_MEASURED"


def test_a_run_that_stops_at_its_first_failure_says_what_it_did_not_reach(
    quick: QuickPytest, small: Path, tmp_path: Path
) -> None:
    """-x before the gate: the word is that of what was judged, and the rest is named."""
    own = tmp_path / "test_a.py"
    own.write_text("def test_it(perf_lab):\n    assert False\n", encoding="utf-8")
    done = quick.run(own, "perf_tests/test_regression.py", "-x", *SIMULATOR, "--perf-workloads", small)
    assert done.status == 1, done.output
    assert ended(done) == ("FAIL", 1)
    assert "whether it got slower (its tests did not come to measure)" in said(done)
    assert "3 tests not reached" in said(done)


def test_collecting_only_and_a_dry_run_judge_nothing(quick: QuickPytest, small: Path) -> None:
    for option in ("--collect-only", "--perf-dry-run"):
        done = quick.run("perf_tests", *SIMULATOR, "--perf-workloads", small, option)
        assert done.status == 0, done.output
        assert "- result -" not in done.output
