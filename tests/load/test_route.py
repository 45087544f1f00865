"""Which way leads to an address, as the environment says."""

from __future__ import annotations

import pytest

from phasegate.load.route import RouteError, is_loopback, route_to

PROXY = "http://p:3128"


@pytest.mark.parametrize(
    ("environment", "url", "applies"),
    [
        ({}, "http://server/v1", False),
        ({"http_proxy": PROXY}, "http://server/v1", True),
        ({"HTTP_PROXY": PROXY}, "http://server/v1", True),
        ({"http_proxy": PROXY}, "https://server/v1", False),
        ({"https_proxy": PROXY}, "https://server:8443/v1", True),
        ({"all_proxy": PROXY}, "https://server/v1", True),
        ({"ALL_PROXY": PROXY}, "http://server/v1", True),
        ({"ALL_PROXY": PROXY, "all_proxy": ""}, "http://server/v1", False),
        ({"http_proxy": PROXY, "no_proxy": "server"}, "http://server:8000/v1", False),
        ({"http_proxy": PROXY, "no_proxy": ".lab"}, "http://gpu.lab/v1", False),
        ({"http_proxy": PROXY, "no_proxy": "other"}, "http://server/v1", True),
        ({"http_proxy": PROXY}, "http://127.0.0.1:8000/v1", False),
        ({"http_proxy": PROXY}, "http://[::1]:8000/v1", False),
        ({"http_proxy": PROXY}, "http://localhost/v1", False),
        ({"http_proxy": PROXY}, "http://0.0.0.0:8000/v1", False),
        ({"http_proxy": "socks5://p:1080"}, "http://localhost:8000/v1", False),
    ],
)
def test_a_proxy_applies_as_the_environment_says(environment: dict[str, str], url: str, applies: bool) -> None:
    """By scheme, then for all, unless exempted; never to this machine itself."""
    assert (route_to(url, environment).proxy is not None) is applies


@pytest.mark.parametrize(
    ("listed", "url", "exempt"),
    [
        ("*", "http://server/v1", True),
        ("a.lab, gpu.lab", "http://gpu.lab/v1", True),
        ("a.lab gpu.lab", "http://gpu.lab/v1", True),
        ("GPU.lab", "http://gpu.LAB:8000/v1", True),
        ("lab", "http://gpu.lab/v1", True),
        ("*.lab", "http://gpu.lab/v1", True),
        ("lab", "http://gpulab/v1", False),
        ("gpu.lab:8000", "http://gpu.lab:8000/v1", True),
        ("gpu.lab:8000", "http://gpu.lab:9000/v1", False),
        ("gpu.lab:443", "https://gpu.lab/v1", True),
        ("10.1.2.3", "http://10.1.2.3:8000/v1", True),
        ("10.0.0.0/8", "http://10.1.2.3:8000/v1", True),
        ("10.0.0.0/8", "http://11.1.2.3:8000/v1", False),
        ("10.1.2.3:8000", "http://10.1.2.3:9000/v1", False),
        ("fd00::/8", "http://[fd00::5]:8000/v1", True),
        ("[fd00::5]", "http://[fd00::5]:8000/v1", True),
        ("[fd00::5]:8000", "http://[fd00::5]:9000/v1", False),
        ("fd00::5", "http://[fd00::6]:8000/v1", False),
        ("http://gpu.lab", "http://gpu.lab/v1", True),
        (" , ,", "http://gpu.lab/v1", False),
    ],
)
def test_no_proxy_is_read_in_its_usual_forms(listed: str, url: str, exempt: bool) -> None:
    """Names with all below them, addresses, networks, ports, and everything."""
    assert (route_to(url, {"ALL_PROXY": PROXY, "NO_PROXY": listed}).proxy is None) is exempt


@pytest.mark.parametrize(
    ("value", "address", "login"),
    [
        ("p:3128", "http://p:3128", None),
        ("http://p", "http://p", None),
        ("https://p:3129", "https://p:3129", None),
        ("http://[fd00::1]:3128/", "http://[fd00::1]:3128", None),
        ("http://me:p%40ss@p:3128", "http://p:3128", ("me", "p@ss")),
        ("http://me@p:3128", "http://p:3128", ("me", "")),
    ],
)
def test_a_proxys_address_and_login_are_taken_apart(value: str, address: str, login: tuple[str, str] | None) -> None:
    """The login is percent-decoded, and in no repr."""
    found = route_to("http://gpu.lab/v1", {"HTTP_PROXY": value}).proxy
    assert found is not None
    assert (found.address, found.login) == (address, login)
    assert "@" not in repr(found) + str(found)
    assert "p@ss" not in repr(found) + str(found)


@pytest.mark.parametrize("variable", ["ALL_PROXY", "HTTP_PROXY", "http_proxy"])
@pytest.mark.parametrize("value", ["socks5://me:secret@p:1080", "socks5h://p", "SOCKS4a://p:1", "socks://p:1"])
def test_a_socks_proxy_is_refused_in_one_line(variable: str, value: str) -> None:
    """C004: with the variable, what is supported and what to do, and without the password."""
    with pytest.raises(RouteError, match=rf"^{variable} names a SOCKS proxy") as caught:
        route_to("http://gpu.lab/v1", {variable: value})
    assert "NO_PROXY" in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "value",
    [
        "http://",
        "http://:3128",
        "ftp://p:21",
        "http://user:secret",
        "p port",
        "http://u:secret/x@p:port",
        "http://p:0",
        "http://u:secret@[::1",
    ],
)
def test_what_is_no_address_of_a_proxy_is_refused_without_showing_it(value: str) -> None:
    """It may hold a password anywhere."""
    with pytest.raises(RouteError, match=r"^HTTPS_PROXY is no address of a proxy") as caught:
        route_to("https://gpu.lab/v1", {"HTTPS_PROXY": value})
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "host", ["localhost", "localhost.", "a.localhost", "127.9.9.9", "::1", "::ffff:127.0.0.1", "::"]
)
def test_this_machine_is_known_by_all_its_names(host: str) -> None:
    """They are never asked of a proxy."""
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["", "localhost.lab", "10.0.0.1", "gpu", "128.0.0.1"])
def test_another_machine_is_not_this_one(host: str) -> None:
    """Names that only look like it."""
    assert not is_loopback(host)
