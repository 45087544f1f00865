"""``--perf-dry-run`` and the limits of a run: what it would ask for, and what ends it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from phasegate.core.token_budget import NOTHING, Part, Spending, at_most, in_all
from phasegate.core.units import parse_duration
from phasegate.load.traffic import Traffic
from phasegate.measure.compare_paired import LEAST_BLOCKS
from phasegate.pytest_plugin.plan import LAW_ROUNDS, is_paired, parts_of, sessions_of

if TYPE_CHECKING:
    import pytest

    from phasegate.pytest_plugin.state import PerfState


def traffic_of(config: pytest.Config) -> Traffic:
    """The limits of the command line, and nothing sent yet; the time runs from now on.

    Raises:
        ValueError: one line naming the option, its value and what would be right.
    """
    limit = config.getoption("--perf-max-tokens-spent")
    if limit is not None and limit < 1:
        raise ValueError(f"--perf-max-tokens-spent is {limit}; it must be at least 1")
    given = config.getoption("--perf-budget")
    budget = None if given is None else parse_duration(given, source="--perf-budget")
    if budget == 0:
        raise ValueError(f"--perf-budget is {given}; it must be more than nothing, such as 5m")
    return Traffic(limit, budget)


def dry_run_lines(state: PerfState) -> list[str]:
    """What the collected items would ask for, as lines for the terminal."""
    parts = [part for part in parts_of(state) if part.planned != NOTHING]
    total = in_all(parts)
    rows = [*((part.name, part.planned) for part in parts), ("in all", total)]
    width = max(len(name) for name, _ in rows)
    head = f"{'':{width}}  {'requests':>9}  {'prompt tokens':>14}  {'output tokens':>14}"
    return [head, *(_row(name, one, width) for name, one in rows), "", *_remarks(state, parts, total)]


def _row(name: str, one: Spending, width: int) -> str:
    return f"{name:{width}}  {one.requests:>9,}  {one.input_tokens:>14,}  {one.output_tokens:>14,}"


def _remarks(state: PerfState, parts: Sequence[Part], total: Spending) -> Iterator[str]:
    yield "Output tokens are the most that may be answered. A server whose words are not one token each is asked up to"
    yield "some 130 times more how it counts, and one that tells its own times some 25 times, with a token each."
    if state.engine_options.traffic.budget is not None:
        yield "Within --perf-budget it may be less: what fits is planned once the server was asked how fast it is."
    most = at_most(parts)
    first, last = sessions_of(state)
    if any(law for _, law in state.wanted.runs) and state.engine_options.requests is None:
        yield f"A law that stays undecided may come to {LAW_ROUNDS} times its requests; --perf-requests N fixes them."
    if last > first:
        yield f"Comparisons that stay undecided may come to {last} sessions instead of {first};"
        yield "--perf-sessions N fixes them."
    if is_paired(state) and state.blocks > LEAST_BLOCKS:
        yield f"Comparisons that stay undecided may come to {state.blocks} blocks instead of {LEAST_BLOCKS};"
        yield "--perf-blocks N sets the most."
    if most != total:
        yield f"All that may come to {most.requests:,} requests and {most.tokens:,} tokens."
    cap = state.engine_options.traffic.most_tokens
    if cap is None:
        yield "Nothing was sent. --perf-max-tokens-spent N ends a run that would ask for more than N tokens."
    elif total.tokens > cap:
        yield f"Nothing was sent. The cap of {cap:,} tokens would end this run before it is done: it reports what it"
        yield "has measured until then."
    else:
        yield f"Nothing was sent. The cap is {cap:,} tokens; {cap - total.tokens:,} would be left."
