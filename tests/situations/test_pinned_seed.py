"""A pinned seed against a server that remembers: orders come again, prompts do not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.edges.quick_pytest import QuickPytest
from tests.loopback import Served
from tests.situations.planted import Oddities, planted

ROWS = "perf_tests/test_rows.py"
LENGTHS = "name: small\ninput_tokens: [40, 80, 160]\noutput_tokens: [2, 3]\nrequests: 3\nwarmups: 1\n"
LATE = 0.1
"""Seconds that reading a prompt takes, and taking it from the cache does not."""


def prompts(log: list[Served]) -> list[str]:
    """What was measured, in order: counting asks for one token."""
    bodies = [served.body for served in log if served.head.startswith("POST")]
    return [body["messages"][-1]["content"] for body in bodies if body["max_tokens"] > 1]


def test_a_second_run_with_the_same_seed_sends_new_prompts_of_the_same_lengths(
    quick: QuickPytest, one_workload: Callable[[str], Path]
) -> None:
    """C039: nothing of the first run is known to the server; the order is."""
    folder = one_workload(LENGTHS)
    seen = []
    for _ in range(2):
        with planted(Oddities(gap=0.02)) as server:
            options = ("--perf-base-url", server.base_url, "--perf-model", "m", "--perf-seed", "7")
            done = quick.run(ROWS, *options, cwd=folder)
            seen.append(prompts(list(server.log)))
        assert done.status == 0, done.output
        assert "order by seed 7" in done.output
    first, second = seen
    assert len(first) == len(second) == 19
    assert [len(text.split()) for text in first] == [len(text.split()) for text in second]
    beginnings = [{tuple(text.split()[:8]) for text in one} for one in seen]
    assert not beginnings[0] & beginnings[1]


@pytest.mark.slow
def test_two_labs_of_one_run_share_no_prompt(quick: QuickPytest, one_workload: Callable[[], Path]) -> None:
    """C039: candidate and reference behind one address, as one who tries the gate out does it."""
    folder = one_workload()
    with planted() as server:
        options = ("--perf-base-url", server.base_url, "--perf-reference-url", server.base_url, "--perf-model", "m")
        more = ("--perf-seed", "7", "--perf-blocks", "5")
        quick.run("perf_tests/test_regression.py", *options, *more, cwd=folder)
        sent = prompts(list(server.log))
    assert len(sent) > 40
    assert len({tuple(text.split()[:8]) for text in sent}) == len(sent)


@pytest.mark.slow
@pytest.mark.alone
def test_a_silent_cache_does_not_make_the_second_run_fast(
    quick: QuickPytest, one_workload: Callable[[str], Path]
) -> None:
    """C039: every prompt is read, in both runs."""
    folder = one_workload("name: small\ninput_tokens: 64\noutput_tokens: 4\nrequests: 5\nwarmups: 0\n")
    with planted(Oddities(silent_cache=True, per_prompt_token=LATE / 64, gap=0.02)) as server:
        options = ("--perf-base-url", server.base_url, "--perf-model", "m", "--perf-seed", "7")
        for _ in range(2):
            done = quick.run(ROWS, *options, "--benchmark-json", folder / "rows.json", cwd=folder)
            assert done.status == 0, done.output
            rows = json.loads((folder / "rows.json").read_text())["benchmarks"]
            (least,) = (row["stats"]["min"] for row in rows if "ttft" in row["name"])
            assert least > LATE
