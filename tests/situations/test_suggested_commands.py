"""The commands that a run tells its user to type are the user's own."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from phasegate.pytest_plugin.command import recording_command, repeating_command
from tests.edges.desk import Desk
from tests.edges.quick_pytest import QuickPytest


def config(*words: str) -> pytest.Config:
    """As much of a configuration as the commands ask for."""
    given = dict(zip(words, [*words[1:], ""], strict=True))
    made = SimpleNamespace(invocation_params=SimpleNamespace(args=words), getoption=given.get)
    return cast("pytest.Config", made)


@pytest.fixture(autouse=True)
def _nothing_around(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY", "PYTEST_ADDOPTS"):
        monkeypatch.delenv(name, raising=False)


URL = ("--perf-base-url", "http://gpu-box:8000/v1")


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        (("perf_tests", *URL, "--perf-hardware", "H200 x1"), ("perf_tests", *URL, "--perf-hardware", "H200 x1")),
        (("perf_tests", *URL, "-k", "everything", "-x", "-n", "0"), ("perf_tests", *URL)),
        (("perf_tests", "-keverything", "-m=perf", "--maxfail=1", "--lf", "-q", *URL), ("perf_tests", "-q", *URL)),
        (
            ("perf_tests", "--perf-workloads=w", "--perf-report", "r.html", "--junitxml=j.xml", "--perf-seed=3"),
            ("perf_tests", "--perf-workloads=w"),
        ),
        (("perf_tests", "--perf-slo", "ttft:p95:1s", "tpot:p95:1s"),) * 2,
        (
            ("perf_tests", "--missing-baseline", "skip", "--perf-sessions", "2", "--my-own", "7"),
            ("perf_tests", "--my-own", "7"),
        ),
    ],
)
def test_a_baseline_is_recorded_with_what_was_typed(words: tuple[str, ...], kept: tuple[str, ...]) -> None:
    """Pasted, the old words recorded the embedded engine. Selections, results and the way of judging are left out."""
    assert recording_command(config(*words), 8) == shlex.join(
        ["pytest", *kept, "--update-baselines", "--perf-sessions", "8"]
    )


def test_an_address_of_the_environment_is_part_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://gpu-box:8000/v1")
    assert recording_command(config("perf_tests"), 8).startswith("OPENAI_BASE_URL=http://gpu-box:8000/v1 pytest perf_")
    assert "OPENAI" not in recording_command(config("perf_tests", *URL), 8)


@pytest.mark.parametrize(
    "words",
    [
        ("--perf-base-url", "http://me:hush-hush@gpu-box:8000/v1"),
        ("--perf-engine-args=--dtype float32 --api-key hush-hush",),
        ("--perf-base-url=http://gpu-box:8000/v1?api_key=hush-hush",),
        ("--my-header", "x hush-hush y"),
    ],
)
def test_no_key_and_no_password_stands_in_a_command(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "hush-hush")
    for command in (recording_command(config("perf_tests", *words), 8), repeating_command(config(*words), 3)):
        assert "hush" not in command
    monkeypatch.delenv("OPENAI_API_KEY")
    if words[0] != "--my-header":
        assert "hush" not in recording_command(config(*words), 8)


def test_a_run_is_repeated_with_its_seed_and_without_its_reports() -> None:
    command = repeating_command(config("perf_tests", "-k", "a b", "--perf-report", "r.html", "--perf-report=r.json"), 7)
    assert command == "pytest perf_tests -k 'a b' --perf-seed 7"


@pytest.mark.slow
def test_the_gate_and_the_report_name_that_command(tmp_path: Path, quick: QuickPytest) -> None:
    report = tmp_path / "r.json"
    desk = Desk(tmp_path, quick)
    done = desk.run("", "--perf-hardware", "H200 x1", "--perf-report", str(report), "-k", "everything")
    said = " ".join(done.output.split())
    found: Any = json.loads(report.read_text(encoding="utf-8"))
    command = found["headline"]["what_to_do"][0].removeprefix("record a baseline: ")
    assert f"record one with: {command}" in said
    words = shlex.split(command)
    assert words[-3:] == ["--update-baselines", "--perf-sessions", "8"]
    for word in ("H200 x1", str(tmp_path / "workloads"), str(tmp_path / "baselines")):
        assert word in words
    assert not {"-k", "--perf-report", str(report), "--junitxml"} & set(words)
    assert str(report) not in found["reproduce"]["commands"][0]
    again = quick.run(*words[1:])
    assert again.status == 0, again.output
    assert len(desk.sessions()) == 8, "pasted, it records what was measured"
