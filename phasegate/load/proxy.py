"""Whether the environment puts a proxy between us and a server."""

from __future__ import annotations

from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass


def applies_to(url: str) -> bool:
    """True when HTTP(S)_PROXY or ALL_PROXY applies to the address and NO_PROXY does not exempt it."""
    parts = urlsplit(url)
    proxies = getproxies()
    if not (proxies.get(parts.scheme) or proxies.get("all")):
        return False
    return not proxy_bypass(parts.netloc.rpartition("@")[2])
