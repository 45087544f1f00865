"""What changed between two sets of sessions of one server, for the person who reviews an updated baseline."""

from __future__ import annotations

from collections.abc import Sequence

from phasegate.gate.judge import judge
from phasegate.gate.policy import Policy
from phasegate.gate.verdict import Finding
from phasegate.session import Session
from phasegate.units import format_percent


def describe_change(old: Sequence[Session], new: Sequence[Session], policy: Policy | None = None) -> list[str]:
    """One line for each metric of each workload: medians, change and its interval, then remarks.

    Args:
        old: the former baseline, oldest first; empty where there was none.
        new: the sessions that were, or are about to be, recorded.
        policy: decides units and directions of declared metrics; default: the built-in one.
    """
    if not old:
        return [f"the first baseline of this server: {len(new)} sessions"]
    result = judge(old, new, policy or Policy(), whole_baseline=True)
    if not result.findings:
        return [result.reason]
    lines = [_line(row) for row in sorted(result.findings, key=lambda row: (row.workload, row.metric))]
    return [*lines, *(f"note: {line}" for line in result.warnings)]


def _line(row: Finding) -> str:
    if row.ratio is None or row.ratio_low is None or row.ratio_high is None:
        return row.reason
    moved = row.reason.split("; ")[0].removesuffix(")")
    sure = "changed" if row.ratio_low > 1 or row.ratio_high < 1 else f"no change seen above {format_percent(row.mde)}"
    return f"{moved}), {row.baseline_sessions} and {row.candidate_sessions} sessions: {sure}"
