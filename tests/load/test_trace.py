"""Traces: the dialects in use, and one clear line for every mistake in them."""

from pathlib import Path

import pytest

from phasegate.core.prompt import Calibration, CalibrationError
from phasegate.core.request import Request
from phasegate.core.settings_file import SettingsError
from phasegate.core.timeline import Expected
from phasegate.load.trace import parse_trace, read_trace
from phasegate.load.trace_prompts import trace_requests, write_prompt

MOONCAKE = (
    '{"timestamp": 3000, "input_length": 915, "output_length": 355, "hash_ids": [0, 462]}\n'
    "\n"
    '{"timestamp": 0, "input_length": 1100, "output_length": 500, "hash_ids": [0, 1, 2]}\n'
)
AZURE = (
    "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
    "2023-11-16 18:15:46.6805900,374,44\r\n"
    "2023-11-16 18:15:50.9951690,396,109\r\n"
)


def parse(text: str, at_most: int | None = None) -> list[tuple[float, int, int]]:
    trace = parse_trace(text.splitlines(keepends=True), "t", at_most)
    return [(one.at, one.input_tokens, one.output_tokens) for one in trace.requests]


def test_mooncake_counts_milliseconds_and_names_blocks() -> None:
    """Requests come in the order of time, blank lines are no requests."""
    trace = parse_trace(MOONCAKE.splitlines(), "m.jsonl")
    assert trace.dialect == "Mooncake"
    assert [(one.at, one.input_tokens, one.output_tokens) for one in trace.requests] == [
        (0.0, 1100, 500),
        (3.0, 915, 355),
    ]
    assert trace.requests[1].blocks == (0, 462)


def test_the_same_columns_as_csv_mean_the_same() -> None:
    """In any order of columns, with others between them."""
    assert parse("output_length,model,timestamp,input_length\n7,m,1500,20\n") == [(1.5, 20, 7)]


def test_azure_has_dates_with_seven_decimals() -> None:
    """Distances are exact to the microsecond."""
    (first, n_in, n_out), (second, _, _) = parse(AZURE)
    assert (n_in, n_out) == (374, 44)
    assert second - first == pytest.approx(4.314579, abs=2e-6)


@pytest.mark.parametrize("zone", ["+00:00", "Z", "+0000", ""])
def test_time_zones_are_understood(zone: str) -> None:
    """Azure's trace of 2024 writes them; without one it is UTC."""
    ((at, n_in, n_out),) = parse(f"TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10 00:00:00.009930{zone},2162,5\n")
    assert at == pytest.approx(1715299200.00993, abs=1e-5)
    assert (n_in, n_out) == (2162, 5)
    later = "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10T02:00:00+02:00,1,1\n"
    assert parse(later)[0][0] == 1715299200.0


def test_only_the_first_rows_of_a_long_trace_are_read() -> None:
    """What stands behind them is not even looked at."""
    assert len(parse(AZURE + "nonsense\n", at_most=2)) == 2
    with pytest.raises(SettingsError, match="t:4"):
        parse(AZURE + "nonsense\n")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "t: the trace is empty"),
        ("TIMESTAMP,ContextTokens,GeneratedTokens\n", "t: the trace has a heading and no request"),
        ("when,long\n1,2\n", "t:2: a trace has the columns timestamp, input_length, output_length or"),
        ('{"timestamp": 1, "input_length": 5}', "t:1: output_length is missing"),
        ("timestamp,input_length,output_length\n1,5,\n", "t:2: output_length is missing"),
        ('{"timestamp": 1, "input_length": 5, "output_length": 5}\n{"timest', "t:2: not JSON"),
        ('{"timestamp": 1, "input_length": 5, "output_length": 5}\n[1]', "t:2: '[1]' is not an object"),
        ("timestamp,input_length,output_length\nsoon,5,5\n", "t:2: timestamp is 'soon'; it must be milliseconds or"),
        ("timestamp,input_length,output_length\n-1,5,5\n", "t:2: timestamp is '-1'"),
        ("timestamp,input_length,output_length\nnan,5,5\n", "t:2: timestamp is 'nan'"),
        ("timestamp,input_length,output_length\n1,0,5\n", "t:2: input_length is '0'; it must be a whole number"),
        ("timestamp,input_length,output_length\n1,2.5,5\n", "t:2: input_length is '2.5'"),
        ("timestamp,input_length,output_length\n1,inf,5\n", "t:2: input_length is 'inf'"),
        ("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-13-16 18:15:46,5,5\n", "t:2: TIMESTAMP is '2023-13-16"),
        ('{"timestamp": 1, "input_length": true, "output_length": 5}', "t:1: input_length is True"),
        ('{"timestamp": 1, "input_length": 5, "output_length": 5, "hash_ids": ["a"]}', "t:1: hash_ids must be"),
    ],
)
def test_a_mistake_is_one_line_with_its_place(text: str, said: str) -> None:
    """File, line, value, and what would be right."""
    with pytest.raises(SettingsError) as caught:
        parse(text)
    assert str(caught.value).startswith(said)
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    """Missing, and not text at all; a byte order mark is no mistake."""
    with pytest.raises(SettingsError, match=r"none\.csv: cannot read the trace"):
        read_trace(tmp_path / "none.csv")
    (tmp_path / "bad.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SettingsError, match="UTF-8"):
        read_trace(tmp_path / "bad.csv")
    (tmp_path / "good.csv").write_bytes(b"\xef\xbb\xbf" + AZURE.encode())
    assert len(read_trace(tmp_path / "good.csv").requests) == 2


WORDS = tuple(f"w{place}" for place in range(300))
KNOWN = Calibration(WORDS, WORDS[:24], 6, "test")


def test_prompts_have_the_recorded_length_and_share_the_recorded_blocks() -> None:
    """Template included; the shared block has 512 of the server's tokens, what follows differs."""
    first, second = parse_trace(MOONCAKE.splitlines(), "m").requests
    one, other = (write_prompt(request, place, KNOWN, 1).split() for place, request in enumerate((first, second)))
    assert len(one) == 1100 - 6
    assert len(other) == 915 - 6
    assert one[: 512 - 6] == other[: 512 - 6]
    assert one[512 - 6 : 512 + 10] != other[512 - 6 : 512 + 10]
    assert one[0] in KNOWN.first_words
    assert one != write_prompt(first, 0, KNOWN, 2).split()


def test_prompts_without_blocks_share_nothing() -> None:
    """Two requests of equal length begin differently within the tokens that chance is allowed."""
    rows = [
        write_prompt(request, place, KNOWN, 1).split()
        for place, request in enumerate(parse_trace(AZURE.splitlines(), "a").requests)
    ]
    assert rows[0][:8] != rows[1][:8]


def test_a_prompt_shorter_than_the_template_is_refused() -> None:
    """In one line that says what to do with it."""
    short = parse_trace('{"timestamp": 1, "input_length": 6, "output_length": 5}'.splitlines(), "t").requests[0]
    with pytest.raises(CalibrationError, match="take requests that short out of the trace"):
        write_prompt(short, 0, KNOWN, 1)


def test_requests_of_a_trace_say_what_to_expect() -> None:
    """Exact lengths; cold only where the trace names no blocks."""

    def make(prompt: str, expected: Expected, tokens: int) -> Request:
        return Request(prompt[:3], expected.endpoint, {"prompt": prompt, "max_tokens": tokens}, expected)

    for text, cold in ((MOONCAKE, False), (AZURE, True)):
        trace = parse_trace(text.splitlines(), "t")
        made = trace_requests(trace, KNOWN, 1, make, endpoint="completions", length_is_forced=True)
        assert [request.expected.prompt_tokens for request in made] == [one.input_tokens for one in trace.requests]
        assert [request.expected.output_tokens for request in made] == [one.output_tokens for one in trace.requests]
        assert {request.expected.cold_prompt for request in made} == {cold}
