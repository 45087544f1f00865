"""Whether the environment puts a proxy between us and a server."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass


def applies_to(url: str) -> bool:
    """True when HTTP(S)_PROXY or ALL_PROXY applies to the address and NO_PROXY does not exempt it.

    A loopback address never goes through a proxy: the proxy's loopback is another machine.
    """
    parts = urlsplit(url)
    if _is_loopback(parts.hostname or ""):
        return False
    proxies = getproxies()
    if not (proxies.get(parts.scheme) or proxies.get("all")):
        return False
    return not proxy_bypass(parts.netloc.rpartition("@")[2])


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
