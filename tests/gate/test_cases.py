"""Every recorded gate case through the product: files on disk, the compare command, its JSON and its exit status.

A case gives samples; each is one session's value of that metric. Verdict names are mapped to ours. Where our
statistics differ from a case's own (median, +10 %, Mann-Whitney p < 0.05), `OURS` holds our word and why.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from phasegate.cli import main
from phasegate.core.session import Session
from phasegate.gate.exit_status import CLI_STATUS, PYTEST_STATUS
from phasegate.gate.verdict import Verdict
from phasegate.store import session_text
from tests.sessions import measurement, session

CASES = Path(__file__).resolve().parents[2] / "fixtures" / "cases"

MAPPED = {"MISMATCH": "NOT_COMPARABLE", "SUSPECT": "INVALID_RUN"}

METRICS = {
    "tpot_ms": ("tpot", 1e-3),
    "ttft_ms": ("ttft", 1e-3),
    "e2e_ms": ("e2el", 1e-3),
    "tok_per_s": ("output_token_throughput", 1.0),
    "control_ms": ("e2el", 1e-3),
}
"""Name in a case -> our metric, and its unit in ours."""

OURS: Mapping[str, tuple[str, str]] = {
    "B099": (
        "INCONCLUSIVE",
        "sessions differ by 5 %, so 8 of each would have missed a worsening of 20 %: no regression is shown, nor "
        "that there is none within the tolerance of 2 %",
    ),
}
"""Case -> our verdict where it is another, and why."""


def gate_cases() -> dict[str, dict[str, Any]]:
    cases = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in sorted(CASES.glob("*.yaml"))]
    return {case["id"]: case for case in cases if case["type"] == "gate"}


GATE = gate_cases()


def place(name: str) -> tuple[str, str, float]:
    """(workload, metric, factor) of a test's name such as ``chat/tpot_ms``."""
    workload, _, short = name.rpartition("/")
    metric, factor = METRICS[short]
    return ("sentinel" if short == "control_ms" else workload or "chat"), metric, factor


def server_of(side: Mapping[str, Any]) -> dict[str, Any]:
    facts = dict(side.get("fingerprint", {}))
    server = {"hardware": facts.pop("gpu", None), "model": facts.pop("model", "m")}
    return {**server, "engine_version": facts.pop("server", None), "settings": facts}


def sessions_of(side: Mapping[str, Any], start: int) -> list[Session]:
    """The sessions of one side: the n-th session holds the n-th sample of every test that has one."""
    tests = side["tests"]
    count = max((len(test["samples"]) for test in tests.values()), default=0)
    found = []
    for index in range(count):
        rows = []
        for name, test in tests.items():
            if index < len(test["samples"]):
                workload, metric, factor = place(name)
                cached = {"invalid": 10, "flags": ("cached_prompt",)} if test.get("cached_tokens") else {}
                failed = round(10 * side.get("error_rate", 0))
                samples = [test["samples"][index] * factor]
                rows.append(measurement(workload, metric, samples, requests=10, failed=failed, **cached))
        found.append(session(start + index, *rows, server=server_of(side)))
    return found


def write(folder: Path, sessions: list[Session]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for one in sessions:
        (folder / f"{one.session_id}.json").write_text(session_text(one), encoding="utf-8")


class Played:
    """A case that was run: its result, exit status, and the folders it used."""

    def __init__(self, case: Mapping[str, Any], root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        given = case["input"]
        self.baseline, self.candidate = root / "baseline", root / "candidate"
        if "baseline_text" in given:
            self.baseline.mkdir()
            (self.baseline / "s1.json").write_text(given["baseline_text"], encoding="utf-8")
        history = given.get("baseline") or []
        start = 0
        for entry in history if isinstance(history, list) else [history]:
            found = sessions_of(entry, start)
            write(self.baseline, found)
            start += 1000
        write(self.candidate, sessions_of(given["current"], 3000))
        command = ["compare", str(self.baseline), str(self.candidate), *self._policy(given, root)]
        self.status = main([*command, "--json"])
        self.result = json.loads(capsys.readouterr().out)
        assert main(command) == self.status
        self.shown = capsys.readouterr().out

    @staticmethod
    def _policy(given: Mapping[str, Any], root: Path) -> list[str]:
        asked = given.get("policy") or {}
        lines = []
        if asked.get("statistic") == "p95":
            lines.append("percentiles: [p95]")
        if "rel" in asked:
            lines.append(f"tolerance: {{prefill: {asked['rel']}, decode: {asked['rel']}, both: {asked['rel']}}}")
        if "max_error_rate" in asked:
            lines.append(f"max_error_rate: {asked['max_error_rate']}")
        if not lines:
            return []
        path = root / "policy.yaml"
        path.write_text("\n".join(lines), encoding="utf-8")
        return ["--policy", str(path)]

    def finding(self, name: str) -> dict[str, Any]:
        workload, metric, _ = place(name)
        (found,) = [
            one for one in self.result["findings"]
            if one["workload"] == workload and one["metric"].split(":")[0] == metric
        ]  # fmt: skip
        assert isinstance(found, dict)
        return found


def played(case_id: str, root: Path, capsys: pytest.CaptureFixture[str]) -> Played:
    return Played(GATE[case_id], root, capsys)


def expected_word(case_id: str) -> str:
    word = GATE[case_id]["expected"]["verdict"]
    return OURS[case_id][0] if case_id in OURS else MAPPED.get(word, word)


@pytest.mark.parametrize("case_id", sorted(GATE))
def test_a_case_gets_its_verdict_and_its_exit_class(
    case_id: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = played(case_id, tmp_path, capsys)
    word = expected_word(case_id)
    assert case.result["verdict"] == word, case.shown
    assert case.status == CLI_STATUS[Verdict(word)]
    exit_class = GATE[case_id]["expected"]["exit"]
    if case_id not in OURS and exit_class != "policy":
        assert (case.status == 0) == (exit_class == "zero")
    assert word in case.shown
    if word != "PASS":
        assert not case.shown.splitlines()[-1].startswith("PASS")
    for name, verdict in GATE[case_id]["expected"].get("per_test", {}).items():
        assert case.finding(name)["verdict"] == verdict


def test_our_own_words_are_never_milder_than_the_cases() -> None:
    """Where we differ, we refuse to pass what we cannot prove; nothing that must fail is let through."""
    for case_id, (word, why) in OURS.items():
        theirs = GATE[case_id]["expected"]["verdict"]
        assert Verdict(word).badness >= Verdict(MAPPED.get(theirs, theirs)).badness, case_id
        assert why


def test_b081_says_what_was_looked_for_and_how_to_record_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = played("B081", tmp_path, capsys)
    assert str(case.baseline) in case.shown.replace("\n", "")
    assert "--update-baselines" in case.shown
    assert "PASS" not in case.shown


def test_b082_names_the_keys_that_differ(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "hardware: A100 -> H200" in played("B082", tmp_path, capsys).shown


def test_b084_names_the_setting_that_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "settings.think_time_s: 0 -> 10" in played("B084", tmp_path, capsys).shown


def test_b087_names_file_and_position_and_leaves_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = played("B087", tmp_path, capsys)
    path = case.baseline / "s1.json"
    assert str(path) in case.shown.replace("\n", "")
    assert "line 1 column 43" in case.shown
    assert path.read_text(encoding="utf-8") == GATE["B087"]["input"]["baseline_text"]


def test_b094_says_how_many_values_p95_needs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "p95 needs 20 values" in played("B094", tmp_path, capsys).shown


def test_b094_with_nine_requests_in_one_session(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The case as it was reported: nine requests of one run, not nine sessions."""
    given = GATE["B094"]["input"]
    for side, number in (("baseline", 1), ("current", 2)):
        samples = [value / 1e3 for value in given[side]["tests"]["e2e_ms"]["samples"]]
        write(tmp_path / side, [session(number, measurement("chat", "e2el", samples))])
    (tmp_path / "p.yaml").write_text("percentiles: [p95]", encoding="utf-8")
    command = ["compare", str(tmp_path / "baseline"), str(tmp_path / "current"), "--policy", str(tmp_path / "p.yaml")]
    assert main(command) == 3
    assert "p95 needs 20 values a session to differ from the maximum, a session has 9" in capsys.readouterr().out


def test_b095_still_prints_the_outlier(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = played("B095", tmp_path, capsys)
    assert any("1 of 20 sessions" in line and "2.00 s" in line for line in case.result["warnings"])


def test_b098_prints_no_p_value(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = played("B098", tmp_path, capsys)
    assert case.finding("tpot_ms")["p"] is None
    assert "no regression" not in case.shown


def test_b102_exits_1_from_both_edges() -> None:
    assert CLI_STATUS[Verdict.REGRESSION] == 1
    assert PYTEST_STATUS["REGRESSION"] == 1


def test_b103_exits_otherwise_than_a_regression(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = played("B103", tmp_path, capsys)
    assert case.status == 5 != CLI_STATUS[Verdict.REGRESSION]
    assert "40.0 %" in case.shown


def test_b104_is_judged_by_the_newest_level(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = played("B104", tmp_path, capsys)
    assert case.finding("tpot_ms")["baseline_sessions"] == 10
    assert any("judged by the newest 10 sessions" in line for line in case.result["warnings"])


def test_b108_is_stopped_by_the_collapse_alone_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without the evidence of cached tokens the fall to 2 % must still be refused."""
    case = json.loads(json.dumps(GATE["B108"]))
    del case["input"]["current"]["tests"]["ttft_ms"]["cached_tokens"]
    found = Played(case, tmp_path, capsys)
    assert found.result["verdict"] == "INVALID_RUN"
    assert "cache" in found.shown


def test_b111_never_writes_and_its_window_is_documented(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = played("B111", tmp_path, capsys)
    assert len(list(case.baseline.iterdir())) == 6
    text = (CASES.parents[1] / "docs" / "reference" / "policy.md").read_text(encoding="utf-8")
    assert "the candidate itself never among them" in " ".join(text.split())
