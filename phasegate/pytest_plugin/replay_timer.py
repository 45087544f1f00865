"""A timer for pytest-benchmark that replays durations which were measured elsewhere.

pytest-benchmark reads its timer before and after each round and takes the difference. This timer stands still
outside a round and advances by the next sample inside it, so that tables, histograms, JSON files and
``pytest-benchmark compare`` show exactly the samples that were given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from phasegate.core.metric import Metric
    from phasegate.core.workload import Cell
    from phasegate.stats.workload_run import WorkloadRun


class ReplayTimer:
    """Called twice a round; the difference of the two calls is the next sample.

    The clock starts anew at 0 in every round, so that no rounding of a growing sum touches a sample.
    """

    def __init__(self, samples: Sequence[float]) -> None:
        self._samples = tuple(samples)
        self._calls = 0

    __name__ = "replayed"

    def __call__(self) -> float:
        round_number, ending = divmod(self._calls, 2)
        self._calls += 1
        return self._samples[round_number] if ending else 0.0


def row_info(run: WorkloadRun, cell: Cell, metric: Metric) -> dict[str, Any]:
    """What a row says beside its samples: everything of its `Measurement` but the samples themselves."""
    measurement = next(one for one in run.measurements([metric.short]) if one.workload == cell.label)
    info = asdict(measurement)
    del info["samples"]
    info["flags"] = list(measurement.flags)
    return info
