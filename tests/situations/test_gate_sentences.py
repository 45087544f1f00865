"""`phasegate compare` and `explain`: the sentence of a verdict, the rule behind it and the policy say the same.

The situations of half a tolerance, of the phase that does not bind, of a trade, of the limit that was applied (C049)
and of an undecided build, as tables of sessions.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from phasegate.cli import main

Change = Mapping[tuple[str, str], float]

CHAT, RAG = "chat", "rag"
LEVELS = {(CHAT, "ttft"): 0.128, (CHAT, "tpot"): 0.008, (RAG, "ttft"): 1.6, (RAG, "tpot"): 0.009}
LENGTHS = {CHAT: 128, RAG: 64}
"""Decode takes 89 % of a chat, prefill 74 % of a rag request."""


def table(path: Path, sessions: int, seed: int, change: Change | None = None, noise: float = 0.004) -> str:
    """A CSV file of sessions that vary by ``noise``, e2el of every workload included; (workload, metric) -> factor."""
    rng = random.Random(seed)
    lines = ["session,workload,metric,value"]
    for number in range(sessions):
        values = {key: value * (change or {}).get(key, 1.0) * rng.gauss(1, noise) for key, value in LEVELS.items()}
        for workload, length in LENGTHS.items():
            ttft, tpot = values[workload, "ttft"], values[workload, "tpot"]
            for metric, value in (("ttft", ttft), ("tpot", tpot), ("e2el", ttft + (length - 1) * tpot)):
                lines.append(f"{path.stem}{number},{workload},{metric},{value:.7f}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


Compare = Callable[..., tuple[int, str, dict[str, Any]]]


@pytest.fixture
def compare(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Compare:
    """Judges a candidate with a change: (status, last sentence, JSON)."""

    def run(
        change: Change | None = None, policy: str = "", *, sessions: int = 6, noise: float = 0.004
    ) -> tuple[int, str, Any]:
        base = table(tmp_path / "base.csv", 12, 1, noise=noise)
        cand = table(tmp_path / "cand.csv", sessions, 2, change, noise)
        options = []
        if policy:
            (tmp_path / "policy.yaml").write_text(policy, encoding="utf-8")
            options = ["--policy", str(tmp_path / "policy.yaml")]
        status = main(["compare", base, cand, *options])
        said = next(line for line in capsys.readouterr().out.splitlines() if re.match(r"[A-Z_]+: ", line))
        assert main(["compare", base, cand, *options, "--json"]) == status
        return status, said, json.loads(capsys.readouterr().out)

    return run


def finding(result: dict[str, Any], workload: str, metric: str) -> dict[str, Any]:
    found: list[dict[str, Any]] = result["findings"]
    return next(one for one in found if (one["workload"], one["metric"]) == (workload, metric))


@pytest.mark.parametrize(
    ("where", "size", "limit"),
    [((CHAT, "tpot"), 1.032, "2.5 %"), ((RAG, "ttft"), 1.061, "5.0 %"), ((CHAT, "ttft"), 1.8, "15.0 %"),
     ((RAG, "tpot"), 1.09, "7.5 %")],
)  # fmt: skip
def test_a_regression_names_the_size_from_which_it_fails(
    where: tuple[str, str], size: float, limit: str, compare: Compare
) -> None:
    """+3 % of a tolerance of 5 % is red: half the tolerance is the limit, and three times that in the other phase."""
    status, said, result = compare({where: size})
    assert status == 1
    assert re.search(rf"REGRESSION: {where[0]} {where[1]}: .*, \+[\d.]+ %, fails from {limit}, 95 % interval", said)
    row = finding(result, *where)
    assert row["gated"]
    assert row["ratio"] - 1 >= row["fails_from"] == pytest.approx(float(limit[:-2]) / 100)
    assert row["p"] <= row["p_allowed"]


@pytest.mark.parametrize(
    ("policy", "status"),
    [
        ("fail-from: {decode: 5%}", 0),
        ("fail-from: {decode: 0.04}", 0),
        ("fail_from: {decode: 3%}", 1),
        ("rules: [{workload: chat, metric: tpot, fail-from: 4%}]", 0),
        ("rules: [{workload: rag, fail-from: 4%}]", 1),
        ("rules: [{metric: tpot, tolerance: 10%}]", 0),
        ("rules: [{metric: tpot, tolerance: 10%, fail-from: 3%}]", 1),
        ("tolerance: {decode: 150%}", 0),
        ("tolerance: {decode: 1.5}\nfail-from: {decode: 1%}", 1),
    ],
)
def test_what_fails_can_be_set_as_the_tolerance_can(policy: str, status: int, compare: Compare) -> None:
    """TPOT of chat +3.5 %, proven. Where it passes, a warning says that it is slower, and the row has its limit."""
    found, said, result = compare({(CHAT, "tpot"): 1.035}, policy)
    assert found == status, said
    warned = [line for line in result["warnings"] if line.startswith("slower, but by too little to fail: chat tpot")]
    assert bool(warned) == (status == 0)
    assert "fails from" in finding(result, CHAT, "tpot")["reason"]


def test_a_policy_that_fails_above_its_tolerance_is_one_line(
    tmp_path: Path, compare: Compare, capsys: pytest.CaptureFixture[str]
) -> None:
    compare()
    (tmp_path / "p.yaml").write_text("fail-from:\n  decode: 8%\n", encoding="utf-8")
    words = [str(tmp_path / name) for name in ("base.csv", "cand.csv", "p.yaml")]
    assert main(["compare", *words[:2], "--policy", words[2]]) == 2
    assert capsys.readouterr().err == (
        f"phasegate compare: {words[2]}:2: fail-from.decode is 8.0 %; it must be at most tolerance.decode, which is "
        "5.0 %: what fails must be something that is found\n"
    )


def test_the_phase_that_does_not_bind_fails_the_build_too(compare: Compare) -> None:
    """A chat bound by decode whose first token comes 80 % later was green; the policy can still ask for that."""
    change = {(CHAT, "ttft"): 1.8}
    assert compare(change)[0] == 1
    for policy in ("other-phase: off", "other_phase: 'off'", "rules: [{metric: ttft, workload: chat, gate: never}]"):
        status, said, result = compare(change, policy)
        assert status == 0, said
        assert any(line.startswith("not gated, but slower: chat ttft") for line in result["warnings"])
        assert finding(result, CHAT, "ttft")["fails_from"] is None
    assert compare({(RAG, "tpot"): 1.4})[0] == 1
    assert compare({(CHAT, "ttft"): 1.08})[0] == 0
    assert compare({(CHAT, "ttft"): 1.08}, "gate: always")[0] == 1


def test_an_unchanged_server_is_green_in_both_phases(compare: Compare) -> None:
    status, said, result = compare()
    assert (status, said) == (0, "PASS: 4 of 4 gated comparisons within their limits")
    assert result["warnings"] == []


def test_a_server_that_got_faster_where_it_binds_is_improved(compare: Compare) -> None:
    """The other phase, which stayed, does not make it a plain pass."""
    assert compare({(CHAT, "tpot"): 0.8, (RAG, "ttft"): 0.8})[1].startswith("IMPROVED: 4 of 4 gated")


@pytest.mark.parametrize(
    ("change", "status", "said"),
    [
        ({(CHAT, "ttft"): 1.2, (CHAT, "tpot"): 0.8}, 1, r"This is a trade: chat ttft \+\d+\.\d %, tpot -\d+\.\d %\."),
        ({(RAG, "ttft"): 0.8, (RAG, "tpot"): 1.2}, 1, r"This is a trade: rag tpot \+\d+\.\d %, ttft -\d+\.\d %\."),
        ({(CHAT, "ttft"): 1.1, (CHAT, "tpot"): 0.8}, 0, r"limits; a trade: chat ttft \+\d+\.\d %, tpot -\d+\.\d %$"),
    ],
)
def test_a_trade_names_both_phases_in_the_verdicts_sentence(
    change: Change, status: int, said: str, compare: Compare
) -> None:
    found, sentence, _ = compare(change)
    assert found == status, sentence
    assert re.search(said, sentence), sentence


@pytest.mark.parametrize(("noise", "seed"), [(0.036, 8), (0.040, 8), (0.038, 9)])
def test_no_sentence_allows_less_than_the_p_that_it_calls_proven(
    noise: float, seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """C049: two metrics, one 13 % slower beyond doubt, so that the other may use the second step of the correction."""
    rng = random.Random(seed)
    for name, sessions, slow in (("a", 16, False), ("b", 8, True)):
        lines = ["session,workload,metric,value"]
        for number in range(sessions):
            ttft = 0.2 * rng.gauss(1, 0.01) * (1.13 if slow else 1)
            tpot = 0.01 * rng.gauss(1, noise) * (1.08 if slow else 1)
            lines += [f"{name}{number},chat,ttft,{ttft}", f"{name}{number},chat,tpot,{tpot}"]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert main(["compare", str(tmp_path / "a.csv"), str(tmp_path / "b.csv"), "--json"]) == 1
    told = 0
    for row in json.loads(capsys.readouterr().out)["findings"]:
        words = re.search(r"p = (\S+) of (\S+) allowed", row["reason"])
        if words is not None:
            told += 1
            assert float(words[1]) <= float(words[2]), row["reason"]
            assert row["p"] <= row["p_allowed"]
            assert f"{row['p_allowed']:.2g}" == words[2]
    assert told > 0


@pytest.mark.parametrize("noise", [0.03, 0.05, 0.08])
def test_an_undecided_build_names_the_row_that_needs_most(noise: float, compare: Compare) -> None:
    """Whatever row comes first: the told remedy decides every undecided comparison that sessions can decide."""
    status, said, result = compare(sessions=3, noise=noise)
    assert status == 3, said
    rows = [one for one in result["findings"] if one["gated"] and one["verdict"] == "INCONCLUSIVE"]
    needs = [one["sessions_needed"] for one in rows]
    assert result["remedy"]
    assert result["remedy"] in said
    told = next(one for one in rows if said.startswith(f"INCONCLUSIVE: {one['workload']} {one['metric']}: "))
    if None in needs:
        assert told["sessions_needed"] is None
    else:
        assert told["sessions_needed"] == max(needs)
        assert f"{max(needs)} more candidate session" in said


@pytest.mark.parametrize(
    ("change", "phase"),
    [({(CHAT, "tpot"): 1.093}, "decode"), ({(RAG, "ttft"): 1.06}, "prefill"), ({(CHAT, "ttft"): 1.18}, "prefill")],
)
def test_explain_calls_slower_what_compare_proves(
    change: Change, phase: str, compare: Compare, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """9.3 % more of TPOT was a REGRESSION of one command, and nothing at all of the other."""
    assert compare(change)[0] == 1
    words = [str(tmp_path / "cand.csv"), "--before", str(tmp_path / "base.csv")]
    assert main(["explain", *words, "--json"]) == 0
    first = json.loads(capsys.readouterr().out)["findings"][0]
    assert (first["change"], first["phase"]) == (True, phase)
    assert any("proven by the gate" in line for line in first["evidence"])
    (tmp_path / "wide.yaml").write_text("tolerance: {prefill: 80%, decode: 80%, both: 80%}\n", encoding="utf-8")
    assert main(["explain", *words, "--json", "--policy", str(tmp_path / "wide.yaml")]) == 0
    assert not [one for one in json.loads(capsys.readouterr().out)["findings"] if one["change"]]


def test_explain_says_what_compare_says_where_that_decides_nothing(
    compare: Compare, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare(sessions=3, noise=0.05)[0] == 3
    assert main(["explain", str(tmp_path / "cand.csv"), "--before", str(tmp_path / "base.csv")]) == 0
    assert "phasegate compare says INCONCLUSIVE: " in " ".join(capsys.readouterr().out.split())
    assert compare()[0] == 0
    assert main(["explain", str(tmp_path / "cand.csv"), "--before", str(tmp_path / "base.csv")]) == 0
    assert "than before" not in capsys.readouterr().out
