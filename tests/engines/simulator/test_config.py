"""Settings are checked as a whole, survive JSON, and every mistake is one line."""

from __future__ import annotations

import statistics

import pytest

from phasegate.engines.simulator.chance import request_effect, rng_for, session_effect
from phasegate.engines.simulator.config import CacheMode, FullKv, SimulatorConfig, SimulatorConfigError
from phasegate.engines.simulator.faults import FAULTS, Fault, FaultRule, rule_for


def test_settings_survive_json() -> None:
    """What is written is what is read, rules and all."""
    config = SimulatorConfig(
        seed=3,
        cache=CacheMode.SLOWER,
        full_kv=FullKv.QUEUE,
        ttft_constant_seconds=0.2,
        faults=(FaultRule(Fault.HTTP_429, every=3), FaultRule(Fault.TRUNCATED, at=(2, 5), after_tokens=7)),
    )
    assert SimulatorConfig.from_json(config.to_json()) == config


def test_words_become_settings() -> None:
    """The command line's form of the same."""
    config = SimulatorConfig.from_words("prefill_factor=1.2 cache=off chunked_prefill=false model=m1")
    assert (config.prefill_factor, config.cache, config.chunked_prefill, config.model) == (
        1.2,
        CacheMode.OFF,
        False,
        "m1",
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"prefil_factor": 2}', "unknown simulator setting 'prefil_factor'; did you mean 'prefill_factor'?"),
        ('{"speed": 0}', "simulator setting speed is 0; it must be a number above 0"),
        ('{"step_seconds": NaN}', "simulator setting step_seconds is nan; it must be a number above 0"),
        ('{"max_sequences": 1.5}', "simulator setting max_sequences is 1.5; it must be a whole number of 1 or more"),
        ('{"max_sequences": true}', "simulator setting max_sequences is True; it must be a whole number"),
        ('{"cache": "maybe"}', "simulator setting cache is 'maybe'; it must be one of on, off, slower"),
        ('{"step_token_budget": 8}', "step_token_budget is 8; it must be at least max_sequences, 256"),
        ('{"kv_capacity_tokens": 9}', "kv_capacity_tokens is 9; it must be at least context_limit"),
        ('{"faults": [{"fault": "http_418"}]}', "fault is 'http_418'; it must be one of http_429"),
        ('{"faults": [{"fault": "http_429", "evry": 1}]}', "unknown fault setting 'evry'; did you mean 'every'?"),
        ('{"faults": [{"fault": "http_429", "at": 3}]}', "fault setting at is 3; it must be a list of"),
        ('{"faults": [{"fault": "http_429", "probability": 3}]}', "probability is 3; it must be 0 to 1"),
        ('{"faults": 3}', "simulator setting faults is 3; it must be a list of rules"),
        ("[]", "simulator settings are []; they must be a JSON object"),
        ("{", "simulator settings are not JSON"),
    ],
)
def test_a_mistake_is_one_line_that_names_it(text: str, said: str) -> None:
    """The setting, its value and what would do."""
    with pytest.raises(SimulatorConfigError) as caught:
        SimulatorConfig.from_json(text)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_change_to_an_unknown_setting_is_refused() -> None:
    """As in a file."""
    with pytest.raises(SimulatorConfigError, match="unknown simulator setting 'spede'"):
        SimulatorConfig().changed(spede=2)


def test_every_fault_is_described() -> None:
    """The table in the documentation is made of these."""
    assert set(FAULTS) == set(Fault)


def test_rules_hit_by_number_and_by_chance() -> None:
    """Every third, the fifth, and about a tenth."""
    rules = (FaultRule(Fault.HTTP_500, every=3), FaultRule(Fault.HTTP_503, at=(5,)))
    hit = [rule.fault if rule else None for rule in (rule_for(rules, n, 0, 0) for n in range(1, 7))]
    assert hit == [None, None, Fault.HTTP_500, None, Fault.HTTP_503, Fault.HTTP_500]
    often = (FaultRule(Fault.HTTP_500, probability=0.1),)
    hits = [rule_for(often, n, 0, 0) is not None for n in range(2000)]
    assert 150 < sum(hits) < 250
    assert hits == [rule_for(often, n, 0, 0) is not None for n in range(2000)]


def test_noise_has_the_spread_that_was_asked_for() -> None:
    """Within sessions and between them, with median 1."""
    config = SimulatorConfig(decode_cv=0.02, session_prefill_cv=0.05)
    calm = session_effect(SimulatorConfig())
    within = [request_effect(config, calm, n).decode for n in range(1, 2001)]
    assert statistics.pstdev(within) == pytest.approx(0.02, rel=0.1)
    assert statistics.median(within) == pytest.approx(1.0, abs=0.002)
    between = [session_effect(config.changed(session=n)).prefill for n in range(500)]
    assert statistics.pstdev(between) == pytest.approx(0.05, rel=0.15)


def test_bad_sessions_come_as_often_as_asked() -> None:
    """And slow both phases down."""
    effects = [
        session_effect(SimulatorConfig(bad_session_probability=0.2, bad_session_factor=1.5, session=n))
        for n in range(500)
    ]
    assert 0.14 < sum(effect.bad for effect in effects) / 500 < 0.26
    assert all((effect.prefill == effect.decode == 1.5) is effect.bad for effect in effects)


def test_drift_grows_with_every_request() -> None:
    """One per cent a request."""
    config = SimulatorConfig(drift_per_request=0.01)
    calm = session_effect(config)
    assert request_effect(config, calm, 1).prefill == 1.0
    assert request_effect(config, calm, 11).decode == pytest.approx(1.1)


def test_a_generator_depends_on_its_name_alone() -> None:
    """Not on who asked before."""
    config = SimulatorConfig(seed=5)
    first = rng_for(config, "answer", 3).random()
    rng_for(config, "answer", 4).random()
    assert rng_for(config, "answer", 3).random() == first != rng_for(config, "answer", 4).random()
