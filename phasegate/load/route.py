"""The way to a URL, decided in one place for measured requests and for questions: directly or through which proxy.

The environment decides, as for curl and most HTTP libraries: ``HTTP_PROXY`` or ``HTTPS_PROXY`` by the URL's scheme,
then ``ALL_PROXY``, each also in lower case (which wins), unless ``NO_PROXY`` exempts the host. What is trusted over TLS
is decided in `load.tls`. A proxy's user and password are part of no message.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, unquote, urlsplit

from phasegate.engines.base import EngineError
from phasegate.load.tls import trust

if TYPE_CHECKING:
    import httpx2

FORM = "http://host:port"


class RouteError(EngineError):
    """There is no way to a URL; one line that names the variable and the remedy."""


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy that the environment names.

    Attributes:
        address: ``http://host:port``, or with https; without the login.
        variable: the variable that names it.
        login: user and password, or None. Never in a repr.
    """

    address: str
    variable: str
    login: tuple[str, str] | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return f"the proxy {urlsplit(self.address).netloc} ({self.variable})"


@dataclass(frozen=True, slots=True)
class Route:
    """The way to one URL.

    Attributes:
        url: where it leads.
        proxy: None for the direct way.
    """

    url: str
    proxy: Proxy | None = None

    def options(self) -> dict[str, Any]:
        """What a client of httpx2 is made with, so that it goes this way and looks into no variable itself.

        Raises:
            EngineError: a variable names certificates that cannot be read.
        """
        import httpx2

        options: dict[str, Any] = {"trust_env": False, "follow_redirects": False}
        if self.url.startswith("https:"):
            options["verify"] = trust()
        if self.proxy is not None:
            over_tls = trust() if self.proxy.address.startswith("https:") else None
            options["proxy"] = httpx2.Proxy(self.proxy.address, auth=self.proxy.login, ssl_context=over_tls)
        return options

    def barred(self, error: httpx2.HTTPError) -> str | None:
        """Why the proxy gave no way, in one line with the remedy; None where that is not what went wrong."""
        import httpx2

        if self.proxy is None:
            return None
        if isinstance(error, httpx2.ProxyError):
            return f"{self.proxy} gives no way to {urlsplit(self.url).hostname}: {error}; {_REMEDY}"
        if isinstance(error, (httpx2.ConnectError, httpx2.ConnectTimeout)):
            return f"{self.proxy} cannot be reached ({error or 'no connection in time'}); {_REMEDY}"
        return None

    def login_wanted(self, status: int) -> str | None:
        """What to do about a proxy that answered 407; None for every other status, and for the direct way."""
        if self.proxy is None or status != LOGIN_WANTED:
            return None
        what = "refused the login" if self.proxy.login else "asks for a login"
        return f"{self.proxy} {what} (HTTP 407); write {self.proxy.variable} as http://user:password@host:port"


LOGIN_WANTED = 407

_REMEDY = "correct the variable, or name the host in NO_PROXY"


def route_to(url: str, environ: Mapping[str, str] | None = None) -> Route:
    """The way to a URL. An address of this machine is always reached directly: a proxy's loopback is another machine.

    Raises:
        RouteError: the proxy that applies cannot be used.
    """
    variables = os.environ if environ is None else environ
    parts = urlsplit(url)
    if is_loopback(parts.hostname or "") or _exempt(parts, _value(variables, "no_proxy")[1]):
        return Route(url)
    for name in (f"{parts.scheme}_proxy", "all_proxy"):
        variable, value = _value(variables, name)
        if value:
            return Route(url, _proxy(variable, value, parts.hostname or ""))
    return Route(url)


def is_loopback(host: str) -> bool:
    """Whether a host is this machine: localhost, or a loopback or unspecified address."""
    name = host.rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        address = ip_address(name)
    except ValueError:
        return False
    address = getattr(address, "ipv4_mapped", None) or address
    return address.is_loopback or address.is_unspecified


def _value(environ: Mapping[str, str], name: str) -> tuple[str, str]:
    """The variable's name as it is set, and its value; lower case wins, and an empty one there means none."""
    for spelled in (name, name.upper()):
        if spelled in environ:
            return spelled, environ[spelled].strip()
    return name.upper(), ""


def _proxy(variable: str, value: str, host: str) -> Proxy:
    try:
        parts = urlsplit(value if "://" in value else f"http://{value}")
    except ValueError:
        parts = urlsplit("")
    scheme = parts.scheme.lower()
    if scheme.startswith("socks"):
        raise RouteError(
            f"{variable} names a SOCKS proxy, which is not supported; name an HTTP proxy there ({FORM}), put {host} "
            "into NO_PROXY, or forward a port with ssh -L and measure http://127.0.0.1:PORT/v1"
        )
    try:
        port = parts.port
    except ValueError:
        port = 0
    if scheme not in ("http", "https") or not parts.hostname or port == 0 or any(map(str.isspace, value)):
        # The value stays untold: what cannot be taken apart may hold a password anywhere.
        raise RouteError(f"{variable} is no address of a proxy; write it as {FORM}, or unset it")
    name = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    login = None if parts.username is None else (unquote(parts.username), unquote(parts.password or ""))
    return Proxy(f"{scheme}://{name}" + (f":{port}" if port else ""), variable, login)


def _exempt(parts: SplitResult, listed: str) -> bool:
    """Whether ``NO_PROXY`` has the host: ``*``, names with all below them, addresses, networks, with a port or without.

    Entries stand between commas or spaces, as curl reads them.
    """
    host = (parts.hostname or "").rstrip(".").lower()
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return any(_covers(entry, host, port) for entry in listed.replace(",", " ").lower().split())


def _covers(entry: str, host: str, port: int) -> bool:
    if entry == "*":
        return True
    entry = entry.partition("://")[2] or entry
    if (network := _network(entry)) is not None:
        return _inside(host, network)
    name, colon, wanted = entry.rpartition(":")
    if colon and wanted.isdigit() and not (":" in name and not name.endswith("]")):
        if int(wanted) != port:
            return False
        entry = name
    if (network := _network(entry)) is not None:
        return _inside(host, network)
    suffix = entry.removeprefix("*").strip(".")
    return bool(suffix) and (host == suffix or host.endswith(f".{suffix}"))


def _network(entry: str) -> Any:
    """The addresses that an entry means: one address or a network; None for names."""
    try:
        return ip_network(entry.replace("[", "").replace("]", ""), strict=False)
    except ValueError:
        return None


def _inside(host: str, network: Any) -> bool:
    try:
        return ip_address(host) in network
    except ValueError:
        return False
