"""``phasegate probe`` as a caller sees it: its record, its lines for people, its exit statuses."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from phasegate.cli import main
from phasegate.engines.simulator.config import SimulatorConfig
from phasegate.engines.simulator.engine import SimulatorEngine
from tests.engines.front_doors import Door, house, models
from tests.loopback import Answer, Loopback, steady
from tests.wire.streams import DONE, STOP, said, usage

KEY = "sk-right-7f3a91"

PROMISED = {
    "status", "error_kind", "time_to_first_token", "time_to_first_output_token", "time_per_output_token",
    "request_latency", "inter_chunk_latencies", "output_tokens", "token_source", "reasoning_tokens", "cached_tokens",
    "finish_reason", "flags", "text",
}  # fmt: skip
"""Fields that every request of the record has."""


@pytest.fixture(scope="module")
def server() -> Iterator[SimulatorEngine]:
    """A simulated server that wants a key."""
    with SimulatorEngine(SimulatorConfig(speed=5.0), api_key=KEY) as engine:
        yield engine


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    """No address from outside, and the right key."""
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


class Probe:
    """Runs the command and looks at what it printed."""

    def __init__(self, capture: pytest.CaptureFixture[str]) -> None:
        self._capture = capture
        self.out = self.err = ""

    def __call__(self, *arguments: str) -> int:
        try:
            status = main(["probe", *arguments])
        except SystemExit as end:
            status = int(end.code or 0)
        self.out, self.err = self._capture.readouterr()
        assert KEY not in self.out + self.err
        assert "Traceback" not in self.err
        return status

    def requests(self) -> list[dict[str, Any]]:
        """The requests of the record."""
        found = json.loads(self.out)["requests"]
        assert isinstance(found, list)
        return found


@pytest.fixture
def probe(capsys: pytest.CaptureFixture[str]) -> Probe:
    """The command."""
    return Probe(capsys)


def test_the_record_has_every_promised_field_and_the_servers_truth(probe: Probe, server: SimulatorEngine) -> None:
    """One JSON object; times are seconds and agree with what the server did."""
    status = probe(
        "--base-url", server.base_url, "--input-tokens", "200", "--max-tokens", "12", "--requests", "2", "--json"
    )
    assert status == 0, probe.err
    first, second = probe.requests()
    assert set(first) >= PROMISED
    for one in (first, second):
        assert (one["status"], one["error_kind"], one["output_tokens"]) == ("ok", None, 12)
        assert (one["prompt_tokens"], one["token_source"], one["finish_reason"]) == (200, "usage", "length")
        assert len(one["inter_chunk_latencies"]) == 11
        steps = one["time_per_output_token"] * 11
        assert one["request_latency"] == pytest.approx(one["time_to_first_token"] + steps)
        assert sum(one["inter_chunk_latencies"]) == pytest.approx(steps)
    assert first["cached_tokens"] <= 16 >= second["cached_tokens"]


@pytest.mark.parametrize("endpoint", ["chat", "completions"])
def test_a_prompt_is_sent_as_it_stands(probe: Probe, endpoint: str) -> None:
    """With an address and a model nothing else is sent: one request, no temperature, no calibration."""
    text = "  Two  spaces,\na line break and ümlauts "
    with Loopback(steady(3, first=0.01, gap=0.01)) as answering:
        options = ("--model", "m", "--prompt", text, "--endpoint", endpoint, "--max-tokens", "5", "--json")
        probe("--base-url", answering.base_url, *options)
        (served,) = answering.log
    sent = served.body
    assert sent["messages"] == [{"role": "user", "content": text}] if endpoint == "chat" else sent["prompt"] == text
    assert set(sent) == {
        "model",
        "stream",
        "stream_options",
        "max_tokens",
        "messages" if endpoint == "chat" else "prompt",
    }


def test_people_get_the_two_phases_drawn(probe: Probe, server: SimulatorEngine) -> None:
    """Without ``--json`` no JSON; the phases by name."""
    assert probe("--base-url", server.base_url, "--prompt", "hello") == 0
    assert "prefill" in probe.out
    assert "decode" in probe.out
    assert "{" not in probe.out


def test_nobody_there(probe: Probe) -> None:
    """Exit status 1: one line where the server must be asked first, a failed record where it need not be."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
    assert probe("--base-url", url) == 5
    assert len(probe.err.splitlines()) == 1
    assert "no server answers there (connection refused)" in probe.err
    assert probe("--base-url", url, "--model", "m", "--json") == 5
    (one,) = probe.requests()
    assert one["status"] == "error"
    assert one["error_kind"]
    assert one["time_to_first_token"] is None


def test_a_wrong_key(probe: Probe, server: SimulatorEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Named by its variable, shown nowhere."""
    wrong = "sk-wrong-5c11e0"
    monkeypatch.setenv("OPENAI_API_KEY", wrong)
    assert probe("--base-url", server.base_url) == 5
    assert "the key was refused (HTTP 401); check OPENAI_API_KEY" in probe.err
    assert probe("--base-url", server.base_url, "--model", "simulated", "--json") == 5
    assert probe.requests()[0]["error_kind"] == "http_401"
    assert wrong not in probe.out + probe.err


def test_a_server_that_quotes_the_key_in_its_answer(probe: Probe) -> None:
    """Some servers do; what is printed of their answer leaves the key out."""
    said = json.dumps({"error": {"message": f"Incorrect API key provided: {KEY}", "code": 401}}).encode()
    answer = Answer(((0.0, said),), status=401, headers=(("content-type", "application/json"),), framing="length")
    with Loopback(answer) as quoting:
        assert probe("--base-url", quoting.base_url, "--model", "m", "--json") == 5
        assert "Incorrect API key provided" in probe.requests()[0]["error_message"]
        assert probe("--base-url", quoting.base_url, "--model", "m") == 5


@pytest.mark.parametrize(
    ("raw", "kind"),
    [(b"SSH-2.0-OpenSSH_9.2\r\n", "begin like an HTTP"), (b"", "closed")],
    ids=["no HTTP", "nothing at all"],
)
def test_what_does_not_speak_http(probe: Probe, raw: bytes, kind: str) -> None:
    """One failed request with a reason."""
    with Loopback(Answer(raw=raw)) as strange:
        assert probe("--base-url", strange.base_url, "--model", "m", "--json") == 5
    (one,) = probe.requests()
    assert one["status"] == "error"
    assert one["error_kind"]
    assert kind in one["error_message"]


def test_an_unknown_model_and_one_that_must_be_named(probe: Probe, server: SimulatorEngine) -> None:
    """The server's own refusal, and the models it lists."""
    assert probe("--base-url", server.base_url, "--model", "other", "--input-tokens", "64") == 5
    assert "failed (http_404)" in probe.err
    assert f"model 'other' is not in the list of {server.base_url}, which has simulated" in probe.err
    with house({"/v1/models": models("a", "b")}) as two:
        assert probe("--base-url", two.base_url) == 5
    assert "which model? it has a, b" in probe.err


def test_one_failure_among_several_is_a_failure(probe: Probe) -> None:
    """The others are measured all the same."""
    answers = iter([steady(3, first=0.01, gap=0.01), Answer(ending="refuse"), steady(3, first=0.01, gap=0.01)])
    with Loopback(lambda _: next(answers)) as moody:
        assert probe("--base-url", moody.base_url, "--model", "m", "--requests", "3", "--json") == 5
    assert [one["status"] for one in probe.requests()] == ["ok", "error", "ok"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--requests", "0"], "'0' is not a whole number of at least 1"),
        (["--max-tokens", "-5"], "'-5' is not a whole number of at least 1"),
        (["--timeout", "soon"], "--timeout"),
        (["--endpoint", "talk"], "invalid choice"),
        (["--prompt", "a", "--input-tokens", "5"], "not allowed with"),
        (["--base-url", "gpu-box:8000/v1", "--model", "m"], "http://"),
        (["--bse-url", "x"], "unrecognized arguments"),
    ],
)
def test_wrong_usage(probe: Probe, options: list[str], words: str) -> None:
    """Exit status 2, the option and what would be right on the last line."""
    assert probe(*options) == 2
    assert words in probe.err.splitlines()[-1]
    assert probe.out == ""


def test_a_server_that_repeats_the_key_is_not_quoted(probe: Probe) -> None:
    """Not its answer in the record, not its models in a message, not its refusal."""
    body = "".join((said(f" {KEY}"), STOP, usage(1), DONE))
    with house({"/v1/models": models(f"a-{KEY}", "b"), "/v1/chat/completions": Door(body)}) as server:
        assert probe("--base-url", server.base_url, "--model", f"a-{KEY}", "--prompt", "hi", "--json") == 0
        assert probe.requests()[0]["text"] == " [hidden]"
        assert probe("--base-url", server.base_url) == 5
        assert "it has a-[hidden], b" in probe.err
    with house({"/v1/chat/completions": Door(f"no {KEY} here", 403)}) as server:
        assert probe("--base-url", server.base_url, "--model", "m", "--prompt", "hi") == 5
        assert "no [hidden] here" in probe.out
