"""Connecting to a server that runs: which profile it is talked to in, from what that is known, with which key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from phasegate.cli.profile_lines import profile_words
from phasegate.engines.base import EngineError
from phasegate.engines.simulator.engine import SimulatorEngine
from phasegate.measure.connect import STARTED_ONLY, EngineOptions, check_engine, connect, refuse_unused
from phasegate.measure.session_runner import SessionRunner
from tests.engines.front_doors import Door, house, models

KEY = "sk-very-secret"


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """The keys of two APIs in the environment."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-other-secret")


def doors_of(owner: str, **more: Door) -> Mapping[str, Door]:
    """A server with one model of that owner."""
    return {"/v1/models": models("m", owner=owner), **{f"/{path}": door for path, door in more.items()}}


def opened(engine_options: EngineOptions) -> SessionRunner:
    """The lab as it was opened; closed again, which does nothing to a server that was found running."""
    with connect(engine_options) as runner:
        return runner


@pytest.mark.parametrize(
    ("doors", "engine", "profile", "words"),
    [
        (
            doors_of("vllm", version=Door({"version": "0.32.0"})), "auto", "vllm",
            "vllm: known from /v1/models, its version from /version; full answers are forced with ignore_eos, "
            "min_tokens",
        ),
        (
            doors_of("me", info=Door({"router": "text-generation-router", "version": "3.3.4"})), "embedded", "tgi",
            "tgi: known from /info; it cannot be made to answer at full length, so answers may end early and real "
            "counts are used",
        ),
        (
            doors_of("tensorrt_llm", version=Door({"version": "1.2.0"})), "auto", "tensorrt-llm",
            "tensorrt-llm: known from /v1/models, its version from /version; full answers are forced with ignore_eos, "
            "min_tokens",
        ),
        (doors_of("lmdeploy"), "auto", "lmdeploy", "lmdeploy: known from /v1/models; "),
        (doors_of("Triton Inference Server"), "auto", "triton", "triton: known from /v1/models; "),
        (
            {**doors_of("library"), "/api/version": Door({"version": "0.15.1"})}, "auto", "ollama",
            "ollama: known from /v1/models, its version from /api/version; ",
        ),
        (
            doors_of("somebody"), "auto", "unknown",
            "unknown: nothing told what this server is, so only what every server understands is sent",
        ),
        (doors_of("somebody"), "transformers", "transformers", "transformers: known from --perf-engine; "),
        (
            doors_of("me", version=Door({"version": "9"})), "vllm", "vllm",
            "vllm: known from --perf-engine, its version from /version; full",
        ),
    ],
)  # fmt: skip
def test_a_server_is_talked_to_in_its_profile(doors: Mapping[str, Door], engine: str, profile: str, words: str) -> None:
    """Found out, or said by the user; the line of the report tells which."""
    with house(doors) as server:
        runner = opened(EngineOptions(server.base_url, engine=engine))
    assert runner.profile.name == profile
    assert profile_words(runner.profile, runner.server).startswith(words)
    assert runner.target.include_usage == runner.profile.include_usage
    assert all(knock.headers.get("authorization") == f"Bearer {KEY}" for knock in server.knocks)
    assert all("x-api-key" not in knock.headers for knock in server.knocks)


def test_an_endpoint_that_forces_nothing_is_said_to(tmp_path: Path) -> None:
    """vLLM forces a length on chat and not on messages."""
    with house(doors_of("vllm")) as server:
        runner = opened(EngineOptions(server.base_url, endpoint="messages", profiles=tmp_path))
    words = profile_words(runner.profile, runner.server, runner.endpoint)
    assert words.startswith("vllm: known from /v1/models; it cannot be made to answer at full length")


def test_a_model_is_asked_for_by_its_short_name() -> None:
    """Ollama lists names with their tags."""
    listed = {"/v1/models": models("llama3:latest", "other:7b", owner="library")}
    with house(listed) as server:
        assert opened(EngineOptions(server.base_url, model="llama3")).profile.name == "ollama"
        assert opened(EngineOptions(server.base_url, model="llama3")).warnings == ()
        (warning,) = opened(EngineOptions(server.base_url, model="other")).warnings
        assert "model 'other' is not in the list" in warning
        assert "which has llama3:latest, other:7b" in warning


@pytest.mark.parametrize("engine", ["anthropic", "azure", "gemini", "openrouter"])
def test_a_list_that_is_not_complete_refuses_no_model(engine: str) -> None:
    """Aliases, deployments and further pages are not in it."""
    with house(doors_of("somebody")) as server:
        assert opened(EngineOptions(server.base_url, model="an-alias", engine=engine)).engine.model == "an-alias"


def test_an_engine_that_imitates_ollamas_doors_is_not_taken_for_it() -> None:
    """What a server says of itself comes before what its doors look like."""
    doors = {**doors_of("sglang"), "/api/version": Door({"version": "0.15.1"})}
    with house(doors) as server:
        assert opened(EngineOptions(server.base_url, engine="auto")).profile.name == "sglang"


def test_a_key_of_another_header_is_shown_in_it(tmp_path: Path) -> None:
    """At the side doors, too: its own key, its header, its version, and no bearer."""
    (tmp_path / "gate.yaml").write_text(
        "name: gate\nextends: anthropic\nengines: [gate]\ndetect: [{path: /v1/about, has: [a]}]\nlists_models: true\n",
        encoding="utf-8",
    )
    with house(doors_of("somebody")) as server:
        runner = opened(EngineOptions(server.base_url, engine="gate", endpoint="messages", profiles=tmp_path))
    assert runner.target.api_key == "sk-ant-other-secret"
    assert runner.target.key_headers == {"messages": "x-api-key"}
    assert "secret" not in repr(runner.target)
    assert server.knocks
    for knock in server.knocks:
        assert knock.headers["x-api-key"] == "sk-ant-other-secret"
        assert knock.headers["anthropic-version"] == "2023-06-01"
        assert "authorization" not in knock.headers


def test_a_projects_own_profile_is_used(tmp_path: Path) -> None:
    """From the folder that the opening names."""
    (tmp_path / "mine.yaml").write_text(
        "name: mine\nengines: [mine]\ndetect: [{owned_by: me}]\nforce: {stop_never: true}\n", encoding="utf-8"
    )
    with house(doors_of("me")) as server:
        runner = opened(EngineOptions(server.base_url, profiles=tmp_path))
    assert (runner.profile.name, runner.server.engine) == ("mine", "mine")


@pytest.mark.parametrize(
    ("engine", "endpoint", "words"),
    [
        ("openai", "completions", "OpenAI is known to have no completions endpoint; use --perf-endpoint chat"),
        ("tgi", "messages", "(TGI) is known to have no messages endpoint; use --perf-endpoint chat or completions"),
    ],
)
def test_an_endpoint_that_is_not_there_is_refused(engine: str, endpoint: str, words: str) -> None:
    """Before a request is sent."""
    with house(doors_of("somebody")) as server:
        engine_options = EngineOptions(server.base_url, engine=engine, endpoint=endpoint)
        with pytest.raises(EngineError) as caught:
            opened(engine_options)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("engine_options", "words"),
    [
        (EngineOptions(None, engine="auto"), "say where it is with --perf-base-url"),
        (EngineOptions(None, engine="tgi"), "--perf-engine 'tgi' cannot be started; these can: embedded, simulator, "),
        (EngineOptions("http://127.0.0.1:9/v1", engine="tgy"), "unknown engine profile 'tgy'; known: "),
    ],
)
def test_a_wrong_engine_is_one_line_before_anything_starts(engine_options: EngineOptions, words: str) -> None:
    """With the names there are."""
    with pytest.raises(EngineError) as caught:
        check_engine(engine_options)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


URL = "http://127.0.0.1:9/v1"


@pytest.mark.parametrize(
    ("engine_options", "option"),
    [
        (EngineOptions(URL, engine_args="--dtype float32"), "--perf-engine-args"),
        (EngineOptions(URL, engine_python="/usr/bin/python3"), "--perf-engine-python"),
        (EngineOptions(URL, engine_config="threads=2"), "--perf-engine-config"),
        (EngineOptions(URL, engine_model="weights.gguf"), "--perf-engine-model"),
    ],
)
def test_what_a_running_server_cannot_take_is_refused(engine_options: EngineOptions, option: str) -> None:
    """And taken where an engine is started, or another one of the same run is."""
    with pytest.raises(EngineError, match=f"^{option} is for an engine that is started, and here a running server"):
        refuse_unused(engine_options, "--perf-")
    refuse_unused(engine_options, "--perf-", but=STARTED_ONLY)
    refuse_unused(replace(engine_options, base_url=None), "--perf-")


class Maker:
    """Makes engines of a suite's own, or none; counts how often it is asked."""

    def __init__(self, *, gives: bool = True) -> None:
        self.asked = 0
        self.made: list[SimulatorEngine] = []
        self._gives = gives

    def __call__(self) -> SimulatorEngine | None:
        self.asked += 1
        if not self._gives:
            return None
        self.made.append(SimulatorEngine())
        return self.made[-1]


def test_an_engine_of_ones_own_is_made_once_for_checking_and_starting() -> None:
    """The next lab of the run, such as a reference's, gets another one."""
    make = Maker()
    engine_options = check_engine(EngineOptions(None, engine="mine", own_engine=make))
    assert make.asked == 1
    for number in (1, 2):
        assert opened(engine_options).engine is make.made[-1]
        assert make.asked == number


def test_who_has_no_engine_of_that_name_is_asked_once() -> None:
    """And not at all where there is an address; the name is checked all the same."""
    make = Maker(gives=False)
    engine_options = check_engine(EngineOptions(None, engine="simulator", own_engine=make))
    opened(engine_options)
    assert make.asked == 1
    with pytest.raises(EngineError, match="'mine' cannot be started"):
        check_engine(EngineOptions(None, engine="mine", own_engine=make))
    asked = make.asked
    attached = check_engine(EngineOptions("http://127.0.0.1:9/v1", own_engine=make))
    assert make.asked == asked
    assert attached.own_engine is make
