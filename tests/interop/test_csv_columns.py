"""Tables: columns that say a unit or who counted, columns that nobody reads, and numbers and names at their edges."""

from __future__ import annotations

from pathlib import Path

import pytest

from phasegate.cli.compare import compare
from phasegate.core.session import Measurement
from phasegate.gate.policy import Policy
from phasegate.gate.verdict import Verdict
from phasegate.store.other_tools.reading import load, read_side
from phasegate.store.other_tools.result import UnreadableResultError


def write(path: Path, header: str, *rows: str) -> Path:
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


def cells(path: Path) -> dict[str, Measurement]:
    (one,) = read_side(path)
    return {item.metric: item for item in one.measurements}


UNIT = "session,workload,metric,value,unit"
COUNTED = "session,workload,metric,value,token_source"


def test_every_row_has_its_own_unit(tmp_path: Path) -> None:
    found = cells(
        write(
            tmp_path / "t.csv", UNIT, "1,c,ttft,200,ms", "1,c,ttft,0.2,s", "1,c,ttft,200000,us", "1,c,ttft,2e8,ns",
            "1,c,ttft,200000,µs", "1,c,tpot,10,ms", "1,c,tpot,10,ms/token", "1,c,tpot,0.01,s/token",
            "1,c,output_token_throughput,40,tokens/s", "1,c,ttft,failed,",
        )
    )  # fmt: skip
    assert found["ttft"].samples == pytest.approx((0.2,) * 5)
    assert (found["ttft"].requests, found["ttft"].failed) == (6, 1)
    assert found["tpot"].samples == pytest.approx((0.01,) * 3)
    assert found["output_token_throughput"].samples == (40,)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("1,c,ttft,200,", "line 2: the unit is '', and ttft is in s; give s, or a time in s, ms, us or ns"),
        ("1,c,ttft,200,minutes", "line 2: the unit is 'minutes'"),
        ("1,c,ttft,200,ms/token", "line 2: the unit is 'ms/token', and ttft is in s"),
        ("1,c,output_token_throughput,40,ms", "line 2: the unit is 'ms'"),
        ("1,c,output_token_throughput,40,tokens/min", "and output_token_throughput is in tokens/s; give tokens/s"),
        ("1,c,ttft,1e-300,s", "1e-300 is 1.0e-300 s, shorter than a nanosecond; see which unit it has"),
        ("1,c,ttft,1e-320,ms", "shorter than a nanosecond"),
    ],
)
def test_a_unit_that_does_not_fit_is_refused(tmp_path: Path, row: str, said: str) -> None:
    with pytest.raises(UnreadableResultError) as caught:
        read_side(write(tmp_path / "t.csv", UNIT, row))
    assert said in str(caught.value)


def test_who_counted_the_tokens_is_kept_and_compared(tmp_path: Path) -> None:
    old = write(tmp_path / "a.csv", COUNTED, *(f"{n},c,tpot,0.0{n + 10},usage" for n in range(8)))
    new = write(tmp_path / "b.csv", COUNTED, *(f"{n},c,tpot,0.0{n + 10},tokenizer" for n in range(8)))
    found = compare(old, new, Policy())
    assert found.verdict is Verdict.NOT_COMPARABLE
    assert "tokens were counted by usage in the baseline and by tokenizer here" in found.reason
    assert compare(old, old, Policy()).verdict is not Verdict.NOT_COMPARABLE


def test_two_ways_of_counting_in_one_measurement_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", COUNTED, "1,c,ttft,0.1,", "1,c,tpot,0.01,usage", "1,c,tpot,0.01,logprobs")
    with pytest.raises(UnreadableResultError, match="line 4: its tokens were counted by 'logprobs'"):
        read_side(path)


def test_a_column_that_is_not_read_is_remarked(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "session,workload,metric,value,gpu,Note", "1,c,ttft,0.1,x,y")
    assert load(path).said() == [f"{path}: the column 'gpu' is not read", f"{path}: the column 'note' is not read"]
    assert any("the column 'gpu' is not read" in line for line in compare(path, path, Policy()).warnings)


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("session,workload,metric,value,units", "unknown column 'units'; did you mean 'unit'?"),
        ("session,workload,metric,value,token sources", "did you mean 'token_source'?"),
        ("session,workload,metric,value,value", "the column 'value' is there twice"),
        ("session;workload;metric;value", "separated by commas and not by ';'"),
    ],
)
def test_a_header_that_would_be_misread_is_refused(tmp_path: Path, header: str, said: str) -> None:
    with pytest.raises(UnreadableResultError) as caught:
        read_side(write(tmp_path / "a.csv", header, "1,c,ttft,0.1,0.2"))
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "value", ["1_000", "١٢", "１", "0x10", "1,5", "--1", "1e", ".", "0.1s", "None", "true", "1e5e", "= 1"]
)
def test_what_is_no_number_is_refused_in_one_line(tmp_path: Path, value: str) -> None:
    with pytest.raises(UnreadableResultError) as caught:
        read_side(write(tmp_path / "a.csv", "session,workload,metric,value", f'1,c,ttft,"{value}"'))
    assert "line 2: the value " in str(caught.value)
    assert "is not a number" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", ["1e300", "-0.1", "0", "0.0", "nan", "-inf", "1e400", "1e-320"])
def test_what_is_no_measurement_is_refused(tmp_path: Path, value: str) -> None:
    with pytest.raises(UnreadableResultError, match="line 2: the value: "):
        read_side(write(tmp_path / "a.csv", "session,workload,metric,value", f"1,c,ttft,{value}"))


@pytest.mark.parametrize("value", [".5", "5e-1", "+0.5", "0.50", "5.E-1"])
def test_numbers_in_their_usual_spellings_are_read(tmp_path: Path, value: str) -> None:
    path = write(tmp_path / "a.csv", "session,workload,metric,value", f"1,c,ttft, {value} ")
    assert cells(path)["ttft"].samples == (0.5,)


def test_ends_of_lines_and_a_mark_of_order_do_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    for end in (b"\r\n", b"\r", b"\n\n"):
        path.write_bytes(b"\xef\xbb\xbfSession, Workload ,METRIC,value" + end + b"1,c,ttft,0.5" + end)
        assert cells(path)["ttft"].samples == (0.5,)


@pytest.mark.parametrize("name", ["x" * 300, "x" * 200_000])
def test_a_name_too_long_to_be_shown_is_refused_in_one_short_line(tmp_path: Path, name: str) -> None:
    with pytest.raises(UnreadableResultError) as caught:
        read_side(write(tmp_path / "a.csv", "session,workload,metric,value", f"1,{name},ttft,0.1"))
    assert "line 2: " in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    "text", ['session,workload,metric,value\n1,c,ttft,"0.1\n', "session,workload\x00,metric,value\n"]
)
def test_damaged_tables_are_refused_in_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UnreadableResultError) as caught:
        read_side(path)
    assert "\n" not in str(caught.value)


def test_a_number_of_thousands_of_digits_in_json_is_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"total_input_tokens": 1, "request_throughput": 1, "completed": ' + "9" * 5000 + "}")
    with pytest.raises(UnreadableResultError, match="a number in it has thousands of digits"):
        read_side(path)
