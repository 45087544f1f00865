"""A build judged by its rolling baseline and by pinned ones: the first sees steps, the others see slow creeping."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from phasegate.gate.verdict import GateResult, Verdict, worst


def with_pinned(rolling: GateResult, pinned: Mapping[str, GateResult]) -> GateResult:
    """The rolling result, made worse by what pinned baselines prove.

    Only a regression against a pinned baseline, or one that cannot be used, changes the verdict. What cannot be
    compared with an old release (a new workload, another setting) is a remark: the rolling baseline speaks of it.

    Args:
        rolling: the result against the rolling baseline.
        pinned: label -> the result against that pinned baseline.
    """
    result = rolling
    for label, other in pinned.items():
        said = f"against the pinned baseline {label}: {other.reason}"
        if other.verdict in (Verdict.REGRESSION, Verdict.INVALID_BASELINE):
            rows = tuple(
                replace(row, reason=f"against the pinned baseline {label}: {row.reason}")
                for row in other.findings
                if row.gated and row.verdict is other.verdict
            )
            graver = other.verdict.badness > result.verdict.badness
            result = replace(
                result,
                verdict=worst([result.verdict, other.verdict]),
                reason=said if graver else result.reason,
                findings=(*result.findings, *rows),
                warnings=(*result.warnings, said),
                lever=result.lever or other.lever,
            )
        elif not other.verdict.green:
            result = replace(result, warnings=(*result.warnings, f"{other.verdict.value} {said}"))
    return result
