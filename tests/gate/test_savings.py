"""What levers would save, as the whole sitting shows it, and which of them comes first."""

from __future__ import annotations

from dataclasses import replace

import pytest

from phasegate.diagnose import Ask, Diagnosis, Level, Machine, Observations, Steps, diagnose
from phasegate.diagnose.choice import choose, refused, remarks
from phasegate.diagnose.remedies import REMEDIES
from phasegate.diagnose.savings import BOTH, Kind, Saving, kinds_of, savings
from phasegate.gate.levers import LEVERS

SHORT = Ask("short", 500, 8, ttft=0.04, tpot=0.008 + 504 * 3e-5, total=0.2)
LONG = Ask("long", 2000, 64, ttft=0.13, tpot=0.008 + 2032 * 3e-5, total=0.13 + 63 * (0.008 + 2032 * 3e-5))
"""30 us a token of context and step, 60 us a prompt token."""

BRIEF = Ask("brief", 50, 8, ttft=0.03, tpot=0.00475, total=0.063)
REPORT = Ask("report", 200, 801, ttft=0.1, tpot=0.00475, total=3.9)
DEAR = (
    Level(1, ttft=0.1, tpot=0.00475, total=3.9, token_rate=206.0, usual_gap=0.00475),
    Level(4, ttft=0.39, tpot=0.0221, total=18.1, token_rate=177.0, usual_gap=0.0221),
)
CHEAP = (DEAR[0], replace(DEAR[1], tpot=0.0057, usual_gap=0.0057, token_rate=700.0, total=5.0, ttft=0.12))
"""Four users of an engine whose steps cost in proportion to their streams, and of one whose steps are shared."""

THINKING = Ask("think", 500, 600, ttft=3.5, ttfo=3.5, tpot=0.008, total=5.1, reasoning_tokens=400)
THINKING_SHORT = Ask("think-short", 125, 600, ttft=3.27, ttfo=3.27, tpot=0.008, total=4.87, reasoning_tokens=400)


def saved(observations: Observations, ask: Ask) -> dict[Kind, Saving]:
    """Savings by kind."""
    return {one.kind: one for one in savings(observations, diagnose(observations), ask)}


def test_a_shorter_prompt_saves_what_decode_reads_of_it() -> None:
    """1,000 tokens x 30 us x 63 steps beside 60 ms of prefill; the same without growth of TPOT saves prefill alone."""
    found = saved(Observations(asks=(LONG, SHORT)), LONG)[Kind.PROMPT]
    assert found.seconds == pytest.approx(1000 * 3e-5 * 63 + 1000 * 6e-5)
    assert found.phase == BOTH
    assert not found.at_most
    flat = saved(Observations(asks=(LONG, replace(SHORT, tpot=LONG.tpot))), LONG)[Kind.PROMPT]
    assert flat.seconds == pytest.approx(1000 * 6e-5)
    assert flat.phase == "prefill"


def test_smaller_weights_leave_the_context_as_it_is() -> None:
    """Half of the 8 ms a step that are not context; a smaller KV cache halves the rest."""
    found = saved(Observations(asks=(LONG, SHORT)), LONG)
    assert found[Kind.WEIGHTS].seconds == pytest.approx(63 * 0.008 / 2)
    assert found[Kind.CONTEXT].seconds == pytest.approx(63 * 2032 * 3e-5 / 2)
    assert Kind.CONTEXT not in saved(Observations(asks=(REPORT, BRIEF)), REPORT)


def test_no_lever_saves_more_of_decode_than_there_is() -> None:
    """Even where the line through both points is steeper than the request."""
    steep = replace(SHORT, tpot=0.001)
    odd = replace(LONG, total=0.5)
    found = {one.kind: one for one in savings(Observations(asks=(odd, steep)), Diagnosis(()), odd)}
    for kind in (Kind.PROMPT, Kind.CONTEXT, Kind.WEIGHTS, Kind.BANDWIDTH):
        assert 0 <= found[kind].seconds <= 0.5


def test_guesses_have_to_earn_back_what_several_streams_in_a_step_cost() -> None:
    """x 4.65 for checking against 2.8 tokens a step saves nothing; x 1.2 leaves more than half."""
    dear = saved(Observations(asks=(REPORT, BRIEF), levels=DEAR), REPORT)[Kind.SPECULATION]
    assert dear.seconds == 0.0
    assert "x 4.65" in dear.arithmetic
    cheap = saved(Observations(asks=(REPORT, BRIEF), levels=CHEAP), REPORT)[Kind.SPECULATION]
    assert cheap.seconds == pytest.approx(3.8 * (1 - 1.2 / 2.7731), rel=0.001)
    assert "a step's cost: measured" in cheap.rests_on


def test_a_bound_says_what_it_rests_on() -> None:
    """Without several users the cost of checking is assumed, and said to be."""
    for one in savings(Observations(asks=(REPORT, BRIEF)), Diagnosis(()), REPORT):
        assert ("assumed" in one.rests_on) == one.at_most
    found = saved(Observations(asks=(REPORT, BRIEF)), REPORT)
    assert "assumed, not measured" in found[Kind.SPECULATION].rests_on
    doubtful = saved(Observations(asks=(REPORT, BRIEF), levels=DEAR), REPORT)[Kind.WEIGHTS]
    assert "doubtful: steps cost in proportion to their streams" in doubtful.rests_on


def test_proven_arithmetic_leaves_nothing_to_guess_and_makes_flops_help_decode() -> None:
    """By the share of the peak FLOP/s that one stream alone takes."""
    proven = Observations(asks=(REPORT, BRIEF), machine=Machine(decode_compute=0.5))
    found = saved(proven, REPORT)
    assert found[Kind.SPECULATION].seconds == 0.0
    assert found[Kind.COMPUTE].seconds > 3.8 / 2
    assert saved(Observations(asks=(REPORT, BRIEF)), REPORT)[Kind.COMPUTE].seconds < 0.1


def test_an_engine_that_guesses_already_is_not_told_to() -> None:
    """By its own count of guesses."""
    guessing = replace(REPORT, steps=Steps(drafted=100, accepted=70))
    assert Kind.SPECULATION not in saved(Observations(asks=(guessing, BRIEF)), guessing)


def test_a_report_on_dear_steps_does_not_begin_with_guessing() -> None:
    """What the finding says will not help is no first choice, nor a later one; on shared steps it is."""
    observations = Observations(asks=(REPORT, BRIEF), levels=DEAR)
    diagnosis = diagnose(observations)
    assert any("speculative decoding" in text for one in diagnosis.found for text in one.will_not_help)
    chosen = choose(savings(observations, diagnosis, REPORT), diagnosis, 3.9)
    assert chosen.first is not None
    assert Kind.SPECULATION not in {chosen.first.kind, *(one.kind for one in chosen.then)}
    assert chosen.finding is diagnosis.first
    shared = Observations(asks=(REPORT, BRIEF), levels=CHEAP)
    calm = choose(savings(shared, diagnose(shared), REPORT), diagnose(shared), 3.9)
    assert calm.first is not None
    assert calm.first.kind is Kind.SPECULATION


def test_a_finding_stands_against_a_bound_and_not_against_a_measurement() -> None:
    """The same remark about guessing, whatever the arithmetic hopes for."""
    diagnosis = diagnose(Observations(asks=(REPORT, BRIEF), levels=DEAR))
    hoped = Saving(Kind.SPECULATION, "speculative decoding", "decode", "server", 2.4, "", at_most=True)
    assert refused(hoped, diagnosis)
    assert not refused(replace(hoped, at_most=False), diagnosis)
    assert any("speculative" in text for text in remarks([hoped], diagnosis))
    assert not any("speculative" in text for text in remarks([replace(hoped, at_most=False)], diagnosis))


def test_a_remark_about_the_first_token_stops_no_lever_of_decode() -> None:
    """More bandwidth does not help a slow start; that says nothing of the tokens behind it."""
    slow = Ask("slow", 3000, 400, ttft=1.6, tpot=0.005, total=3.6)
    observations = Observations(asks=(slow, replace(slow, prompt_tokens=750, ttft=0.4, total=2.4)))
    diagnosis = diagnose(observations)
    assert [one.rule for one in diagnosis.found] == ["slow-start"]
    found = saved(observations, slow)
    assert not refused(found[Kind.BANDWIDTH], diagnosis)
    assert refused(replace(found[Kind.BANDWIDTH], phase="prefill"), diagnosis)


def test_a_reasoner_begins_with_fewer_reasoning_tokens() -> None:
    """As its first finding does, although guessing promises more."""
    observations = Observations(asks=(THINKING, THINKING_SHORT))
    diagnosis = diagnose(observations)
    assert diagnosis.first is not None
    assert diagnosis.first.rule == "long-reasoning"
    chosen = choose(savings(observations, diagnosis, THINKING), diagnosis, 5.1)
    assert chosen.first is not None
    assert chosen.first.kind is Kind.REASONING
    assert chosen.finding is diagnosis.first


def test_a_finding_whose_levers_cannot_be_reckoned_still_leads() -> None:
    """A way through the network: a nearer server comes first, without a figure."""
    far = Ask("far", 500, 100, ttft=0.9, tpot=0.005, total=1.4)
    observations = Observations(asks=(far, replace(far, prompt_tokens=125, ttft=0.88, total=1.38)))
    diagnosis = diagnose(observations)
    assert diagnosis.first is not None
    assert diagnosis.first.rule == "far-away"
    chosen = choose(savings(observations, diagnosis, far), diagnosis, 1.4)
    assert chosen.first is None
    assert chosen.unreckoned == diagnosis.first.levers[0]


def test_findings_and_reckoning_mean_the_same_levers() -> None:
    """Every kind is reached from the words of a finding; what is switched off is no lever to switch on."""
    names = [lever.name for levers in (*REMEDIES.values(), *LEVERS.values()) for lever in levers]
    assert {kind for name in names for kind in kinds_of(name)} == set(Kind)
    assert kinds_of("speculative decoding off") == ()
    assert kinds_of("a faster decode: speculative decoding, quantized weights") == (Kind.SPECULATION, Kind.WEIGHTS)
    assert kinds_of("more replicas") == ()
