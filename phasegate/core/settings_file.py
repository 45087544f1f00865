"""Reading settings files so that every mistake is one line that says what, where and what instead.

A mapping is read with the line of each key, checked against the fields it may have, and converted value by
value. Nothing is guessed: an unknown key is an error, because a misspelt tolerance that is silently ignored
is a gate that is silently open.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import yaml

T = TypeVar("T")


class SettingsError(ValueError):
    """A settings file that cannot be used. The message is one line for the user."""


@dataclass(frozen=True, slots=True)
class Located:
    """A mapping read from a file, with the line on which each key stands (counted from 1)."""

    values: Mapping[str, Any]
    lines: Mapping[str, int]
    source: str

    def where(self, key: str) -> str:
        """``file:line`` of a key, for messages."""
        line = self.lines.get(key)
        return f"{self.source}:{line}" if line else self.source

    def refuse_unknown(self, allowed: Iterable[str]) -> None:
        """Raise for the first key that is not allowed, naming the nearest one that is."""
        known = list(allowed)
        for key in self.values:
            if key not in known:
                near = difflib.get_close_matches(str(key), known, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(known)}"
                raise SettingsError(f"{self.where(key)}: unknown key {key!r}; {hint}")

    def take(self, key: str, convert: Callable[[Any], T], default: T, *, wanted: str) -> T:
        """The converted value of a key, or the default where the key is absent.

        ``convert`` raises `ValueError` or `TypeError` for a value it does not take; ``wanted`` says in words
        what would have been right.
        """
        if key not in self.values:
            return default
        value = self.values[key]
        try:
            return convert(value)
        except (TypeError, ValueError):
            raise SettingsError(f"{self.where(key)}: {key} is {value!r}; it must be {wanted}") from None

    def require(self, key: str) -> Any:
        """The raw value of a key that must be there."""
        if key not in self.values:
            raise SettingsError(f"{self.source}: the key {key!r} is missing")
        return self.values[key]


def load_mapping(text: str, source: str) -> Located:
    """The top-level mapping of a YAML text.

    Raises:
        SettingsError: not YAML, not a mapping, or a key that stands twice.
    """
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        values = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise SettingsError(f"{source}{_position(error)}: not readable as YAML: {_first_line(error)}") from None
    if node is None:
        raise SettingsError(f"{source}: the file is empty")
    if not isinstance(node, yaml.MappingNode) or not isinstance(values, dict):
        raise SettingsError(f"{source}: the file must hold a mapping of keys to values")
    lines: dict[str, int] = {}
    for key_node, _ in node.value:
        key, line = key_node.value, key_node.start_mark.line + 1
        if key in lines:
            raise SettingsError(f"{source}:{line}: the key {key!r} stands twice (first on line {lines[key]})")
        lines[key] = line
    return Located(values, lines, source)


def _position(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    return f":{mark.line + 1}" if mark is not None else ""


def _first_line(error: yaml.YAMLError) -> str:
    problem = getattr(error, "problem", None)
    return str(problem or error).splitlines()[0]


def whole_number(minimum: int, maximum: int | None = None) -> Callable[[Any], int]:
    """A converter for whole numbers in a range; refuses booleans, which YAML writes as yes and no."""

    def convert(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError
        if value < minimum or (maximum is not None and value > maximum):
            raise ValueError
        return value

    return convert


def one_of(*choices: str) -> Callable[[Any], str]:
    """A converter for words from a closed list."""

    def convert(value: Any) -> str:
        if value not in choices:
            raise ValueError
        return str(value)

    return convert


def text(value: Any) -> str:
    """A converter for strings."""
    if not isinstance(value, str):
        raise TypeError
    return value


def list_of(convert: Callable[[Any], T]) -> Callable[[Any], tuple[T, ...]]:
    """A converter for one value or a non-empty list of values, without repeats."""

    def convert_all(value: Any) -> tuple[T, ...]:
        items = value if isinstance(value, list) else [value]
        converted = tuple(convert(item) for item in items)
        if not converted or len(set(converted)) != len(converted):
            raise ValueError
        return converted

    return convert_all
