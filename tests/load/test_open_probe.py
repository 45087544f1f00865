"""``phasegate probe`` by rate and by trace: what it prints, what it measures, and how it ends."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from phasegate.cli import main
from phasegate.engines.simulator.config import SimulatorConfig
from phasegate.engines.simulator.engine import SimulatorEngine

MOONCAKE = (
    '{"timestamp": 1000, "input_length": 700, "output_length": 3, "hash_ids": [7, 8]}\n'
    '{"timestamp": 1400, "input_length": 40, "output_length": 5, "hash_ids": [9]}\n'
    '{"timestamp": 1800, "input_length": 800, "output_length": 4, "hash_ids": [7, 10]}\n'
)


@pytest.fixture(scope="module")
def server() -> Iterator[SimulatorEngine]:
    """A simulated server with a prefix cache."""
    with SimulatorEngine(SimulatorConfig(speed=50.0)) as engine:
        yield engine


def probe(capture: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit status, output and errors of the command."""
    try:
        status = main(["probe", *arguments])
    except SystemExit as end:
        status = int(end.code or 0)
    out, err = capture.readouterr()
    assert "Traceback" not in err
    return status, out, err


def probe_json(capture: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    _, out, err = probe(capture, *arguments, "--json")
    assert out, err
    found = json.loads(out)
    assert isinstance(found, dict)
    return found


def test_a_rate_is_driven_and_reported(capsys: pytest.CaptureFixture[str], server: SimulatorEngine) -> None:
    """Beside the requests stands the load: asked, achieved, in flight."""
    given = ("--base-url", server.base_url, "--model", "simulated", "--max-tokens", "4", "--requests", "12")
    found = probe_json(capsys, *given, "--request-rate", "20", "--burstiness", "inf")
    load = found["load"]
    assert load["asked"] == "open loop, even arrivals, 20 requests/s"
    assert load["requested_rate"] == pytest.approx(20)
    assert load["achieved_rate"] == pytest.approx(20, rel=0.2)
    assert load["max_concurrency"] is None
    for one in found["requests"]:
        waited = one["time_to_first_token_from_due"] - one["time_to_first_token"]
        assert waited == pytest.approx(one["schedule_delay"], abs=1e-6)


def test_a_rate_that_the_cap_prevents_is_an_invalid_run(
    capsys: pytest.CaptureFixture[str], server: SimulatorEngine
) -> None:
    """Exit status 5, one line, and the option of this command in it."""
    given = ("--base-url", server.base_url, "--model", "simulated", "--max-tokens", "60", "--requests", "12")
    status, out, err = probe(capsys, *given, "--request-rate", "1000", "--max-concurrency", "1")
    assert status == 5
    assert "were sent where 1,000 requests/s were due" in err
    assert "raise --max-concurrency or lower --request-rate" in err
    assert "open loop, Poisson arrivals, 1000 requests/s, at most 1 at a time" in out


def test_all_at_once_through_a_cap_is_a_closed_loop_and_valid(
    capsys: pytest.CaptureFixture[str], server: SimulatorEngine
) -> None:
    """As other tools spell a closed loop."""
    given = ("--base-url", server.base_url, "--model", "simulated", "--max-tokens", "60", "--requests", "12")
    status, out, _ = probe(capsys, *given, "--request-rate", "inf", "--max-concurrency", "2")
    assert status == 0
    assert "open loop, all requests at once, at most 2 at a time" in out


def test_a_trace_is_replayed_with_its_lengths_and_its_shared_blocks(
    capsys: pytest.CaptureFixture[str], server: SimulatorEngine, tmp_path: Path
) -> None:
    """The server counts the recorded tokens, and finds the block that two requests share in its cache."""
    path = tmp_path / "trace.jsonl"
    path.write_text(MOONCAKE)
    found = probe_json(capsys, "--base-url", server.base_url, "--trace", str(path), "--trace-scale", "0.5")
    requests = found["requests"]
    assert [one["prompt_tokens"] for one in requests] == [700, 40, 800]
    assert [one["output_tokens"] for one in requests] == [3, 5, 4]
    assert requests[2]["cached_tokens"] >= 480
    assert (requests[1]["cached_tokens"] or 0) < 40
    assert found["load"]["requested_rate"] == pytest.approx(2 / 0.4)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--request-rate", "fast"), "--request-rate 'fast'"),
        (("--burstiness", "2"), "--burstiness 2 needs --request-rate"),
        (("--trace", "none.jsonl"), "none.jsonl: cannot read the trace"),
        (("--trace", "t", "--prompt", "x"), "not allowed with"),
    ],
)
def test_wrong_usage_is_one_line_and_status_two(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    """Before anything is started or sent."""
    status, _, err = probe(capsys, "--base-url", "http://127.0.0.1:9/v1", "--model", "m", *arguments)
    assert status == 2
    assert said in err
