"""``phasegate compare``: tables, folders, JSON, and one verdict, one status and one line for every fault."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phasegate.cli import main
from phasegate.core.session import Session
from phasegate.store import session_text
from tests.gate.test_judge import BASELINE, SAME, build, each
from tests.sessions import SERVER

FINDING_KEYS = [
    "workload", "metric", "phase", "gated", "verdict", "ratio", "ratio_low", "ratio_high", "p", "p_allowed", "mde",
    "tolerance", "fails_from", "sessions_needed", "baseline_needed", "baseline_sessions", "candidate_sessions",
    "reason",
]  # fmt: skip


def folder(path: Path, made: list[Session]) -> Path:
    path.mkdir()
    for one in made:
        (path / f"{one.session_id}.json").write_text(session_text(one), encoding="utf-8")
    return path


def table(path: Path, tpot: float, *, seed: int, sessions: int = 6, column: str = "session") -> Path:
    """A table of one workload, 20 requests a session, 1 % between sessions."""
    rng = np.random.default_rng(seed)
    lines = [f"{'session,' if column == 'block' else ''}{column},workload,metric,value"]
    for number in range(sessions):
        level = tpot * np.exp(rng.normal(0, 0.01))
        for value in level * np.exp(rng.normal(0, 0.02, 20)):
            lines.append(f"{'s,' if column == 'block' else ''}{number},chat,tpot,{value:.6f}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def compare(capsys: pytest.CaptureFixture[str], *args: object) -> tuple[int, dict[str, Any]]:
    status = main(["compare", *map(str, args), "--json"])
    out = capsys.readouterr().out
    return status, json.loads(out) if out else {}


def test_two_tables_of_equal_servers_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = table(tmp_path / "a.csv", 0.02, seed=1), table(tmp_path / "b.csv", 0.02, seed=2)
    status, result = compare(capsys, old, new)
    assert (status, result["verdict"]) == (0, "PASS")
    assert result["coverage"] == {"expected": 1, "compared": 1}


def test_a_slower_table_fails_with_1_and_names_phase_and_lever(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = table(tmp_path / "a.csv", 0.02, seed=1), table(tmp_path / "b.csv", 0.025, seed=2)
    assert main(["compare", str(old), str(new)]) == 1
    shown = capsys.readouterr().out
    assert "REGRESSION: chat tpot: " in shown
    assert "phase: decode" in shown
    assert "fewer output tokens" in shown


def test_paired_tables_are_read_by_block(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = table(tmp_path / "a.csv", 0.02, seed=1, sessions=8, column="block")
    new = table(tmp_path / "b.csv", 0.025, seed=2, sessions=8, column="block")
    status, result = compare(capsys, old, new, "--paired")
    assert (status, result["verdict"]) == (1, "REGRESSION")
    assert result["findings"][0]["baseline_sessions"] == 8


def test_the_json_holds_exactly_the_documented_keys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, result = compare(capsys, folder(tmp_path / "a", BASELINE), folder(tmp_path / "b", SAME))
    assert list(result) == ["verdict", "reason", "remedy", "coverage", "findings", "warnings"]
    assert all(list(finding) == FINDING_KEYS for finding in result["findings"])
    assert len(result["findings"]) == 4


def renamed(made: list[Session]) -> list[Session]:
    return each(lambda one: replace(one, workload=one.workload.replace("chat", "talk")), made)


FAULTS: dict[str, tuple[Callable[[], tuple[list[Session], list[Session]]], str, int, str]] = {
    "renamed workload": (lambda: (BASELINE, renamed(SAME)), "INVALID_RUN", 5, "talk[in=64,out=32] sends the same"),
    "missing workload": (
        lambda: (BASELINE, [replace(one, measurements=one.measurements[:2]) for one in SAME]),
        "INVALID_RUN", 5, "this run did not measure it",
    ),
    "empty run": (
        lambda: (BASELINE, [replace(one, measurements=()) for one in SAME]), "INVALID_RUN", 5, "measured nothing",
    ),
    "another GPU": (
        lambda: (BASELINE, [replace(one, server={**SERVER, "hardware": "H200"}) for one in SAME]),
        "NOT_COMPARABLE", 4, "hardware: cpu-4 -> H200",
    ),
    "another host": (
        lambda: (BASELINE, [replace(one, host="other") for one in SAME]), "NOT_COMPARABLE", 4, "ran on host other",
    ),
    "other units": (
        lambda: (BASELINE, each(lambda one: replace(one, samples=tuple(1e3 * v for v in one.samples)), SAME)),
        "NOT_COMPARABLE", 4, "one side is in milliseconds",
    ),
    "other token source": (
        lambda: (BASELINE, each(lambda one: replace(one, token_source=one.token_source and "logprobs"), SAME)),
        "NOT_COMPARABLE", 4, "counted by usage in the baseline and by logprobs here",
    ),
    "other workload": (
        lambda: (BASELINE, each(lambda one: replace(one, workload_digest="0ther"), SAME)),
        "NOT_COMPARABLE", 4, "sends something else",
    ),
    "baseline of one session": (lambda: (BASELINE[:1], SAME), "INCONCLUSIVE", 3, "session"),
    "no baseline": (lambda: ([], SAME), "NO_BASELINE", 4, "record one with"),
    "failed requests": (
        lambda: (BASELINE, each(lambda one: replace(one, failed=4), SAME)),
        "INVALID_RUN", 5, "requests of the run failed",
    ),
    "regression": (
        lambda: (BASELINE, build(3, 5, {("chat", "tpot"): 1.3}, start=100)),
        "REGRESSION", 1, "worse than noise explains",
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_has_its_verdict_its_status_and_one_clear_line(
    fault: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sides, verdict, status, said = FAULTS[fault]
    old, new = (folder(tmp_path / name, made) for name, made in zip("ab", sides(), strict=True))
    assert main(["compare", str(old), str(new)]) == status
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith(f"{verdict}: ")]
    assert len(lines) == 1
    assert said in lines[0]


@pytest.mark.parametrize("side", ["baseline", "candidate"])
@pytest.mark.parametrize("spoil", [lambda text: text[:-40], lambda text: text.replace('"data": [', '"data": [NaN, ')])
def test_a_file_that_cannot_be_used_is_the_fault_of_its_side(
    side: str, spoil: Callable[[str], str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = {"baseline": folder(tmp_path / "a", BASELINE), "candidate": folder(tmp_path / "b", SAME)}
    path = sorted(folders[side].iterdir())[0]
    path.write_text(spoil(path.read_text(encoding="utf-8")), encoding="utf-8")
    assert main(["compare", str(folders["baseline"]), str(folders["candidate"])]) == 5
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("INVALID_BASELINE: " if side == "baseline" else "INVALID_RUN: ")
    assert str(path) in line


def test_a_table_in_milliseconds_is_invalid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = table(tmp_path / "a.csv", 0.02, seed=1)
    new = tmp_path / "b.csv"
    new.write_text("session,workload,metric,value\n1,chat,tpot_ms,20\n", encoding="utf-8")
    status, result = compare(capsys, old, new)
    assert (status, result["verdict"], result["findings"]) == (5, "INVALID_RUN", [])


def test_a_baseline_that_does_not_exist_is_no_baseline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, result = compare(capsys, tmp_path / "none", table(tmp_path / "b.csv", 0.02, seed=1))
    assert (status, result["verdict"]) == (4, "NO_BASELINE")


@pytest.mark.parametrize(
    ("policy", "said"), [("alfa: 1", "did you mean 'alpha'?"), (None, "the policy cannot be read: No such file")]
)
def test_a_policy_that_cannot_be_used_is_wrong_usage(
    policy: str | None, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = table(tmp_path / "a.csv", 0.02, seed=1)
    path = tmp_path / "p.yaml"
    if policy is not None:
        path.write_text(policy, encoding="utf-8")
    assert main(["compare", str(old), str(old), "--policy", str(path)]) == 2
    found = capsys.readouterr()
    assert found.out == ""
    (line,) = found.err.splitlines()
    assert said in line


def test_a_candidate_that_does_not_exist_is_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = table(tmp_path / "a.csv", 0.02, seed=1)
    assert main(["compare", str(old), str(tmp_path / "none")]) == 2
    assert "no such file or folder" in capsys.readouterr().err


def refused_in_one_line(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    """The line with which a command ends as wrong usage."""
    assert main([str(word) for word in words]) == 2
    found = capsys.readouterr()
    assert found.out == ""
    (line,) = found.err.splitlines()
    return line


def test_an_empty_path_is_wrong_usage_and_not_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    here = folder(tmp_path / "a", SAME)
    monkeypatch.chdir(here)
    for words in (
        ["compare", "", here],
        ["compare", here, ""],
        ["report", "", "-o", "-"],
        ["report", here, "--baseline", "", "-o", "-"],
        ["explain", ""],
        ["explain", here, "--before", ""],
    ):
        line = refused_in_one_line(capsys, *words)
        assert line == f"phasegate {words[0]}: an empty path: is a variable unset?"


@pytest.mark.parametrize("side", ["baseline", "candidate"])
def test_a_folder_of_folders_is_wrong_usage_and_lists_them(
    side: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "all").mkdir()
    for name in ("one", "two"):
        folder(tmp_path / "all" / name, SAME)
    sides = (tmp_path / "all", tmp_path / "all" / "one")
    line = refused_in_one_line(capsys, "compare", *(sides if side == "baseline" else reversed(sides)))
    assert line.endswith(f"{tmp_path / 'all'}: holds folders of sessions; name one of them: one, two")


def test_pairing_tables_without_blocks_is_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = table(tmp_path / "a.csv", 0.02, seed=1), table(tmp_path / "b.csv", 0.02, seed=2, column="block")
    for sides in ((old, new), (new, old)):
        line = refused_in_one_line(capsys, "compare", *sides, "--paired")
        assert "a.csv: line 1: the column 'block' is missing, by which --paired reads a table" in line


@pytest.mark.parametrize("suffix", ["csv", "json"])
def test_a_report_in_place_of_sessions_is_called_a_report(
    suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sessions, made = folder(tmp_path / "a", SAME), tmp_path / f"made.{suffix}"
    assert main(["report", str(sessions), "--baseline", str(folder(tmp_path / "b", BASELINE)), "-o", str(made)]) == 0
    capsys.readouterr()
    said = f"{made}: a report of phasegate, which holds verdicts and no measured values"
    assert main(["compare", str(sessions), str(made)]) == 5
    assert f"INVALID_RUN: {said}" in capsys.readouterr().out
    assert main(["compare", str(made), str(sessions)]) == 5
    assert f"INVALID_BASELINE: {said}" in capsys.readouterr().out
    if suffix == "csv":
        assert said in refused_in_one_line(capsys, "report", made, "-o", "-")


def test_an_empty_folder_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, empty = folder(tmp_path / "a", BASELINE), folder(tmp_path / "empty", [])
    assert main(["compare", str(old), str(empty)]) == 5
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("INVALID_RUN: ")]
    assert f"{empty}: no result file in it" in line


def test_a_folder_compared_with_itself_is_remarked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = folder(tmp_path / "a", BASELINE), folder(tmp_path / "b", SAME)
    said = "both sides hold the same sessions"
    _, result = compare(capsys, old, old)
    assert any(said in line for line in result["warnings"])
    _, result = compare(capsys, old, new)
    assert not any(said in line for line in result["warnings"])


@pytest.mark.parametrize(("side", "word"), [(0, "baseline"), (1, "run")])
def test_a_table_against_sessions_is_said_in_one_short_line(
    side: int, word: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sides = [folder(tmp_path / "b", SAME)]
    sides.insert(side, table(tmp_path / "a.csv", 0.02, seed=1))
    assert main(["compare", *map(str, sides)]) == 4
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("NOT_COMPARABLE: ")]
    assert f"the {word} does not say which server it measured" in line
    assert "compare_across" in line
    assert "unknown" not in line


def test_a_policy_may_let_an_undecided_build_through_but_never_calls_it_a_pass(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = folder(tmp_path / "a", BASELINE[:1]), folder(tmp_path / "b", SAME)
    assert main(["compare", str(old), str(new)]) == 3
    path = tmp_path / "p.yaml"
    path.write_text("inconclusive: pass-with-warning", encoding="utf-8")
    capsys.readouterr()
    assert main(["compare", str(old), str(new), "--policy", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "INCONCLUSIVE: " in shown
    assert "PASS" not in shown


def refusals(tmp_path: Path) -> dict[str, tuple[list[object], str | None]]:
    """Commands that end without a green verdict, and the verdict; None for wrong usage."""
    good, cut = folder(tmp_path / "good", BASELINE), tmp_path / "cut.json"
    cut.write_text('{"phasegate": ')
    other = [replace(one, server={**SERVER, "hardware": "H200"}) for one in SAME]
    moved = [replace(one, host="other") for one in SAME]
    disturbed = [replace(one, disturbed="other load") for one in SAME]
    return {
        "damaged baseline": ([cut, good], "INVALID_BASELINE"),
        "damaged run": ([good, cut], "INVALID_RUN"),
        "another server": ([good, folder(tmp_path / "other", other)], "NOT_COMPARABLE"),
        "another host": ([good, folder(tmp_path / "moved", moved)], "NOT_COMPARABLE"),
        "disturbed run": ([good, folder(tmp_path / "disturbed", disturbed)], "INVALID_RUN"),
        "disturbed baseline": ([tmp_path / "disturbed", good], "INVALID_BASELINE"),
        "empty folder": ([good, folder(tmp_path / "empty", [])], "INVALID_RUN"),
        "no baseline": ([tmp_path / "none", good], "NO_BASELINE"),
        "renamed": ([good, folder(tmp_path / "renamed", renamed(SAME))], "INVALID_RUN"),
        "too few": ([folder(tmp_path / "few", BASELINE[:1]), folder(tmp_path / "same", SAME)], "INCONCLUSIVE"),
        "missing run": ([good, tmp_path / "none"], None),
        "empty path": ([good, ""], None),
        "bad policy": ([good, good, "--policy", cut], None),
    }  # fmt: skip


@pytest.mark.parametrize("case", [
    "damaged baseline", "damaged run", "another server", "another host", "disturbed run", "disturbed baseline",
    "empty folder", "no baseline", "renamed", "too few", "missing run", "empty path", "bad policy",
])  # fmt: skip
def test_the_json_of_a_refusal_has_reason_and_remedy_and_stderr_the_same_line(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its --json had neither, so that a pipeline saw a word and an empty list."""
    words, verdict = refusals(tmp_path)[case]
    capsys.readouterr()
    assert main(["compare", *map(str, words), "--json"]) != 0
    out, err = capsys.readouterr()
    result, (line,) = json.loads(out), err.splitlines()
    assert result["verdict"] == verdict
    assert result["reason"]
    assert result["remedy"]
    assert line == f"phasegate compare: {f'{verdict}: ' if verdict else ''}{result['reason']}"


def test_a_green_result_has_no_remedy_and_a_quiet_stderr(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(folder(tmp_path / "a", BASELINE)), str(folder(tmp_path / "b", SAME)), "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["remedy"] == ""
    assert json.loads(out)["reason"]
    assert err == ""


def test_explain_says_as_json_why_it_explains_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.json").write_text('{"hello": 1}')
    assert main(["explain", str(tmp_path / "x.json"), "--json"]) == 2
    out, err = capsys.readouterr()
    result = json.loads(out)
    assert err == f"phasegate explain: {result['reason']}\n"
    assert result["remedy"]
