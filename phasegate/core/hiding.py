"""Keys and passwords out of a text, before it is shortened, shown or written.

Two things are looked for: a key that is known, in whole or in part and however a server may have encoded it; and what
looks like a credential, whoever's it is.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

HIDDEN = "[hidden]"

SHORTEST = 4
"""A key shorter than this is not looked for: it would strike out ordinary words, and protects nothing."""

LONG = 8
"""From this length on, a key is also found in other case and in parts."""

_CREDENTIALS = (
    re.compile(r"(?i)(\b[a-z][a-z0-9+.-]*://)[^/\s@?#'\"]+(?=@)"),
    re.compile(r"(?i)([?&](?:[\w-]*(?:key|token|secret|password|sig(?:nature)?))=)[^&\s'\"]+"),
    re.compile(r"(?i)(\b(?:bearer|basic)\s+)[^\s\"',;]+"),
    re.compile(
        r"(?i)(\b(?:x-)?(?:api|access|secret|auth)[-_ ]?(?:key|token)\b(?: provided)?"
        r"[\"']?\s*[:=]\s*[\"']?)[^\s\"',;&]+"
    ),
    re.compile(r"()\b(?:sk|pk|rk|hf|gsk|xai|nvapi|tok|key)[-_][A-Za-z0-9_\-*.]{6,}"),
    re.compile(r"()\bAIza[A-Za-z0-9_\-]{20,}"),
    re.compile(r"()\beyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-.]+"),
)
"""What looks like a credential: the first group stays, what follows it is hidden."""

_ESCAPE = re.compile(
    r"\\u00([0-9a-fA-F]{2})|\\x([0-9a-fA-F]{2})|%([0-9a-fA-F]{2})|&#x0*([0-9a-fA-F]{2});|&#0*([0-9]{2,3});|\\([^\sux])"
)
"""One escaped character of a key: of JSON, Python, an address, or HTML."""


SECRET_NAMES = ("_KEY", "_TOKEN", "_SECRET", "_PASSWORD")
"""How the names of variables end that hold a secret."""

LONG_SECRET = 12
"""Shorter values of such variables are often plain words, which a text may need."""


def secrets_of(environ: Mapping[str, str]) -> list[str]:
    """Values of variables that must not appear anywhere: the usual key, and whatever else is long and named so."""
    found = [
        value for name, value in environ.items() if name.upper().endswith(SECRET_NAMES) and len(value) >= LONG_SECRET
    ]
    return [environ.get("OPENAI_API_KEY", ""), *found]


def hide(text: str, *keys: str | None) -> str:
    """The text without these keys, and without whatever looks like a credential."""
    text = hide_key(text, *keys)
    for pattern in _CREDENTIALS:
        text = pattern.sub(rf"\g<1>{HIDDEN}", text)
    return text


def hide_in(value: Any, *keys: str | None) -> Any:
    """What JSON holds, without these keys in any of its texts; numbers stay as they are."""
    if isinstance(value, str):
        return hide_key(value, *keys)
    if isinstance(value, Mapping):
        return {hide_key(str(name), *keys): hide_in(one, *keys) for name, one in value.items()}
    return [hide_in(one, *keys) for one in value] if isinstance(value, (list, tuple)) else value


def hide_key(text: str, *keys: str | None) -> str:
    """The text without these keys; other words stay, such as a model's name that looks like a key.

    A key goes as it is, escaped, in Base64 or hexadecimal. One of at least `LONG` characters also goes where only a
    part of it is there: 8 characters (fewer of a short key) that no ordinary words are.
    """
    known = sorted((key for key in keys if key and len(key) >= SHORTEST), key=len, reverse=True)
    for key in known:  # whole ones first: one key may hold a part of another
        text = text.replace(key, HIDDEN)
    for key in known:
        if len(key) < LONG:
            break
        text = _without_spans(text, list(_plain_spans(text, key)))
        for encoded in _encoded(key):
            text = _without_spans(text, list(_runs(text, encoded, _pieces(encoded, 12))))
    return text


def _plain_spans(text: str, key: str) -> Iterator[tuple[int, int]]:
    """Where a text holds the key, or a part of it, in any case, escaped or with blanks in between."""
    pieces = _pieces(_lower(key), max(6, min(8, (len(key) + 1) // 2)))
    if text.isprintable() and not any(mark in text for mark in "\\%&"):
        joined = _lower("".join(text.split()))
        if not any(piece in joined for piece in pieces):
            return  # as nearly always, and much faster than to look closely
    view, at = _plain_view(text)
    for begin, end in _runs(_lower(view), _lower(key), pieces):
        if _is_telling(key, view[begin:end]):
            # Up to the next kept character, so that what was escaped goes whole; blanks behind it stay.
            yield at[begin], _end_of(text, at[end - 1], at[end])


def _plain_view(text: str) -> tuple[str, list[int]]:
    """The text without escapes, blanks and marks that do not show; and where each character began."""
    view: list[str] = []
    at: list[int] = []
    place = 0
    while place < len(text):
        escape = _ESCAPE.match(text, place) if text[place] in "\\%&" else None
        shown, end = (_unescaped(escape), escape.end()) if escape is not None else (text[place], place + 1)
        if shown.isprintable() and not shown.isspace():
            view.append(shown)
            at.append(place)
        place = end
    return "".join(view), [*at, len(text)]


def _unescaped(escape: re.Match[str]) -> str:
    number = next((int(digits, 16) for digits in escape.groups()[:4] if digits), None)
    if number is None:
        number = int(escape[5]) if escape[5] else ord(escape[6])
    return chr(number)


def _end_of(text: str, last: int, following: int) -> int:
    escape = _ESCAPE.match(text, last) if text[last] in "\\%&" else None
    return min(following, escape.end() if escape is not None else last + 1)


def _is_telling(key: str, found: str) -> bool:
    """Whether a part of a key gives it away: most of it, or characters as only a key has them side by side."""
    own = key[_lower(key).find(_lower(found)) :][: len(found)]
    return 3 * len(found) >= 2 * len(key) or any(map(str.isdigit, own)) or (own != own.lower() and own != own.upper())


def _lower(text: str) -> str:
    """Lower case for the letters of keys; other scripts would change in length."""
    return text.lower() if text.isascii() else "".join(mark.lower() if mark.isascii() else mark for mark in text)


@lru_cache(maxsize=256)
def _encoded(key: str) -> tuple[str, ...]:
    """The key in Base64, wherever in a longer text it began, and in hexadecimal."""
    raw = key.encode()
    forms = [raw.hex(), raw.hex().upper()]
    for before in range(3):
        # The digits that hold bits of a neighbour are left out.
        text = base64.b64encode(bytes(before) + raw).decode()
        text = text[-(-before * 8 // 6) : (before + len(raw)) * 8 // 6]
        forms += [text, text.translate(str.maketrans("+/", "-_"))]
    return tuple(dict.fromkeys(forms))


@lru_cache(maxsize=1024)
def _pieces(key: str, size: int) -> tuple[str, ...]:
    size = min(size, len(key))
    return tuple(dict.fromkeys(key[place : place + size] for place in range(len(key) - size + 1)))


def _runs(text: str, key: str, pieces: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    """The longest stretches of a text that are also stretches of the key, one piece long at least."""
    places = sorted(place for piece in pieces if piece in text for place in _all_places(text, piece))
    done = 0
    for begin in places:
        if begin < done:
            continue
        end = begin + len(pieces[0])
        while end < len(text) and text[begin : end + 1] in key:
            end += 1
        yield begin, end
        done = end


def _all_places(text: str, piece: str) -> Iterator[int]:
    place = text.find(piece)
    while place >= 0:
        yield place
        place = text.find(piece, place + 1)


def _without_spans(text: str, spans: list[tuple[int, int]]) -> str:
    for begin, end in reversed(spans):
        text = text[:begin] + HIDDEN + text[end:]
    return text
