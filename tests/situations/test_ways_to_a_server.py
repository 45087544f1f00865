"""Questions and measured requests take one way: through which proxy, trusting whom."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.edges.quick_pytest import Done, QuickPytest
from tests.engines.front_doors import house
from tests.situations.forward_proxy import forward_proxy
from tests.situations.planted import planted

COUNTED = ("--input-tokens", "32")
"""Has to ask the server before it can measure."""

AWAY = "http://llm.test:8000/v1"
"""A host that only a proxy could reach."""


def probe(quick: QuickPytest, *words: str, **environment: Any) -> Done:
    """One request of four tokens, asked for with these variables set."""
    return quick.phasegate("probe", "--model", "m", "--max-tokens", "4", *words, **environment)


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "ALL_PROXY"])
def test_everything_goes_through_the_proxy_that_one_variable_names(quick: QuickPytest, variable: str) -> None:
    """C005: the model list, questions to side doors and measured requests; the host's name is never looked up here."""
    with planted() as server, forward_proxy(server.base_url) as proxy:
        done = probe(quick, *COUNTED, "--base-url", AWAY, **{variable: f"http://{proxy.address}"})
    assert done.status == 0, done.output
    assert len(proxy.asked) == len(server.log)
    assert {one.split()[1].removeprefix("http://llm.test:8000") for one in proxy.asked} >= {
        "/v1/models",
        "/props",
        "/v1/chat/completions",
    }


def test_a_login_at_the_proxy_is_sent_and_never_shown(quick: QuickPytest) -> None:
    """With the right one all works; with another, or none, one line names the variable."""
    login = ("me", "p@ss-word")
    with planted() as server, forward_proxy(server.base_url, login) as proxy:
        base = ("--base-url", AWAY)
        right = probe(quick, *COUNTED, *base, HTTP_PROXY=f"http://me:p%40ss-word@{proxy.address}")
        wrong = probe(quick, *COUNTED, *base, HTTP_PROXY=f"http://me:p%40ss-worse@{proxy.address}")
        none = probe(quick, *COUNTED, *base, HTTP_PROXY=proxy.address)
    assert right.status == 0, right.output
    for done, why in ((wrong, "refused the login"), (none, "asks for a login")):
        assert done.status == 5, done.output
        assert why in done.output
        assert "HTTP_PROXY" in done.output
        assert len(done.output.splitlines()) == 1
    assert "ss-wor" not in right.output + wrong.output + none.output


@pytest.mark.parametrize("how", [COUNTED, ("--prompt", "hello")])
def test_a_proxy_that_is_not_there_is_named(quick: QuickPytest, how: tuple[str, ...]) -> None:
    """Not the server behind it: nobody knows about that."""
    done = probe(quick, *how, "--base-url", AWAY, ALL_PROXY="http://127.0.0.1:9")
    assert done.status == 5
    assert "the proxy 127.0.0.1:9 (ALL_PROXY) cannot be reached" in done.output
    assert "Traceback" not in done.output


@pytest.mark.parametrize("how", [COUNTED, ("--prompt", "hello")])
@pytest.mark.parametrize(
    "environment",
    [{"ALL_PROXY": "socks5://127.0.0.1:9"}, {"HTTP_PROXY": "socks5h://u:hidden@p:1"}, {"http_proxy": "socks4://p"}],
)
def test_a_socks_proxy_is_refused_for_others_and_ignored_for_this_machine(
    quick: QuickPytest, how: tuple[str, ...], environment: dict[str, str]
) -> None:
    """C004: one line and a status of its own, whether or not the server had to be asked first."""
    with planted() as server:
        here = probe(quick, *how, "--base-url", server.base_url, **environment)
    away = probe(quick, *how, "--base-url", AWAY, **environment)
    assert here.status == 0, here.output
    assert away.status == 5
    assert "SOCKS proxy, which is not supported" in away.output
    assert len(away.output.splitlines()) == 1
    assert "hidden" not in away.output


def test_pytest_refuses_a_socks_proxy_before_anything_starts(quick: QuickPytest, suite: Path) -> None:
    """C004 under pytest: status 15 or wrong usage, never a failed item."""
    done = quick.run("perf_tests", "--perf-base-url", AWAY, cwd=suite, ALL_PROXY="socks5://127.0.0.1:9")
    assert done.status == 15, done.output
    assert "SOCKS proxy, which is not supported" in done.output
    assert "Traceback" not in done.output


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A self-signed certificate for localhost, and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("makes its certificate with openssl")
    folder = tmp_path_factory.mktemp("tls")
    made, key = folder / "certificate.pem", folder / "key.pem"
    words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    more = ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(made)]
    subprocess.run(["openssl", *words.split(), *more], check=True, capture_output=True)
    return made, key


def _tls(certificate: tuple[Path, Path]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    return context


TRUST = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


@pytest.mark.parametrize("variable", TRUST)
def test_a_certificate_is_trusted_for_questions_and_requests(
    quick: QuickPytest, variable: str, certificate: tuple[Path, Path]
) -> None:
    """C006: by the variables of openai's transport, of requests and of curl."""
    with planted(tls=_tls(certificate)) as server:
        url = server.base_url.replace("127.0.0.1", "localhost")
        done = probe(quick, *COUNTED, "--base-url", url, **{variable: str(certificate[0])})
    assert done.status == 0, done.output


@pytest.mark.parametrize("how", [COUNTED, ("--prompt", "hello")])
def test_an_untrusted_certificate_is_named_with_the_remedy(
    quick: QuickPytest, how: tuple[str, ...], certificate: tuple[Path, Path]
) -> None:
    """C006: one line, whether or not the server had to be asked first; a certificate of another name is told apart."""
    with planted(tls=_tls(certificate)) as server:
        named = server.base_url.replace("127.0.0.1", "localhost")
        untrusted = probe(quick, *how, "--base-url", named)
        trust = {"SSL_CERT_FILE": str(certificate[0])}
        other_name = probe(quick, *how, "--base-url", server.base_url, **trust)
        plain = probe(quick, *COUNTED, "--base-url", named, SSL_CERT_FILE="/no/such/file")
    for done in (untrusted, other_name, plain):
        assert done.status == 5, done.output
        assert "Traceback" not in done.output
    assert "its certificate is not trusted" in untrusted.output
    assert "SSL_CERT_FILE" in untrusted.output
    assert "another name" in other_name.output
    assert "SSL_CERT_FILE: /no/such/file cannot be read" in plain.output


def test_tls_goes_through_a_proxy(quick: QuickPytest, certificate: tuple[Path, Path]) -> None:
    """A tunnel for every connection, with the same trust."""
    with planted(tls=_tls(certificate)) as server, forward_proxy(server.base_url) as proxy:
        # The proxy leads every name to the server, whose certificate is for another one than this machine's.
        done = probe(
            quick, *COUNTED, "--base-url", "https://llm.test/v1",
            HTTPS_PROXY=proxy.address, SSL_CERT_FILE=str(certificate[0]),
        )  # fmt: skip
    assert "another name" in done.output
    assert proxy.asked == ["CONNECT llm.test:443 HTTP/1.1"]


def test_an_address_with_https_where_none_is_spoken(quick: QuickPytest) -> None:
    """The line asks whether http was meant."""
    with house({}) as server:
        url = server.base_url.replace("http:", "https:")
        done = probe(quick, *COUNTED, "--base-url", url)
    assert done.status == 5
    assert "speaks no TLS" in done.output
