"""Which addresses a proxy from the environment applies to."""

import pytest

from phasegate.load.proxy import applies_to


@pytest.mark.parametrize(
    ("environment", "url", "applies"),
    [
        ({}, "http://server/v1", False),
        ({"http_proxy": "http://p:3128"}, "http://server/v1", True),
        ({"http_proxy": "http://p:3128"}, "https://server/v1", False),
        ({"https_proxy": "http://p:3128"}, "https://server:8443/v1", True),
        ({"all_proxy": "http://p:3128"}, "https://server/v1", True),
        ({"http_proxy": "http://p:3128", "no_proxy": "server"}, "http://server:8000/v1", False),
        ({"http_proxy": "http://p:3128", "no_proxy": ".lab"}, "http://gpu.lab/v1", False),
        ({"http_proxy": "http://p:3128", "no_proxy": "other"}, "http://server/v1", True),
        ({"http_proxy": "http://p:3128"}, "http://127.0.0.1:8000/v1", False),
        ({"http_proxy": "http://p:3128"}, "http://[::1]:8000/v1", False),
        ({"http_proxy": "http://p:3128"}, "http://localhost/v1", False),
    ],
)
def test_a_proxy_applies_as_the_environment_says(
    environment: dict[str, str], url: str, applies: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By scheme, unless exempted; never to this machine itself."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert applies_to(url) is applies
