"""Which runs of another tool are one workload: names made of what was asked, for all sides of a comparison at once.

What a file says was asked for must be equal. Lengths are often known only from what came back, where answers that
stop early and prompts that come out a token longer move what is typical of a run; such values may differ a little, and
the runs are then one workload under one name. That is why both sides are named together.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

CLOSE = 1.15
"""Lengths and rates that came back and lie within this factor are those of one request: below the steps in which they
are varied, above what failed and odd requests of a run do to its mean."""

_CLOSE_OF: dict[str, float] = {"out": 1.2, "concurrency": 1.25}
"""A model that ends its answers itself never ends them twice alike, and mean concurrency falls with every pause at the
start and the end of a run; both are usually varied in doublings."""

_LONGEST_PART = 60
"""Characters of a part of a name."""

_ORDER = ("endpoint", "dataset", "strategy", "in", "out", "range", "rate", "burstiness", "concurrency", "streams")
"""The order of the parts in a name; what is not here follows."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What one run asked of the server, as far as its file tells.

    Attributes:
        tool: short name of the tool.
        asked: what the file says was asked for; None and empty values are left out of the name.
        seen: what is known only from what came back, such as mean lengths in tokens; None where unknown.
    """

    tool: str
    asked: Mapping[str, Any] = field(default_factory=dict)
    seen: Mapping[str, float | None] = field(default_factory=dict)

    def fixed(self) -> tuple[str, tuple[tuple[str, str], ...]]:
        """What must be equal."""
        told = {key: word for key, value in self.asked.items() if (word := say_part(value))}
        return self.tool, tuple(sorted(told.items()))

    def measured(self) -> dict[str, float]:
        """What must be close, as far as it is known."""
        return {key: value for key, value in self.seen.items() if value is not None and value > 0}


def say_part(value: Any) -> str:
    """A part of a name: numbers alike however a tool writes them, ``4`` for 4.0 and "4", ``inf`` for Infinity."""
    if value is None or isinstance(value, (dict, list)):
        return ""
    text = str(value).strip()
    try:
        number = float(text)
    except ValueError:
        return _short(text)
    if not math.isfinite(number):
        return str(number)
    return str(int(number)) if number == int(number) and abs(number) < 1e15 else f"{number:g}"


def _short(text: str) -> str:
    """A word that a name can hold; of a long one the beginning, and a few digits that tell it from others."""
    if len(text) <= _LONGEST_PART:
        return text
    return f"{text[: _LONGEST_PART // 2]}~{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:8]}"


@dataclass(slots=True)
class _Workload:
    """Runs that are one workload: the values of the first, and every value seen."""

    first: dict[str, float] = field(default_factory=dict)
    values: list[dict[str, float]] = field(default_factory=list)

    def distance(self, other: Mapping[str, float]) -> float | None:
        """How far another run is away in what both know, or None where that is too far for one workload."""
        steps = {key: abs(math.log(other[key] / value)) for key, value in self.first.items() if key in other}
        near = all(step <= math.log(_CLOSE_OF.get(key, CLOSE)) for key, step in steps.items())
        return sum(steps.values()) if near else None

    def add(self, values: Mapping[str, float]) -> None:
        """Take in a run."""
        self.first = {**values, **self.first}
        self.values.append(dict(values))

    def label(self) -> dict[str, str]:
        """The commonest value of each part, rounded as it is said; of equally common ones, the first."""
        said = {key: Counter(_rounded(one[key]) for one in self.values if key in one) for key in self.first}
        return {key: counts.most_common(1)[0][0] for key, counts in said.items()}


def _rounded(value: float) -> str:
    return str(round(value)) if value >= 10 else f"{value:.2g}"


def named(runs: Sequence[Sequence[Identity]]) -> list[list[str]]:
    """The names of the workloads of every run, in the order given; the workloads of one run are all different."""
    known: dict[tuple[str, tuple[tuple[str, str], ...]], list[_Workload]] = {}
    placed: list[list[_Workload]] = []
    for run in runs:
        mine: list[_Workload] = []
        for identity in run:
            alike = known.setdefault(identity.fixed(), [])
            found = _nearest(alike, identity.measured(), taken=mine)
            if found is None:
                found = _Workload()
                alike.append(found)
            found.add(identity.measured())
            mine.append(found)
        placed.append(mine)
    names = {id(one): name for one, name in _names(known)}
    return [[names[id(one)] for one in mine] for mine in placed]


def _nearest(known: Sequence[_Workload], values: Mapping[str, float], taken: Sequence[_Workload]) -> _Workload | None:
    """The workload of a run; a run that knows less of itself, as one in which all failed, belongs where one fits."""
    free = [one for one in known if not any(one is other for other in taken)]
    near = [(distance, index) for index, one in enumerate(free) if (distance := one.distance(values)) is not None]
    whole = [found for found in near if set(free[found[1]].first) == set(values)]
    if whole:
        return free[min(whole)[1]]
    return free[near[0][1]] if len(near) == 1 else None


def _names(
    known: Mapping[tuple[str, tuple[tuple[str, str], ...]], Sequence[_Workload]],
) -> Iterator[tuple[_Workload, str]]:
    """Every workload with its name; what a name cannot tell apart is numbered."""
    given: Counter[str] = Counter()
    for (tool, asked), workloads in known.items():
        for one in workloads:
            parts = {**dict(asked), **one.label()}
            order = sorted(parts, key=lambda key: _ORDER.index(key) if key in _ORDER else len(_ORDER))
            name = f"{tool}[{','.join(f'{key}={parts[key]}' for key in order)}]" if parts else tool
            given[name] += 1
            yield one, name if given[name] == 1 else f"{name}#{given[name]}"
