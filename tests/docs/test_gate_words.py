"""What the pages say of the gate's sizes is what the policy does: the README's table of the suite, the policy page."""

from __future__ import annotations

import re

import pytest

from phasegate.gate.judge import judge
from phasegate.gate.policy import Policy
from phasegate.gate.verdict import Verdict
from tests.docs.blocks import ROOT
from tests.gate.test_judge import BASELINE, build

TIMES = {"three times": 3.0}


def sizes_of_the_readme() -> tuple[float, float, float]:
    """TTFT and TPOT from where on the binding phase fails, as fractions, and the factor of the other phase."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    row = next(line for line in text.splitlines() if line.startswith("| `test_regression.py`"))
    found = re.search(r"TTFT by ([\d.]+) % or TPOT by ([\d.]+) %, in the other phase by (\w+ times) that", row)
    assert found is not None
    return float(found[1]) / 100, float(found[2]) / 100, TIMES[found[3]]


def test_the_suites_table_states_the_sizes_that_fail_by_default() -> None:
    ttft, tpot, times = sizes_of_the_readme()
    policy = Policy()
    assert policy.applied("a", "ttft", "prefill").effective_fail_from(None) == pytest.approx(ttft)
    assert policy.applied("a", "tpot", "decode").effective_fail_from(None) == pytest.approx(tpot)
    assert policy.other_phase == times


@pytest.mark.parametrize(
    ("cell", "metric", "binds"),
    [("long", "ttft", True), ("chat", "tpot", True), ("chat", "ttft", False), ("long", "tpot", False)],
)
def test_the_gate_does_what_the_table_says_in_either_phase(cell: str, metric: str, *, binds: bool) -> None:
    """Half as much again as what fails is a REGRESSION, half of it is none."""
    ttft, tpot, times = sizes_of_the_readme()
    size = (ttft if metric == "ttft" else tpot) * (1.0 if binds else times)
    for share, red in ((1.5, True), (0.5, False)):
        result = judge(BASELINE, build(4, 8, {(cell, metric): 1 + share * size}, start=100), Policy())
        assert (result.verdict is Verdict.REGRESSION) == red, result.reason
        limit = 100 * size
        assert not red or f"fails from {limit:.1f} %" in result.reason


def test_the_policy_page_names_the_defaults_of_the_other_phase() -> None:
    text = (ROOT / "docs" / "reference" / "policy.md").read_text(encoding="utf-8")
    ttft, tpot, times = sizes_of_the_readme()
    assert (
        f"({times:g} by default: TTFT from {100 * ttft * times:g} %, TPOT from {100 * tpot * times:g} %)"
        in " ".join(text.split())
    )
