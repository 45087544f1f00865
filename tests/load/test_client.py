"""One request over a real socket: how every way of ending is recorded, and what is never in a recording."""

import asyncio
import contextlib
import socket
import statistics
from collections.abc import Iterator

import psutil
import pytest

from phasegate.core.request import Request
from phasegate.core.target import Azure, Target
from phasegate.core.timeline import Ending, Recording
from phasegate.load.client import Client
from phasegate.load.link import Dialer, Link
from tests.loopback import Answer, Loopback, Script, event, steady

KEY = "sk-very-secret-0123456789"


def ask(number: int = 0, **body: object) -> Request:
    return Request(f"r{number}", "chat", {"messages": [{"role": "user", "content": "hi"}], **body})


def target(url: str, **options: object) -> Target:
    return Target(url, "m", api_key=KEY, **options)  # type: ignore[arg-type]


def send(to: Target, *requests: Request) -> list[Recording]:
    """One after the other through one client."""

    async def run() -> list[Recording]:
        async with Client(to) as client:
            return [await client.send(request) for request in requests]

    return asyncio.run(run())


def send_to(script: Script, **options: object) -> tuple[Recording, Loopback]:
    with Loopback(script) as server:
        (recording,) = send(target(server.base_url, **options), ask())
    return recording, server


def body_of(recording: Recording) -> bytes:
    return b"".join(read.data for read in recording.reads)


@pytest.fixture(autouse=True)
def no_socket_is_left_open() -> Iterator[None]:
    """Every test of this file gives its sockets back."""
    before = sum(1 for link in psutil.Process().net_connections("tcp") if link.status != psutil.CONN_LISTEN)
    yield
    after = sum(1 for link in psutil.Process().net_connections("tcp") if link.status != psutil.CONN_LISTEN)
    assert after <= before


@pytest.mark.parametrize("framing", ["chunked", "length", "close"])
@pytest.mark.parametrize("early_head", [True, False])
def test_a_complete_answer_is_recorded_read_by_read(framing: str, early_head: bool) -> None:
    """Body, status, headers and moments are as the server's log has them, whatever the framing."""
    recording, server = send_to(steady(6, first=0.03, gap=0.01, framing=framing, early_head=early_head))
    (served,) = server.log
    assert recording.ending is Ending.EOF
    assert recording.detail == ""
    assert recording.http_status == 200
    assert recording.header("Content-Type") == "text/event-stream"
    assert body_of(recording) == b"".join(data for _, data in served.left)
    assert recording.sent is not None
    assert recording.headers_at is not None
    assert recording.sent <= recording.headers_at <= recording.reads[0].at <= recording.reads[-1].at
    assert recording.reads[-1].at <= recording.ended_at
    assert recording.connect_time is not None
    assert recording.connect_time > 0
    assert recording.due == recording.sent


@pytest.mark.alone
def test_reads_carry_the_moment_they_reached_this_host() -> None:
    """A read is never before its bytes left the server, and on the median within 5 ms after."""
    recording, server = send_to(steady(20, first=0.02, gap=0.008))
    left = [moment for moment, _ in server.log[0].left]
    got = [read.at for read in recording.reads]
    assert len(got) >= 20
    lags = [read - moment for read, moment in zip(got[:20], left[:20], strict=True)]
    assert min(lags) > -0.001
    assert statistics.median(lags) < 0.005


@pytest.mark.parametrize(
    ("script", "ending", "words"),
    [
        (steady(3, first=0.01, gap=0.005, ending="cut"), Ending.INCOMPLETE, "inside the answer"),
        (steady(3, first=0.01, gap=0.005, ending="cut", framing="length"), Ending.INCOMPLETE, "inside the answer"),
        (steady(3, first=0.01, gap=0.005, ending="reset", ends_after=0.05), Ending.RESET, "reset"),
        (Answer(ending="refuse"), Ending.INCOMPLETE, "before any answer"),
        (Answer(raw=b"SSH-2.0-OpenSSH_9.6\r\n"), Ending.PROTOCOL, "HTTP/1.1"),
        (Answer(raw=b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nnot a size\r\n"), Ending.PROTOCOL, "size"),
        (Answer(raw=b"HTTP/1.1 200 OK\r\ncontent-length: 12"), Ending.INCOMPLETE, "inside the answer"),
    ],
    ids=["cut chunked", "cut length", "reset", "closed at once", "not http", "bad chunk", "half a head"],
)
def test_broken_answers_end_under_their_own_name(script: Answer, ending: Ending, words: str) -> None:
    """Each way to break an answer has its ending and says what happened."""
    recording, _ = send_to(script)
    assert recording.ending is ending
    assert words in recording.detail
    assert recording.sent is not None


def test_what_came_before_a_reset_is_kept() -> None:
    """The reads before the reset are in the recording."""
    recording, server = send_to(steady(3, first=0.01, gap=0.005, ending="reset", ends_after=0.05))
    assert body_of(recording) == b"".join(data for _, data in server.log[0].left)


def test_silence_before_the_first_byte_ends_at_the_idle_deadline() -> None:
    """The idle deadline counts from the send."""
    recording, _ = send_to(Answer(pieces=[(30.0, b"late")]), idle_timeout=0.08)
    assert recording.ending is Ending.IDLE_TIMEOUT
    assert recording.http_status is None
    assert recording.sent is not None
    assert 0.08 <= recording.ended_at - recording.sent < 5


def test_silence_inside_the_answer_ends_at_the_idle_deadline() -> None:
    """It also counts from the last byte, and what came stays."""
    recording, _ = send_to(steady(3, first=0.01, gap=0.01, ending="hang"), idle_timeout=0.1)
    assert recording.ending is Ending.IDLE_TIMEOUT
    assert recording.http_status == 200
    assert recording.ended_at - recording.reads[-1].at >= 0.1


def test_a_dribbling_server_is_stopped_by_the_total_deadline() -> None:
    """A head of one byte every few milliseconds never trips the idle deadline."""
    recording, _ = send_to(steady(1, first=0, gap=0, head_pause=0.02), idle_timeout=5.0, timeout=0.15)
    assert recording.ending is Ending.TOTAL_TIMEOUT
    assert recording.http_status is None
    assert "0.15" in recording.detail


def test_steady_tokens_never_trip_a_longer_idle_deadline() -> None:
    """A stream three times as long as its idle deadline runs to its end."""
    recording, _ = send_to(steady(20, first=0.02, gap=0.02), idle_timeout=0.15)
    assert recording.ending is Ending.EOF


def test_a_429_is_one_failed_answer_and_no_second_attempt() -> None:
    """Nothing is retried: the server sees one request, the recording holds the refusal (case B066)."""
    answer = Answer(status=429, headers=[("retry-after", "1")], pieces=[(0.0, b'{"error":{}}')], framing="length")
    recording, server = send_to(answer)
    assert recording.ending is Ending.EOF
    assert recording.http_status == 429
    assert recording.header("retry-after") == "1"
    assert body_of(recording) == b'{"error":{}}'
    assert len(server.log) == 1
    assert server.connections == 1


def test_no_server_is_a_recording_too() -> None:
    """A refused connection has its own ending and names the address."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        (recording,) = send(target(f"http://127.0.0.1:{port}/v1"), ask())
    assert recording.ending is Ending.CONNECT_FAILED
    assert recording.sent is None
    assert recording.connect_time is None
    assert f"127.0.0.1:{port}" in recording.detail
    assert "refused" in recording.detail.lower()


def test_an_unknown_host_is_a_recording_too() -> None:
    """A name that does not resolve fails to connect."""
    (recording,) = send(target("http://no-such-host.invalid/v1", connect_timeout=5), ask())
    assert recording.ending is Ending.CONNECT_FAILED
    assert "no-such-host.invalid" in recording.detail


def test_a_server_that_never_accepts_meets_the_connect_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Name, TCP and TLS together have their own deadline."""

    async def never(_self: Dialer) -> Link:
        await asyncio.sleep(60)
        raise AssertionError

    monkeypatch.setattr(Dialer, "_open", never)
    (recording,) = send(target("http://127.0.0.1:9/v1", connect_timeout=0.05), ask())
    assert recording.ending is Ending.CONNECT_FAILED
    assert "within 0.05 s" in recording.detail


def test_a_slow_connection_is_in_connect_time_and_not_in_the_latency(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock starts at the send, after the connection stands."""
    real = Dialer._open

    async def slow(self: Dialer) -> Link:
        await asyncio.sleep(0.5)
        return await real(self)

    monkeypatch.setattr(Dialer, "_open", slow)
    recording, _ = send_to(steady(2, first=0.01, gap=0.01))
    assert recording.connect_time is not None
    assert recording.sent is not None
    assert recording.connect_time >= 0.5
    assert recording.reads[0].at - recording.sent < 0.4


def test_a_large_prompt_is_written_whole() -> None:
    """A body larger than the socket's buffer arrives complete."""
    text = "word " * 1_600_000
    with Loopback(steady(1, first=0, gap=0)) as server:
        (recording,) = send(target(server.base_url), Request("big", "completions", {"prompt": text}))
    assert recording.ending is Ending.EOF
    assert server.log[0].body["prompt"] == text


def test_the_body_asks_for_a_stream_with_counts_and_for_the_model_of_the_target() -> None:
    """Model, stream and usage are added; what the workload wrote stays."""
    with Loopback(steady(1, first=0, gap=0)) as server:
        send(
            target(server.base_url),
            ask(0, ignore_eos=True),
            ask(1, model="other", stream_options={"continuous_usage_stats": True}),
        )
        send(target(server.base_url, include_usage=False), ask(2))
    first, second, third = (served.body for served in server.log)
    assert first["model"] == "m"
    assert first["stream"] is True
    assert first["stream_options"] == {"include_usage": True}
    assert first["ignore_eos"] is True
    assert second["model"] == "other"
    assert second["stream_options"] == {"include_usage": True, "continuous_usage_stats": True}
    assert "stream_options" not in third
    assert third["stream"] is True


def test_requests_sent_at_the_same_time_keep_their_own_bodies() -> None:
    """Fifty sends in one client, built and sent side by side: each body arrives once."""
    with Loopback(steady(1, first=0.02, gap=0)) as server:

        async def run() -> list[Recording]:
            async with Client(target(server.base_url), 50) as client:
                return await asyncio.gather(*(client.send(ask(number, user=f"u{number}")) for number in range(50)))

        recordings = asyncio.run(run())
    assert [recording.request_id for recording in recordings] == [f"r{number}" for number in range(50)]
    assert sorted(served.body["user"] for served in server.log) == sorted(f"u{number}" for number in range(50))


def test_key_and_headers_go_to_the_server_as_openai_sends_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """The key is sent; without one no authorization is, not even the environment's; nothing may be compressed."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-environment")
    with Loopback(steady(1, first=0, gap=0)) as server:
        send(target(server.base_url, headers={"x-tenant": "blue"}), ask())
        send(Target(server.base_url, "m"), ask())
    with_key, without = (served.head.lower() for served in server.log)
    assert with_key.startswith("post /v1/chat/completions http/1.1\r\n")
    assert f"authorization: bearer {KEY}" in with_key
    assert "x-tenant: blue" in with_key
    assert "accept-encoding: identity" in with_key
    assert "authorization" not in without
    assert "sk-environment" not in without


def test_azure_addresses_are_openais() -> None:
    """Deployment, version and key header are as Azure wants them."""
    with Loopback(steady(1, first=0, gap=0)) as server:
        endpoint = server.base_url.removesuffix("/v1")
        send(Target(endpoint, "m", api_key=KEY, azure=Azure("2024-10-21", deployment="d")), ask())
    head = server.log[0].head
    assert head.startswith("POST /openai/deployments/d/chat/completions?api-version=2024-10-21 ")
    assert f"api-key: {KEY}" in head


def test_the_key_is_in_no_repr_and_no_recording() -> None:
    """Nothing that is printed or kept holds the key or a secret header."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        to = target(f"http://127.0.0.1:{unused.getsockname()[1]}/v1", headers={"x-secret": "hush-hush"})
        (failed,) = send(to, ask())
    answered, _ = send_to(Answer(status=401, pieces=[(0.0, b"{}")]))

    async def built() -> str:
        async with Client(to) as client:
            return repr(await client.prepare(ask()))

    for text in (repr(to), repr(failed), repr(answered), asyncio.run(built())):
        assert KEY not in text
        assert "hush-hush" not in text


def test_a_header_with_a_line_break_is_refused_without_being_shown() -> None:
    """A key read from a file with its line end is a common mistake; the error must not print the key."""
    with pytest.raises(ValueError, match="line break") as caught:
        send(Target("http://127.0.0.1:9/v1", "m", api_key=KEY + "\nx"), ask())
    assert KEY not in str(caught.value)


def test_a_server_that_says_keep_alive_and_closes_never_causes_an_error() -> None:
    """200 requests in a row against llama.cpp's habit: every one is answered, each on its own connection."""
    answer = steady(1, first=0, gap=0, headers=[("connection", "keep-alive"), ("keep-alive", "timeout=5, max=100")])
    with Loopback(answer) as server:
        recordings = send(target(server.base_url), *(ask(number) for number in range(200)))
    assert {recording.ending for recording in recordings} == {Ending.EOF}
    assert len(server.log) == 200
    assert server.connections == 200


def test_a_stream_that_is_given_up_frees_its_connection() -> None:
    """Cancelling the caller in the middle of a stream closes the socket at once (case B112)."""
    with Loopback(steady(1000, first=0.01, gap=0.01, keep_alive=True)) as server:

        async def run() -> int:
            async with Client(target(server.base_url), 2) as client:
                task = asyncio.ensure_future(client.send(ask()))
                await asyncio.sleep(0.1)
                assert client.in_flight == 1
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
                return client.in_flight

        assert asyncio.run(run()) == 0


def test_leaving_the_client_ends_what_is_in_flight_as_cancelled() -> None:
    """Requests still running when the client is closed come back as recordings."""
    with Loopback(steady(1000, first=0.01, gap=0.01)) as server:

        async def run() -> list[Recording]:
            async with Client(target(server.base_url), 3) as client:
                tasks = [asyncio.ensure_future(client.send(ask(number))) for number in range(3)]
                await asyncio.sleep(0.1)
                client.abort()
                return [await task for task in tasks]

        recordings = asyncio.run(run())
    assert {recording.ending for recording in recordings} == {Ending.CANCELLED}
    assert all(recording.reads for recording in recordings)


def test_a_proxy_from_the_environment_is_used_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind a proxy the request goes through openai's own transport, and the client says so."""
    for name in ("http_proxy", "no_proxy", "NO_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with Loopback(steady(3, first=0.02, gap=0.01)) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.base_url.removesuffix("/v1"))

        async def run() -> tuple[Recording, dict[str, object]]:
            async with Client(target("http://server.invalid/v1")) as client:
                return await client.send(ask()), client.facts()

        recording, facts = asyncio.run(run())
    assert proxy.log[0].head.startswith("POST http://server.invalid/v1/chat/completions ")
    assert recording.ending is Ending.EOF
    assert recording.sent is not None
    assert recording.headers_at is not None
    assert recording.sent < recording.headers_at
    assert body_of(recording) == b"".join(data for _, data in proxy.log[0].left)
    assert facts["transport"] == "httpx2"


@pytest.mark.parametrize(
    ("script", "options", "ending"),
    [
        (steady(2, first=0.01, gap=0.01, ending="cut"), {}, Ending.INCOMPLETE),
        (Answer(ending="refuse"), {}, Ending.INCOMPLETE),
        (steady(2, first=0.01, gap=0.01, ending="hang"), {"idle_timeout": 0.1}, Ending.IDLE_TIMEOUT),
        (steady(50, first=0.01, gap=0.02), {"timeout": 0.1}, Ending.TOTAL_TIMEOUT),
        (Answer(raw=b"SSH-2.0-OpenSSH_9.6\r\n\r\n"), {}, Ending.PROTOCOL),
        (Answer(status=503, pieces=[(0, b"{}")]), {}, Ending.EOF),
    ],
    ids=["cut", "closed at once", "idle", "total", "not http", "503"],
)
def test_the_way_through_httpx2_has_the_same_endings(
    script: Answer, options: dict[str, object], ending: Ending
) -> None:
    """Both transports name a failure alike."""
    recording, _ = send_to(script, transport="httpx2", **options)
    assert recording.ending is ending


def test_events_written_together_may_come_in_one_read_but_none_is_lost() -> None:
    """Reads follow the network, not the events."""
    answer = Answer(pieces=[(0.01, event("a") + event("b")), (0.02, event("c"))])
    recording, _ = send_to(answer)
    assert body_of(recording).count(b"data: ") == 3


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"base_url": "127.0.0.1:8000/v1"}, "not an address"),
        ({"base_url": "ftp://host/v1"}, "not an address"),
        ({"idle_timeout": -1}, "idle_timeout"),
        ({"timeout": float("nan")}, "timeout"),
        ({"transport": "carrier-pigeon"}, "carrier-pigeon"),
    ],
)
def test_a_wrong_target_is_refused_in_one_line(change: dict[str, object], words: str) -> None:
    """The error names the value."""
    with pytest.raises(ValueError, match=words):
        Target(**{"base_url": "http://h/v1", "model": "m", **change})  # type: ignore[arg-type]


@pytest.mark.parametrize("scheme", ["ftp", "http"])
def test_a_password_in_a_url_is_refused_and_not_shown(scheme: str) -> None:
    """An address is printed in reports, so it may hold no secret; the error about it does not show it either."""
    with pytest.raises(ValueError) as caught:
        Target(f"{scheme}://user:pass-word@host/v1", "m")
    assert "pass-word" not in str(caught.value)


@pytest.mark.parametrize(
    ("endpoint", "body"), [("embeddings", {}), ("chat", {"stream": False})], ids=["endpoint", "not a stream"]
)
def test_a_request_that_cannot_be_measured_is_refused(endpoint: str, body: dict[str, object]) -> None:
    """Only streams of the two endpoints have phases."""
    with pytest.raises(ValueError, match="request r1"):
        Request("r1", endpoint, body)


def test_a_hundred_requests_leave_no_open_file() -> None:
    """Descriptors are back to what they were, the reactor's own included."""
    with Loopback(steady(2, first=0, gap=0)) as server:
        send(target(server.base_url), ask())
        before = psutil.Process().num_fds()
        send(target(server.base_url), *(ask(number) for number in range(100)))
        # The server's own ends close a moment later than the client's.
        for _ in range(100):
            if psutil.Process().num_fds() <= before:
                break
            asyncio.run(asyncio.sleep(0.02))
        assert psutil.Process().num_fds() <= before
