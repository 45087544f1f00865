"""Wrong input ends a measuring run with one clear line and an exit status that is not 0."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from phasegate.engines.simulator.config import SimulatorConfig
from phasegate.engines.simulator.engine import SimulatorEngine
from tests.edges.quick_pytest import Done, QuickPytest
from tests.engines.front_doors import Door, house, models

KEY = "sk-right-7f3a91"
WRONG_KEY = "sk-wrong-5c11e0"
UNREACHABLE, USAGE, INVALID = 15, 4, 15


@pytest.fixture(scope="module")
def guarded() -> Iterator[SimulatorEngine]:
    """A simulated server that wants a key."""
    with SimulatorEngine(SimulatorConfig(speed=10.0), api_key=KEY) as engine:
        yield engine


def lines_with(done: Done, words: str) -> list[str]:
    """The lines of the output that hold these words."""
    return [line for line in done.output.splitlines() if words in line]


def refused(done: Done, status: int, words: str) -> None:
    """That a run ended as it should: the status, exactly one line with the words, and no traceback."""
    assert done.status == status, done.output
    assert len(lines_with(done, words)) == 1, done.output
    assert "Traceback" not in done.output
    assert "INTERNALERROR" not in done.output


def test_no_server_at_the_address(quick: QuickPytest, small: Path) -> None:
    """Nobody listens there: the address and what to do."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
    done = quick.run("perf_tests/test_rows.py", "--perf-workloads", small, "--perf-base-url", url, "--perf-model", "m")
    refused(done, UNREACHABLE, f"{url}: no server answers there (connection refused); start it, or check the address")


def test_a_wrong_key_is_named_by_its_variable_only(quick: QuickPytest, small: Path, guarded: SimulatorEngine) -> None:
    """The variable is named, its content is not."""
    options = ("perf_tests/test_rows.py", "--perf-workloads", small, "--perf-base-url", guarded.base_url)
    done = quick.run(*options, "-vv", "--showlocals", OPENAI_API_KEY=WRONG_KEY)
    refused(done, UNREACHABLE, "the key was refused (HTTP 401); check OPENAI_API_KEY")
    assert WRONG_KEY not in done.output


def test_an_unknown_model(quick: QuickPytest, small: Path, guarded: SimulatorEngine) -> None:
    """The server's own refusal, and what there is instead."""
    options = ("perf_tests/test_rows.py", "--perf-workloads", small, "--perf-base-url", guarded.base_url)
    done = quick.run(*options, "--perf-model", "other", OPENAI_API_KEY=KEY)
    refused(done, INVALID, "failed (http_404): The model `other` does not exist")


def test_a_model_that_the_server_refuses_though_it_lists_none(quick: QuickPytest, small: Path) -> None:
    """The server's own 404 is quoted when it first shows: at the first request."""
    with house({}) as server:
        options = ("perf_tests/test_rows.py", "--perf-workloads", small, "--perf-base-url", server.base_url)
        done = quick.run(*options, "--perf-model", "other")
    refused(done, INVALID, "failed (http_404): no such path")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ('faults=[{"fault":"not_streamed","every":1}]', "a stream was asked for, but the server answered with one"),
        ('faults=[{"fault":"not_http","every":1}]', "status line of an HTTP/1.1 response"),
        ("context_limit=60 kv_capacity_tokens=60", "maximum context length is 60 tokens"),
    ],
    ids=["no streaming", "no HTTP", "prompt longer than the context"],
)
def test_a_server_that_cannot_be_measured(quick: QuickPytest, small: Path, settings: str, words: str) -> None:
    """The reason stands in the summary once, however many items it ends, and they end as INVALID_RUN."""
    done = quick.run(
        "perf_tests/test_rows.py", "--perf-workloads", small,
        "--perf-engine", "simulator", "--perf-engine-config", f"speed=10 {settings}",
    )  # fmt: skip
    refused(done, INVALID, words)
    assert lines_with(done, words)[0].startswith("INVALID_RUN ")
    assert "2 invalid_run" in done.output


def test_a_server_whose_token_counts_contradict_its_answers(quick: QuickPytest, small: Path) -> None:
    """Half as many again as came: no law of TPOT is judged on them, TTFT is measured all the same."""
    (small / "small.yaml").rename(small / "output-length.yaml")
    (small / "output-length.yaml").write_text("input_tokens: 64\noutput_tokens: [8, 16]\nrequests: 5\nwarmups: 0\n")
    done = quick.run(
        "perf_tests/test_decode.py", "-k", "flat_in_output", "--perf-workloads", small, "--perf-engine", "simulator",
        "--perf-engine-config", 'speed=10 faults=[{"fault":"wrong_usage","every":1}]', COLUMNS="300",
    )  # fmt: skip
    assert done.status == INVALID, done.output
    words = "usage counts 24 tokens where the answer ended at its limit of 16 (10 of 10 answers): token counts of this"
    assert [line for line in lines_with(done, words) if line.startswith("INVALID_RUN output-length: ")], done.output


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("input_tokens: 64\noutput_tokens: 8\nrequest: 3\n", ":3: unknown key 'request'; did you mean 'requests'?"),
        ("input_tokens: -5\noutput_tokens: 8\n", ":1: input_tokens is -5; it must be a whole number of at least 1"),
    ],
    ids=["unknown key", "negative length"],
)
def test_a_wrong_workload_file(quick: QuickPytest, small: Path, content: str, words: str) -> None:
    """File, line, value and what would be right; nothing is started."""
    (small / "small.yaml").write_text(content)
    done = quick.run("perf_tests/test_rows.py", "--perf-workloads", small, "--perf-engine", "simulator")
    refused(done, USAGE, words)
    assert str(small / "small.yaml") in lines_with(done, words)[0]


def test_a_workload_that_the_folder_lacks_ends_its_item_in_one_line(quick: QuickPytest, small: Path) -> None:
    """No law is broken by that, and no source is listed; the other items go on."""
    (small / "output-length.yaml").write_text("input_tokens: 64\noutput_tokens: [4, 8, 16]\nrequests: 1\nwarmups: 0\n")
    options = ("perf_tests/test_decode.py", "--perf-workloads", small, "--perf-engine", "simulator")
    done = quick.run(*options, "--perf-engine-config", "speed=20", "--perf-requests", "1")
    words = f"no workload 'prompt-length' in {small}, which has: output-length, small; write prompt-length.yaml"
    refused(done, INVALID, words)
    assert "3 inconclusive, 1 invalid_run" in done.output


def test_prompt_counts_of_zero_end_the_run_at_the_first_answer(quick: QuickPytest, small: Path) -> None:
    """One request for all the items, since a hosted server bills each; the last line says what was seen."""
    (small / "output-length.yaml").write_text("input_tokens: 64\noutput_tokens: [4, 8]\n")
    word = {"index": 0, "delta": {"content": "w"}, "finish_reason": "length"}
    counts = {"prompt_tokens": 0, "completion_tokens": 1, "total_tokens": 1}
    events: list[dict[str, object]] = [{"choices": [word]}, {"choices": [], "usage": counts}]
    text = "".join(f"data: {json.dumps({'object': 'chat.completion.chunk', **one})}\n\n" for one in events)
    stream = Door(f"{text}data: [DONE]\n\n", headers={"content-type": "text/event-stream"})
    with house({"/v1/models": models("m"), "/v1/chat/completions": stream}) as server:
        options = ("--perf-workloads", small, "--perf-base-url", server.base_url, "--perf-model", "m")
        done = quick.run("perf_tests/test_decode.py", *options)
    refused(
        done, UNREACHABLE, "counts 0 tokens for a prompt of one word: this server's prompt counts cannot be believed"
    )
    assert [one.method for one in server.knocks].count("POST") == 1


def test_a_wrong_option(quick: QuickPytest, small: Path) -> None:
    """The option, its value and what would be right."""
    done = quick.run("perf_tests/test_prefill.py", "--perf-workloads", small, "--perf-requests", "0")
    refused(done, USAGE, "--perf-requests is 0; it must be at least 1")


def test_a_wrong_engine_setting(quick: QuickPytest, small: Path) -> None:
    """The setting and the one that was meant."""
    done = quick.run("perf_tests/test_rows.py", "--perf-workloads", small, "--perf-engine-config", "n_ubach=32")
    refused(done, USAGE, "--perf-engine-config: 'n_ubach=32' is not a setting of the embedded engine; did you")
