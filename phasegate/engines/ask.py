"""Small questions to a server's side doors (``/v1/models``, ``/props``, ...): plain GET and POST, JSON, one error line.

Nothing here is measured, so the standard library is enough for the direct way. Which way that is (`load.route`) and who
is trusted (`load.tls`) is decided as for measured requests, and through a proxy the library of measured requests asks.
A key goes to the server that was named and nowhere else: it enters no message, and redirects are not followed.
"""

from __future__ import annotations

import base64
import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from functools import lru_cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit, urlunsplit

from phasegate.engines.base import EngineError
from phasegate.load.route import Route, route_to
from phasegate.load.tls import tls_error, tls_words, trust

if TYPE_CHECKING:
    import httpx2

SECONDS = 10.0


class AskError(RuntimeError):
    """A question went unanswered.

    Attributes:
        status: HTTP status, or None where no HTTP answer came.
        answered: whether something answered at all.
        reached: whether something takes connections there; False for nobody there.
        barred: whether something on the way is in the way (a proxy, TLS); the message then holds the remedy.
    """

    def __init__(
        self,
        message: str,
        status: int | None = None,
        *,
        answered: bool = False,
        reached: bool = False,
        barred: bool = False,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.answered = answered or status is not None
        self.reached = reached or self.answered
        self.barred = barred


def ask(
    url: str,
    *,
    api_key: str | None = None,
    body: object | None = None,
    seconds: float = SECONDS,
    headers: Mapping[str, str] | None = None,
) -> Any:
    """The JSON that a URL answers with; a POST when a body is given. ``headers`` are sent beside the usual ones.

    Raises:
        AskError: no answer, an error status, or no JSON.
    """
    content, _ = _exchange(url, api_key, body, seconds, more=headers)
    try:
        return json.loads(content) if content else None
    except (ValueError, RecursionError):
        raise AskError("the answer is not JSON", answered=True) from None


def ask_text(
    url: str, *, api_key: str | None = None, seconds: float = SECONDS, headers: Mapping[str, str] | None = None
) -> str:
    """The text that a URL answers with.

    Raises:
        AskError: no answer, or an error status.
    """
    content, _ = _exchange(url, api_key, None, seconds, more=headers)
    return content.decode("utf-8", errors="replace")


def tell(
    url: str, *, api_key: str | None = None, seconds: float = SECONDS, headers: Mapping[str, str] | None = None
) -> None:
    """Post to a door that does something; whatever a success says is fine (SGLang answers with a sentence).

    Raises:
        AskError: no answer, or an error status.
    """
    _exchange(url, api_key, {}, seconds, more=headers)


def server_header(url: str, *, api_key: str | None = None, headers: Mapping[str, str] | None = None) -> str:
    """The ``Server`` header of a URL's answer, whatever its status; empty where there is none or no answer."""
    try:
        _, found = _exchange(url, api_key, None, SECONDS, any_status=True, more=headers)
    except AskError:
        return ""
    return found.get("server", "")


def _exchange(
    url: str,
    api_key: str | None,
    body: object | None,
    seconds: float,
    *,
    any_status: bool = False,
    more: Mapping[str, str] | None = None,
) -> tuple[bytes, Mapping[str, str]]:
    """Content and headers (lower case) of the answer."""
    request = _request(url, api_key, body)
    for name, value in (more or {}).items():
        if key_problem(value):
            raise AskError(f"header {name}: its value holds a character that a header cannot carry")
        request.add_header(name, value)
    try:
        route = route_to(url)
        send = _directly if route.proxy is None else _through_a_proxy
        status, content, headers = send(request, route, seconds)
    except EngineError as error:  # a proxy or certificates that cannot be used
        raise AskError(str(error), barred=True) from None
    wanted = route.login_wanted(status)
    if wanted is not None:
        raise AskError(wanted, status, barred=True)
    if not 200 <= status < 300 and not any_status:
        raise AskError(f"HTTP {status}", status)
    return content, headers


_Answer = tuple[int, bytes, Mapping[str, str]]
"""Status, content and headers in lower case."""


def _directly(request: urllib.request.Request, route: Route, seconds: float) -> _Answer:
    handlers: list[Any] = [_NoRedirect, urllib.request.ProxyHandler({})]
    if route.url.startswith("https:"):
        handlers.append(urllib.request.HTTPSHandler(context=trust()))
    try:
        with urllib.request.build_opener(*handlers).open(request, timeout=seconds) as answer:
            return answer.status, answer.read(), _lower(answer.headers)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, b"", _lower(error.headers)
    except OSError as error:  # urllib's own errors are OSErrors, too
        fault = tls_error(error)
        if fault is not None:
            raise AskError(tls_words(fault, _place(route)), barred=True) from None
        # What fails before the question is sent comes wrapped, and only what fails behind that comes as it is.
        raise AskError(_reason(error, seconds), reached=not isinstance(error, urllib.error.URLError)) from None
    except http.client.HTTPException as error:
        raise AskError(f"the answer is not HTTP ({type(error).__name__})", answered=True) from None


def _through_a_proxy(request: urllib.request.Request, route: Route, seconds: float) -> _Answer:
    import httpx2

    data = request.data if isinstance(request.data, bytes) else None
    try:
        with httpx2.Client(timeout=seconds, **route.options()) as client:
            answer = client.request(
                request.get_method(), request.full_url, content=data, headers=dict(request.header_items())
            )
            return answer.status_code, answer.content, _lower(answer.headers)
    except httpx2.HTTPError as error:
        raise _refusal(error, route, seconds) from None


def _refusal(error: httpx2.HTTPError, route: Route, seconds: float) -> AskError:
    import httpx2

    fault = tls_error(error)
    words = tls_words(fault, _place(route)) if fault is not None else route.barred(error)
    if words is not None:
        return AskError(words, barred=True)
    if isinstance(error, httpx2.TimeoutException):
        words = f"no answer within {seconds:g} s through {route.proxy}"
        return AskError(words, reached=isinstance(error, httpx2.ReadTimeout))
    answered = isinstance(error, httpx2.RemoteProtocolError)
    return AskError(f"{str(error) or type(error).__name__}, through {route.proxy}", answered=answered)


def _place(route: Route) -> str:
    """Host and port, for messages."""
    return urlsplit(route.url).netloc.rpartition("@")[2]


def _request(url: str, api_key: str | None, body: object | None) -> urllib.request.Request:
    problem = address_problem(url) or key_problem(api_key)
    if problem:
        raise AskError(problem)
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json", "User-Agent": _user_agent()}
    request = urllib.request.Request(_bare(url), data=data, headers=headers)
    parts = urlsplit(url)
    if api_key:
        request.add_header("Authorization", f"Bearer {api_key}")
    elif parts.username is not None:
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        request.add_header("Authorization", f"Basic {base64.b64encode(login.encode()).decode()}")
    return request


@lru_cache(maxsize=1)
def _user_agent() -> str:
    """What measured requests say (openai writes it): some gateways refuse programs that they do not know."""
    return f"AsyncOpenAI/Python {version('openai')}"


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect is an answer like any other: urllib would carry the key to wherever it points."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def _lower(headers: Any) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _reason(error: OSError, seconds: float) -> str:
    reason = getattr(error, "reason", None) or error
    if isinstance(reason, ConnectionRefusedError):
        return "connection refused"
    if isinstance(reason, TimeoutError):
        return f"no answer within {seconds:g} s"
    return str(reason)


def address_problem(url: str) -> str | None:
    """Why a text cannot be a server's address, or None where it can."""
    try:
        parts = urlsplit(url)
        port_is_fine = parts.port is None or parts.port > 0
    except ValueError:
        return "the address is not a URL"
    if parts.scheme not in ("http", "https") or not parts.hostname or not port_is_fine:
        return "the address must look like http://host:port/v1"
    return None


def key_problem(api_key: str | None) -> str | None:
    """Why a key cannot be sent, or None where it can; the key itself is not told."""
    if api_key and not (api_key.isascii() and api_key.isprintable()):
        return "the key holds a line break or another character that a header cannot carry"
    return None


def root_of(base_url: str) -> str:
    """The server's root: the base URL without its version path."""
    return base_url.rstrip("/").removesuffix("/v1")


def without_userinfo(url: str) -> str:
    """The URL without user name, password, query and fragment, for messages and files; also of what is no URL."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url.rpartition("@")[2].split("?", 1)[0].split("#", 1)[0]
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def same_server(url: str, other: str) -> bool:
    """Whether both addresses are of one server: scheme, host and port; a key for the one is safe with the other."""
    try:
        one, two = urlsplit(url), urlsplit(other)
        usual = {"http": 80, "https": 443}.get(one.scheme)
        ports = one.port or usual, two.port or usual
    except ValueError:
        return False
    return (one.scheme, one.hostname) == (two.scheme, two.hostname) and ports[0] == ports[1]


def _bare(url: str) -> str:
    """The URL without user name and password, as it is asked."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
