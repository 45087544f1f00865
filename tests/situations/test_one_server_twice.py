"""One URL on both sides of a paired run: it just works, and says so in one line (A16)."""

from __future__ import annotations

from pathlib import Path

import pytest

from phasegate.engines.simulator.engine import SimulatorEngine
from tests.edges.quick_pytest import QuickPytest

POLICY = "tolerance: {prefill: 0.4, decode: 0.4, both: 0.4}\n"
"""Wide, since a busy machine may shift the simulator's sleeps: what is looked for here is a cache, not a change."""

SETTINGS = "step_seconds=0.012 prefill_tokens_per_second=2000 cache=on cache_block_tokens=1"
"""A prompt that was seen before would be read in no time at all."""

WORKLOADS = {
    "new": "input_tokens: 96\noutput_tokens: 6\nrequests: 10\nwarmups: 1\n",
    "again": "input_tokens: 96\noutput_tokens: 4\nrequests: 10\nwarmups: 0\nprefix: repeated\n",
    "shared": "input_tokens: 96\nshared_tokens: 64\noutput_tokens: 4\nrequests: 10\nwarmups: 0\nprefix: shared\n",
}


SLOW = [pytest.param(one, marks=pytest.mark.slow) for one in ("again", "shared")]


@pytest.mark.parametrize("name", ["new", *SLOW])
def test_one_url_on_both_sides_passes_and_is_named(name: str, tmp_path: Path, quick: QuickPytest) -> None:
    """A16: both sides sent the same prompts, and the server cached them: "3 of 3 answers are unfit"."""
    (tmp_path / "workloads").mkdir()
    (tmp_path / "workloads" / f"{name}.yaml").write_text(WORKLOADS[name])
    (tmp_path / "policy.yaml").write_text(POLICY)
    with SimulatorEngine.from_words(SETTINGS) as engine:
        done = quick.run(
            "perf_tests/test_regression.py", "-q", "--perf-base-url", engine.base_url,
            "--perf-reference-url", f"{engine.base_url}/", "--perf-blocks", "5",
            "--perf-workloads", tmp_path / "workloads", "--perf-policy", tmp_path / "policy.yaml",
        )  # fmt: skip
        prompts = len(engine.truths())
    # A machine that is busy enough leaves it undecided; what is no longer said is that answers are unfit.
    assert done.status in (0, 13), done.output
    assert "INVALID_RUN" not in done.output
    assert "candidate and reference are one server" in " ".join(done.output.split())
    assert prompts > 0
    assert "cached_prompt" not in done.output


def test_two_servers_are_not_called_one(tmp_path: Path, quick: QuickPytest) -> None:
    (tmp_path / "workloads").mkdir()
    (tmp_path / "workloads" / "new.yaml").write_text(WORKLOADS["new"])
    (tmp_path / "policy.yaml").write_text(POLICY)
    with SimulatorEngine.from_words(SETTINGS) as one, SimulatorEngine.from_words(SETTINGS) as other:
        done = quick.run(
            "perf_tests/test_regression.py", "-q", "--perf-base-url", one.base_url,
            "--perf-reference-url", other.base_url, "--perf-blocks", "5",
            "--perf-workloads", tmp_path / "workloads", "--perf-policy", tmp_path / "policy.yaml",
        )  # fmt: skip
    assert done.status in (0, 13), done.output
    assert "one server" not in done.output
