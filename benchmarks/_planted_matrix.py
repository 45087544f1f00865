"""The matrix of planted regressions as data: what is planted, and in which order with unchanged runs between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

SLOWS = ("prefill", "decode", "both", "none")


class MatrixError(ValueError):
    """A matrix that cannot be used. The message is one line naming the file and the remedy."""


@dataclass(frozen=True, slots=True)
class Plant:
    """One change of the engine.

    Attributes:
        name: for readers.
        settings: words of the engine's settings that change.
        slows: the phase it should slow, one of `SLOWS`, from what it does.
        why: what it does, in a clause.
    """

    name: str
    settings: str
    slows: str
    why: str


@dataclass(frozen=True, slots=True)
class Matrix:
    """All plants in order of measuring.

    Attributes:
        baseline: settings of the unchanged engine; empty for its defaults.
        plants: the changes.
        left_out: (name, reason) of changes that make no sense here.
    """

    baseline: str
    plants: tuple[Plant, ...]
    left_out: tuple[tuple[str, str], ...]


def load_matrix(path: Path) -> Matrix:
    """The matrix in a YAML file.

    Raises:
        MatrixError: it cannot be read or used.
    """
    try:
        given = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise MatrixError(f"{path}: cannot read the matrix: {error.strerror}") from None
    except yaml.YAMLError as error:
        raise MatrixError(f"{path}: not YAML: {str(error).splitlines()[0]}") from None
    if not isinstance(given, dict) or not given.get("plants"):
        raise MatrixError(f"{path}: the key 'plants' is missing; list at least one plant")
    plants = tuple(_plant(one, path) for one in given["plants"])
    if len({plant.name for plant in plants}) < len(plants):
        raise MatrixError(f"{path}: two plants carry one name; names must differ")
    left_out = tuple((str(one["name"]), str(one["why"])) for one in given.get("left_out") or ())
    return Matrix(str(given.get("baseline") or ""), plants, left_out)


def _plant(given: Mapping[str, Any], path: Path) -> Plant:
    keys = Plant.__dataclass_fields__
    if not isinstance(given, dict) or set(given) != set(keys):
        raise MatrixError(f"{path}: the plant {given!r} must have exactly the keys {', '.join(keys)}")
    plant = Plant(**{key: str(value) for key, value in given.items()})
    if plant.slows not in SLOWS:
        raise MatrixError(f"{path}: {plant.name}: slows is {plant.slows!r}; it must be one of {', '.join(SLOWS)}")
    return plant


def run_order(plants: Sequence[Plant], unchanged: int) -> list[Plant | None]:
    """The plants in their order with unchanged runs (None) spread evenly before, between and after them."""
    places = [((index + 0.5) / unchanged, None) for index in range(unchanged)]
    mixed: list[tuple[float, Plant | None]] = [
        *places,
        *(((index + 0.5) / len(plants), plant) for index, plant in enumerate(plants)),
    ]
    return [plant for _, plant in sorted(mixed, key=lambda one: one[0])]
