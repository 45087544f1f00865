"""The drawing of one request tells which phase took the time, in numbers that add up."""

from __future__ import annotations

from dataclasses import replace

from phasegate.report.phase_timeline import draw_phases
from tests.timelines import failed, timeline


def test_bars_share_the_width_in_proportion_to_the_phases() -> None:
    lines = draw_phases(timeline(ttft=0.75, tpot=0.25 / 4, tokens=5), width=40, plain=True)
    assert lines[0] == "r1: 64 prompt tokens -> 5 output tokens, 1.00 s in all"
    assert lines[1] == "  prefill  " + "#" * 30 + "." * 10 + "  TTFT 750 ms"
    assert lines[2] == "  decode   " + "." * 30 + "#" * 10 + "  4 x TPOT 62.5 ms = 250 ms"


def test_a_phase_that_took_almost_nothing_is_still_visible() -> None:
    lines = draw_phases(timeline(ttft=0.0001, tpot=1.0, tokens=5), width=40, plain=True)
    assert lines[1].count("#") == 1
    lines = draw_phases(timeline(ttft=10.0, tpot=0.0001, tokens=5), width=40, plain=True)
    assert lines[2].count("#") == 1


def test_one_token_has_a_prefill_and_an_undefined_decode() -> None:
    lines = draw_phases(timeline(tokens=1), plain=True)
    assert "TPOT undefined: needs 2 output tokens, got 1" in lines[2]


def test_a_failed_request_tells_its_kind_and_the_servers_words() -> None:
    assert draw_phases(failed()) == ["r1: failed as http_500: broken"]


def test_cached_tokens_are_told_beside_the_ttft_they_shortened() -> None:
    lines = draw_phases(timeline(cached_tokens=63))
    assert "(63 prompt tokens from the cache)" in lines[1]


def test_tokens_that_were_reasoned_unseen_are_no_part_of_the_decode() -> None:
    """47 x TPOT would be twice the time that the line gives."""
    hidden = replace(
        timeline(tpot=0.010, tokens=24), output_tokens=48, reasoning_tokens=24, flags=("hidden_reasoning",)
    )
    assert "23 x TPOT 10.0 ms = 230 ms" in draw_phases(hidden)[2]
