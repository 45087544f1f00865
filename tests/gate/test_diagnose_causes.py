"""Figures of one cause that look like another's: the right one is named, alone, and no millisecond twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from phasegate.diagnose import (
    Ask,
    CacheCalls,
    Confidence,
    Diagnosis,
    Explanation,
    Level,
    Observations,
    Repeats,
    Steps,
    diagnose,
)


def ask(ttft: float, tpot: float = 0.01, *, name: str = "a", prompt: int = 512, out: int = 64, **more: Any) -> Ask:
    """A kind of request whose gaps are all alike."""
    total = ttft + tpot * (out - 1)
    gaps = {"usual_gap": tpot, "second_gap": tpot, "longest_gap": tpot}
    return Ask(name, prompt, out, ttft=ttft, tpot=tpot, total=total, **{**gaps, **more})


def of(*asks: Ask) -> Observations:
    """What was measured, requests alone."""
    return Observations(asks=asks)


def rules(told: Diagnosis, *, change: bool | None = None) -> list[str]:
    """Names of what was found, the most important first; only of changes, or of states, if said."""
    return [one.rule for one in told.found if change is None or one.change is change]


def only(told: Diagnosis) -> Explanation:
    """The one thing that was found."""
    assert len(told.found) == 1, [one.rule for one in told.found]
    return told.found[0]


def test_unseen_reasoning_is_not_the_way_to_the_server_as_well() -> None:
    """2 s of thinking before the first token at both prompt lengths: fixed, but it is decode's time."""
    thinking: dict[str, Any] = {"out": 300, "reasoning_tokens": 200}
    two = (ask(2.01, prompt=125, **thinking), ask(2.04, name="b", prompt=500, **thinking))
    assert only(diagnose(of(*two))).rule == "long-reasoning"
    hop = [replace(one, ttft=(one.ttft or 0) + 0.9, total=(one.total or 0) + 0.9) for one in two]
    found = diagnose(of(*hop)).found
    assert [one.rule for one in found] == ["long-reasoning", "far-away"]
    assert found[1].seconds == pytest.approx(0.9, abs=0.03)


def test_more_unseen_reasoning_is_no_slower_prefill_and_no_hop() -> None:
    """Twice the tokens in front of the first one that shows."""
    old, new = (ask(0.01 + n * 0.01, out=300, reasoning_tokens=n) for n in (100, 200))
    assert rules(diagnose(of(new), of(old)), change=True) == []


def test_a_slow_step_in_ttft_is_not_the_way_to_the_server() -> None:
    """At 0.5 s a token the first one takes its step too, at every prompt length."""
    told = diagnose(of(ask(0.52, 0.5, prompt=64), ask(0.6, 0.5, name="b", prompt=640)))
    assert rules(told) == ["slow-stream"]


def test_the_parts_of_a_request_never_exceed_it() -> None:
    """A wait, a hop, reading, and a pause beside thrown-away guesses: each second has one owner."""
    slow = [
        ask(1.9 + tokens / 1000, 0.05, name=name, prompt=tokens, out=100, server_prefill=tokens / 1000,
            server_queue=0.8, second_gap=1.5, steps=Steps(1.0, 1.0, 400, 20))
        for name, tokens in (("a", 500), ("b", 1000))
    ]  # fmt: skip
    found = diagnose(of(*slow)).found
    assert {one.rule for one in found} >= {"server-queue", "far-away", "slow-start", "hand-off", "idle-drafts"}
    for one in slow:
        for part, whole in (("start", one.ttft), ("stream", one.decode)):
            assert whole is not None
            assert sum(told.seconds for told in found if (told.of, told.part) == (one.name, part)) <= whole * 1.0001


def test_a_wait_that_the_server_tells_is_named_though_one_request_was_sent_at_a_time() -> None:
    """0.85 s of a TTFT of 1 s are its own queue: other traffic on it."""
    first = only(diagnose(of(ask(1.0, server_prefill=0.1, server_queue=0.85))))
    assert (first.rule, first.phase, first.confidence) == ("server-queue", "queueing", Confidence.SURE)
    assert first.seconds == 0.85
    assert first.levers[0].name.startswith("keep other traffic off it")
    others = only(diagnose(of(ask(1.0, server_queue=0.85, others=40.0))))
    assert others.confidence is Confidence.LIKELY
    assert "the server counted 40 requests more than were sent" in " ".join(others.evidence)


def test_what_is_left_of_a_wait_among_others_is_put_on_nothing() -> None:
    """Everybody's mean wait is 0.4 s of a TTFT of 1 s; the rest may be waiting as well: neither reading nor a hop."""
    busy = [ask(1.0 + n / 1e4, name=f"{n}", prompt=n, server_queue=0.4, others=40.0) for n in (128, 512)]
    quiet = [ask(0.1 + n / 1e4, name=f"{n}", prompt=n, server_queue=0.0) for n in (128, 512)]
    for number in (1, 2):
        told = diagnose(of(*busy[:number]), of(*quiet[:number]))
        assert rules(told) == ["queue-longer", "server-queue"]
        assert {one.confidence for one in told.found} == {Confidence.LIKELY}


@pytest.mark.parametrize("lengths", [(512,), (128, 1024)])
def test_a_longer_wait_that_the_server_tells_is_no_slower_prefill(lengths: Sequence[int]) -> None:
    """With one prompt length and with two, where a line over lengths would call it a hop."""

    def waiting(seconds: float) -> Observations:
        return of(
            *(
                ask(0.05 + n / 5000 + seconds, name=f"{n}", prompt=n, server_prefill=n / 5000, server_queue=seconds)
                for n in lengths
            )
        )

    told = diagnose(waiting(0.35), waiting(0.0))
    assert rules(told, change=True) == ["queue-longer"]
    first = told.found[0]
    assert (first.phase, first.confidence) == ("queueing", Confidence.SURE)
    assert first.seconds == pytest.approx(0.35)
    assert "the server's own queue 0.00 ms -> 350 ms" in " ".join(first.evidence)


def test_a_wait_and_a_slower_prefill_are_told_apart_each_with_its_seconds() -> None:
    """TTFT +400 ms, of which the server tells 150 ms queue and 250 ms prefill."""
    old, new = ask(0.15, server_prefill=0.1, server_queue=0.0), ask(0.55, server_prefill=0.35, server_queue=0.15)
    found = [one for one in diagnose(of(new), of(old)).found if one.change]
    assert [(one.rule, round(one.seconds, 3)) for one in found] == [("prefill-slower", 0.25), ("queue-longer", 0.15)]


def test_a_told_prefill_decides_between_reading_and_the_way_with_one_prompt_length() -> None:
    """TTFT +200 ms: all of it inside the server's prefill, all outside, or half and half."""
    for told, wanted in ((0.29, ["prefill-slower"]), (0.09, ["hop-added"]), (0.19, ["hop-added", "prefill-slower"])):
        found = diagnose(of(ask(0.3, server_prefill=told)), of(ask(0.1, server_prefill=0.09))).found
        assert sorted(one.rule for one in found) == wanted
        assert sum(one.seconds for one in found) == pytest.approx(0.2)
        assert {one.confidence for one in found} == {Confidence.SURE}


def test_with_one_prompt_length_a_slower_start_may_be_the_way_and_the_levers_say_so() -> None:
    """A hop of 200 ms looks the same: measuring another length comes first, then the hop, then the cache."""
    first = only(diagnose(of(ask(0.3)), of(ask(0.1))))
    assert (first.rule, first.confidence) == ("prefill-slower", Confidence.LIKELY)
    assert "or a fixed part was added" in first.cause
    assert "only one prompt length" in " ".join(first.evidence)
    assert [lever.name.split()[0] for lever in first.levers[:3]] == ["measure", "a", "prompt"]
    assert "one hop less" in first.levers[1].name


def test_a_hop_must_be_seen_at_every_prompt_length() -> None:
    """3 ms more at one length alone extrapolate to a fixed part; that is no hop."""
    before = of(ask(0.005, 0.002, prompt=128), ask(0.02, 0.002, name="b", prompt=1024))
    now = of(ask(0.011, 0.002, prompt=128), ask(0.02, 0.002, name="b", prompt=1024))
    assert "hop-added" not in rules(diagnose(now, before))
    both = of(ask(0.011, 0.002, prompt=128), ask(0.026, 0.002, name="b", prompt=1024))
    assert rules(diagnose(both, before)) == ["hop-added"]


@pytest.mark.parametrize(
    "steps",
    [
        (Steps(1.0, 1.15), Steps(1.0, 1.0)),
        (Steps(8.0, 8.0), Steps(1.0, 1.0)),
        (Steps(8.0, 8.0, chunks=((1, 3), (7, 3), (8, 9)), usual_size=1.0), Steps(1.0, 1.0)),
        (Steps(1.0, 2.9), Steps(1.0, 1.3)),
        (Steps(1.2, 1.2, chunks=((1, 80), (2, 20)), usual_size=0.8), Steps(1.0, 1.0)),
        (Steps(1.0, 2.4, 100, 70), Steps(1.0, 1.2, 100, 70)),
    ],
    ids=["merged by the client", "sent by eights", "proven eights", "bursts", "merged by the server", "as right"],
)
def test_fewer_tokens_at_a_time_are_no_rejected_drafts_where_none_are_seen(steps: tuple[Steps, Steps]) -> None:
    """TPOT +20 %, and chunks that are put together less, or guesses as right as before: each token is slower."""
    told = diagnose(of(ask(0.05, 0.012, steps=steps[1])), of(ask(0.05, 0.010, steps=steps[0])))
    first = only(told)
    assert (first.rule, first.levers[0].name) == ("decode-slower", "fewer output tokens")
    untold = steps[0].drafted is None
    assert ("the server's count of guesses would tell" in " ".join(first.evidence)) is untold


def test_steps_of_proven_and_differing_sizes_are_guesses_but_only_likely() -> None:
    """One chunk a step, one to five tokens in it: with the server's counts it would be sure."""
    old = Steps(3.4, 3.4, chunks=((1, 15), (2, 12), (3, 11), (4, 10), (5, 52)), usual_size=0.52)
    first = only(diagnose(of(ask(0.05, 0.02, steps=Steps(1.1, 1.1))), of(ask(0.05, 0.007, steps=old))))
    assert (first.rule, first.confidence) == ("drafts-rejected", Confidence.LIKELY)
    gone = only(
        diagnose(of(ask(0.05, 0.02, steps=Steps(1.0, 1.0))), of(ask(0.05, 0.007, steps=Steps(1, 3.4, 100, 80))))
    )
    assert (gone.rule, gone.confidence) == ("drafts-rejected", Confidence.LIKELY)


def test_a_cache_that_hits_as_before_is_not_lost() -> None:
    """98 % from the cache in both sittings, and 10 ms slower: something else; 98 % and then none: lost, and sure."""

    def traffic(early: float, later: float, early_hit: float | None, later_hit: float | None) -> Observations:
        return Observations(repeats=Repeats(2000, 2032, early, later, early_hit, later_hit))

    before = traffic(0.030, 0.030, 0.98, 0.98)
    assert rules(diagnose(traffic(0.030, 0.040, 0.98, 0.98), before)) == []
    assert rules(diagnose(traffic(0.30, 0.30, 0.0, 0.0), traffic(0.25, 0.25, 0.0, 0.0))) == []
    lost = only(diagnose(traffic(0.30, 0.31, 0.0, 0.0), before))
    assert (lost.rule, lost.confidence) == ("cache-lost", Confidence.SURE)
    assert lost.seconds == pytest.approx(0.28)
    assert "98 % of the prompt before, 0 % now" in lost.evidence[1]


def test_an_untold_cache_is_lost_only_where_requests_take_what_reading_takes() -> None:
    """Reading 2,032 tokens takes 203 ms: 45 ms instead of 30 are not an uncached prompt, 210 ms are."""
    asks = (ask(0.01, 0.001, prompt=100), ask(0.2, 0.001, name="b", prompt=2000))
    before = replace(of(*asks), repeats=Repeats(2000, 2032, 0.03, 0.03))
    for later, wanted in ((0.045, []), (0.21, ["cache-lost"])):
        now = replace(of(*asks), repeats=Repeats(2000, 2032, later, later))
        told = diagnose(now, before)
        assert rules(told) == wanted
        assert all(one.confidence is Confidence.LIKELY for one in told.found)


@pytest.mark.parametrize(
    ("second", "longest", "ttft", "named"),
    [
        (0.045, 0.006, 0.03, True),
        (0.045, 0.050, 0.03, False),
        (0.0066, 0.005, 0.05, False),
        (0.045, 0.006, 0.50, False),
    ],
    ids=["stands out", "scatter", "unfelt", "small beside TTFT"],
)
def test_a_pause_is_a_hand_off_only_where_it_stands_out_and_is_felt(
    second: float, longest: float, ttft: float, named: bool
) -> None:
    """The usual gap is 2 ms; what other gaps reach by themselves is no pause, nor what nobody feels."""
    one = replace(ask(ttft, 0.002), second_gap=second, longest_gap=longest)
    assert ("hand-off" in rules(diagnose(of(one)))) is named


def test_a_hand_off_that_the_server_times_is_sure() -> None:
    """Its own clock excludes a pause of another kind."""
    first = only(diagnose(of(ask(0.03, 0.002, second_gap=0.045, server_handoff=0.04))))
    assert (first.rule, first.confidence) == ("hand-off", Confidence.SURE)
    assert "the server's own move of the KV cache takes 40.0 ms" in first.evidence


def levels(**top: Any) -> Observations:
    """One user and sixteen, who wait."""
    alone = Level(1, ttft=0.03, tpot=0.005, token_rate=170, requests=4, preemptions=0)
    many = Level(16, ttft=0.9, tpot=0.007, token_rate=800, total=1.1, requests=64, **top)
    return Observations(levels=(alone, many))


def test_preemptions_under_load_name_the_kv_memory_in_place_of_a_queue() -> None:
    """The server's own count says what they wait for; one in sixty-four is not worth a word."""
    assert only(diagnose(levels())).rule == "queueing"
    assert only(diagnose(levels(preemptions=1))).rule == "queueing"
    first = only(diagnose(levels(preemptions=40)))
    assert (first.rule, first.confidence) == ("kv-memory-full", Confidence.SURE)
    assert "KV memory ran out: 40 preemptions of 64 requests with 16 users" in first.evidence[0]
    assert first.levers[0].name.startswith("more KV memory")
    assert first.seconds == pytest.approx(only(diagnose(levels())).seconds)


def test_a_queue_is_told_with_how_many_waited() -> None:
    """By the server's own times."""
    said = " ".join(only(diagnose(levels(waiting=11.4, running=4.0))).evidence)
    assert "11.4 requests waited at a moment on average, 4.0 were in work" in said
    assert "waited at a moment" not in " ".join(only(diagnose(levels())).evidence)


def test_an_uncached_prefix_cites_the_servers_own_hit_rate() -> None:
    """It makes the word sure where answers tell no cached tokens, and only where it is none at all."""
    calls = CacheCalls("cache", 3000, 2900, first=0.3, again=0.3)
    for rate, confidence in ((None, Confidence.LIKELY), (0.0, Confidence.SURE), (0.02, Confidence.LIKELY)):
        first = only(diagnose(Observations(caches=(replace(calls, hit_rate=rate),))))
        assert first.confidence is confidence
        assert ("came from its prefix cache" in " ".join(first.evidence)) is (rate is not None)
