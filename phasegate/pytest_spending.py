"""``--perf-dry-run`` and ``--perf-max-tokens-spent``: what a run would ask for, and a cap on it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from phasegate.pytest_budget import wanted_of
from phasegate.spending import Purse, Spending, load_spending, spending_of

if TYPE_CHECKING:
    import pytest

    from phasegate.pytest_state import PerfState

LAW_ROUNDS = 4
"""Times as many requests as planned that an undecided law may come to (see `plugin.MORE_ROUNDS`)."""


def purse_of(config: pytest.Config) -> Purse | None:
    """The cap of the command line, or None.

    Raises:
        ValueError: it is no positive number.
    """
    limit = config.getoption("--perf-max-tokens-spent")
    if limit is None:
        return None
    if limit < 1:
        raise ValueError(f"--perf-max-tokens-spent is {limit}; it must be at least 1")
    return Purse(limit)


def planned_spending(state: PerfState) -> Iterator[tuple[str, Spending]]:
    """The parts of the planned run: (what, spending)."""
    wanted = wanted_of(state)
    for workload in wanted.workloads:
        once = spending_of(workload, state.opening.requests)
        sessions = f", {wanted.sessions} sessions" if wanted.sessions > 1 else ""
        yield f"{workload.name}{sessions}", once.times(wanted.sessions)
    for workload, count in wanted.load:
        yield f"load: {workload.name}", load_spending(workload, count)


def dry_run_lines(state: PerfState) -> list[str]:
    """What the collected items would ask for, as lines for the terminal."""
    rows = list(planned_spending(state))
    total = sum((spending for _, spending in rows), Spending())
    width = max(len(name) for name, _ in [*rows, ("in all", total)])
    head = f"{'':{width}}  {'requests':>9}  {'prompt tokens':>14}  {'output tokens':>14}"
    lines = [head]
    lines += [_row(name, spending, width) for name, spending in [*rows, ("in all", total)]]
    return [*lines, "", *_remarks(state, total)]


def _row(name: str, one: Spending, width: int) -> str:
    return f"{name:{width}}  {one.requests:>9,}  {one.input_tokens:>14,}  {one.output_tokens:>14,}"


def _remarks(state: PerfState, total: Spending) -> Iterator[str]:
    yield "Output tokens are the most that may be answered. Beside these come a few dozen short requests that find out"
    yield "how the server counts prompt tokens."
    wanted = wanted_of(state)
    if wanted.workloads and state.opening.requests is None:
        yield f"A law that stays undecided may come to {LAW_ROUNDS} times its requests; --perf-requests N fixes them."
    if wanted.most_sessions > wanted.sessions:
        yield (
            f"Comparisons that stay undecided may come to {wanted.most_sessions} sessions instead of {wanted.sessions};"
            " --perf-sessions N fixes them."
        )
    cap = state.opening.purse
    if cap is None:
        yield "Nothing was sent. --perf-max-tokens-spent N ends a run that would ask for more than N tokens."
    elif total.tokens > cap.limit:
        yield f"Nothing was sent. The cap of {cap.limit:,} tokens would end this run before it is done."
    else:
        yield f"Nothing was sent. The cap is {cap.limit:,} tokens; {cap.limit - total.tokens:,} would be left."
