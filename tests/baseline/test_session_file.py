"""Sessions as files: what they hold, how they read back, and every way in which one can be unusable."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phasegate.store import InvalidBaselineError, parse_session, read_session, session_text
from phasegate.store.baseline_summary import summary_fields
from tests.sessions import measurement, session

SAMPLES = [0.0201234567, 0.0204, 0.0198, 0.0201, 0.0203]
ONE = session(
    1,
    measurement("chat[in=64,out=32]", "ttft", [0.1, 0.11, 0.12], flags=("b", "a"), failed=1, requests=4),
    measurement("chat[in=64,out=32]", "tpot", SAMPLES),
    measurement("chat[in=64,out=1]", "tpot", []),
)


def test_a_session_reads_back_as_it_was_but_for_rounding() -> None:
    back = parse_session(session_text(ONE), "f.json")
    assert [one.workload for one in back.measurements] == [one.workload for one in ONE.measurements]
    assert back.measurements[0] == replace(ONE.measurements[0], flags=("a", "b"))
    assert back.measurements[1].samples == (0.020123, 0.0204, 0.0198, 0.0201, 0.0203)
    assert back.measurements[2].samples == ()
    assert replace(back, measurements=()) == replace(ONE, measurements=())


@given(st.lists(st.floats(1e-7, 1e3), min_size=1, max_size=20))
def test_rounding_keeps_a_microsecond_or_four_digits(samples: list[float]) -> None:
    back = parse_session(session_text(session(1, measurement("w", "tpot", samples))), "f.json")
    for kept, given_value in zip(back.measurements[0].samples, samples, strict=True):
        assert abs(kept - given_value) <= min(0.51e-6, 0.51e-3 * given_value) + 1e-15


def test_the_text_suits_a_reviewer() -> None:
    """Keys sorted, all samples of a measurement on one line, and a changed sample changes few lines."""
    text = session_text(ONE)
    assert json.dumps(json.loads(text), sort_keys=True) == json.dumps(json.loads(text))
    assert sum('"data": [' in line for line in text.splitlines()) == 2
    other = session_text(
        replace(ONE, measurements=(replace(ONE.measurements[0], samples=(0.1, 0.11, 0.13)), *ONE.measurements[1:]))
    )
    changed = [pair for pair in zip(text.splitlines(), other.splitlines(), strict=True) if pair[0] != pair[1]]
    assert len(changed) < 12


def test_the_summary_is_that_of_pytest_benchmark() -> None:
    """pytest-benchmark's own class computes the same fields from the same samples, for every count."""
    from pytest_benchmark.stats import Stats

    for count in range(1, 14):
        samples = [0.02 + 0.001 * ((7 * index) % 11) + (1.0 if index == 5 else 0.0) for index in range(count)]
        theirs = Stats()
        for value in samples:
            theirs.update(value)
        ours = summary_fields(samples, lambda value: value)
        expected = theirs.as_dict()
        for field in expected:
            assert ours[field] == pytest.approx(expected[field]), (field, count)


def test_pytest_benchmark_compares_two_of_our_files(tmp_path: Path) -> None:
    """The real command reads both files and prints both medians."""
    folder = tmp_path / "store" / "some-fingerprint"
    folder.mkdir(parents=True)
    for number, level in ((1, 0.02), (2, 0.03)):
        (folder / f"s{number}.json").write_text(session_text(session(number, measurement("chat", "tpot", [level] * 4))))
    command = [sys.executable, "-m", "pytest_benchmark", "--storage", str(tmp_path / "store"), "compare", "*/s"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    assert "benchmark 'chat tpot': 2 tests" in done.stdout
    assert "20.0000" in done.stdout
    assert "30.0000" in done.stdout


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 0.0, -1.0])
def test_a_value_that_is_no_measurement_is_never_written(bad: float) -> None:
    with pytest.raises(ValueError, match="only positive finite values are stored"):
        session_text(session(1, measurement("w", "tpot", [0.02, bad])))


def edited(change: Callable[[Any], Any]) -> str:
    """The text of a session after a change to its document."""
    document = json.loads(session_text(ONE))
    change(document)
    return json.dumps(document)


def set_sample(value: Any) -> Callable[[Any], None]:
    return lambda document: document["benchmarks"][1]["stats"]["data"].__setitem__(1, value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (edited(set_sample(float("nan"))), "NaN is not a measurement"),
        (edited(set_sample(float("inf"))), "Infinity is not a measurement"),
        (edited(set_sample("1e999")).replace('"1e999"', "1e999"), "sample 2 is inf"),
        (edited(set_sample(-0.02)), "sample 2 is -0.02; a measurement is finite and above 0"),
        (edited(set_sample(0)), "sample 2 is 0; a measurement is finite and above 0"),
        (edited(set_sample("20 ms")), "sample 2 is '20 ms'; it must be a number"),
        (edited(set_sample(True)), "sample 2 is True; it must be a number"),
        (
            edited(lambda d: d["benchmarks"][1]["extra_info"].update(unit="ms/token")),
            "the unit is 'ms/token', expected 's/token'",
        ),
        (edited(lambda d: d["phasegate"].update(schema=2)), "schema version 2, this phasegate reads 1"),
        (edited(lambda d: d.pop("phasegate")), "not a session file of phasegate"),
        (edited(lambda d: d.pop("benchmarks")), "benchmarks is missing or not a list"),
        (edited(lambda d: d["benchmarks"][0].pop("stats")), "stats is missing or not a mapping"),
        (edited(lambda d: d["benchmarks"][0]["stats"].update(data=[])), "stats.data holds no samples"),
        (edited(lambda d: d["benchmarks"][0]["extra_info"].update(failed=-1)), "failed is -1"),
        (edited(lambda d: d["benchmarks"].append(d["benchmarks"][0])), "stands twice"),
        (edited(lambda d: d["machine_info"].pop("fingerprint")), "fingerprint is None; it must be a text"),
        (session_text(ONE)[:-30], "the file ends too early"),
        (session_text(ONE).replace('"group": ', '"group" ', 1), "not readable as JSON"),
        ("[" * 100_000, "nested too deeply"),
        ("", "the file ends too early"),
        ("[1]", "not a session file of phasegate"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_in_one_line_and_left_alone(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "s1.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidBaselineError) as caught:
        read_session(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert path.read_text(encoding="utf-8") == text


def test_a_truncated_file_gives_the_parse_position() -> None:
    with pytest.raises(InvalidBaselineError, match=r"f.json: line 1 column 43 \(character 42\)"):
        parse_session('{"tests": {"tpot_ms": {"samples": [20.1, 2', "f.json")


def test_what_cannot_be_read_at_all_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "s1.json").write_bytes(b"\xff\xfe{}")
    with pytest.raises(InvalidBaselineError, match="not text in UTF-8"):
        read_session(tmp_path / "s1.json")
    with pytest.raises(InvalidBaselineError, match="cannot be read: No such file"):
        read_session(tmp_path / "none.json")
