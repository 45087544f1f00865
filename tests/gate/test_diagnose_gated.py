"""In a gated run only what the gate proved is called slower, at a proven cell, in its phase, and as sure as its row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from phasegate.diagnose import Ask, Confidence, Diagnosis, Observations, Proof, diagnose
from phasegate.diagnose.from_gate import PROVEN, sides_of_gate
from phasegate.gate.judge import judge
from phasegate.gate.policy import Policy
from phasegate.gate.verdict import Finding, Verdict
from phasegate.measure.compare_runs import Gated
from phasegate.pytest_plugin.diagnosis import explain_gated
from phasegate.report.diagnosis_lines import diagnosis_lines
from tests.sessions import sessions

CHAT, LONG = "chat[in=64,out=16]", "prompt[in=1024,out=16]"


def side(chat: tuple[float, float], long: tuple[float, float] = (0.2, 0.002)) -> Observations:
    """TTFT and TPOT of two kinds of request."""
    return Observations(
        asks=tuple(
            Ask(name, tokens, 16, ttft=ttft, tpot=tpot, total=ttft + 15 * tpot)
            for name, tokens, (ttft, tpot) in ((CHAT, 64, chat), (LONG, 1024, long))
        )
    )


BEFORE = side((0.0105, 0.002))


def row(metric: str, ratio: float, *, verdict: Verdict = Verdict.REGRESSION, **changes: object) -> Finding:
    """A row of the gate, a tenth of its change wide, of the chat unless said otherwise."""
    width = 0.1 * abs(ratio - 1)
    one = Finding(CHAT, metric, "both", True, verdict, "", ratio, ratio - width, ratio + width)
    return replace(one, **changes)  # type: ignore[arg-type]


def explained(now: Observations, rows: Sequence[Finding]) -> Diagnosis:
    """The diagnosis of what a gate proved."""
    return diagnose(now, BEFORE, least=PROVEN, proof=Proof.of(rows))


def rules(told: Diagnosis) -> list[str]:
    """Names of what was found about changes."""
    return [one.rule for one in told.found if one.change]


UNDECIDED = row("ttft", 1.289, verdict=Verdict.INCONCLUSIVE, gated=False, ratio_low=0.991, ratio_high=1.677)


def test_a_proven_decode_regression_is_sure_and_a_ttft_beside_it_is_no_slower_prefill() -> None:
    """TTFT +3.04 ms with an interval from -0.9 %, TPOT +155 % proven: decode alone, with the row's own interval."""
    told = explained(side((0.01354, 0.0051)), [row("tpot", 2.55, ratio_low=2.4, ratio_high=2.7), UNDECIDED])
    assert rules(told) == ["decode-slower"]
    first = told.found[0]
    assert (first.phase, first.of, first.confidence) == ("decode", CHAT, Confidence.SURE)
    assert "+155.0 % [+140.0 %, +170.0 %], proven by the gate" in first.evidence[0]
    assert told.unexplained == ()


def test_a_growth_that_the_gate_did_not_prove_is_not_explained_however_large_it_is() -> None:
    """100 ms more of TTFT without a proof: without a gate a slower prefill, with one nothing; the rule could speak."""
    now = side((0.0105, 0.0051), (0.3, 0.002))
    assert "prefill-slower" in rules(diagnose(now, BEFORE))
    assert rules(explained(now, [row("tpot", 2.55), replace(UNDECIDED, workload=LONG)])) == ["decode-slower"]


def test_a_finding_cites_a_proven_cell_and_not_the_one_that_grew_most() -> None:
    """The long prompt's decode grew more, but only the chat's is proven."""
    told = explained(side((0.0105, 0.003), (0.2, 0.009)), [row("tpot", 1.5)])
    assert [(one.rule, one.of) for one in told.found if one.change] == [("decode-slower", CHAT)]


def test_an_interval_that_includes_no_change_proves_nothing() -> None:
    """Whatever word its row carries."""
    assert Proof.of([row("ttft", 1.289, ratio_low=0.991)]).rows == ()
    assert Proof.of([UNDECIDED]).rows == ()
    assert len(Proof.of([row("ttft", 1.289)]).rows) == 1


def test_a_row_that_only_informs_makes_a_change_likely() -> None:
    """It decides no build, so it is no proof by the gate's own measure."""
    now = side((0.0105, 0.0051))
    informing = row("tpot", 2.55, gated=False)
    first = explained(now, [informing]).found[0]
    assert (first.rule, first.confidence) == ("decode-slower", Confidence.LIKELY)
    assert "only informs" in first.evidence[0]
    assert explained(now, [row("tpot", 2.55)]).found[0].confidence is Confidence.SURE


def test_a_proven_prefill_regression_is_told_with_its_slope() -> None:
    """With the row's interval; sure, because several prompt lengths exclude the way to the server."""
    told = explained(side((0.015, 0.002), (0.28, 0.002)), [row("ttft", 1.4, workload=LONG)])
    assert rules(told) == ["prefill-slower"]
    assert (told.found[0].of, told.found[0].confidence) == (LONG, Confidence.SURE)
    assert "+40.0 % [+36.0 %, +44.0 %], proven by the gate" in told.found[0].evidence[0]


def test_a_proven_ttft_that_grew_by_one_step_is_decodes() -> None:
    """Both rows are proven, and 3.1 of 4 ms of TTFT are the first token's own step."""
    told = explained(side((0.0145, 0.0051)), [row("tpot", 2.55), row("ttft", 1.38)])
    assert rules(told) == ["decode-slower"]


def test_what_no_rule_explains_is_named_and_never_called_healthy() -> None:
    """A whole request got slower, and neither phase is proven."""
    told = explained(side((0.011, 0.0021)), [row("e2el", 1.2), UNDECIDED])
    assert rules(told) == []
    text = " ".join(text for _, text in diagnosis_lines(told, 120))
    assert f"explained by no rule: {CHAT} e2el +20.0 % [+18.0 %, +22.0 %], proven by the gate" in text
    assert "slow " not in text
    assert "nothing that was measured is slow" in " ".join(t for _, t in diagnosis_lines(diagnose(BEFORE), 120))


def test_a_gate_is_explained_by_the_figures_of_its_own_rows() -> None:
    """Sessions before a change of level are in no row, so they are in no figure of the diagnosis either."""
    wobble = [1 + 0.002 * ((7 * index) % 5 - 2) for index in range(8)]
    levels = {
        (CHAT, "ttft"): [0.0105 * one for one in wobble],
        (CHAT, "tpot"): [0.002 * one for one in wobble],
        (CHAT, "e2el"): [0.0405 * one for one in wobble],
    }
    slower = {
        (CHAT, "ttft"): [0.0110, 0.0136, 0.0160],
        (CHAT, "tpot"): [0.0051 * one for one in wobble[:3]],
        (CHAT, "e2el"): [0.0901 * one for one in wobble[:3]],
    }
    old, new = sessions(levels), sessions(slower)
    result = judge(old, new, Policy())
    assert result.verdict is Verdict.REGRESSION
    told = explain_gated(Gated(result, tuple(old), tuple(new)), side((0.5, 0.5)))
    assert rules(told) == ["decode-slower"]
    assert told.found[0].confidence is Confidence.SURE
    before, after = sides_of_gate(old, new, result.findings)
    values = {one.metric: one for one in result.findings}
    assert before.asks[0].tpot == values["tpot"].baseline_value
    assert after.asks[0].tpot == values["tpot"].candidate_value
    assert after.asks[0].ttft == values["ttft"].candidate_value


def test_a_gate_that_found_nothing_has_nothing_explained() -> None:
    """No change is told of a green run."""
    old = sessions({(CHAT, "ttft"): [0.0105] * 8, (CHAT, "tpot"): [0.002 * (1 + 0.001 * n) for n in range(8)]})
    result = judge(old[:5], old[5:], Policy())
    assert result.verdict is not Verdict.REGRESSION
    assert rules(explain_gated(Gated(result, tuple(old[:5]), tuple(old[5:])), side((0.5, 0.5)))) == []
