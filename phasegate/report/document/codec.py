"""A document as JSON and back, and its JSON Schema: all three follow from the types of the model.

Numbers that JSON does not know become null. Reading checks every value against its type and names the place of the
first that does not fit, so that a damaged file gives one line instead of a wrong page.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import types
import typing
from collections.abc import Mapping
from typing import Any

from phasegate.report.document.model import SCHEMA, WORDS, Document


class UnreadableReportError(ValueError):
    """A file that is not a report of this version. The message is one line that names the place."""


def to_json(document: Document) -> str:
    """The document as text: keys in the order of the model, so that two files can be compared line by line."""
    return json.dumps(plain(document), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def plain(value: Any) -> Any:
    """A value of the model as plain lists, mappings, text and finite numbers."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, (str, bool, int, float)) else str(value)


def from_json(text: str, source: str = "report") -> Document:
    """The document in a text.

    Raises:
        UnreadableReportError: not JSON, of another version, or with a value that does not fit; names ``source``.
    """
    try:
        data = json.loads(text)
    except ValueError as error:
        raise UnreadableReportError(f"{source}: not JSON: {error}") from None
    if not isinstance(data, dict) or not str(data.get("schema", "")).startswith("phasegate-report/"):
        raise UnreadableReportError(f"{source}: not a report of phasegate (the key 'schema' is missing)")
    if data["schema"] != SCHEMA:
        raise UnreadableReportError(
            f"{source}: made by another version ({data['schema']}); this phasegate reads {SCHEMA}"
        )
    found = _read(Document, data, source)
    assert isinstance(found, Document)
    return found


def _read(kind: Any, value: Any, where: str) -> Any:
    """A value of a type of the model from what JSON held."""
    if dataclasses.is_dataclass(kind):
        return _read_record(kind, value, where)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is types.UnionType or origin is typing.Union:
        return None if value is None else _read(next(one for one in arguments if one is not type(None)), value, where)
    if origin is tuple:
        return _read_tuple(arguments, _of(list, value, where), where)
    if origin is dict:
        rows = _of(dict, value, where)
        return {key: _read(arguments[1], one, f"{where}.{key}") for key, one in rows.items()}
    return value if kind is Any else _read_leaf(kind, value, where)


def _read_record(kind: Any, value: Any, where: str) -> Any:
    rows = _of(dict, value, where)
    hints = _hints(kind)
    unknown = sorted(set(rows) - set(hints))
    if unknown:
        raise UnreadableReportError(f"{where}: unknown key {unknown[0]!r}")
    missing = [one.name for one in dataclasses.fields(kind) if _is_required(one) and one.name not in rows]
    if missing:
        raise UnreadableReportError(f"{where}: the key {missing[0]!r} is missing")
    return kind(**{name: _read(hints[name], one, f"{where}.{name}") for name, one in rows.items()})


def _read_tuple(arguments: tuple[Any, ...], values: list[Any], where: str) -> tuple[Any, ...]:
    if arguments[-1] is Ellipsis:
        return tuple(_read(arguments[0], one, f"{where}[{number}]") for number, one in enumerate(values))
    if len(values) != len(arguments):
        raise UnreadableReportError(f"{where}: {len(values)} values, expected {len(arguments)}")
    return tuple(_read(kind, one, where) for kind, one in zip(arguments, values, strict=True))


def _read_leaf(kind: Any, value: Any, where: str) -> Any:
    allowed = (int, float) if kind is float else kind
    if not isinstance(value, allowed) or (isinstance(value, bool) and kind is not bool):
        raise UnreadableReportError(f"{where}: {value!r} is not {_NAMES.get(kind, kind.__name__)}")
    return value


_NAMES = {str: "text", int: "a whole number", float: "a number", bool: "true or false", list: "a list", dict: "a table"}


def _of(kind: type, value: Any, where: str) -> Any:
    return _read_leaf(kind, value, where)


@functools.cache
def _hints(kind: Any) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def json_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of the files that `to_json` writes."""
    definitions: dict[str, Any] = {}
    _describe(Document, definitions)
    schema = definitions.pop("Document")
    schema["properties"]["schema"] = {"const": SCHEMA}
    definitions["Headline"]["properties"]["verdict"] = {"enum": list(WORDS)}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A finished run of phasegate",
        **schema,
        "$defs": definitions,
    }


def _describe(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema of one type; records are described once, among the definitions."""
    if dataclasses.is_dataclass(kind):
        return _describe_record(kind, definitions)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is types.UnionType or origin is typing.Union:
        return {"anyOf": [_describe(one, definitions) for one in arguments]}
    if origin is tuple and arguments[-1] is Ellipsis:
        return {"type": "array", "items": _describe(arguments[0], definitions)}
    if origin is tuple:
        return {"type": "array", "prefixItems": [_describe(one, definitions) for one in arguments]}
    if origin is dict:
        return {"type": "object", "additionalProperties": _describe(arguments[1], definitions)}
    return {} if kind is Any else {"type": _TYPES[kind]}


def _describe_record(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    name = kind.__name__
    if name not in definitions:
        definitions[name] = {}
        definitions[name] = {
            "type": "object",
            "additionalProperties": False,
            "properties": {key: _describe(one, definitions) for key, one in _hints(kind).items()},
            "required": [one.name for one in dataclasses.fields(kind)],
        }
    return {"$ref": f"#/$defs/{name}"}


_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
