"""``phasegate decide`` and ``phasegate explain`` as their users type them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from phasegate.cli import main
from phasegate.core.workload import load_workload
from phasegate.engines.simulator.config import SimulatorConfig
from phasegate.engines.simulator.engine import SimulatorEngine
from phasegate.store.session_file import session_text
from tests.sessions import measurement, session

EXAMPLES = Path(__file__).parents[2] / "fixtures" / "workloads" / "examples"


def write_workload(folder: Path) -> Path:
    """A small workload with a shared beginning."""
    path = folder / "bot.yaml"
    path.write_text(
        "input_tokens: 1100\nshared_tokens: 1000\noutput_tokens: 20\nrequests: 2\nwarmups: 0\nprefix: shared\n"
    )
    return path


def test_a_record_tells_the_phase_the_savings_and_what_will_not_help(tmp_path: Path) -> None:
    """The simulator's own settings stand behind every figure: 0.66 ms a prompt token, 8 ms an output token."""
    settings = "speed=10 attention_seconds_per_token_pair=0"
    words = ["decide", str(write_workload(tmp_path)), "--engine", "simulator", "--engine-config", settings]
    assert main([*words, "--concurrency", "1", "--seed", "5", "--out", str(tmp_path / "records")]) == 0
    text = (tmp_path / "records" / "bot.md").read_text(encoding="utf-8")
    assert "**Prefill** binds" in text
    found = re.search(r"prefix caching of 1,000 shared tokens \| prefill \| server \| ([0-9.]+) ms", text)
    assert found is not None
    assert float(found[1]) == pytest.approx(1000 / 1600 / 10 * 1000, rel=0.15)
    assert "## What will not help" in text
    assert "First: **prefix caching of 1,000 shared tokens**" in text
    assert str(tmp_path) not in text
    assert sorted(path.name for path in (tmp_path / "records").iterdir()) == ["bot.json", "bot.md"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([""], "the workload '' is no file; give a YAML file"),
        (["bot.yaml", "--out", "bot.yaml"], "--out bot.yaml: is a file; give a folder for the records"),
        (["bot.yaml", "--out", "bot.yaml/x"], "--out bot.yaml/x: the folder cannot be made (Not a directory)"),
        (
            ["bot.yaml", "--base-url", "http://127.0.0.1:9/v1", "--engine-config", "a=b"],
            "--engine-config is for an engine that is started, and here a running server is measured",
        ),
        (
            ["bot.yaml", "--metrics-url", "decode-1:8200"],
            "--metrics-url 'decode-1:8200' is no address of a metrics page; write http://host:port",
        ),
    ],
)
def test_a_wrong_word_is_one_line_before_anything_is_measured(
    words: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Status 2, and what to give instead."""
    write_workload(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert main(["decide", *words]) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"phasegate decide: {message}")
    assert len(told.splitlines()) == 1


LONG_CONTEXT = "speed=5 kv_seconds_per_token=3e-5 prefill_tokens_per_second=16000 attention_seconds_per_token_pair=0"


def decided(folder: Path, text: str, settings: str, *wanted: str) -> str:
    """The record of a workload on a simulator with these settings, one user."""
    path = folder / "asked.yaml"
    path.write_text(f"{text}\nrequests: 2\nwarmups: 0\nprefix: unique\n", encoding="utf-8")
    words = ["decide", str(path), "--engine", "simulator", "--engine-config", settings, "--concurrency", "--seed", "5"]
    assert main([*words, *wanted, "--out", str(folder / "records")]) == 0
    return (folder / "records" / "asked.md").read_text(encoding="utf-8")


def test_a_shorter_prompt_is_worth_what_decode_reads_of_it(tmp_path: Path) -> None:
    """30 us a token of context and step, planted: 1,000 tokens less in 63 steps are 1.89 s, at a fifth of the time."""
    text = decided(tmp_path, "input_tokens: 2000\noutput_tokens: 64", LONG_CONTEXT)
    found = re.search(r"half the prompt \| prefill and decode \| request \| ([0-9.]+) ms", text)
    assert found is not None
    planted = (1000 * 3e-5 * 63 + 1000 / 16000) / 5
    assert float(found[1]) == pytest.approx(planted * 1000, rel=0.15)
    assert "half the prompt" not in text[text.index("## What will not help") :].lower().split("## decision")[0]
    assert "a KV cache of half the bytes" in text


def test_a_reasoner_is_told_to_reason_less(tmp_path: Path) -> None:
    """The record decides what its first finding names first, and says what a bound rests on."""
    settings = "speed=5 reasoning_tokens=200 reasoning=hidden"
    text = decided(tmp_path, "input_tokens: 200\noutput_tokens: 240", settings, "--slo", "ttft:p50:100ms")
    decision = text[text.index("## Decision") :]
    assert "First: **half the reasoning**" in decision
    assert "The first finding names it: *slow to answer*, 200 reasoning tokens before the answer." in decision
    assert "* Simulated: no model was run." in text
    assert "--concurrency --slo ttft:p50:100ms`" in text
    row = next(line for line in text.splitlines() if line.startswith("| speculative decoding"))
    assert "assumed, not measured" in row


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nonsense"], "no workload 'nonsense'"),
        (["support-bot", "--concurrency", "0"], "--concurrency: 0"),
        (["support-bot", "--requests", "0"], "--requests is 0"),
        (["support-bot", "--slo", "speed:p95:1s"], "'speed'"),
        (["support-bot", "--engine", "simulator", "--engine-config", "sped=3"], "sped"),
    ],
)
def test_wrong_usage_of_decide_is_one_line(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It names the value, before anything is started."""
    assert main(["decide", *words]) == 2
    error = capsys.readouterr().err.strip()
    assert said in error
    assert "\n" not in error


def test_marks_are_refused_where_the_engine_knows_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line, before anything is measured."""
    words = ["decide", str(write_workload(tmp_path)), "--engine", "simulator", "--mark-prefix"]
    assert main(words) == 5
    error = capsys.readouterr().err.strip()
    assert error.startswith("phasegate decide: --perf-mark-prefix: the profile simulator")
    assert "\n" not in error


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_example_can_be_used(path: Path) -> None:
    """One cell each, so that several users can ask it."""
    workload = load_workload(path)
    assert len(workload.input_tokens) == len(workload.output_tokens) == 1
    assert workload.description


def stored(folder: Path, ttft: float, cached: float) -> Path:
    """A session file of two prompt lengths and a second call."""
    rows = [
        measurement("prompt[in=500,out=32]", "ttft", [ttft / 4]),
        measurement("prompt[in=2000,out=32]", "ttft", [ttft]),
        measurement("prompt[in=2000,out=32]", "tpot", [0.01]),
        measurement("prompt[in=2000,out=32]", "e2el", [ttft + 0.31]),
        measurement("prefix-cache[in=2000,out=8]", "ttft", [ttft]),
        measurement("prefix-cache[in=2000,out=8,cached]", "ttft", [cached]),
    ]
    folder.mkdir()
    path = folder / "one.json"
    path.write_text(session_text(session(1, *rows)), encoding="utf-8")
    return path


def test_explain_names_phase_levers_and_what_does_not_help(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A slow start whose second call is as slow: prefill, by a cache that does nothing."""
    assert main(["explain", str(stored(tmp_path / "a", 1.2, 1.2)), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [one["rule"] for one in told["findings"]] == ["uncached-prefix", "slow-start"]
    assert {one["phase"] for one in told["findings"]} == {"prefill"}
    assert told["not_measured"]
    assert main(["explain", str(tmp_path / "a")]) == 0
    text = capsys.readouterr().out
    assert "slow to start" in text
    assert "will not help: more memory bandwidth" in text


def test_explain_tells_what_a_change_fell_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Half as fast to read as before."""
    before, now = stored(tmp_path / "old", 0.2, 0.02), stored(tmp_path / "new", 0.4, 0.02)
    assert main(["explain", str(now), "--before", str(before), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["findings"]
    assert (told[0]["rule"], told[0]["change"]) == ("prefill-slower", True)


@pytest.mark.parametrize("words", [["nowhere"], ["."], ["{file}", "--slo", "ttft:95:1s"]])
def test_wrong_usage_of_explain_is_one_line(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A missing path, an empty folder, an objective that is none."""
    file = stored(tmp_path / "a", 0.2, 0.02)
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    assert main(["explain", *(word.format(file=file) for word in words)]) == 2
    error = capsys.readouterr().err.strip()
    assert error.startswith("phasegate explain: ")
    assert "\n" not in error


def test_a_deploy_between_two_records_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same traffic, before and after a restart: the cache of shared beginnings is gone, and says so first."""
    workload = write_workload(tmp_path)
    config = SimulatorConfig(speed=10, attention_seconds_per_token_pair=0)
    with SimulatorEngine(config) as engine:
        words = ["decide", str(workload), "--base-url", engine.base_url, "--concurrency", "1", "--out"]
        for name in ("first", "before"):  # The first one leaves its beginnings in the cache.
            assert main([*words, str(tmp_path / name)]) == 0
    with SimulatorEngine(config) as engine:
        words[3] = engine.base_url
        assert main([*words, str(tmp_path / "now"), "--before", str(tmp_path / "before")]) == 0
    assert "the cache of shared beginnings was emptied" in (tmp_path / "now" / "bot.md").read_text(encoding="utf-8")
    capsys.readouterr()
    now, before = (str(tmp_path / name / "bot.json") for name in ("now", "before"))
    assert main(["explain", now, "--before", before, "--json"]) == 0
    changes = [one for one in json.loads(capsys.readouterr().out)["findings"] if one["change"]]
    assert changes[0]["rule"] == "cache-reset"
    assert main(["decide", str(workload), "--before", str(tmp_path / "nowhere")]) == 2
    assert "--before: no " in capsys.readouterr().err
