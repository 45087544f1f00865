"""Plain numbers of a set of sessions, by workload and metric: what was measured, and the level of each session."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from phasegate.core.session import Measurement, Session
from phasegate.stats.session_level import session_level

Key = tuple[str, str]
"""(workload, metric as the sessions name it)"""


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a comparison: its sessions, and their measurements by key.

    Attributes:
        sessions: oldest first.
        by_key: key -> one measurement for each session that has it, with the session's index.
        _levels: what `levels` has worked out so far.
    """

    sessions: tuple[Session, ...]
    by_key: dict[Key, tuple[tuple[int, Measurement], ...]]
    _levels: dict[tuple[Key, float], dict[int, float]] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, sessions: Sequence[Session]) -> Side:
        """Index some sessions."""
        rows: dict[Key, list[tuple[int, Measurement]]] = {}
        for index, session in enumerate(sessions):
            for one in session.measurements:
                rows.setdefault((one.workload, one.metric), []).append((index, one))
        return cls(tuple(sessions), {key: tuple(row) for key, row in rows.items()})

    def measurements(self, key: Key) -> list[Measurement]:
        """The measurements of a key, oldest first; empty where no session has it."""
        return [one for _, one in self.by_key.get(key, ())]

    def levels(self, key: Key, percentile: float = 50.0) -> dict[int, float]:
        """Session index -> that session's percentile of a key; sessions with too few samples for it are left out."""
        known = self._levels.get((key, percentile))
        if known is None:
            found = ((index, session_level(one.samples, percentile)) for index, one in self.by_key.get(key, ()))
            known = self._levels[key, percentile] = {index: level for index, level in found if level is not None}
        return known

    def level(self, key: Key, percentile: float = 50.0) -> float | None:
        """Median of the sessions' levels, or None where nothing was measured."""
        values = list(self.levels(key, percentile).values())
        return statistics.median(values) if values else None

    def workloads(self) -> Iterator[str]:
        """Names of workloads, each once, in the order of the first session that has them."""
        yield from dict.fromkeys(workload for workload, _ in self.by_key)


def ratio_of(new: float | None, old: float | None) -> float | None:
    """new / old where both are known and the ratio is finite, else None."""
    if not new or not old:
        return None
    ratio = new / old
    return ratio if math.isfinite(ratio) else None
