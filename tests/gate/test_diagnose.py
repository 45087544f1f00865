"""Every rule of the diagnosis on figures made for it: it fires there, names its phase, and is silent beside it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from phasegate.diagnose import (
    RULES,
    Ask,
    CacheCalls,
    Confidence,
    Level,
    Limits,
    Machine,
    Observations,
    Repeats,
    Rule,
    Stall,
    Steps,
    diagnose,
)
from phasegate.diagnose.explanation import PHASES
from phasegate.diagnose.from_limits import machine_of
from phasegate.diagnose.prefill_line import prefill_line
from phasegate.diagnose.remedies import REMEDIES
from phasegate.diagnose.roofline import HardwareFacts, ModelFacts
from phasegate.diagnose.roofline_words import Measured, roofline
from phasegate.diagnose.thresholds import START_LIMIT, STREAM_LIMIT
from phasegate.report.diagnosis_lines import rules_table

SHORT = Ask("short", 64, 32, ttft=0.03, tpot=0.005, total=0.185, usual_gap=0.005, second_gap=0.005)
LONG = Ask("long", 3000, 32, ttft=1.5, tpot=0.005, total=1.655, usual_gap=0.005, second_gap=0.005)
WELL = Observations(
    asks=(SHORT, replace(LONG, ttft=0.3, total=0.455)),
    levels=(
        Level(1, ttft=0.03, tpot=0.005, token_rate=170, total=0.185),
        Level(8, ttft=0.05, tpot=0.007, token_rate=900, total=0.27),
    ),
    stall=Stall(stall=0.05, alone=0.3, usual_gap=0.005, prompt_tokens=3000),
    caches=(CacheCalls("cache", 3000, 3000, first=0.3, again=0.03, control=0.3, cached_tokens=2999),),
    repeats=Repeats(3000, 3064, early_ttft=0.03, later_ttft=0.03, early_cached=0.97, later_cached=0.97),
)


def rules_of(now: Observations, before: Observations | None = None) -> list[str]:
    """Names of the rules that found something, the most important first."""
    return [one.rule for one in diagnose(now, before).found]


def with_asks(*asks: Ask) -> Observations:
    """The healthy situation with other requests."""
    return replace(WELL, asks=asks)


def test_a_healthy_server_has_no_finding_and_is_told_its_phase() -> None:
    """Alone and against itself; the longest request still says which phase would have to change."""
    assert rules_of(WELL) == []
    assert rules_of(WELL, WELL) == []
    told = diagnose(WELL)
    assert told.phase == "prefill"
    assert told.share is not None
    assert "300 ms (66 %)" in told.share
    assert told.missing == ()


def test_an_empty_situation_says_only_what_was_not_measured() -> None:
    """Nothing measured is nothing found, and no phase is made up."""
    told = diagnose(Observations())
    assert (told.found, told.share, told.phase) == ((), None, None)
    assert len(told.missing) == 4


PLANTED: dict[str, tuple[Observations, Observations | None]] = {
    "client-or-host": (replace(WELL, client=("the client was late by 80 ms",)), None),
    "slow-start": (with_asks(SHORT, LONG), None),
    "far-away": (with_asks(replace(SHORT, ttft=0.6, total=0.8), replace(LONG, ttft=0.75, total=0.95)), None),
    "slow-stream": (with_asks(replace(SHORT, tpot=0.06, total=1.89)), None),
    "long-reasoning": (with_asks(replace(SHORT, ttfo=2.0, total=2.2, reasoning_tokens=390)), None),
    "idle-drafts": (with_asks(replace(SHORT, steps=Steps(1.0, 1.1, drafted=400, accepted=20))), None),
    "hand-off": (with_asks(replace(SHORT, second_gap=0.045)), None),
    "uncached-prefix": (
        replace(WELL, caches=(CacheCalls("cache", 3000, 2900, first=0.3, again=0.3, cached_tokens=0),)),
        None,
    ),
    "stalled-streams": (replace(WELL, stall=Stall(stall=0.29, alone=0.3, usual_gap=0.005)), None),
    "batch-cost": (
        replace(
            WELL,
            levels=(
                Level(1, ttft=0.03, tpot=0.0117, token_rate=53),
                Level(4, ttft=0.3, tpot=0.0481, token_rate=51),
            ),
        ),
        None,
    ),
    "no-batching": (
        replace(
            WELL,
            levels=(
                Level(1, ttft=0.03, tpot=0.005, token_rate=170),
                Level(8, ttft=1.3, tpot=0.005, token_rate=172),
            ),
        ),
        None,
    ),
    "queueing": (
        replace(
            WELL,
            levels=(
                Level(1, ttft=0.03, tpot=0.005, token_rate=170),
                Level(16, ttft=0.9, tpot=0.007, token_rate=800, total=1.1),
            ),
        ),
        None,
    ),
    "kv-memory-full": (
        replace(
            WELL,
            levels=(
                Level(1, ttft=0.03, tpot=0.005, token_rate=170, requests=4, preemptions=0),
                Level(16, ttft=0.9, tpot=0.007, token_rate=800, total=1.1, requests=64, preemptions=40),
            ),
        ),
        None,
    ),
    "server-queue": (with_asks(replace(SHORT, ttft=1.0, total=1.155, server_prefill=0.03, server_queue=0.95)), None),
    "queue-longer": (
        with_asks(replace(SHORT, ttft=0.43, total=0.585, server_prefill=0.03, server_queue=0.4)),
        with_asks(replace(SHORT, server_prefill=0.03, server_queue=0.0)),
    ),
    "hop-added": (
        with_asks(replace(SHORT, ttft=0.11, total=0.265), replace(WELL.asks[1], ttft=0.38, total=0.535)),
        WELL,
    ),
    "cache-reset": (
        replace(WELL, repeats=Repeats(3000, 3064, 0.3, 0.03, early_cached=0.0, later_cached=0.97)),
        WELL,
    ),
    "cache-lost": (
        replace(WELL, repeats=Repeats(3000, 3064, 0.3, 0.3, early_cached=0.0, later_cached=0.0)),
        WELL,
    ),
    "prefill-slower": (
        with_asks(replace(SHORT, ttft=0.039, total=0.194), replace(WELL.asks[1], ttft=0.4, total=0.555)),
        WELL,
    ),
    "drafts-rejected": (
        with_asks(replace(SHORT, tpot=0.009, total=0.309, steps=Steps(1.0, 1.05, 400, 20))),
        with_asks(replace(SHORT, steps=Steps(1.0, 2.4, 100, 70))),
    ),
    "decode-slower": (with_asks(replace(SHORT, tpot=0.009, total=0.309)), WELL),
    "compute-in-vain": (with_asks(SHORT, replace(WELL.asks[1], ttft=0.16, total=0.315)), WELL),
}  # fmt: skip
"""Rule -> figures that it must find first, and the earlier ones where it compares."""


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_finds_what_it_is_for_and_nothing_is_named_before_it(rule: Rule) -> None:
    """First-named is the planted cause in its own phase, with figures, and with levers that know their limits."""
    name = rule.name
    found = diagnose(*PLANTED[name]).found
    assert found
    first = found[0]
    assert (first.rule, first.phase) == (name, rule.phase)
    assert first.phase in PHASES
    assert first.evidence
    assert any(figure.isdigit() for clause in first.evidence for figure in clause)
    assert first.levers
    assert all(lever.cannot for lever in first.levers)
    assert first.will_not_help


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_is_silent_where_nothing_was_measured(rule: Rule) -> None:
    """No rule takes a missing figure for a good or a bad one."""
    assert rules_of(Observations(), Observations()) == []
    bare = Observations(asks=(Ask("bare"),), levels=(Level(1), Level(4)))
    assert rule.name not in rules_of(bare, bare)


def test_specific_causes_take_their_time_from_the_general_ones() -> None:
    """A slow start that is all repeated prefix is told once, as a cache that does not work."""
    ask = replace(LONG, name="cache")
    calls = CacheCalls("cache", 3000, 2900, first=1.5, again=1.5, cached_tokens=0)
    assert rules_of(replace(WELL, asks=(SHORT, ask), caches=(calls,))) == ["uncached-prefix"]
    some = replace(calls, shared_tokens=1000)
    assert rules_of(replace(WELL, asks=(SHORT, ask), caches=(some,))) == ["slow-start", "uncached-prefix"]


def test_an_api_that_caches_only_what_is_marked_has_a_lever_of_its_own() -> None:
    """It comes first, with the reason; elsewhere nobody is told to mark anything."""
    calls = CacheCalls("cache", 3000, 2900, first=1.5, again=1.5, cached_tokens=0)
    plain = diagnose(replace(WELL, caches=(calls,))).first
    told = diagnose(replace(WELL, caches=(replace(calls, unmarked="only what a request marks is cached"),))).first
    assert plain is not None
    assert told is not None
    assert told.levers[0].name.startswith("mark the shared beginning")
    assert told.levers[1:] == plain.levers
    assert told.evidence[-1] == "only what a request marks is cached"


def test_findings_are_ranked_by_the_time_they_explain() -> None:
    """Decode that takes 5 s comes before prefill that takes 1.5 s, and the other way round."""
    slow = replace(LONG, name="report", prompt_tokens=64, ttft=0.03, tpot=0.05, output_tokens=100, total=5.0)
    assert rules_of(with_asks(SHORT, LONG, slow)) == ["slow-stream", "slow-start"]
    brief = replace(slow, output_tokens=10, total=0.48)
    assert rules_of(with_asks(SHORT, LONG, brief)) == ["slow-start", "slow-stream"]


def test_doubts_about_the_client_come_before_everything() -> None:
    """Figures of a late client blame nobody first."""
    told = diagnose(replace(with_asks(SHORT, LONG), client=("late by 80 ms",)))
    assert [one.phase for one in told.found] == ["neither", "prefill"]
    # Nothing is sure of such figures, though several prompt lengths would have made it so.
    assert [one.confidence for one in told.found] == [Confidence.SURE, Confidence.LIKELY]
    assert diagnose(with_asks(SHORT, LONG)).found[0].confidence is Confidence.SURE
    host = diagnose(replace(WELL, host=("other processes used 1.66 cores",))).found[0]
    assert host.levers[0].name.startswith("a quiet host")
    earlier = diagnose(WELL, replace(WELL, host=("other processes used 1.66 cores",))).found[0]
    assert earlier.evidence == ("the earlier sitting: other processes used 1.66 cores",)
    assert told.first is not None
    assert "late by 80 ms" in told.first.evidence


def test_objectives_take_the_place_of_the_limits_for_interactive_use() -> None:
    """A generous objective silences, a strict one speaks, and both are named."""
    slow = with_asks(SHORT, LONG)
    assert LONG.ttft is not None
    assert LONG.ttft > START_LIMIT
    assert rules_of(replace(slow, limits=Limits(ttft=2.0, source="ttft:p95:2000ms"))) == []
    told = diagnose(replace(WELL, limits=Limits(tpot=0.004, source="tpot:p95:4ms")))
    assert told.first is not None
    assert told.first.rule == "slow-stream"
    assert "tpot:p95:4ms" in told.first.evidence[0]
    assert STREAM_LIMIT == 0.04


def test_the_servers_own_times_make_a_cause_sure() -> None:
    """Without them, and without several lengths, reading and waiting cannot be told apart, and the word says so."""
    alone = diagnose(with_asks(LONG)).first
    told = diagnose(with_asks(replace(LONG, server_prefill=1.45))).first
    assert alone is not None
    assert told is not None
    assert (alone.confidence, told.confidence) == (Confidence.LIKELY, Confidence.SURE)
    assert told.seconds == 1.45


def test_a_bandwidth_bound_decode_says_what_a_faster_gpu_would_do() -> None:
    """At 71 % of the bandwidth, more FLOP/s will not help."""
    slow = with_asks(replace(SHORT, tpot=0.06, total=1.89))
    first = diagnose(replace(slow, machine=Machine(bandwidth=0.71))).first
    assert first is not None
    assert first.confidence is Confidence.SURE
    assert "decode runs at the hardware's limit: 71 % of its bandwidth" in first.evidence
    assert any("more FLOP/s" in text for text in first.will_not_help)


def test_a_decode_below_the_bandwidths_limit_leaves_arithmetic_open() -> None:
    """At 30 % nobody knows that more FLOP/s would not help, so it is not said."""
    slow = with_asks(replace(SHORT, tpot=0.06, total=1.89))
    first = diagnose(replace(slow, machine=Machine(bandwidth=0.3))).first
    assert first is not None
    assert first.confidence is Confidence.LIKELY
    assert not any("more FLOP/s" in text for text in first.will_not_help)


@pytest.mark.parametrize(
    ("share", "said"), [(0.55, "55 % of the peak FLOP/s"), (0.18, "a step of its own"), (None, "a step of its own")]
)
def test_streams_that_slow_each_other_down_are_answered_together(share: float | None, said: str) -> None:
    """Four users at the throughput of one, each token four times as long: arithmetic, likely, and no call for slots."""
    first = diagnose(replace(PLANTED["batch-cost"][0], machine=Machine(decode_compute=share))).first
    assert first is not None
    assert first.confidence is Confidence.LIKELY
    assert "2.5 streams decode at a time on average, and TPOT x 4.11" in " ".join(first.evidence)
    assert said in " ".join(first.evidence)
    assert not any("batching" in lever.name or "slots" in lever.name for lever in first.levers)
    assert any("more slots" in text for text in first.will_not_help)


def test_requests_one_after_another_are_told_apart_from_steps_that_cost_more() -> None:
    """The same throughput, but every stream as fast as alone: sure; without TPOT nobody can tell, so only likely."""
    now = PLANTED["no-batching"][0]
    sure = diagnose(now).first
    untold = diagnose(replace(now, levels=tuple(replace(one, tpot=None) for one in now.levels))).first
    assert sure is not None
    assert untold is not None
    assert [one.rule for one in (sure, untold)] == ["no-batching"] * 2
    assert (sure.confidence, untold.confidence) == (Confidence.SURE, Confidence.LIKELY)
    assert "0.9 streams decode at a time on average: requests are served one after another" in " ".join(sure.evidence)


def counted(name: str, alone: float | None, top: float | None) -> Observations:
    """A planted situation whose server tells how many streams share a step."""
    now = PLANTED[name][0]
    return replace(
        now, levels=tuple(replace(one, streams_per_step=n) for one, n in zip(now.levels, (alone, top), strict=True))
    )


@pytest.mark.parametrize("alone", [1.0, None, 0.9])
def test_streams_that_share_a_step_by_the_servers_count_make_the_cost_of_a_batch_sure(alone: float | None) -> None:
    """Nothing else looks like that; nobody has to be asked any more."""
    first = diagnose(counted("batch-cost", alone, 3.8)).first
    assert first is not None
    assert (first.rule, first.confidence) == ("batch-cost", Confidence.SURE)
    said = " ".join(first.evidence)
    assert "the server's own count: 3.8 streams in a step with 4 users" in said
    assert "would tell" not in said


@pytest.mark.parametrize(("alone", "top"), [(1.0, 1.0), (None, 1.1), (3.0, 3.1)])
def test_a_step_for_every_stream_by_the_servers_count_is_missing_batching(alone: float | None, top: float) -> None:
    """Though several streams decode at a time by the client's clock; three tokens a step may be one stream's drafts."""
    first = diagnose(counted("batch-cost", alone, top)).first
    assert first is not None
    assert (first.rule, first.confidence) == ("no-batching", Confidence.LIKELY)
    assert first.levers[0].name.startswith("continuous batching")
    said = " ".join(first.evidence)
    assert "2.5 streams decode at a time" in said
    assert f"the server's own count: {top:.1f} streams in a step with 4 users" in said


def test_a_count_between_one_and_several_decides_nothing() -> None:
    """It is said, and what the client saw stands as likely."""
    first = diagnose(counted("batch-cost", 1.0, 1.35)).first
    assert first is not None
    assert (first.rule, first.confidence) == ("batch-cost", Confidence.LIKELY)
    assert "1.4 streams in a step" in " ".join(first.evidence)
    assert "would tell" in " ".join(first.evidence)


def test_without_tpot_the_servers_count_tells_the_two_apart() -> None:
    """Throughput that does not grow: shared steps cost more, or there are none."""
    for told, rule in ((3.8, "batch-cost"), (1.0, "no-batching")):
        now = counted("batch-cost", 1.0, told)
        first = diagnose(replace(now, levels=tuple(replace(one, tpot=None) for one in now.levels))).first
        assert first is not None
        assert (first.rule, first.confidence) == (rule, Confidence.SURE)


def test_streams_that_share_steps_are_not_called_unbatched_where_each_is_as_fast_as_alone() -> None:
    """Neither fits: a step of several streams at the old TPOT would have raised throughput."""
    assert rules_of(counted("no-batching", 1.0, 3.8)) == []
    assert rules_of(counted("no-batching", 1.0, 1.0)) == ["no-batching"]


def test_a_refused_share_of_the_hardware_is_no_evidence() -> None:
    """513 ms for 1,024 tokens are slow by the limits, but 130 % of a peak cannot be: it is not said, nor clamped."""
    model = ModelFacts("tiny", 51_120_000, 67_110_000, 12, 1, 1, 64, 1.0625)
    measured = Measured(prompt=1024, output=32, tpot=0.005, ttft=0.513)
    doubtful = roofline(model, HardwareFacts("core", 160e9, 10e9), measured)
    assert (doubtful.mfu.value or 0.0) > 1.2
    assert doubtful.mfu.problem is not None
    assert doubtful.mbu.problem is not None
    slow = with_asks(SHORT, replace(LONG, prompt_tokens=1024, ttft=0.513, tpot=0.06, total=2.373))
    told = diagnose(replace(slow, machine=machine_of(doubtful)))
    assert {one.rule for one in told.found} == {"slow-start", "slow-stream"}
    evidence = " ".join(clause for one in told.found for clause in one.evidence)
    assert "hardware" not in evidence
    assert "peak" not in evidence
    believed = roofline(model, HardwareFacts("core", 320e9, 60e9), measured)
    told = diagnose(replace(slow, machine=machine_of(believed)))
    assert "prefill runs at the hardware's limit: 65 % of its peak FLOP/s" in " ".join(
        clause for one in told.found for clause in one.evidence
    )


@pytest.mark.parametrize("by", [0.003, 0.02])
def test_a_ttft_that_grew_by_about_one_step_of_decode_is_decodes_doing(by: float) -> None:
    """The first token's own step is in every TTFT: neither a hop nor a slower prefill, whatever the prompt's length."""
    asks = [
        replace(one, ttft=(one.ttft or 0) + 1.2 * by, tpot=(one.tpot or 0) + by, total=(one.total or 0) + 32.2 * by)
        for one in WELL.asks
    ]
    assert rules_of(with_asks(*asks), WELL) == ["decode-slower"]
    both = [replace(one, ttft=(one.ttft or 0) + 0.1, total=(one.total or 0) + 0.1) for one in asks]
    assert "hop-added" in rules_of(with_asks(*both), WELL)


def test_a_small_change_is_explained_only_where_it_is_proven() -> None:
    """7 % more prefill is silent by itself; where the gate has found it, its phase is named."""
    now = with_asks(replace(SHORT, ttft=0.0321, total=0.1871), replace(WELL.asks[1], ttft=0.321, total=0.476))
    assert rules_of(now, WELL) == []
    assert [one.rule for one in diagnose(now, WELL, least=0.02).found] == ["prefill-slower"]
    assert diagnose(now, WELL).compared == 0.1
    assert diagnose(now).compared is None


def test_the_line_of_ttft_gives_back_what_it_was_made_of() -> None:
    """A fixed part of 20 ms and 0.4 ms a token."""
    line = prefill_line([Ask("a", 100, ttft=0.06), Ask("b", 1000, ttft=0.42), Ask("c", 2000, ttft=0.82)])
    assert line is not None
    assert line.fixed == pytest.approx(0.02)
    assert line.per_token == pytest.approx(0.0004)
    assert prefill_line([Ask("a", 100, ttft=0.06)]) is None


def test_a_broken_rule_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the limits out of reach the planted slow start is not found: the tests above can fail."""
    monkeypatch.setattr("phasegate.diagnose.rules_alone.START_LIMIT", 100.0)
    assert rules_of(PLANTED["slow-start"][0]) == []


def test_the_page_of_the_diagnosis_has_the_rules_in_the_codes_words() -> None:
    """The table is the one that the code writes."""
    page = Path(__file__).parents[2] / "docs" / "explanation" / "diagnosis.md"
    assert "\n".join(rules_table()) in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_gives_the_levers_that_the_table_names(rule: Rule) -> None:
    """The first lever of its finding is the first of its remedy."""
    first = diagnose(*PLANTED[rule.name]).found[0]
    assert first.levers[0] == REMEDIES[rule.remedy][0]
