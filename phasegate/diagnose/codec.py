"""A situation as text and back, so that a later one can be explained against it. Pure.

One JSON object with the fields of `Observations`. What a reader does not know it refuses by name, and so a figure that
cannot have been measured: the rules reckon with what is in a situation.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any, NoReturn, TypeVar

from phasegate.diagnose.observations import (
    Ask,
    CacheCalls,
    Level,
    Limits,
    Machine,
    Observations,
    Repeats,
    Stall,
    Steps,
)

SCHEMA = "phasegate-situation/1"
"""Name and version of the layout."""

T = TypeVar("T")


class UnreadableObservationsError(ValueError):
    """A text that is no situation. The message is one line naming the source and the place."""


def to_json(observations: Observations) -> str:
    """The situation as JSON, one key a line."""
    return json.dumps({"schema": SCHEMA, **asdict(observations)}, indent=1, allow_nan=False) + "\n"


def from_json(text: str, source: str) -> Observations:
    """What `to_json` wrote.

    Raises:
        UnreadableObservationsError: not JSON, another version, an unknown field, or a value that cannot be used.
    """
    try:
        plain = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnreadableObservationsError(f"{source}: not JSON: {error}") from None
    if not isinstance(plain, dict) or plain.get("schema") != SCHEMA:
        found = plain.get("schema") if isinstance(plain, dict) else None
        raise UnreadableObservationsError(f"{source}: its schema is {found!r}; this version reads {SCHEMA}")
    del plain["schema"]
    return _record(Observations, plain, source)


_LISTS: Mapping[tuple[type, str], type] = {
    (Observations, "asks"): Ask,
    (Observations, "levels"): Level,
    (Observations, "caches"): CacheCalls,
}
_RECORDS: Mapping[tuple[type, str], type] = {
    (Observations, "stall"): Stall,
    (Observations, "repeats"): Repeats,
    (Observations, "machine"): Machine,
    (Observations, "limits"): Limits,
    (Ask, "steps"): Steps,
}
"""Field -> what it holds, many or one."""

ABOVE_ZERO: frozenset[tuple[type, str]] = frozenset(
    {
        (Level, "users"),
        (Stall, "alone"),
        (CacheCalls, "prompt_tokens"),
        (CacheCalls, "first"),
        (CacheCalls, "again"),
        (Repeats, "prompt_tokens"),
        (Repeats, "early_ttft"),
        (Repeats, "later_ttft"),
    }
)
"""Figures that others are set against: none of them can be 0 where anything was measured."""

LARGEST = 1e12
"""No time in seconds, no count and no rate is larger."""

_TEXTS = frozenset({"name", "source", "unmarked"})


def _record(kind: type[T], plain: object, where: str) -> T:
    if not isinstance(plain, dict):
        _refuse(where, plain, "an object")
    known = {one.name for one in fields(kind)}  # type: ignore[arg-type]
    for name in plain:
        if name not in known:
            _refuse(where, name, f"one of {', '.join(sorted(known))}")
    try:
        made = kind(**{name: _value(kind, name, value, f"{where}: {name}") for name, value in plain.items()})
    except TypeError as error:
        raise UnreadableObservationsError(f"{where}: {error}") from None
    if isinstance(made, Steps):
        _check_guesses(made, where)
    return made


def _check_guesses(steps: Steps, where: str) -> None:
    if (steps.drafted is None) != (steps.accepted is None):
        _refuse(f"{where}: accepted", steps.accepted, f"an answer to drafted: {steps.drafted!r}; give both or none")
    if steps.drafted is not None and steps.accepted is not None and steps.accepted > steps.drafted:
        _refuse(f"{where}: accepted", steps.accepted, f"at most the {steps.drafted} drafted")


def _value(kind: type, name: str, value: Any, where: str) -> Any:
    if value is None:
        return None if _may_be_null(kind, name) else _refuse(where, value, "a value")
    if (kind, name) in _LISTS:
        return tuple(
            _record(_LISTS[kind, name], one, f"{where}[{number}]") for number, one in enumerate(_list(value, where))
        )
    if (kind, name) in _RECORDS:
        return _record(_RECORDS[kind, name], value, where)
    if name in ("client", "host"):
        return tuple(_text(one, where) for one in _list(value, where))
    if name == "chunks":
        return tuple(
            tuple(possible_figure(_number(part, where), where) for part in _list(one, where))
            for one in _list(value, where)
        )
    if name in _TEXTS:
        return _text(value, where)
    return possible_figure(_number(value, where), where, above_zero=(kind, name) in ABOVE_ZERO)


def _may_be_null(kind: type, name: str) -> bool:
    return any(one.name == name and one.default is None for one in fields(kind))


def possible_figure(value: float | int, where: str, *, above_zero: bool = False) -> float | int:
    """The figure, where it can have been measured.

    Raises:
        UnreadableObservationsError: it is negative, 0 where that says nothing, or too large; names ``where``.
    """
    if not 0 <= value <= LARGEST:
        _refuse(where, value, f"a figure from 0 to {LARGEST:g}")
    if above_zero and not value:
        _refuse(where, value, "a figure above 0")
    return value


def _list(value: object, where: str) -> list[Any]:
    return value if isinstance(value, list) else _refuse(where, value, "a list")


def _text(value: object, where: str) -> str:
    return value if isinstance(value, str) else _refuse(where, value, "a text")


def _number(value: object, where: str) -> float | int:
    # A whole number is finite, and one of hundreds of digits is too large for isfinite.
    if isinstance(value, bool) or not (isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))):
        _refuse(where, value, "a number")
    return value


def _refuse(where: str, value: object, wanted: str) -> NoReturn:
    raise UnreadableObservationsError(f"{where}: {value!r} is not {wanted}")
