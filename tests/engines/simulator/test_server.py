"""The simulated server speaks the API, keeps to its plan, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import psutil
import pytest
from openai import NotFoundError, OpenAI

from phasegate.engines.simulator.config import SimulatorConfig
from phasegate.engines.simulator.faults import Fault, FaultRule
from phasegate.engines.simulator.model import Arrival
from phasegate.engines.simulator.prefix_cache import block_keys
from phasegate.engines.simulator.process import SimulatorProcess, SimulatorProcessError
from phasegate.engines.simulator.timetable import simulate
from phasegate.engines.simulator.truth import Truth, read_log
from phasegate.engines.simulator.words import template
from tests.engines.simulator.client import chat, connect, post_bytes, read_answer, send

CONFIG = SimulatorConfig(seed=1, speed=10, context_limit=1024, prefill_cv=0.01, decode_cv=0.02)
KEY = "not-a-real-key"


@pytest.fixture(scope="module")
def simulator() -> Iterator[SimulatorProcess]:
    """One simulator without faults, ten times as fast as real time."""
    process = SimulatorProcess(CONFIG)
    yield process
    process.stop()


def _truths(simulator: SimulatorProcess) -> list[Truth]:
    return read_log(simulator.ask("/log"))


def _json(simulator: SimulatorProcess, path: str, body: dict[str, Any] | None = None) -> Any:
    return json.loads(simulator.ask(path, body))


def test_the_openai_client_reads_a_stream(simulator: SimulatorProcess) -> None:
    """The client that the suite itself is built on."""
    client = OpenAI(base_url=f"{simulator.address}/v1", api_key="unused", max_retries=0)
    stream = client.chat.completions.create(
        model="simulated",
        messages=[{"role": "user", "content": "one two three"}],
        max_tokens=6,
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = list(stream)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert len(text.split()) == 6
    assert chunks[-1].usage is not None
    assert (chunks[-1].usage.prompt_tokens, chunks[-1].usage.completion_tokens) == (3 + CONFIG.template_tokens, 6)


def test_the_openai_client_reads_whole_answers_of_both_kinds(simulator: SimulatorProcess) -> None:
    """Without a stream."""
    client = OpenAI(base_url=f"{simulator.address}/v1", api_key="unused", max_retries=0)
    answer = client.chat.completions.create(
        model="simulated", messages=[{"role": "user", "content": "one"}], max_completion_tokens=5
    )
    assert len((answer.choices[0].message.content or "").split()) == 5
    completion = client.completions.create(model="simulated", prompt="one two", max_tokens=5)
    assert len(completion.choices[0].text.split()) == 5
    assert completion.usage is not None
    assert completion.usage.prompt_tokens == 2
    assert [model.id for model in client.models.list()] == ["simulated"]


def test_an_unknown_model_is_not_found(simulator: SimulatorProcess) -> None:
    """404, as elsewhere."""
    client = OpenAI(base_url=f"{simulator.address}/v1", api_key="unused", max_retries=0)
    with pytest.raises(NotFoundError, match="does not exist"):
        client.completions.create(model="other", prompt="one", max_tokens=5)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (chat(words=1024), "maximum context length is 1024 tokens"),
        (chat(max_tokens=0), "max_tokens must be at least 1"),
        (chat(max_tokens=-1), "max_tokens must be a whole number"),
        (chat(messages=[]), "messages must be a list"),
        (chat(n=2), "n must be 1"),
        ({"messages": []}, "names no model"),
    ],
)
def test_a_bad_request_is_refused(simulator: SimulatorProcess, body: dict[str, Any], said: str) -> None:
    """400 and the reason."""
    answer = send(simulator.address, body)
    assert answer.status == 400
    assert said in json.loads(answer.body)["error"]["message"]


def test_running_usage_counts_along(simulator: SimulatorProcess) -> None:
    """Every chunk with text says how many tokens there are by now."""
    options = {"include_usage": True, "continuous_usage_stats": True}
    answer = send(simulator.address, chat(max_tokens=4, stream_options=options))
    counts = [chunk["usage"]["completion_tokens"] for chunk in answer.chunks if "usage" in chunk]
    assert counts == [1, 2, 3, 4, 4]


def test_tokenize_agrees_with_usage(simulator: SimulatorProcess) -> None:
    """Template included for messages, not for a text."""
    body = chat(words=7)
    counted = _json(simulator, "/tokenize", {"model": "simulated", "messages": body["messages"]})
    assert counted["count"] == len(counted["tokens"]) == 7 + CONFIG.template_tokens
    assert send(simulator.address, body).usage["prompt_tokens"] == counted["count"]
    assert _json(simulator, "/tokenize", {"content": "a b c"})["count"] == 3


def test_the_cache_is_reported_and_can_be_reset(simulator: SimulatorProcess) -> None:
    """The same prompt twice, a reset, and once more."""
    body = chat(words=200)
    cached = [
        send(simulator.address, body).usage["prompt_tokens_details"]["cached_tokens"],
        send(simulator.address, body).usage["prompt_tokens_details"]["cached_tokens"],
    ]
    _json(simulator, "/reset_prefix_cache", {})
    cached.append(send(simulator.address, body).usage["prompt_tokens_details"]["cached_tokens"])
    assert cached == [0, 192, 0]


def test_who_it_is(simulator: SimulatorProcess) -> None:
    """It never pretends to be another engine, and shows its settings."""
    assert _json(simulator, "/version")["engine"] == "phasegate-simulator"
    assert SimulatorConfig.from_mapping(_json(simulator, "/props")["config"]) == CONFIG
    assert _json(simulator, "/health") == {"status": "ok"}


def test_metrics_are_in_prometheus_format(simulator: SimulatorProcess) -> None:
    """Counters and a histogram of TTFT."""
    send(simulator.address, chat())
    text = simulator.ask("/metrics").decode()
    assert "phasegate_simulator_requests_running 0" in text
    assert 'time_to_first_token_seconds_bucket{le="+Inf"}' in text


def test_one_connection_serves_request_after_request(simulator: SimulatorProcess) -> None:
    """Keep-alive, and requests sent before the answer is through are answered in order."""
    with connect(simulator.address) as sock:
        for _ in range(2):
            sock.sendall(post_bytes("/v1/chat/completions", chat(max_tokens=2)))
            assert len(read_answer(sock).texts) == 2
        sock.sendall(post_bytes("/tokenize", {"content": "a"}) + post_bytes("/tokenize", {"content": "a b"}))
        raw = b""
        while raw.count(b'"count"') < 2:
            raw += sock.recv(65536)
        assert raw.index(b'"count": 1') < raw.index(b'"count": 2')


def test_connection_close_is_honoured(simulator: SimulatorProcess) -> None:
    """For clients that ask for it."""
    with connect(simulator.address) as sock:
        sock.sendall(post_bytes("/v1/chat/completions", chat(max_tokens=2), "Connection: close"))
        assert read_answer(sock).ending == "whole"
        assert sock.recv(1) == b""


@pytest.mark.parametrize("raw", [b"nonsense\r\n\r\n", b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n"])
def test_what_is_not_http_is_a_bad_request(simulator: SimulatorProcess, raw: bytes) -> None:
    """And not a traceback."""
    with connect(simulator.address) as sock:
        sock.sendall(raw)
        assert read_answer(sock).status == 400


def test_unknown_addresses_and_methods(simulator: SimulatorProcess) -> None:
    """404 and 405."""
    assert send(simulator.address, {}, path="/nowhere").status == 404
    assert send(simulator.address, {}, path="/metrics").status == 405


def test_the_plan_on_the_wire_is_the_plan_of_the_model(simulator: SimulatorProcess) -> None:
    """Replaying the logged arrivals offline gives every planned moment, to the microsecond."""
    simulator.ask("/log/reset", {})
    simulator.ask("/reset_prefix_cache", {})
    body = chat(words=100, max_tokens=20)
    with connect(simulator.address) as one, connect(simulator.address) as two:
        one.sendall(post_bytes("/v1/chat/completions", body | {"max_tokens": 40}))
        time.sleep(0.02)
        two.sendall(post_bytes("/v1/chat/completions", body))
        assert len(read_answer(one).texts) == 40
        assert len(read_answer(two).texts) == 20
    truths = _truths(simulator)
    prompt = [*template(CONFIG.template_tokens), *(f"w{i}" for i in range(100))]
    # The first was computed cold, the second from the first one's blocks, as far as it was complete by then.
    keys = block_keys(prompt, CONFIG.cache_block_tokens)
    arrivals = [Arrival(t.number, t.simulated_at, t.prompt_tokens, t.output_tokens, keys) for t in truths]
    expected = simulate(CONFIG, arrivals)
    for truth in truths:
        offset = truth.arrived - truth.simulated_at / CONFIG.speed
        planned = [departure.at / CONFIG.speed + offset for departure in expected[truth.number]]
        assert [chunk.planned for chunk in truth.chunks] == pytest.approx(planned, abs=1e-6)


def test_no_chunk_leaves_before_its_moment(simulator: SimulatorProcess) -> None:
    """Late is possible on a busy machine; early never is."""
    simulator.ask("/log/reset", {})
    send(simulator.address, chat(max_tokens=50))
    (truth,) = _truths(simulator)
    assert len(truth.chunks) == 50
    assert all(chunk.actual is not None and chunk.actual >= chunk.planned for chunk in truth.chunks)


def test_answers_depend_on_the_seed_and_the_number_alone() -> None:
    """Two simulators with one seed say the same words; a third with another seed does not."""
    said = []
    for seed in (1, 1, 2):
        process = SimulatorProcess(SimulatorConfig(seed=seed, speed=50))
        said.append("".join(send(process.address, chat(max_tokens=12)).texts))
        process.stop()
    assert said[0] == said[1] != said[2]


def test_an_answer_ends_by_itself_unless_told_not_to() -> None:
    """eos_probability against min_tokens and ignore_eos."""
    process = SimulatorProcess(SimulatorConfig(speed=100, eos_probability=0.5))
    try:
        free = send(process.address, chat(max_tokens=64))
        least = send(process.address, chat(max_tokens=64, min_tokens=30))
        forced = send(process.address, chat(max_tokens=64, ignore_eos=True))
    finally:
        process.stop()
    assert (len(free.texts) < 30, free.finish_reason) == (True, "stop")
    assert 30 <= len(least.texts) < 64
    assert (len(forced.texts), forced.finish_reason) == (64, "length")


def test_the_early_role_chunk_comes_before_the_prompt_is_read() -> None:
    """At once, and the first token only after the prefill."""
    faults = (FaultRule(Fault.ROLE_EARLY, every=1),)
    process = SimulatorProcess(SimulatorConfig(ttft_constant_seconds=1.0, faults=faults))
    try:
        with connect(process.address) as sock:
            sock.sendall(post_bytes("/v1/chat/completions", chat(max_tokens=2)))
            early = sock.recv(65536)
            while b"assistant" not in early:
                early += sock.recv(65536)
            assert b'{"content":"' not in early
            assert b'{"content":"' in sock.recv(65536)
    finally:
        process.stop()


def test_a_client_that_goes_away_frees_its_place() -> None:
    """The engine stops computing for it, and the log says so."""
    process = SimulatorProcess(SimulatorConfig(max_sequences=1, speed=5))
    try:
        with connect(process.address) as sock:
            sock.sendall(post_bytes("/v1/chat/completions", chat(max_tokens=5000)))
            sock.recv(1)
        assert len(send(process.address, chat(max_tokens=3)).texts) == 3
        assert [truth.outcome for truth in read_log(process.ask("/log"))] == ["abandoned", "finished"]
    finally:
        process.stop()


@pytest.mark.parametrize("fault", [Fault.SILENT_STALL, Fault.HALF_CLOSE, Fault.SLOW_LORIS])
def test_a_client_that_gives_up_on_a_fault_leaves_no_connection_behind(fault: Fault) -> None:
    """However little there is to write to it."""
    process = SimulatorProcess(SimulatorConfig(speed=50, faults=(FaultRule(fault, every=1, after_tokens=1),)))
    try:
        with connect(process.address) as sock:
            sock.sendall(post_bytes("/v1/chat/completions", chat(max_tokens=3)))
            assert sock.recv(1) == b"H"
            time.sleep(0.1)
        assert _connections_end(process)
        (truth,) = read_log(process.ask("/log"))
        assert truth.outcome == ("abandoned" if fault is Fault.SLOW_LORIS else "broken")
    finally:
        process.stop()


def _connections_end(process: SimulatorProcess) -> bool:
    """Whether only the listening socket is left within a few seconds."""
    deadline = time.monotonic() + 5
    server = psutil.Process(process.pid)
    while len(server.net_connections()) > 1:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def test_the_api_key_is_checked_and_shown_nowhere() -> None:
    """401 without it; not in the settings, the log, or the process list."""
    process = SimulatorProcess(SimulatorConfig(speed=50), api_key=KEY)
    try:
        assert send(process.address, chat()).status == 401
        assert send(process.address, chat(), "Authorization: Bearer wrong").status == 401
        assert send(process.address, chat(), f"Authorization: Bearer {KEY}").status == 200
        assert KEY.encode() not in process.ask("/props") + process.ask("/log")
        assert KEY not in " ".join(psutil.Process(process.pid).cmdline())
        assert KEY not in repr(process)
    finally:
        process.stop()


def test_two_hundred_streams_at_once_are_all_whole() -> None:
    """Every answer complete, every connection closed."""
    process = SimulatorProcess(SimulatorConfig(speed=10))
    try:
        socks = [connect(process.address) for _ in range(200)]
        for sock in socks:
            sock.sendall(post_bytes("/v1/chat/completions", chat(max_tokens=8)))
        answers = [read_answer(sock, rate_limit=20) for sock in socks]
        for sock in socks:
            sock.close()
        assert all((len(a.texts), a.finish_reason, a.ending) == (8, "length", "whole") for a in answers)
        assert _connections_end(process)
    finally:
        process.stop()


def test_wrong_settings_are_one_line_and_status_2() -> None:
    """On the command line, before anything is opened."""
    command = [sys.executable, "-m", "phasegate.engines.simulator", "--config", '{"sped": 2}']
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 2
    assert done.stderr == "unknown simulator setting 'sped'; did you mean 'speed'?\n"


def test_a_simulator_that_cannot_start_says_so() -> None:
    """Here because its port is taken."""
    taken = SimulatorProcess(SimulatorConfig())
    try:
        port = int(taken.address.rsplit(":", 1)[1])
        with pytest.raises(SimulatorProcessError, match="ended with status 5"):
            SimulatorProcess(SimulatorConfig(), port=port)
    finally:
        taken.stop()


def test_it_dies_with_its_parent() -> None:
    """Killed with SIGKILL, the parent cannot tidy up; the simulator goes all the same."""
    script = (
        "import time\n"
        "from phasegate.engines.simulator.config import SimulatorConfig\n"
        "from phasegate.engines.simulator.process import SimulatorProcess\n"
        "print(SimulatorProcess(SimulatorConfig()).pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = psutil.Process(int(parent.stdout.readline()))
    assert child.is_running()
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and not _gone(child):
        time.sleep(0.05)
    assert _gone(child)


def _gone(process: psutil.Process) -> bool:
    """Whether a process has ended, even if whoever inherited it has not noticed yet."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
