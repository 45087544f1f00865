"""Real engines, each from its own environment: what they answer, how they begin and end, and the whole phase suite.

``make test-engines`` installs them first. One that is not installed fails here; it is never passed over.
``PHASEGATE_TEST_ENGINES`` names those to test.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import psutil
import pytest

from benchmarks.engine_envs import known
from benchmarks.engine_runs import ARGUMENTS, EMBEDDED, run_suite, unproven
from phasegate.engines.ask import ask
from phasegate.engines.base import EngineError
from phasegate.engines.generated.vocabulary import next_word
from phasegate.engines.managed.engine import ManagedEngine, ManagedSettings
from phasegate.engines.managed.kinds import KINDS
from phasegate.engines.profile import profile_named
from phasegate.report.server_lines import CLOSE

pytestmark = pytest.mark.real_engine

NAMES = (os.environ.get("PHASEGATE_TEST_ENGINES") or " ".join(KINDS)).split()

EXPLAINED = {EMBEDDED, "llama.cpp", "vllm"}
"""Engines whose own clock, HTTP and tokenising explain the client's TTFT within `CLOSE`, in each workload and cell."""

EMPTIES_ITS_CACHE = {"llama.cpp", "vllm", "sglang"}
"""Engines with a door that empties the prefix cache."""


def answer(engine: ManagedEngine, endpoint: str, tokens: int, **prompt: object) -> dict[str, Any]:
    """The answer to one greedy request of a forced length, in the engine's dialect."""
    path = "chat/completions" if endpoint == "chat" else endpoint
    extras = profile_named(engine.kind.name).request_extras(endpoint, tokens)
    body = {"model": engine.model, "temperature": 0, **extras, **prompt}
    found = ask(f"{engine.base_url}/{path}", body=body, seconds=120)
    assert isinstance(found, dict)
    return found


def settings_of(name: str) -> ManagedSettings:
    """The settings of an installed engine; the test fails where it is not installed."""
    environment = known(name)
    if environment is None:
        pytest.fail(f"{name} is not installed: python -m benchmarks.engine_envs {name}", pytrace=False)
    return ManagedSettings(args=ARGUMENTS.get(name, ""), python=environment.python)


def cached_tokens(engine: ManagedEngine, prompt: str) -> int:
    """How many tokens of a prompt the engine says it had; servers leave the detail out where there is none."""
    details = answer(engine, "completions", 4, prompt=prompt)["usage"].get("prompt_tokens_details") or {}
    return int(details.get("cached_tokens") or 0)


@pytest.fixture(scope="module", params=NAMES)
def running(request: pytest.FixtureRequest) -> Iterator[ManagedEngine]:
    """Each engine in turn, started once for the tests of its answers."""
    with ManagedEngine(request.param, settings_of(request.param)) as engine:
        yield engine


def test_the_answer_is_the_foretold_one(running: ManagedEngine) -> None:
    """Word for word the cycle that the generated model walks on every engine, as long as was asked."""
    words = running.words
    prompt = "".join(f" {word}" for word in words[:200])
    came = answer(running, "completions", 24, prompt=prompt)
    following = next_word(0, 65_536)
    said = came["choices"][0]["text"].split()
    assert said == [following[word] for word in [words[199], *said[:-1]]]
    assert came["usage"]["prompt_tokens"] == 200
    assert came["usage"]["completion_tokens"] == len(said) == 24


def test_a_chat_goes_through_the_models_template(running: ManagedEngine) -> None:
    """It costs the same number of tokens for every prompt, and the answer walks the cycle."""
    texts = ["".join(f" {word}" for word in running.words[:count]) for count in (10, 100)]
    answers = [answer(running, "chat", 8, messages=[{"role": "user", "content": text}]) for text in texts]
    costs = {came["usage"]["prompt_tokens"] - count for came, count in zip(answers, (10, 100), strict=True)}
    assert len(costs) == 1
    following = next_word(0, 65_536)
    said = answers[0]["choices"][0]["message"]["content"].split()
    assert said[1:] == [following[word] for word in said[:-1]]


def test_the_prefix_cache_is_told_and_emptied_where_the_engine_can(running: ManagedEngine) -> None:
    """A prompt of 512 tokens again: its blocks are cached; behind the reset they are not."""
    prompt = "".join(f" {word}" for word in running.words[1000:1512])
    if running.kind.name not in EMPTIES_ITS_CACHE:
        assert not running.reset_prefix_cache()
        return
    assert running.reset_prefix_cache()
    first, again = (cached_tokens(running, prompt) for _ in range(2))
    assert first == 0
    assert again >= 256
    assert running.reset_prefix_cache()
    assert cached_tokens(running, prompt) == 0


def test_its_identity_names_version_and_settings(running: ManagedEngine) -> None:
    """Enough to tell two baselines apart."""
    identity = running.identity()
    assert identity.engine == running.kind.name
    assert identity.version[0].isdigit() or identity.version.startswith("b")
    assert identity.settings["flags"]


@pytest.mark.parametrize("name", NAMES)
def test_a_stopped_engine_leaves_nothing_running(name: str) -> None:
    """Neither a worker nor the server; weights that are not there are told in one line."""
    engine = ManagedEngine(name, settings_of(name))
    with engine:
        assert engine.pid is not None
        family = psutil.Process(engine.pid).children(recursive=True)
        assert family
    assert [process for process in family if process.is_running()] == []
    settings = replace(settings_of(name), model="no-such-model")
    missing = ManagedEngine(name, settings)
    with pytest.raises(EngineError, match=f"{name}|no such file") as told:
        missing.start()
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("name", [EMBEDDED, *NAMES])
def test_the_phase_suite_on_it(name: str) -> None:
    """Every answer is right, token counts are proven, every law that is judged holds, and clocks agree."""
    if name != EMBEDDED:
        settings_of(name)
    facts: dict[str, Any] = run_suite(name)
    assert facts["answers_wrong"] == 0
    assert facts["answers_checked"] > 0
    assert set(facts["token_sources"]) == {"usage"}
    assert facts["invalid"] == [], facts["output"]
    assert unproven(facts) == [], f"other processes used {facts['foreign_cores']} cores meanwhile"
    assert len(facts["laws"]) + len(facts["informing"]) >= 9
    rests = {label: parts["unexplained"] for label, parts in (facts["first_token"] or {}).items()}
    if name in EXPLAINED:
        assert rests
        assert max(map(abs, rests.values())) <= CLOSE, rests
