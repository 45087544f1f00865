"""A run ends with its diagnosis."""

from __future__ import annotations

from pathlib import Path

from phasegate.engines.simulator.config import SimulatorConfig
from phasegate.engines.simulator.engine import SimulatorEngine
from tests.edges.quick_pytest import QuickPytest


def run_on(quick: QuickPytest, small: Path, *options: str, **settings: float) -> str:
    """What a run of the rows on a simulated server prints."""
    with SimulatorEngine(SimulatorConfig(seed=3, speed=8.0).changed(**settings)) as engine:
        done = quick.run(
            "perf_tests/test_rows.py", "--perf-base-url", engine.base_url, "--perf-workloads", small, *options
        )
    assert done.status == 0, done.output
    return done.output


def test_a_slow_stream_is_named_with_what_will_not_help(quick: QuickPytest, small: Path) -> None:
    """After everything else, the phase first."""
    policy = small / "policy.yml"
    policy.write_text("slos: ['tpot:p95:2ms']\n")
    output = run_on(quick, small, f"--perf-policy={policy}", step_seconds=0.08)
    block = output[output.index(" diagnosis -") :]
    assert block.index("decode") < block.index("slow to stream")
    assert "2.00 ms wanted (tpot:p95:2ms)" in " ".join(block.split())
    assert "will not help: a GPU with more FLOP/s" in " ".join(block.split())


def test_a_healthy_run_says_that_nothing_is_slow(quick: QuickPytest, small: Path) -> None:
    """And which phase would have to change all the same."""
    block = run_on(quick, small).partition(" diagnosis -")[2]
    assert "the longest request, small[in=64,out=8]" in " ".join(block.split())
    assert "slow to" not in block
