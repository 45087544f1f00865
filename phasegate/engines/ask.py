"""Small questions to a server's side doors (``/v1/models``, ``/props``, ...): plain GET and POST, JSON, one error line.

Nothing here is measured, so the standard library is enough. A key goes to the server that was named and nowhere else:
it enters no message, and redirects are not followed. As with measured requests, loopback addresses never go through
a proxy.
"""

from __future__ import annotations

import base64
import http.client
import ipaddress
import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

SECONDS = 10.0


class AskError(RuntimeError):
    """A question went unanswered.

    Attributes:
        status: HTTP status, or None where no HTTP answer came.
        answered: whether something answered at all; False for nobody there.
    """

    def __init__(self, message: str, status: int | None = None, *, answered: bool = False) -> None:
        super().__init__(message)
        self.status = status
        self.answered = answered or status is not None


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
    except ValueError:
        raise AskError("the answer is not JSON", answered=True) from None


def ask_text(url: str, *, api_key: str | None = None, seconds: float = SECONDS) -> str:
    """The text that a URL answers with.

    Raises:
        AskError: no answer, or an error status.
    """
    content, _ = _exchange(url, api_key, None, seconds)
    return content.decode("utf-8", errors="replace")


def tell(url: str, *, api_key: str | None = None, seconds: float = SECONDS) -> None:
    """Post to a door that does something; whatever a success says is fine (SGLang answers with a sentence).

    Raises:
        AskError: no answer, or an error status.
    """
    _exchange(url, api_key, {}, seconds)


def server_header(url: str, *, api_key: str | None = None) -> str:
    """The ``Server`` header of a URL's answer, whatever its status; empty where there is none or no answer."""
    try:
        _, headers = _exchange(url, api_key, None, SECONDS, any_status=True)
    except AskError:
        return ""
    return headers.get("server", "")


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
        with _opener(urlsplit(url).hostname).open(request, timeout=seconds) as answer:
            return answer.read(), _lower(answer.headers)
    except urllib.error.HTTPError as error:
        with error:
            if any_status:
                return b"", _lower(error.headers)
            raise AskError(f"HTTP {error.code}", error.code) from None
    except OSError as error:  # urllib's own errors are OSErrors, too
        raise AskError(_reason(error, seconds)) from None
    except http.client.HTTPException as error:
        raise AskError(f"the answer is not HTTP ({type(error).__name__})", answered=True) from None


def _request(url: str, api_key: str | None, body: object | None) -> urllib.request.Request:
    problem = address_problem(url) or key_problem(api_key)
    if problem:
        raise AskError(problem)
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(_bare(url), data=data, headers={"Content-Type": "application/json"})
    parts = urlsplit(url)
    if api_key:
        request.add_header("Authorization", f"Bearer {api_key}")
    elif parts.username is not None:
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        request.add_header("Authorization", f"Basic {base64.b64encode(login.encode()).decode()}")
    return request


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect is an answer like any other: urllib would carry the key to wherever it points."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def _opener(host: str | None) -> urllib.request.OpenerDirector:
    direct = [urllib.request.ProxyHandler({})] if _is_loopback(host or "") else []
    return urllib.request.build_opener(_NoRedirect, *direct)


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


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
    """The URL without user name, password, query and fragment, for messages and files."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _bare(url: str) -> str:
    """The URL without user name and password, as it is asked."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
