"""A situation as text and back, so that a later one can be explained against it. Pure.

One JSON object with the fields of `Situation`. What a reader does not know it refuses by name.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any, NoReturn, TypeVar

from phasegate.gate.diagnose.situation import (
    Ask,
    CacheCalls,
    Level,
    Limits,
    Machine,
    Repeats,
    Situation,
    Stall,
    Steps,
)

SCHEMA = "phasegate-situation/1"
"""Name and version of the layout."""

T = TypeVar("T")


class UnreadableSituationError(ValueError):
    """A text that is no situation. The message is one line naming the source and the place."""


def to_json(situation: Situation) -> str:
    """The situation as JSON, one key a line."""
    return json.dumps({"schema": SCHEMA, **asdict(situation)}, indent=1, allow_nan=False) + "\n"


def from_json(text: str, source: str) -> Situation:
    """What `to_json` wrote.

    Raises:
        UnreadableSituationError: not JSON, another version, an unknown field, or a value that cannot be used.
    """
    try:
        plain = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnreadableSituationError(f"{source}: not JSON: {error}") from None
    if not isinstance(plain, dict) or plain.get("schema") != SCHEMA:
        found = plain.get("schema") if isinstance(plain, dict) else None
        raise UnreadableSituationError(f"{source}: its schema is {found!r}; this version reads {SCHEMA}")
    del plain["schema"]
    return _record(Situation, plain, source)


_LISTS: Mapping[tuple[type, str], type] = {
    (Situation, "asks"): Ask,
    (Situation, "levels"): Level,
    (Situation, "caches"): CacheCalls,
}
_RECORDS: Mapping[tuple[type, str], type] = {
    (Situation, "stall"): Stall,
    (Situation, "repeats"): Repeats,
    (Situation, "machine"): Machine,
    (Situation, "limits"): Limits,
    (Ask, "steps"): Steps,
}
"""Field -> what it holds, many or one."""

_TEXTS = frozenset({"name", "source", "unmarked"})


def _record(kind: type[T], plain: object, where: str) -> T:
    if not isinstance(plain, dict):
        _refuse(where, plain, "an object")
    known = {one.name for one in fields(kind)}  # type: ignore[arg-type]
    for name in plain:
        if name not in known:
            _refuse(where, name, f"one of {', '.join(sorted(known))}")
    try:
        return kind(**{name: _value(kind, name, value, f"{where}: {name}") for name, value in plain.items()})
    except TypeError as error:
        raise UnreadableSituationError(f"{where}: {error}") from None


def _value(kind: type, name: str, value: Any, where: str) -> Any:
    if (kind, name) in _LISTS:
        return tuple(_record(_LISTS[kind, name], one, where) for one in _list(value, where))
    if (kind, name) in _RECORDS:
        return None if value is None else _record(_RECORDS[kind, name], value, where)
    if name in ("client", "host"):
        return tuple(_text(one, where) for one in _list(value, where))
    if name == "chunks":
        return tuple(tuple(_number(part, where) for part in _list(one, where)) for one in _list(value, where))
    if name in _TEXTS:
        return _text(value, where)
    return None if value is None else _number(value, where)


def _list(value: object, where: str) -> list[Any]:
    return value if isinstance(value, list) else _refuse(where, value, "a list")


def _text(value: object, where: str) -> str:
    return value if isinstance(value, str) else _refuse(where, value, "a text")


def _number(value: object, where: str) -> float | int:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        _refuse(where, value, "a number")
    return value


def _refuse(where: str, value: object, wanted: str) -> NoReturn:
    raise UnreadableSituationError(f"{where}: {value!r} is not {wanted}")
