"""TLS: the roots that openai would trust, the endings and the clock of a plain connection."""

import asyncio
import shutil
import ssl
import subprocess
from pathlib import Path

import pytest

from phasegate.core.request import Request
from phasegate.core.target import Target
from phasegate.core.timeline import Ending, Recording
from phasegate.load.client import Client
from tests.loopback import Answer, Loopback, Script, steady

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="makes its certificate with openssl")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A fresh self-signed certificate for 127.0.0.1, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    made, key = folder / "certificate.pem", folder / "key.pem"
    words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=127.0.0.1"
    extension = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(made)]
    subprocess.run(["openssl", *words.split(), *extension], check=True, capture_output=True)
    return made, key


def send_tls(script: Script, certificate: tuple[Path, Path], **options: float) -> tuple[Recording, Loopback]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    with Loopback(script, tls=context) as server:

        async def run() -> Recording:
            async with Client(Target(server.base_url, "m", **options)) as client:  # type: ignore[arg-type]
                return await client.send(Request("r", "chat", {"messages": []}))

        return asyncio.run(run()), server


@pytest.mark.parametrize("framing", ["chunked", "length", "close"])
def test_an_answer_over_tls_is_recorded_read_by_read(
    framing: str, certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the certificate trusted through SSL_CERT_FILE, body and order are as over a plain connection."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    recording, server = send_tls(steady(4, first=0.02, gap=0.01, framing=framing), certificate)
    assert recording.ending is Ending.EOF, recording.detail
    assert b"".join(read.data for read in recording.reads) == b"".join(data for _, data in server.log[0].left)
    assert recording.connect_time is not None
    assert recording.sent is not None
    assert recording.sent < recording.reads[0].at <= recording.ended_at


@pytest.mark.parametrize(
    ("script", "options", "ending"),
    [
        (steady(2, first=0.01, gap=0.01, ending="cut"), {}, Ending.INCOMPLETE),
        (steady(2, first=0.01, gap=0.01, ending="hang"), {"idle_timeout": 0.1}, Ending.IDLE_TIMEOUT),
        (steady(90, first=0.01, gap=0.02), {"timeout": 0.1}, Ending.TOTAL_TIMEOUT),
        (Answer(ending="refuse"), {}, Ending.INCOMPLETE),
    ],
    ids=["cut", "idle", "total", "closed at once"],
)
def test_endings_over_tls(
    script: Script,
    options: dict[str, float],
    ending: Ending,
    certificate: tuple[Path, Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A failure has the same name as over a plain connection."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    recording, _ = send_tls(script, certificate, **options)
    assert recording.ending is ending


def test_an_untrusted_certificate_is_a_failed_connection(certificate: tuple[Path, Path]) -> None:
    """It says so, and nothing was sent."""
    recording, server = send_tls(steady(1, first=0, gap=0), certificate)
    assert recording.ending is Ending.CONNECT_FAILED
    assert "certificate" in recording.detail.lower()
    assert recording.sent is None
    assert server.log == []
