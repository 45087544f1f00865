"""Which facts a lab's roofline takes, and which measurements."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from phasegate.core.identity import ServerIdentity, client_identity
from phasegate.core.settings_file import SettingsError
from phasegate.core.target import Target
from phasegate.core.workload import parse_workload, plan_blocks
from phasegate.engines.profile import profile_named
from phasegate.engines.simulator.config import SimulatorConfig
from phasegate.engines.simulator.engine import SimulatorEngine
from phasegate.measure.hardware_limits import hardware_of, level_measured, measured_of, missing_facts, runner_roofline
from phasegate.measure.session_runner import SessionRunner
from phasegate.pytest_plugin.hardware_limit import check_facts, limits_of, write_roofline
from phasegate.stats.workload_run import Measured, WorkloadRun
from tests.load_runs import level_run
from tests.timelines import timeline

MODEL = "weights: 1000000000\nhead: 0\nlayers: 10\nheads: 8\nhead_size: 128\nweight_bytes: 2\n"


def run_of(ttfts: dict[int, float], tpot: float = 0.004, prefix: str = "unique", name: str = "lengths") -> WorkloadRun:
    """Three requests of each prompt length."""
    lengths = ", ".join(map(str, ttfts))
    workload = parse_workload(
        f"input_tokens: [{lengths}]\noutput_tokens: 5\nrequests: 3\nprefix: {prefix}\nendpoint: chat\n", f"{name}.yaml"
    )
    measured = [
        Measured(planned, timeline(ttfts[planned.input_tokens], tpot, 5, prompt_tokens=planned.input_tokens + 20))
        for planned in plan_blocks(workload, np.random.default_rng(1))
    ]
    return WorkloadRun(workload, tuple(measured))


def runner_of(hardware: str, runs: list[WorkloadRun]) -> SessionRunner:
    """A lab on a server that is not there, with what it has measured."""
    server = ServerIdentity("vllm", "1", "m", hardware=hardware)
    target = Target(base_url="http://127.0.0.1:9/v1", model="m")
    engine = SimulatorEngine(SimulatorConfig())
    runner = SessionRunner(engine, server, client_identity(), profile_named("vllm"), target, seed=1)
    runner.runs.update({run.workload.name: run for run in runs})
    return runner


def test_the_longest_and_the_shortest_prompt_are_taken_as_the_server_counted_them() -> None:
    """From the cold workload with the most lengths; warm prompts say nothing of prefill."""
    runs = [run_of({64: 0.01}, name="one"), run_of({64: 0.02, 512: 0.08, 1024: 0.16}), run_of({2048: 0.01}, name="two")]
    measured = measured_of(runs)
    assert measured is not None
    assert (measured.prompt, measured.short) == (1044, 84)
    assert measured.slope == pytest.approx(0.14)
    assert measured.tpot == pytest.approx(0.004)
    assert measured_of([]) is None


def test_a_servers_label_and_a_file_of_facts_are_enough(tmp_path: Path) -> None:
    """2.04 GB in a millisecond are 43 % of an H200's bandwidth."""
    path = tmp_path / "model.yaml"
    path.write_text(MODEL)
    slow = runner_of("H200 x1", [run_of({64: 0.02, 1024: 0.16}, tpot=0.001)])
    found = runner_roofline(slow, str(path))
    assert found is not None
    assert found.hardware.name == "H200"
    assert found.mbu.believable == pytest.approx((2e9 + 1046.5 * 2 * 10 * 8 * 128 * 2) / 0.001 / 4.8e12)


def test_where_facts_are_missing_nothing_is_said(tmp_path: Path) -> None:
    """A model that nobody described; hardware that nobody named; nothing measured."""
    path = tmp_path / "model.yaml"
    path.write_text(MODEL)
    run = run_of({64: 0.02, 1024: 0.16})
    assert runner_roofline(runner_of("H200 x1", [run])) is None
    assert runner_roofline(runner_of("unknown", [run]), str(path)) is None
    assert runner_roofline(runner_of("H200 x1", []), str(path)) is None


class Lines(list[str]):
    """A terminal that keeps its lines."""

    def section(self, title: str, **_: str) -> None:
        self.append(title)

    def write_line(self, line: str) -> None:
        self.append(line)


@pytest.mark.parametrize(
    ("label", "model", "hardware", "said"),
    [
        ("unknown", False, None, []),
        ("unknown", False, "H100", ["not known: what the model of H100 computes; give its shape with --perf-model-f"]),
        ("unknown", True, None, ["not known: what the server's hardware can do; name it with --perf-hardware-facts"]),
    ],
)
def test_a_fact_that_comes_to_nothing_is_said_with_the_one_that_is_missing(
    tmp_path: Path, label: str, model: bool, hardware: str | None, said: list[str]
) -> None:
    """Silence is for runs that were given none."""
    path = tmp_path / "model.yaml"
    path.write_text(MODEL)
    runner, lines = runner_of(label, [run_of({64: 0.02, 1024: 0.16})]), Lines()
    given = Given(str(path) if model else None, hardware)
    limits = limits_of(given, runner, None)  # type: ignore[arg-type]
    assert limits.found is None
    write_roofline(lines, limits)
    assert [line[: len(want)] for line, want in zip(lines[1:], said, strict=True)] == said
    assert "each request was measured" in missing_facts(runner_of(label, []), str(path), "H100")


def test_on_a_busy_host_no_limit_is_said(tmp_path: Path) -> None:
    """A limit of 1.62 s stood above a TTFT of 1.58 s: the processor was measured while others used it (A3)."""
    path = tmp_path / "model.yaml"
    path.write_text(MODEL)
    runner, lines = runner_of("H200 x1", [run_of({64: 0.02, 1024: 0.16})]), Lines()
    quiet = limits_of(Given(str(path), None), runner, None)  # type: ignore[arg-type]
    assert quiet.found is not None
    busy = limits_of(Given(str(path), None), runner, "other processes used 1.35 cores")  # type: ignore[arg-type]
    assert busy.found is None
    write_roofline(lines, busy)
    assert lines[1].startswith("not known: other processes used 1.35 cores meanwhile")
    write_roofline(lines := Lines(), limits_of(Given(None, None), runner_of("H200 x1", []), "busy"))  # type: ignore[arg-type]
    assert lines == []


def test_given_hardware_goes_before_the_label(tmp_path: Path) -> None:
    """A name of the table or a file; anything else is one line."""
    runner = runner_of("H200 x1", [])
    given = hardware_of(runner, "A100", "bf16")
    assert given is not None
    assert given.bandwidth == 2039e9
    many = hardware_of(runner, "A100 x2", "bf16")
    assert many is not None
    assert many.reading == 2 * 2039e9
    path = tmp_path / "box.yaml"
    path.write_text("bandwidth: 1.0e+12\n")
    given = hardware_of(runner, str(path), "bf16")
    assert given is not None
    assert given.flops is None
    with pytest.raises(SettingsError, match="no hardware 'B9000'"):
        hardware_of(runner, "B9000", "bf16")


def test_how_many_share_a_step_follows_from_throughput_and_tpot() -> None:
    """20 tokens in 140 ms at 10 ms a token: 1.43 requests decode at a time, however many are in flight."""
    measured = level_measured(level_run(4, [0.1] * 4, failures=1))
    assert measured is not None
    assert measured.batch == pytest.approx(20 / 0.14 * 0.01)
    assert (measured.prompt, measured.output) == (64, 5)
    assert level_measured(level_run(4, [], failures=3)) is None


class Given:
    """A pytest config of two options."""

    def __init__(self, model: str | None, hardware: str | None) -> None:
        self._options = {"--perf-model-facts": model, "--perf-hardware-facts": hardware}

    def getoption(self, name: str) -> str | None:
        return self._options[name]


def test_a_wrong_fact_is_said_before_anything_is_measured(tmp_path: Path) -> None:
    """A file that is not there, a name that nobody knows; what is right passes in silence."""
    path = tmp_path / "model.yaml"
    path.write_text(MODEL)
    for model, hardware in ((None, None), (str(path), "H100"), (None, "measure")):
        check_facts(Given(model, hardware))  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match="no model file"):
        check_facts(Given("none.gguf", None))  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match="no hardware 'B9000'"):
        check_facts(Given(None, "B9000"))  # type: ignore[arg-type]
