"""Options into shapes: what each means, and one line for every mistake."""

import math
from pathlib import Path

import numpy as np
import pytest

from phasegate.core.request import Request
from phasegate.core.settings_file import SettingsError
from phasegate.core.target import Target
from phasegate.load.closed import LoadResult
from phasegate.load.pacing import EVEN, Rate
from phasegate.load.shapes import Shape, shape_from, shape_from_options
from phasegate.load.shapes_run import run_shape
from phasegate.pytest_plugin.options import OPTIONS
from tests.loopback import Loopback, steady

AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46,374,44\n2023-11-16 18:15:50,396,109\n"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "azure.csv"
    path.write_text(AZURE)
    return path


def rng() -> np.random.Generator:
    return np.random.default_rng(1)


def test_without_options_one_user_asks_after_the_other() -> None:
    """A closed loop of one; requests and warm-ups are the caller's."""
    shape = shape_from_options()
    assert not shape.is_open
    assert shape.users == 1
    assert shape.count is None
    assert shape.warmups is None
    assert shape.describe() == "closed loop, 1 at a time"
    with pytest.raises(ValueError, match="no schedule"):
        shape.offsets(3, rng())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_concurrency": "16"}, "closed loop, 16 at a time"),
        ({"request_rate": "4"}, "open loop, Poisson arrivals, 4 requests/s"),
        (
            {"request_rate": "4", "max_concurrency": "8"},
            "open loop, Poisson arrivals, 4 requests/s, at most 8 at a time",
        ),
        ({"request_rate": "2.5", "burstiness": "inf"}, "open loop, even arrivals, 2.5 requests/s"),
        ({"request_rate": "2", "burstiness": 0.5}, "open loop, gamma arrivals (burstiness 0.5), 2 requests/s"),
        ({"request_rate": "1:10:60s"}, "open loop, Poisson arrivals, 1 to 10 requests/s over 60 s"),
        ({"request_rate": "inf"}, "open loop, all requests at once"),
    ],
)
def test_options_make_the_shape_they_name(options: dict[str, str | float], words: str) -> None:
    """Texts and numbers alike."""
    assert shape_from_options(**options).describe() == words  # type: ignore[arg-type]


def test_the_rate_of_an_option_is_the_rate_of_the_schedule() -> None:
    """Even at 4 a second; the burstiness reaches the generator."""
    assert shape_from_options(request_rate="4", burstiness=EVEN).offsets(3, rng()) == (0.0, 0.25, 0.5)
    assert shape_from_options(request_rate="0:10:2s").rate == Rate(0.0, 10.0, 2.0)
    calm, wild = (shape_from_options(request_rate=4, burstiness=b).offsets(500, rng()) for b in (100, 0.1))
    assert np.diff(calm).std() < 0.1 * np.diff(wild).std()


def test_a_trace_brings_its_own_arrivals(trace: Path) -> None:
    """Stretched by the scale; all of it, or as many as asked for."""
    shape = shape_from_options(trace=trace, trace_scale="0.5", num_prompts="2")
    assert shape.offsets(2, rng()) == (0.0, 2.0)
    assert shape.describe().endswith("azure.csv, times x 0.5")
    assert shape_from_options(trace=str(trace), num_prompts=1).count == 1
    with pytest.raises(ValueError, match="has 2 requests; 3 cannot"):
        shape.offsets(3, rng())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"request_rate": "fast"}, "--perf-request-rate 'fast': 'fast' is not a number of requests a second"),
        ({"request_rate": "0"}, "--perf-request-rate '0'"),
        ({"request_rate": "-2"}, "--perf-request-rate '-2'"),
        ({"request_rate": "nan"}, "--perf-request-rate 'nan'"),
        ({"request_rate": "1:5"}, "--perf-request-rate '1:5'"),
        ({"request_rate": "1:5:60"}, "'60' is not a duration"),
        ({"request_rate": "1:5:0s"}, "a ramp needs a span above 0"),
        ({"max_concurrency": "0"}, "--perf-max-concurrency '0' is not a whole number of at least 1"),
        ({"max_concurrency": "1.5"}, "--perf-max-concurrency '1.5'"),
        ({"num_prompts": "none"}, "--perf-num-prompts 'none' is not a whole number of at least 1"),
        ({"num_warmups": "-1"}, "--perf-num-warmups '-1' is not a whole number of at least 0"),
        ({"burstiness": "2"}, "--perf-burstiness 2 needs --perf-request-rate"),
        ({"burstiness": "0", "request_rate": "1"}, "--perf-burstiness '0' is not a number above 0"),
        ({"burstiness": "x", "request_rate": "1"}, "--perf-burstiness 'x' is not a number above 0"),
        ({"trace_scale": "2"}, "--perf-trace-scale 2 needs --perf-trace"),
        ({"trace": "none.jsonl"}, "none.jsonl: cannot read the trace"),
        ({"trace": "none.jsonl", "request_rate": "1"}, "give --perf-request-rate or --perf-trace, not both"),
    ],
)
def test_a_mistake_is_one_line(options: dict[str, str], said: str) -> None:
    """With the option and its value."""
    with pytest.raises(SettingsError) as caught:
        shape_from_options(**options)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("scale", ["0", "-1", "inf", "x"])
def test_an_impossible_scale_is_refused(trace: Path, scale: str) -> None:
    """Time neither stands still nor runs backwards."""
    with pytest.raises(SettingsError, match="--perf-trace-scale"):
        shape_from_options(trace=trace, trace_scale=scale)


def test_more_requests_than_the_trace_has_are_refused(trace: Path) -> None:
    """With both numbers."""
    with pytest.raises(SettingsError, match=r"--perf-num-prompts is 3, but .* has only 2"):
        shape_from_options(trace=trace, num_prompts="3")


def test_the_options_of_a_pytest_run_are_read_and_declared() -> None:
    """Those that the shape asks for are those of the suite's table; what pytest gives is read."""
    asked: list[str] = []

    def take(option: str) -> str | None:
        asked.append(option)
        return {"--perf-request-rate": "3", "--perf-max-concurrency": "7", "--perf-num-prompts": "20"}.get(option)

    assert shape_from(take) == Shape(rate=Rate.constant(3), max_concurrency=7, count=20)
    assert len(asked) == 7
    assert set(asked) <= {name for names, _, _ in OPTIONS for name in names}


def run(shape: Shape) -> LoadResult:
    requests = [Request(f"r{n}", "chat", {"messages": []}) for n in range(6)]
    with Loopback(steady(2, first=0.05, gap=0.01)) as server:
        return run_shape(Target(server.base_url, "m"), requests, shape, rng())


def test_one_call_drives_every_shape(trace: Path) -> None:
    """Closed loop, open loop, cap, everything at once, and a trace that has too few requests."""
    closed = run(shape_from_options(max_concurrency=3))
    assert (closed.scheduled, closed.max_concurrency, closed.peak_in_flight) == (False, 3, 3)
    opened = run(shape_from_options(request_rate=50))
    assert (opened.scheduled, opened.max_concurrency, len(opened.recordings)) == (True, None, 6)
    assert run(shape_from_options(request_rate=math.inf, max_concurrency=2)).peak_in_flight == 2
    assert run(shape_from_options(request_rate="inf")).peak_in_flight == 6
    with pytest.raises(ValueError, match="has 2 requests; 6 cannot be replayed"):
        run(shape_from_options(trace=trace))
