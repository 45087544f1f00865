"""Every case of type ``records``: what a summary says about finished requests, field by field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from phasegate.stats.summary import Record, Summary, summarise

CASES = {
    case["id"]: case
    for path in sorted((Path(__file__).parents[2] / "fixtures" / "cases").glob("*.yaml"))
    if (case := yaml.safe_load(path.read_text(encoding="utf-8")))["type"] == "records"
}

KNOWN_RECORD = {"id", "status", "ttft_ms", "e2e_ms", "output_tokens"}


def _seconds(ms: float | None) -> float | None:
    return None if ms is None else ms / 1e3


def _summary(case: dict[str, Any]) -> Summary:
    given = case["input"]
    assert set(given) <= {"records", "drop_first"}, f"{case['id']}: input fields this test does not know"
    records = []
    for one in given["records"]:
        assert set(one) <= KNOWN_RECORD, f"{case['id']}: record fields this test does not know"
        times = _seconds(one.get("ttft_ms")), _seconds(one.get("e2e_ms"))
        records.append(Record(one["id"], one["status"], *times, one.get("output_tokens")))
    return summarise(records, drop_first=given.get("drop_first", 0))


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1e3


def _fields(summary: Summary) -> dict[str, Any]:
    """Everything a case may expect, under the case's own names."""
    fields: dict[str, Any] = {
        "n_ok": summary.n_ok,
        "n_failed": summary.n_failed,
        "error_rate": summary.error_rate,
        "run_valid": summary.run_valid,
        "violations": [list(one) for one in summary.violations],
    }
    for name, sample in (("ttft", summary.ttft), ("tpot", summary.tpot), ("e2e", summary.e2e)):
        fields |= {
            f"n_{name}": sample.n,
            f"{name}_mean_ms": _ms(sample.mean),
            f"{name}_median_ms": _ms(sample.median),
            f"{name}_sd_ms": _ms(sample.sd),
            f"{name}_max_ms": _ms(sample.largest),
            f"{name}_p95_ok_only_ms": _ms(sample.percentile_ok_only(95)),
            f"{name}_p95_failures_as_inf": _ms(sample.percentile(95)),
        }
    return fields


def _check(case: dict[str, Any]) -> None:
    fields = _fields(_summary(case))
    unknown = set(case["expected"]) - set(fields)
    assert not unknown, f"{case['id']}: expected fields this test does not know: {sorted(unknown)}"
    for name, wanted in case["expected"].items():
        # The cases write infinity as a word.
        wanted = float("inf") if wanted == "inf" else wanted
        got = fields[name]
        same = got == pytest.approx(wanted) if isinstance(wanted, float | int) and got is not None else got == wanted
        assert same, f"{case['id']}: {name} is {got}, expected {wanted}"


@pytest.mark.parametrize("case_id", sorted(CASES))
def test_a_records_case_comes_out_as_expected(case_id: str) -> None:
    """Every expected field of the case holds."""
    _check(CASES[case_id])


def test_all_cases_of_this_type_are_found() -> None:
    """The folder holds the nine cases; a moved folder must not pass as an empty list."""
    assert {"B068", "B077", "B110", "B116"} <= set(CASES)
    assert len(CASES) == 9


@pytest.mark.parametrize("case_id", ["B068", "B069", "B075", "B110", "B116"])
def test_the_check_refuses_what_naive_tools_said(case_id: str) -> None:
    """The wrong numbers that other tools gave for a case do not pass its check."""
    case = CASES[case_id]
    for wrong in case["wrong"]:
        claimed = {name: value for name, value in wrong.items() if name != "by"}
        with pytest.raises(AssertionError, match=case_id):
            _check({**case, "expected": claimed})


def test_the_check_refuses_an_expected_field_it_does_not_know() -> None:
    """A misspelt expectation fails and is not skipped."""
    with pytest.raises(AssertionError, match="does not know"):
        _check({**CASES["B110"], "expected": {"ttft_mean": 12}})


def test_no_record_at_all_is_not_a_valid_run() -> None:
    """Nothing measured proves nothing."""
    summary = summarise([])
    assert not summary.run_valid
    assert summary.problems() == ("nothing was measured",)
    assert summary.ttft.mean is None


def test_a_first_token_after_the_end_is_impossible() -> None:
    """A record whose first token came after its end makes the run invalid and enters no sample."""
    summary = summarise([Record("a", "ok", 0.3, 0.2, 10), Record("b", "ok", 0.1, 0.2, 11)])
    assert summary.violations == (("a", "ttft_after_end"),)
    assert summary.e2e.values == (0.2,)
    assert not summary.run_valid


def test_five_percent_failed_is_still_valid_and_more_is_not() -> None:
    """The bound on failures is inclusive."""
    good, bad = Record(1, "ok", 0.1, 0.2, 2), Record(2, "timeout")
    assert summarise([good] * 19 + [bad]).run_valid
    assert not summarise([good] * 18 + [bad]).run_valid
