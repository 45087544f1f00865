"""Workload files: what is read, what is refused, and in which order requests are planned."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phasegate.core.settings_file import SettingsError
from phasegate.core.workload import Workload, load_workload, parse_workload, plan_blocks, plan_warmups

GOOD = "input_tokens: [64, 256]\noutput_tokens: 32\nrequests: 3\n"


def parse(text: str) -> Workload:
    return parse_workload(text, "some/prompts.yaml")


def test_a_minimal_file_takes_its_name_from_the_file_and_defaults_for_the_rest() -> None:
    workload = parse(GOOD)
    assert workload.name == "prompts"
    assert workload.input_tokens == (64, 256)
    assert workload.output_tokens == (32,)
    assert [cell.label for cell in workload.cells] == ["prompts[in=64,out=32]", "prompts[in=256,out=32]"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("input_token: 5\noutput_tokens: 5\n", "some/prompts.yaml:1: unknown key 'input_token'; did you mean 'input_"),
        ("input_tokens: -5\noutput_tokens: 5\n", "some/prompts.yaml:1: input_tokens is -5; it must be a whole number"),
        ("input_tokens: 5\noutput_tokens: 0\n", "prompts.yaml:2: output_tokens is 0"),
        ("input_tokens: [5, 5]\noutput_tokens: 1\n", "input_tokens is [5, 5]"),
        ("input_tokens: yes\noutput_tokens: 1\n", "input_tokens is True"),
        ("input_tokens: []\noutput_tokens: 1\n", "input_tokens is []"),
        ("output_tokens: 1\n", "the key 'input_tokens' is missing"),
        (GOOD + "prefix: sharde\n", "prefix is 'sharde'; it must be one of unique, repeated, shared"),
        (GOOD + "requests: 4\n", "the key 'requests' stands twice (first on line 3)"),
        (GOOD + "prefix: shared\n", "shared_tokens belongs to 'prefix: shared'"),
        (GOOD + "prefix: shared\nshared_tokens: 64\n", "must be below the shortest input_tokens, 64"),
        ("", "the file is empty"),
        ("- a\n", "must hold a mapping"),
        ("input_tokens: [1\n", "not readable as YAML"),
    ],
)
def test_a_mistake_is_one_line_with_place_and_remedy(text: str, said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse(text)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_shipped_workloads_can_be_read() -> None:
    folder = Path(__file__).resolve().parents[2] / "fixtures" / "workloads"
    names = {load_workload(path).name for path in folder.glob("*.yaml")}
    assert {"prompt-length", "output-length", "prefix-cache", "shared-prefix"} <= names


def test_a_file_that_calls_itself_by_another_name_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(GOOD + "name: b\n", encoding="utf-8")
    with pytest.raises(SettingsError, match="name and file must agree"):
        load_workload(path)


@given(seed=st.integers(0, 2**32), requests=st.integers(1, 6))
def test_every_block_visits_every_cell_once(seed: int, requests: int) -> None:
    workload = parse(GOOD).with_requests(requests)
    plan = plan_blocks(workload, np.random.default_rng(seed))
    seen = Counter((one.block, one.cell) for one in plan)
    assert set(seen.values()) == {1}
    assert len(plan) == requests * len(workload.cells)
    assert [one.block for one in plan] == sorted(one.block for one in plan)


@given(seed=st.integers(0, 2**32))
def test_the_cached_call_follows_its_cold_one_at_once_and_the_control_stands_outside(seed: int) -> None:
    workload = parse("input_tokens: 64\noutput_tokens: 4\nrequests: 4\nprefix: repeated\n")
    plan = plan_blocks(workload, np.random.default_rng(seed))
    roles = [one.cell.role for one in plan if one.cell is not None]
    for block in range(4):
        part = roles[3 * block : 3 * block + 3]
        assert part in (["control", "cold", "cached"], ["cold", "cached", "control"])
    cold, cached = (next(one for one in plan if one.cell and one.cell.role == role) for role in ("cold", "cached"))
    assert cold.prompt_key == cached.prompt_key
    assert (cold.cold, cached.cold) == (True, False)


def test_orders_differ_between_blocks_and_equal_seeds_plan_alike() -> None:
    workload = parse("input_tokens: [1, 2, 3, 4]\noutput_tokens: 4\nrequests: 10\n")
    first = plan_blocks(workload, np.random.default_rng(1))
    assert first == plan_blocks(workload, np.random.default_rng(1))
    orders = {tuple(one.input_tokens for one in first if one.block == block) for block in range(10)}
    assert len(orders) > 1


def test_warmup_prompts_are_used_by_no_measured_request() -> None:
    workload = parse(GOOD)
    warm = {one.prompt_key for one in plan_warmups(workload)}
    measured = {one.prompt_key for one in plan_blocks(workload, np.random.default_rng(0))}
    assert warm
    assert not warm & measured


def test_the_digest_changes_with_what_is_sent_and_with_nothing_else() -> None:
    workload = parse(GOOD)
    assert workload.digest() == workload.with_requests(50).digest()
    assert workload.digest() == parse(GOOD + "description: other words\n").digest()
    assert workload.digest() != parse(GOOD.replace("256", "512")).digest()
    assert workload.digest() != parse(GOOD + "endpoint: chat\n").digest()
    assert workload.digest() != replace(workload, mark_prefix=True).digest()


def test_the_digest_of_a_plain_workload_stays_what_stored_baselines_have() -> None:
    """Else each of them would be refused as another workload."""
    assert parse_workload("input_tokens: 64\noutput_tokens: 8\n", "w.yaml").digest() == "d817305e"
