"""Mixed workloads: exact shares, an order that the seed decides, prompts that are never used twice."""

import math
from collections import Counter
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phasegate.core.prompt import Calibration
from phasegate.core.target import Target
from phasegate.core.workload import Workload, plan_warmups
from phasegate.engines.profile import profiles
from phasegate.load.mix import Mix, mixed, parse_mix, plan_mixed, plan_of, quotas
from phasegate.measure.load_runner import LoadRunner
from phasegate.measure.session_runner import SessionRunner

CHAT = Workload("chat", "", (32, 64), (8,), 4, 6, "unique", 0, "chat")
SUMMARY = Workload("summary", "", (512,), (4,), 4, 2, "unique", 0, "chat")
WEIGHTS = st.lists(st.floats(0, 100), min_size=1, max_size=6).filter(lambda weights: sum(weights) > 0)


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


@settings(max_examples=80, deadline=None)
@given(WEIGHTS, st.integers(0, 500))
def test_quotas_add_up_and_are_within_one_of_the_exact_share(weights: list[float], count: int) -> None:
    """For any weights."""
    whole = quotas(weights, count)
    assert sum(whole) == count
    for got, weight in zip(whole, weights, strict=True):
        assert abs(got - count * weight / sum(weights)) < 1 + 1e-6


def test_a_mix_has_its_shares_in_an_order_that_the_seed_decides() -> None:
    """Three to one of 40 are 30 and 10; equal seeds, equal orders; not simply one after the other."""
    order = mixed({"chat": 3, "summary": 1}, 40, rng())
    assert Counter(order) == {"chat": 30, "summary": 10}
    assert order == mixed({"chat": 3, "summary": 1}, 40, rng())
    assert order != mixed({"chat": 3, "summary": 1}, 40, rng(2))
    assert order != tuple(sorted(order))


@pytest.mark.parametrize("weights", [{}, {"a": 0.0}, {"a": -1.0, "b": 2.0}, {"a": math.nan}, {"a": math.inf}])
def test_impossible_weights_are_refused(weights: dict[str, float]) -> None:
    """Nothing to choose from, less than nothing, or no number."""
    with pytest.raises(ValueError, match="weight"):
        mixed(weights, 4, rng())


def test_a_mixed_plan_visits_every_cell_evenly_with_new_prompts() -> None:
    """Also the last, incomplete block; no prompt comes twice."""
    plan = plan_mixed([(CHAT, 3), (SUMMARY, 1)], 41, rng())
    assert len(plan) == 41
    per_length = Counter(planned.input_tokens for _, planned in plan)
    assert per_length[512] == 10
    assert abs(per_length[32] - per_length[64]) <= 1
    assert len({planned.prompt_key for _, planned in plan}) == 41
    assert all(planned.prompt_key.startswith(workload.name) for workload, planned in plan)


def test_a_workload_named_twice_is_refused() -> None:
    """Its prompts would be the same ones."""
    with pytest.raises(ValueError, match="once"):
        plan_mixed([(CHAT, 1), (CHAT, 1)], 4, rng())


@pytest.mark.parametrize("count", [1, 7, 200])
def test_warm_up_prompts_are_never_measured_whatever_the_number_of_requests(count: int) -> None:
    """Neither in one workload nor in a mix; a plan that measured a warm-up prompt would be seen."""
    warm = {planned.prompt_key for w in (CHAT, SUMMARY) for planned in plan_warmups(replace(w, warmups=50))}
    measured = {planned.prompt_key for planned in plan_of(CHAT, count, rng())}
    measured |= {planned.prompt_key for _, planned in plan_mixed([(CHAT, 1), (SUMMARY, 2)], count, rng())}
    assert len(warm) == 100
    assert not warm & measured
    reused = [replace(planned, prompt_key=next(iter(warm))) for planned in plan_of(CHAT, count, rng())]
    assert warm & {planned.prompt_key for planned in reused}


def test_the_warm_up_prompts_of_a_rate_are_never_measured() -> None:
    """The lab writes all with the same seed; every call takes a block of prompts of its own."""
    words = tuple(f"w{place}" for place in range(300))
    runner = SessionRunner(
        engine=cast(Any, None),
        server=cast(Any, None),
        client=cast(Any, None),
        profile=profiles()[0],
        target=Target("http://127.0.0.1:9/v1", "m"),
        seed=7,
        _calibrations={"chat": Calibration(words, words[:24], 6, "test")},
    )
    workload = replace(CHAT, input_tokens=(32,))
    load = LoadRunner(runner)

    def prompts(asked: Workload | Mix) -> set[str]:
        return {str(request.body["messages"]) for request in load.requests(asked, 40)}

    assert len(prompts(workload) | prompts(workload)) == 80
    mix = Mix(((workload, 3), (replace(SUMMARY, input_tokens=(32,)), 1)))
    assert len(prompts(mix) | prompts(mix) | prompts(workload)) == 120


def test_a_mix_is_read_from_words() -> None:
    """A name alone has the weight 1."""
    assert parse_mix("chat=3 report=0.5 code", source="--perf-mix") == {"chat": 3.0, "report": 0.5, "code": 1.0}
    assert Mix(((CHAT, 3.0), (SUMMARY, 0.5))).name == "chat=3 summary=0.5"


@pytest.mark.parametrize("text", ["chat=", "chat=0", "chat=-1", "chat=inf", "chat=nan", "=3", "chat=3 chat=1", ""])
def test_a_mix_that_says_nothing_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(ValueError, match="--perf-mix") as error:
        parse_mix(text, source="--perf-mix")
    assert "\n" not in str(error.value)
