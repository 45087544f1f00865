"""One answer to which phase got slower: the exit line, the lever, the terminal and the report's title agree on it."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest

from phasegate.core.session import Session
from phasegate.diagnose.thresholds import READING_SHARE
from phasegate.gate.judge import judge
from phasegate.gate.policy import Policy
from phasegate.gate.slower_phase import OWN_SHARE, cause, leading_row, slower_phase, slower_phases
from phasegate.gate.verdict import Finding, GateResult, Verdict
from phasegate.report.document.from_gate import gate_of
from phasegate.report.document.headline import Parts, headline_of
from phasegate.report.document.model import Headline, Validity
from phasegate.report.findings import print_verdict
from phasegate.report.screen import Screen
from tests.sessions import measurement, session

CHAT = "chat[in=64,out=32]"
TTFT, TPOT, TOKENS = 0.050, 0.020, 32
BOTH_GATE = Policy(gate="always")


def chats(seed: int, count: int, *, prefill: float = 0.0, decode: float = 0.0) -> list[Session]:
    """Sessions of one engine: ``prefill`` seconds more to read the prompt, ``decode`` seconds more for every step.

    The first token takes a step as well, so TTFT has both.
    """
    rng = np.random.default_rng(seed)
    made = []
    for number in range(count):
        start = (TTFT + prefill + decode) * math.exp(rng.normal(0, 0.008)) * np.exp(rng.normal(0, 0.02, 20))
        step = (TPOT + decode) * math.exp(rng.normal(0, 0.008)) * np.exp(rng.normal(0, 0.02, 20))
        whole = start + (TOKENS - 1) * step
        rows = [
            measurement(CHAT, metric, values.tolist())
            for metric, values in (("ttft", start), ("tpot", step), ("e2el", whole))
        ]
        made.append(session(100 * seed + number, *rows))
    return made


BASELINE = chats(1, 12)


def told(candidate: list[Session]) -> tuple[GateResult, Headline, str]:
    """The gate's result, the report's first screen, and what the terminal shows of the verdict."""
    result = judge(BASELINE, candidate, BOTH_GATE)
    gate = gate_of(result, BASELINE, candidate, BOTH_GATE, paired=False)
    console = Screen(width=400, record=True, quiet=False, file=None, force_terminal=False)
    with console.capture() as shown:
        print_verdict(result, console)
    return result, headline_of(Parts(gate, (), None, Validity())), shown.get()


def slower_rows(result: GateResult) -> set[str]:
    return {row.metric for row in result.findings if row.gated and row.verdict is Verdict.REGRESSION}


def test_a_slower_decode_is_named_alone_though_ttft_grew_by_one_step_of_it() -> None:
    """12 ms more a step: TTFT is 24 % up, proven and gated, and still no second phase."""
    result, head, shown = told(chats(2, 5, decode=0.012))
    assert {"ttft", "tpot"} <= slower_rows(result)
    assert result.reason.startswith(f"{CHAT} tpot: ")
    assert result.lever is not None
    assert result.lever.startswith("levers for decode")
    assert (head.phase, head.lever) == ("decode", result.lever)
    assert head.title.startswith("Decode got slower: TPOT")
    assert "phase: decode\n" in shown
    said = result.attributions[CHAT]
    assert "ms of it in the first token's own step" in said
    amount, unit = re.findall(r"prefill [+-]([\d.]+) (ms|us),", said)[0]
    assert float(amount) < (2.0 if unit == "ms" else 1000.0), said


def test_a_slower_prefill_is_named_alone() -> None:
    result, head, shown = told(chats(3, 5, prefill=0.020))
    assert slower_rows(result) == {"ttft"}
    assert result.reason.startswith(f"{CHAT} ttft: ")
    assert result.lever is not None
    assert result.lever.startswith("levers for prefill")
    assert (head.phase, head.lever) == ("prefill", result.lever)
    assert "phase: prefill\n" in shown
    assert "own step" not in result.attributions[CHAT]


def test_both_phases_slower_are_both_named() -> None:
    """40 ms more to read the prompt beside 8 ms more a step: far more than a step explains."""
    result, head, shown = told(chats(4, 5, prefill=0.040, decode=0.008))
    assert result.lever is not None
    assert result.lever.startswith("levers: ")
    assert (head.phase, head.lever) == ("both", result.lever)
    assert head.title.startswith("Prefill and decode got slower: ")
    assert "phase: decode and prefill\n" in shown


def finding(metric: str, old: float | None, new: float | None, **changes: object) -> Finding:
    phase = {"ttft": "prefill", "ttfo": "prefill", "tpot": "decode"}.get(metric.split(":")[0], "both")
    ratio = None if old is None or new is None else new / old
    row = Finding(CHAT, metric, phase, True, Verdict.REGRESSION, f"{CHAT} {metric}: slower", ratio, tolerance=0.1)
    return replace(row, baseline_value=old, candidate_value=new, **changes)  # type: ignore[arg-type]


STEPS = finding("tpot", 0.020, 0.030)


@pytest.mark.parametrize(
    ("start", "phase"),
    [
        (finding("ttft", 0.050, 0.060), "decode"),
        (finding("ttft", 0.050, 0.0699), "decode"),
        (finding("ttft", 0.050, 0.0701), "prefill"),
        (finding("ttft:p95", 0.080, 0.090), "decode"),
        (finding("ttft", 0.050, 0.060, workload="other[in=64,out=32]"), "prefill"),
        (finding("ttft:p95:50ms", None, 0.060, verdict=Verdict.SLO_BREACH), "prefill"),
        (finding("ttfo", 0.400, 0.700), "decode"),
    ],
    ids=["one step", "two", "more", "a percentile", "another workload", "an objective without a past", "reasoning"],
)
def test_a_first_token_is_decodes_where_steps_of_its_workload_explain_it(start: Finding, phase: str) -> None:
    """Two steps are the limit: a request that joins a batch may wait for a running step before its own."""
    assert cause(start, [start, STEPS]) == phase


def test_a_diagnosis_asks_for_the_same_share() -> None:
    assert OWN_SHARE == READING_SHARE


def test_steps_that_are_not_proven_slower_explain_nothing() -> None:
    start = finding("ttft", 0.050, 0.060)
    assert cause(start, [start, replace(STEPS, verdict=Verdict.INCONCLUSIVE)]) == "prefill"


def test_a_median_step_is_not_taken_from_a_tail() -> None:
    """Tails of TPOT that grew by 10 ms do not explain a median TTFT."""
    start = finding("ttft", 0.050, 0.060)
    assert cause(start, [start, finding("tpot:p95", 0.020, 0.030)]) == "prefill"


def test_a_first_output_token_is_prefills_where_ttft_grew_by_more_than_steps() -> None:
    late, start = finding("ttfo", 0.400, 0.700), finding("ttft", 0.050, 0.150)
    assert cause(late, [late, start, STEPS]) == "prefill"
    assert slower_phases([late, start], [late, start, STEPS]) == {"prefill"}


def test_whole_requests_alone_name_no_phase() -> None:
    whole = finding("e2el", 0.6, 0.9)
    assert slower_phases([whole], [whole]) == frozenset()
    assert slower_phase([whole], [whole]) == "both"
    assert slower_phase([whole], [whole, replace(STEPS, gated=False)]) == "decode"


def test_the_row_that_is_told_is_not_one_that_another_explains() -> None:
    """TTFT is further beyond its tolerance, but only by a step of decode."""
    start = finding("ttft", 0.010, 0.020)
    assert leading_row([start, STEPS], [start, STEPS]) is STEPS
    rate = finding("output_token_throughput", 100.0, 40.0)
    assert leading_row([STEPS, rate], [STEPS, rate]) is rate
    with pytest.raises(ValueError, match="empty"):
        leading_row([], [])
