"""Engine profiles: what a request must say so that the answer is as long as wanted."""

from __future__ import annotations

import pytest

from phasegate.core.identity import ServerIdentity
from phasegate.core.settings_file import SettingsError
from phasegate.engines.profile import parse_profile, profile_for, profile_named, profiles

MARKS = "it must be a mapping for chat or messages, such as {messages: {cache_control: {type: ephemeral}}}"


def test_the_profiles_that_ship() -> None:
    """Each is found by the name of its engine."""
    own = {"llama.cpp", "vllm", "sglang", "tgi", "transformers", "ollama", "tensorrt-llm", "triton", "lmdeploy"}
    hosted = {"openai", "azure", "anthropic", "mistral", "gemini", "openrouter"}
    assert {profile.name for profile in profiles()} == {*own, *hosted, "simulator", "unknown"}
    for profile in profiles():
        for engine in profile.engines:
            assert profile_for(ServerIdentity(engine.upper(), "1", "m")) == profile


@pytest.mark.parametrize(
    ("name", "endpoint", "extras"),
    [
        ("llama.cpp", "completions", {"max_tokens": 64, "ignore_eos": True}),
        ("vllm", "chat", {"max_tokens": 64, "ignore_eos": True, "min_tokens": 64}),
        ("sglang", "chat", {"max_tokens": 64, "ignore_eos": True, "min_tokens": 64}),
        ("openai", "chat", {"max_completion_tokens": 64}),
        ("openai", "completions", {"max_tokens": 64}),
        ("transformers", "chat", {"max_tokens": 64}),
        ("unknown", "chat", {"max_tokens": 64}),
        ("tensorrt-llm", "chat", {"max_tokens": 64, "ignore_eos": True, "min_tokens": 64}),
        ("lmdeploy", "chat", {"max_tokens": 64, "ignore_eos": True, "min_new_tokens": 64}),
        ("azure", "chat", {"max_completion_tokens": 64}),
        ("anthropic", "messages", {"max_tokens": 64}),
        ("vllm", "messages", {"max_tokens": 64}),
        ("ollama", "chat", {"max_tokens": 64}),
    ],
)
def test_what_a_request_says_about_its_length(name: str, endpoint: str, extras: dict[str, object]) -> None:
    """The limit under its right name, and what forces it where something does."""
    profile = profile_named(name)
    assert profile.request_extras(endpoint, 64) == extras
    assert profile.forces_length(endpoint) == (len(extras) > 1)


def test_a_stranger_is_asked_for_nothing_it_could_refuse() -> None:
    """The conservative profile."""
    profile = profile_for(ServerIdentity("something-new", "1", "m"))
    assert profile.name == "unknown"
    assert profile.request_extras("chat", 8) == {"max_tokens": 8}
    assert profile.reset_paths({}) == ()
    assert profile.reports_cached is None


def test_the_marks_of_the_profiles_that_ship() -> None:
    """Which endpoints take one; Anthropic's caches nothing else."""
    assert {one.name: sorted(one.cache_mark) for one in profiles() if one.cache_mark} == {
        "anthropic": ["messages"],
        "openai": ["chat"],
        "openrouter": ["chat"],
    }
    assert [one.name for one in profiles() if one.caches_unmarked is False] == ["anthropic"]


def test_a_profile_of_ones_own_gives_its_mark() -> None:
    """As it stands in the file."""
    own = parse_profile("name: p\nengines: [p]\ncache_mark: {chat: {hold: {for: 5m}}}\n", "p.yaml")
    assert own.cache_mark == {"chat": {"hold": {"for": "5m"}}}


def test_slots_are_reset_one_by_one() -> None:
    """As many as the server says; none where it does not say."""
    profile = profile_named("llama.cpp")
    assert profile.reset_paths({"total_slots": 2}) == ("/slots/0?action=erase", "/slots/1?action=erase")
    assert profile.reset_paths({}) == ()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("forse: {}", "p.yaml:3: unknown key 'forse'; did you mean 'force'?"),
        ("force: 3", "p.yaml:3: force is 3; it must be a mapping of request parameters"),
        ("limit: tokens", "p.yaml:3: limit is 'tokens'; it must be max_tokens or max_completion_tokens"),
        (
            "endpoints: [talk]",
            "p.yaml:3: endpoints is ['talk']; it must be one or more of chat, completions, messages, ollama",
        ),
        ("cache_block: 0", "p.yaml:3: cache_block is 0; it must be a whole number from 1 on"),
        ("include_usage: 1", "p.yaml:3: include_usage is 1; it must be true or false"),
        ("cache_from: none", "p.yaml:3: cache_from is 'none'; it must be a whole number of tokens from 1 on"),
        ("caches_unmarked: no one", "p.yaml:3: caches_unmarked is 'no one'; it must be true or false"),
        ("cache_mark: {cache_control: here}", f"p.yaml:3: cache_mark is {{'cache_control': 'here'}}; {MARKS}"),
        ("cache_mark: {completions: {a: 1}}", f"p.yaml:3: cache_mark is {{'completions': {{'a': 1}}}}; {MARKS}"),
        ("cache_mark: {chat: {}}", f"p.yaml:3: cache_mark is {{'chat': {{}}}}; {MARKS}"),
        ("cache_mark: {chat: {text: hi}}", f"p.yaml:3: cache_mark is {{'chat': {{'text': 'hi'}}}}; {MARKS}"),
    ],
)
def test_a_wrong_profile_is_one_line(line: str, message: str) -> None:
    """File, line, value and what it may be."""
    with pytest.raises(SettingsError) as caught:
        parse_profile(f"name: p\nengines: [p]\n{line}\n", "p.yaml")
    assert str(caught.value) == message


def test_a_profile_needs_a_name() -> None:
    """And engines that it is for."""
    with pytest.raises(SettingsError, match="the key 'engines' is missing"):
        parse_profile("name: p\n", "p.yaml")


def test_an_unknown_name_lists_the_known_ones() -> None:
    """For the option that names a profile."""
    with pytest.raises(SettingsError, match=r"unknown engine profile 'nope'; known: anthropic, azure, "):
        profile_named("nope")
