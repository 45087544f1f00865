"""The key of the base URL is for its server; a reference and a sentinel elsewhere are not shown it unasked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from phasegate.engines.address import address_of
from phasegate.engines.ask import same_server
from phasegate.engines.base import EngineError
from tests.edges.quick_pytest import Done, QuickPytest
from tests.loopback import Loopback
from tests.situations.planted import planted

KEY, OTHER = "sk-of-the-base-url-1234", "sk-of-the-reference-5678"


def run(quick: QuickPytest, folder: Path, *options: str, **environment: str) -> Done:
    return quick.run(
        "perf_tests/test_regression.py", "-q", "--perf-model", "m", "--perf-requests", "1", *options, cwd=folder,
        OPENAI_API_KEY=KEY, **environment,
    )  # fmt: skip


def heads(server: Loopback) -> str:
    return "\n".join(served.head for served in server.log)


@pytest.mark.slow
@pytest.mark.parametrize("option", ["--perf-reference-url", "--perf-sentinel-url"])
@pytest.mark.parametrize("given", [True, False])
def test_another_server_gets_its_own_key_or_none(
    quick: QuickPytest, one_workload: Callable[..., Path], option: str, given: bool
) -> None:
    with planted() as base, planted() as other:
        own = {option.replace("--perf-", "PERF_").replace("-url", "_API_KEY").upper().replace("-", "_"): OTHER}
        options = (
            "--perf-base-url",
            base.base_url,
            option,
            other.base_url,
            "--perf-blocks",
            "5",
            "--perf-sessions",
            "1",
        )
        done = run(quick, one_workload(), *options, **(own if given else {}))
        assert other.log, done.output
        assert KEY in heads(base)
        assert KEY not in heads(other)
        assert (OTHER in heads(other)) is given
        assert OTHER not in heads(base)
        assert KEY not in done.output
        assert OTHER not in done.output


@pytest.mark.slow
def test_a_reference_at_the_same_server_gets_the_same_key(
    quick: QuickPytest, one_workload: Callable[..., Path]
) -> None:
    with planted() as base:
        run(quick, one_workload(), "--perf-base-url", base.base_url, "--perf-reference-url", base.base_url + "/",
            "--perf-blocks", "5")  # fmt: skip
        assert KEY in heads(base)
        assert all(KEY in served.head for served in base.log if "/chat/" in served.head)


@pytest.mark.parametrize(
    ("url", "other", "same"),
    [
        ("http://a/v1", "http://a:80/v2", True),
        ("https://A.example/v1", "https://a.example:443", True),
        ("http://a:8000/v1", "http://a:8001/v1", False),
        ("http://a/v1", "https://a/v1", False),
        ("http://a/v1", "http://a.evil.example/v1", False),
        ("http://a/v1", "http://a@evil.example/v1", False),
        ("http://a/v1", "http://[::1/v1", False),
        ("http://a/v1", "http://a:port/v1", False),
    ],
)
def test_a_server_is_scheme_host_and_port(url: str, other: str, same: bool) -> None:
    assert same_server(url, other) is same
    assert same_server(other, url) is same


def test_the_key_of_a_named_engine_is_not_for_others_either(tmp_path: Path) -> None:
    """The name says what the base URL's server is; only an address says whose key is meant for it."""
    environ = {"ANTHROPIC_API_KEY": KEY, "OPENAI_API_KEY": KEY, "MISTRAL_API_KEY": OTHER}
    at = address_of("http://other:9000/v1", "anthropic", tmp_path, environ, own_key="PERF_REFERENCE_API_KEY")
    assert at.key_name == "PERF_REFERENCE_API_KEY"
    hosted = address_of("https://api.mistral.ai/v1", "auto", tmp_path, environ, own_key="PERF_REFERENCE_API_KEY")
    assert hosted.key_name == "MISTRAL_API_KEY"
    assert address_of("http://other:9000/v1", "anthropic", tmp_path, environ).key_name == "ANTHROPIC_API_KEY"


@pytest.mark.parametrize("option", ["--perf-base-url", "--perf-reference-url", "--perf-sentinel-url"])
def test_a_password_in_an_address_is_refused_and_not_shown(
    quick: QuickPytest, one_workload: Callable[..., Path], option: str
) -> None:
    folder = one_workload()
    options = ["--perf-base-url", "http://127.0.0.1:9/v1"] if option != "--perf-base-url" else []
    done = run(quick, folder, *options, option, "http://someone:pa55word@127.0.0.1:9/v1", "-l", "--junitxml=j.xml")
    assert done.status == 4, done.output
    assert "has a user or password in it" in done.output
    assert option == "--perf-base-url" or option in done.output
    assert "pa55" not in done.output
    assert "pa55" not in (folder / "j.xml").read_text()


@pytest.mark.parametrize(
    "url", ["http://u:pa55word@h/v1", "http://pa55word@h/v1", "https://u:pa55word@h/openai/deployments/x?api-version=1"]
)
def test_so_is_every_way_to_write_one(url: str, tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="has a user or password") as told:
        address_of(url, "auto", tmp_path, {})
    assert "pa55" not in str(told.value)
