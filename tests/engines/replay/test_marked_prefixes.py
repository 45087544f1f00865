"""Prompt caching where only what a request marks is cached: what is sent, how the law ends, what is counted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from phasegate.cli.profile_lines import profile_words
from phasegate.core.prompt import Calibration
from phasegate.core.prompt_vocabulary import COMMON_WORDS
from phasegate.core.timeline import Expected
from phasegate.core.workload import parse_workload
from phasegate.diagnose.from_runs import observations_of
from phasegate.engines.address import target_at
from phasegate.engines.base import EngineError
from phasegate.engines.cache_mark import too_short_reason, unmarked_reason
from phasegate.engines.profile import profile_named
from phasegate.load.mix import plan_mixed
from phasegate.load.request_builder import Door
from phasegate.measure.connect import EngineOptions, connect
from phasegate.measure.measure_for_diagnosis import measure_repeats
from phasegate.measure.session_runner import MeasurementError, SessionRunner
from phasegate.stats.laws.cache import CACHE_OFF, KNOWN_MISS
from phasegate.stats.outcome import LawResult, Outcome
from phasegate.stats.workload_run import WorkloadRun
from tests.engines.replay.marked_cache import TEMPLATE, MarkedCache, marked_text, parts_of
from tests.laws.bench import CLAIMS, WORKLOADS, Bench
from tests.loopback import Loopback

CACHING = ["same prompt again", "same prefix, new suffix"]

SHARED = "input_tokens: 96\nshared_tokens: 64\noutput_tokens: 8\nprefix: shared\nrequests: 2\nwarmups: 1\n"


@dataclass(frozen=True)
class Place:
    """A lab on a replayed server, and the server."""

    runner: SessionRunner
    server: Loopback

    def bodies(self) -> list[Any]:
        """Every request's body, in order of arrival."""
        return [served.body for served in self.server.log]


@contextmanager
def place(*, mark: bool, least: int = 1, endpoint: str = "messages", counts: bool = False) -> Iterator[Place]:
    """A lab on the server that caches only what is marked; it ``counts`` the server's words, or knows of them."""
    with Loopback(MarkedCache(least)) as server:
        asked = EngineOptions(
            base_url=server.base_url, model="m", engine="anthropic", endpoint=endpoint, mark_prefix=mark, seed=5
        )
        with connect(asked) as runner:
            runner.nonce = "the same in every run here, so that prompts can be compared"
            if not counts:
                known = Calibration(COMMON_WORDS, COMMON_WORDS, TEMPLATE, "known")
                runner._calibrations.update(messages=known, completions=known)
            yield Place(runner, server)


@cache
def sent(mark: bool, text: str = SHARED) -> tuple[WorkloadRun, list[Any]]:
    """A measured workload and the bodies of its requests."""
    with place(mark=mark) as at:
        return at.runner.measure(parse_workload(text, "w.yaml")), at.bodies()


def test_a_marked_prompt_is_the_same_text_in_two_parts() -> None:
    """To the letter: the prompts of a seed are those without the mark; the first part ends behind the shared words."""
    (_, plain), (_, marked) = sent(mark=False), sent(mark=True)
    assert [type(body["messages"][0]["content"]) for body in plain] == [str] * 7
    for one, other in zip(plain, marked, strict=True):
        first, rest = parts_of(other)
        assert first["text"] + rest["text"] == one["messages"][0]["content"]
        assert first == {"type": "text", "text": first["text"], "cache_control": {"type": "ephemeral"}}
        assert rest == {"type": "text", "text": rest["text"]}
        assert rest["text"].startswith(" ")
        assert not first["text"].endswith(" ")
        assert len(first["text"].split()) == 64 - 7
        assert {**other, "messages": 0} == {**one, "messages": 0}


def test_a_prompt_that_comes_again_is_marked_whole() -> None:
    """In one part."""
    run, bodies = sent(mark=True, text=SHARED.replace("shared_tokens: 64\n", "").replace("shared", "repeated"))
    assert all(len(parts_of(body)) == 1 and marked_text(parts_of(body)) for body in bodies)
    assert run.cached_tokens(run.cell("cached")) == [96, 96]


def test_in_a_mix_the_workloads_that_share_are_marked_and_the_others_are_not() -> None:
    """As each is by itself."""
    sharing = parse_workload(SHARED, "w.yaml")
    alone = parse_workload("input_tokens: 64\noutput_tokens: 8\nrequests: 2\n", "v.yaml")
    with place(mark=True) as at:
        plan = plan_mixed([(sharing, 1.0), (alone, 1.0)], 12, np.random.default_rng(1))
        requests = at.runner.requests_for(plan)
    marked = [
        (bool(marked_text(parts_of(one.body))), workload.name)
        for one, (workload, _) in zip(requests, plan, strict=True)
    ]
    assert set(marked) == {(True, "w"), (False, "v")}


@pytest.mark.parametrize("mark", [False, True])
def test_traffic_with_shared_beginnings_finds_them_in_the_cache_where_they_are_marked(mark: bool) -> None:
    """As ``phasegate decide`` sends it: each beginning three times, with other ends."""
    with place(mark=mark) as at:
        told = measure_repeats(at.runner, shared_tokens=64, own_tokens=16, beginnings=2)
        prompts = ["".join(part["text"] for part in parts_of(body)) for body in at.bodies()]
    assert (told.early_cached, told.later_cached) == ((0.0, 64 / 80) if mark else (0.0, 0.0))
    assert {len(prompt.split()) for prompt in prompts} == {80 - TEMPLATE}
    assert not any("  " in prompt for prompt in prompts)


def test_prompts_that_share_nothing_carry_no_mark() -> None:
    """Writing into the cache costs, and nobody would read it; their digest is that of any other run."""
    text = "input_tokens: 64\noutput_tokens: 8\nrequests: 2\nwarmups: 1\n"
    (plain, _), (marked, bodies) = sent(mark=False, text=text), sent(mark=True, text=text)
    assert all(isinstance(body["messages"][0]["content"], str) for body in bodies)
    assert digests(plain) == digests(marked)


def digests(run: WorkloadRun) -> set[str]:
    """Digests of what a session stores of the run."""
    return {one.workload_digest for one in run.measurements()}


def test_the_prompt_is_counted_whole_whatever_the_cache_did() -> None:
    """Read anew, written, or read from the cache: 96 tokens, of which the second call finds its 64."""
    with place(mark=True, counts=True) as at:
        run = at.runner.measure(parse_workload(SHARED, "w.yaml"))
    assert {line.prompt_tokens for line in run.timelines()} == {96}
    assert [run.cached_tokens(run.cell(role)) for role in ("first", "next", "control")] == [[0, 0], [64, 64], [0, 0]]
    new = [line for role in ("first", "control") for line in run.timelines(run.cell(role))]
    assert not any("cached_prompt" in line.flags for line in new)


def test_marked_and_unmarked_are_different_measurements() -> None:
    """Another digest, which a baseline refuses as another workload; the report says so, too."""
    (plain, _), (marked, _) = sent(mark=False), sent(mark=True)
    assert digests(plain) != digests(marked)
    with place(mark=True) as at:
        words = profile_words(at.runner.profile, at.runner.server, "messages", mark_prefix=at.runner.mark_prefix)
    assert words.endswith("; shared beginnings are marked for caching")


def once(runner: SessionRunner, claim: str) -> LawResult:
    """How a claim ends at its first look."""
    results: list[LawResult] = []

    def measure(name: str) -> WorkloadRun:
        return runner.measure(parse_workload(f"{WORKLOADS[name]}requests: 6\nwarmups: 1\n", f"{name}.yaml"))

    CLAIMS[claim](measure, results.append)
    return results[0]


def test_with_marks_the_law_of_the_cache_holds() -> None:
    """Both of its claims, proven."""
    with place(mark=True) as at:
        bench = Bench(at.runner, blocks=6)
        for claim in CACHING:
            result = bench.verdict(claim)
            assert result.outcome is Outcome.PASS, result.reason


def test_without_marks_it_says_what_to_do_instead_of_failing() -> None:
    """Undecided, more requests would not help, and the reason names the option."""
    with place(mark=False) as at:
        for claim in CACHING:
            result = once(at.runner, claim)
            assert (result.outcome, result.detail, result.needed) == (Outcome.INCONCLUSIVE, KNOWN_MISS, None)
            assert "caches only what a request marks" in result.reason
            assert result.reason.endswith("run with --perf-mark-prefix")


def test_marked_beginnings_below_the_least_length_are_told_so() -> None:
    """The API caches from 1,024 tokens on."""
    with place(mark=True, least=1024) as at:
        result = once(at.runner, "same prefix, new suffix")
    assert result.detail == KNOWN_MISS
    assert "from 1,024 prompt tokens on, and these have 448: measure longer ones" in result.reason


def test_a_server_that_could_cache_and_does_not_still_fails() -> None:
    """Shown failing: a mark that is long enough, and no hit."""
    with place(mark=True, least=10**9) as at:
        at.runner.profile = replace(at.runner.profile, cache_from=1)
        result = once(at.runner, "same prefix, new suffix")
    assert (result.outcome, result.detail) == (Outcome.FAIL, CACHE_OFF)


def test_the_diagnosis_knows_why_nothing_was_cached() -> None:
    """From the run to the rule."""
    (plain, _), (marked, _) = sent(mark=False), sent(mark=True)
    assert ["run with --perf-mark-prefix" in one.unmarked for one in observations_of([plain, marked]).caches] == [
        True,
        False,
    ]


def test_what_is_known_of_a_miss_names_the_endpoint_that_takes_marks() -> None:
    """And is silent where a mark was sent, or where nothing is known."""
    anthropic = profile_named("anthropic")
    assert unmarked_reason(anthropic, "chat", marked=False).endswith(
        "caches only what a request marks, and on its chat endpoint nothing can be marked: run with --perf-endpoint "
        "messages --perf-mark-prefix"
    )
    assert unmarked_reason(anthropic, "messages", marked=True) == ""
    assert [unmarked_reason(profile_named(name), "chat", marked=False) for name in ("openai", "vllm")] == ["", ""]
    assert [too_short_reason(profile_named("openai"), tokens) for tokens in (1024, 1200)] == ["", ""]
    assert "from 1,024 prompt tokens on, and these have 1,023" in too_short_reason(profile_named("openai"), 1023)


def test_an_endpoint_without_a_mark_is_refused_before_anything_is_sent() -> None:
    """One line with the profile, the endpoint and what to do."""
    with pytest.raises(EngineError) as caught, place(mark=True, endpoint="chat") as at:
        assert at.bodies() == []
    assert str(caught.value) == (
        "--perf-mark-prefix: the profile anthropic (Anthropic (Messages, and its OpenAI-compatible endpoint)) knows no "
        "mark for the chat endpoint; use --perf-endpoint messages, or leave the option out, or give cache_mark in a "
        "profile of your own (fixtures/engines)"
    )


def test_a_workload_that_names_such_an_endpoint_is_refused_itself() -> None:
    """The others go on."""
    with place(mark=True) as at:
        with pytest.raises(MeasurementError, match=r"^w: --perf-mark-prefix: .* for the completions endpoint"):
            at.runner.measure(parse_workload(SHARED + "endpoint: completions\n", "w.yaml"))
        assert at.bodies() == []


@pytest.mark.parametrize(
    ("engine", "mark"),
    [
        ("openai", {"prompt_cache_breakpoint": {"mode": "explicit"}}),
        ("openrouter", {"cache_control": {"type": "ephemeral"}}),
    ],
)
def test_chat_is_marked_in_the_manner_of_its_api(engine: str, mark: dict[str, Any]) -> None:
    """Its messages byte for byte, as the door writes them."""
    with place(mark=True) as at:
        runner = at.runner
        runner.profile = profile_named(engine)
        runner.target = target_at(at.server.base_url, runner.profile, "m", None, timeout=5, idle_timeout=5)
        request = runner.request("one two three", Expected(endpoint="chat"), 4, reusable=len("one two"))

    async def body() -> bytes:
        door = Door(runner.target)
        try:
            return (await door.prepare(request)).message.content
        finally:
            await door.close()

    parts = [{"type": "text", "text": "one two", **mark}, {"type": "text", "text": " three"}]
    said = json.dumps([{"role": "user", "content": parts}], separators=(",", ":")).encode()
    assert said in asyncio.run(body())
