"""The server's own clock in the summary: only what is known, in lines that fit."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from phasegate.report.server_lines import ServerRow, _tables, count_words, level_lines
from phasegate.report.table_text import render_table
from phasegate.stats.counters import ServerCounts
from phasegate.stats.first_token import FirstToken
from phasegate.stats.level_run import LevelRun
from tests.load_runs import level_run


@dataclass
class Loaded:
    """What a lab under load holds, without the lab."""

    levels: dict[int, LevelRun] = field(default_factory=dict)
    rates: dict[float, LevelRun] = field(default_factory=dict)


def lines_of(counts: ServerCounts | None) -> list[str]:
    loaded = Loaded({16: replace(level_run(16, [0.1] * 4), server=counts)})
    return list(level_lines(loaded))  # type: ignore[arg-type]


def test_waiting_and_preemptions_under_load_are_said() -> None:
    """A mean of four requests' queue, and what the engine had to give up; a gauge of afterwards says nothing."""
    counts = ServerCounts({"queue": 4.8, "prefill": 0.4, "preemptions": 3}, {"queue": 4, "prefill": 4}, {"waiting": 2})
    (line,) = lines_of(counts)
    assert line.startswith("16 at a time: by the server's clock queue 1.20 s, prefill 100 ms a request; on average ")
    assert line.endswith(" waiting in the server; the server counted 3 preemptions")


def test_who_runs_and_waits_stands_beside_a_level() -> None:
    """By the sums of their times over the level's own window: four waited and two ran at any moment."""
    run = level_run(16, [0.1] * 4)
    told = replace(run, server=ServerCounts({"queue": 4 * run.window, "inference": 2 * run.window}))
    (line,) = level_lines(Loaded({16: told}))  # type: ignore[arg-type]
    assert line == "16 at a time: on average 2.0 running and 4.0 waiting in the server"


def test_hand_offs_are_said_with_time_and_size() -> None:
    """Means of each move, whatever the number of requests."""
    counts = ServerCounts({"handoff": 0.32, "handoff_bytes": 8e6}, {"handoff": 4, "handoff_bytes": 4})
    assert count_words(counts) == ["the server counted 4 hand-offs of a KV cache, 80.0 ms and 2.0 MB each"]
    assert count_words(ServerCounts({"handoff": 0.0}, {"handoff": 0})) == []


def test_streams_in_a_step_stand_beside_a_level() -> None:
    """By the server's own count, and beside its clock where that tells something, too."""
    counts = ServerCounts({"steps": 40, "output_tokens": 150})
    assert lines_of(counts) == ["16 at a time: 3.8 streams in a step by the server's count"]
    both = ServerCounts({"queue": 4.8, "steps": 40, "output_tokens": 150}, {"queue": 4})
    (line,) = lines_of(both)
    assert line.startswith("16 at a time: by the server's clock queue 1.20 s a request; ")
    assert line.endswith("; 3.8 streams in a step by the server's count")


def test_levels_stand_in_the_order_of_their_users() -> None:
    """Whatever the order in which they were measured."""
    counts = {users: ServerCounts({"steps": 10, "output_tokens": 10 * users}) for users in (16, 1, 4)}
    loaded = Loaded({users: replace(level_run(users, [0.1]), server=one) for users, one in counts.items()})
    lines = list(level_lines(loaded))  # type: ignore[arg-type]
    assert [line.split()[0] for line in lines] == ["1", "4", "16"]


def test_a_server_that_tells_nothing_or_nothing_of_interest_gets_no_line() -> None:
    """No page; and a page on which nothing happened."""
    assert lines_of(None) == []
    assert lines_of(ServerCounts({"preemptions": 0, "cache_hits": 0, "cache_queries": 400})) == []


def test_what_was_drafted_hit_and_reset_is_said() -> None:
    """Speculative decoding, the prefix cache, and a restart in between."""
    counts = ServerCounts(
        {"drafted_tokens": 40, "accepted_tokens": 10, "cached_tokens": 3, "prompt_tokens": 4}, reset=("requests",)
    )
    assert count_words(counts) == [
        "the server counted 75 % of prompt tokens from the prefix cache; 25 % of drafted tokens accepted; "
        "counters were reset meanwhile and are not used: requests"
    ]


def test_a_server_that_tells_everything_still_leaves_room_for_names() -> None:
    """Eleven columns (vLLM's) do not fit into 80 characters beside a name: decode then stands in a table of its own."""
    split = FirstToken(0.123, 0.121, 0.0016, 0.0, 0.00002, 0.117, 0.0006)
    tables = _tables([ServerRow("prompt-length, mean", split, 0.0101, 0.0101)])
    lines = [line for table in tables for line in render_table(table, 80, colour=False)]
    assert len(tables) == 2
    assert sum("prompt-length" in line for line in lines) == 2, lines
    assert max(map(len, lines)) <= 80
