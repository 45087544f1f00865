"""The first screen: whoever sees nothing else can say which phase, how much, how sure, and what to do."""

from __future__ import annotations

from typing import Any

import pytest

from phasegate.gate.verdict import Verdict, refused
from phasegate.report.document.headline import Parts, headline_of
from phasegate.report.document.model import WORDS, Failure, Gate, Row, Validity, tone_of
from phasegate.stats.outcome import Outcome
from tests.report.documents import LONG, document, law, load_of

NOTHING: dict[str, Any] = {"result": None, "baseline": (), "candidate": ()}


@pytest.mark.parametrize(
    ("slower", "phase", "metric"), [({"ttft": 1.4}, "prefill", "TTFT"), ({"tpot": 1.3}, "decode", "TPOT")]
)
def test_a_regression_names_phase_amount_certainty_and_lever(slower: dict[str, float], phase: str, metric: str) -> None:
    head = document(**slower).headline
    amount = f"+{100 * (next(iter(slower.values())) - 1):.0f}"
    assert head.verdict == "REGRESSION"
    assert head.phase == phase
    assert head.title.startswith(f"{phase.capitalize()} got slower: {metric} {amount}")
    assert " to " in head.how_much
    assert "95 % interval" in head.how_sure
    assert "would have been found" in head.how_sure
    assert "8 baseline and 3 new sessions" in head.how_sure
    assert head.what_to_do[0].startswith("undo the change")
    assert head.lever is not None
    assert phase in head.lever


def test_both_phases_slower_is_said_so() -> None:
    assert document(ttft=1.4, tpot=1.4).headline.phase == "both"


def gate_of(*rows: Row, verdict: str = "REGRESSION") -> Parts:
    """The parts of a run whose gate has these rows and nothing else."""
    gate = Gate(verdict, "slower", "stored sessions", "session", len(rows), len(rows), rows, lever="levers: all")
    return Parts(gate, (), None, Validity())


def slower_row(metric: str, old: float, new: float, **changes: Any) -> Row:
    """A proven row of the chat, gated unless said otherwise."""
    phase = {"ttft": "prefill", "tpot": "decode"}.get(metric, "both")
    values: dict[str, Any] = {"gated": True, "verdict": "REGRESSION", **changes}
    return Row(
        CHAT, metric, phase, "s", "lower", reason="slower", ratio=new / old, ratio_low=new / old - 0.05,
        ratio_high=new / old + 0.05, tolerance=0.1, baseline_value=old, candidate_value=new, **values,
    )  # fmt: skip


CHAT = "chat[in=64,out=16]"
DECODE = slower_row("tpot", 0.002, 0.0051)


def test_a_ttft_that_grew_by_one_step_of_decode_makes_no_second_phase() -> None:
    """3.04 ms of TTFT are the first token's own step: decode alone got slower, whichever row is the worst."""
    for start in (slower_row("ttft", 0.0105, 0.01354), slower_row("ttft", 0.001, 0.004)):
        head = headline_of(gate_of(start, DECODE, slower_row("e2el", 0.0405, 0.09)))
        assert head.phase == "decode"
        assert head.title == "Decode got slower: TPOT +155.0 %"
        assert head.lever is not None
        assert head.lever.startswith("levers for decode")


def test_a_ttft_that_grew_by_far_more_than_a_step_is_prefills_own() -> None:
    """60 ms beside a step of 3 ms: both phases are proven."""
    head = headline_of(gate_of(slower_row("ttft", 0.0105, 0.07), DECODE))
    assert (head.phase, head.title[:32]) == ("both", "Prefill and decode got slower: T")


def test_a_whole_request_takes_its_phase_from_the_rows_of_the_phases() -> None:
    """From those that only inform where they are proven; without any, no phase is named."""
    whole = slower_row("e2el", 0.0405, 0.09)
    informing = slower_row("tpot", 0.002, 0.0051, gated=False)
    open_row = slower_row("ttft", 0.0105, 0.01354, gated=False, verdict="INCONCLUSIVE")
    head = headline_of(gate_of(whole, informing, open_row))
    assert (head.phase, head.title[:18]) == ("decode", "Decode got slower:")
    assert headline_of(gate_of(whole, open_row)).title == "Whole requests got slower: total latency +122.2 %"


def test_a_pass_says_what_would_have_been_found() -> None:
    head = document().headline
    assert head.verdict == "PASS"
    assert head.phase is None
    assert "would have been found" in head.how_sure
    assert "gated comparisons within limits" in head.how_much
    assert head.what_to_do == ("go ahead",)


def test_an_improvement_names_the_phase_and_asks_for_a_new_baseline() -> None:
    head = document(ttft=0.7, tpot=0.8).headline
    assert head.verdict == "IMPROVED"
    assert "Faster than the baseline: TTFT -30" in head.title
    assert "record a new baseline" in head.what_to_do[0]


def test_a_pass_does_not_keep_a_gain_to_itself() -> None:
    head = document(ttft=0.7).headline
    assert head.verdict == "PASS"
    assert "of them faster: up to TTFT -30" in head.how_much


def test_an_undecided_comparison_says_what_would_decide() -> None:
    head = document(ttft=1.09, spread=0.05).headline
    assert head.verdict == "INCONCLUSIVE"
    assert head.title.startswith("Not decided")
    assert "side by side in one sitting" in head.what_to_do[0]
    assert head.how_much


def test_of_several_undecided_rows_the_one_that_needs_most_is_told_with_its_remedy() -> None:
    """Whatever stands first, and whatever could be the slowest: it decides the others too."""
    plain: dict[str, Any] = {"verdict": "INCONCLUSIVE", "mde": 0.2}
    rows = [
        slower_row("tpot", 0.002, 0.0024, sessions_needed=2, remedy="2 more would decide", **plain),
        slower_row("ttft", 0.01, 0.01, sessions_needed=9, remedy="9 more would decide", **plain),
        slower_row("ttfo", 0.01, 0.01, sessions_needed=4, remedy="4 more would decide", **plain),
    ]
    head = headline_of(gate_of(*rows, verdict="INCONCLUSIVE"))
    assert head.title == "Not decided: TTFT could be slower or not"
    assert head.what_to_do == ("9 more would decide",)
    other = slower_row("e2el", 0.1, 0.1, remedy="compare both servers", **plain)
    assert headline_of(gate_of(*rows, other, verdict="INCONCLUSIVE")).what_to_do == (
        "compare both servers", "others need up to 9 more candidate sessions",
    )  # fmt: skip


def test_a_broken_objective_names_level_share_and_highest_load_that_keeps_it() -> None:
    head = document(**load_of(broken=True)).headline
    assert head.verdict == "SLO_BREACH"
    assert head.phase == "prefill"
    assert head.title == "TTFT breaks its objective at 16 at a time"
    assert "infinite (requests failed)" in head.how_much or "900 ms" in head.how_much
    assert "promised are at most 5.0 %" in head.how_sure
    assert any("kept up to 4" in one for one in head.what_to_do)


def test_a_regression_stands_above_a_broken_objective_and_hides_nothing() -> None:
    head = document(ttft=1.4, **load_of(broken=True)).headline
    assert head.verdict == "REGRESSION"
    assert "1 objective: SLO_BREACH" in head.also


def test_an_invalid_run_says_that_nothing_is_known() -> None:
    head = document(ttft=1.4, invalid=["small: 3 of 4 requests failed (3 x http_500)"]).headline
    assert head.verdict == "INVALID_RUN"
    assert head.phase is None
    assert "3 of 4 requests failed" in head.how_much
    assert head.how_sure.startswith("not at all")
    assert "gate: REGRESSION" in head.also


def test_a_missing_baseline_says_how_to_record_one() -> None:
    record = "pytest perf_tests --update-baselines"
    found = {"result": refused(Verdict.NO_BASELINE, "no baseline: looked for baselines/x"), "record_with": record}
    head = document(**{**NOTHING, **found}).headline
    assert head.verdict == "NO_BASELINE"
    assert head.what_to_do == ("record a baseline: pytest perf_tests --update-baselines",)


def test_an_interrupted_run_is_called_so_whatever_it_measured() -> None:
    assert document(ttft=1.4, interrupted=True).headline.verdict == "INTERRUPTED"


def test_a_broken_law_is_named() -> None:
    head = document(**{**NOTHING, "laws": [("t", law(Outcome.FAIL))]}).headline
    assert head.verdict == "FAIL"
    assert "TTFT rises with prompt length" in head.title
    assert head.phase == "prefill"


def test_laws_alone_that_hold_are_a_pass_that_claims_no_comparison() -> None:
    head = document(**NOTHING).headline
    assert head.verdict == "PASS"
    assert head.title == "1 law of the phases holds"
    assert "nothing was compared" in head.how_sure


def test_a_server_that_cannot_be_reached_is_named() -> None:
    failure = Failure("the run", "NOT_MEASURED", "cannot reach http://127.0.0.1:1/v1")
    head = document(**{**NOTHING, "laws": [], "runner": None, "failures": [failure]}).headline
    assert head.verdict == "NOT_MEASURED"
    assert "cannot reach" in head.how_much


def test_any_other_failed_test_is_no_pass() -> None:
    head = document(**{**NOTHING, "laws": [], "failures": [Failure("t", "FAIL", "assert 1 == 2")]}).headline
    assert head.verdict == "FAIL"
    assert "assert 1 == 2" in head.reason


def test_only_pass_and_improved_look_good() -> None:
    assert [word for word in WORDS if tone_of(word) == "good"] == ["PASS", "IMPROVED"]
    assert tone_of("no such word") == "open"


def test_the_worst_row_is_the_one_that_is_told() -> None:
    gate = document(ttft=1.4).gate
    assert gate is not None
    head = document(ttft=1.4).headline
    assert LONG in head.how_much


def test_sessions_that_were_compared_with_nothing_are_no_pass() -> None:
    assert document(result=None, baseline=(), laws=[]).headline.verdict == "NO_BASELINE"


def test_sessions_that_became_a_baseline_are_said_so() -> None:
    head = document(result=None, baseline=(), laws=[], stored="stored 3 sessions in baselines/x").headline
    assert (head.verdict, head.title) == ("PASS", "A new baseline is recorded")
    assert head.how_much == "stored 3 sessions in baselines/x"


def test_the_word_of_a_run_is_the_one_it_ended_with() -> None:
    """What its parts would say is not asked: a missing baseline that was let pass hides no undecided law."""
    found = {"result": refused(Verdict.NO_BASELINE, "none"), "laws": [("t", law(Outcome.INCONCLUSIVE))]}
    head = document(**{**NOTHING, **found, "word": "INCONCLUSIVE", "scope": (["1 law"], ["objectives"])}).headline
    assert head.verdict == "INCONCLUSIVE"
    assert "gate: NO_BASELINE" in head.also
    assert (head.judged, head.not_judged) == (("1 law",), ("objectives",))


@pytest.mark.parametrize("word", WORDS)
def test_every_word_has_a_screen_whatever_the_parts_hold(word: str) -> None:
    """Also where no part says why, as in a run whose tests were of somebody else."""
    assert document(**{**NOTHING, "laws": [], "word": word}).headline.verdict == word
