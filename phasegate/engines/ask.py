"""Small questions to a server's side doors (``/v1/models``, ``/props``, ...): plain GET and POST, JSON, one error line.

Nothing here is measured, so the standard library is enough. Keys never enter a message.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import urlsplit, urlunsplit

SECONDS = 10.0


class AskError(RuntimeError):
    """A question went unanswered.

    Attributes:
        status: HTTP status, or None where no HTTP answer came.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


def ask(url: str, *, api_key: str | None = None, body: object | None = None, seconds: float = SECONDS) -> Any:
    """The JSON that a URL answers with; a POST when a body is given.

    Raises:
        AskError: no answer, an error status, or no JSON.
    """
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, headers={"Content-Type": "application/json"})
    if api_key:
        request.add_header("Authorization", f"Bearer {api_key}")
    try:
        with urllib.request.urlopen(request, timeout=seconds) as answer:
            content = answer.read()
    except urllib.error.HTTPError as error:
        raise AskError(f"HTTP {error.code}", error.code) from None
    except (urllib.error.URLError, OSError, ValueError) as error:
        raise AskError(_reason(error)) from None
    except Exception as error:  # http.client raises its own family for answers that are not HTTP
        raise AskError(f"the answer is not HTTP ({type(error).__name__})") from None
    try:
        return json.loads(content) if content else None
    except ValueError:
        raise AskError("the answer is not JSON") from None


def _reason(error: BaseException) -> str:
    reason = getattr(error, "reason", None) or error
    if isinstance(reason, ConnectionRefusedError):
        return "connection refused"
    if isinstance(reason, TimeoutError):
        return f"no answer within {SECONDS:g} s"
    return str(reason)


def root_of(base_url: str) -> str:
    """The server's root: the base URL without its version path."""
    return base_url.rstrip("/").removesuffix("/v1")


def without_userinfo(url: str) -> str:
    """The URL without a user name and password, for messages and files."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    netloc = f"{host}:{parts.port}" if parts.port else host
    return urlunsplit((parts.scheme, netloc, parts.path, "", ""))
