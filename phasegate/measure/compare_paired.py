"""From two labs to a verdict: candidate and reference measured in turns, block by block.

Every block visits each side twice, in one of the orders ABBA and BAAB, so that a drift of the host falls on both sides
alike. A visit asks for little, since what counts is how many blocks there are: the first blocks together hold about
one session's requests. After these, and some times on the way, the comparisons are looked at. A workload whose
comparisons are decided gets no more blocks: those within their limits, where a worsening of the tolerance would have
been found, and those that are slower beyond doubt. The looks before the last take a small share of the chance of a
false alarm, and the last one what is left, so that the build as a whole keeps to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from phasegate.core.session import Measurement, Session
from phasegate.core.token_budget import NOTHING, LimitReachedError, Part, Spending, in_all, spending_of
from phasegate.core.workload import Workload
from phasegate.gate.blocks import ORDER_KEY
from phasegate.gate.judge import judge
from phasegate.gate.policy import Policy
from phasegate.gate.verdict import Finding, GateResult, Verdict
from phasegate.measure.compare_runs import Gated, Say
from phasegate.measure.measure_session import session_of
from phasegate.measure.session_runner import SessionRunner
from phasegate.stats.paired import block_orders

LEAST_BLOCKS = 5
"""Below 5 blocks their own spread cannot tell a bad one from noise."""

MOST_BLOCKS = 16
"""Blocks that a comparison may come to unless the user says how many."""

LOOKS = (LEAST_BLOCKS, 7, 9, 12)
"""Blocks after which the comparisons are looked at, before the last look at all of them."""

VISITS = 2
"""Visits of a block to each side."""

EARLY_SHARE = 0.1
"""Share of the build's chance of a false alarm that all looks before the last have together."""

DECIDED = (Verdict.PASS, Verdict.IMPROVED)


def looks_of(most: int) -> tuple[int, ...]:
    """The numbers of blocks after which the comparisons are looked at; the last one is ``most``."""
    return (*(blocks for blocks in LOOKS if blocks < most), most)


def visit_of(workloads: Sequence[Workload], requests: int | None, *, first: bool = False) -> list[Workload]:
    """What one visit asks for: a share of a session's repetitions, workloads of short answers first.

    The first visit to a side begins with the warm-ups of every workload, a later one with a single request, because the
    server has rested meanwhile.

    Args:
        workloads: as their files say.
        requests: repetitions of a session instead of theirs, or None.
        first: whether it is the first visit to its side.
    """
    ordered = sorted(workloads, key=lambda one: (max(one.output_tokens), max(one.input_tokens), one.name))
    return [
        replace(
            one,
            requests=max(1, round((requests or one.requests) / (VISITS * LEAST_BLOCKS))),
            warmups=one.warmups if first else min(one.warmups, 1 if place == 0 else 0),
        )
        for place, one in enumerate(ordered)
    ]


def paired_parts(workloads: Sequence[Workload], requests: int | None, most: int) -> list[Part]:
    """What a paired comparison asks of both sides together, as parts of a plan."""
    looks = looks_of(most)
    usual, first = (visit_of(workloads, requests, first=one) for one in (False, True))
    parts = [
        Part(f"{one.name}, {looks[0]} blocks, both sides", spending_of(one).times(2 * VISITS), looks[0], most)
        for one in usual
    ]
    extra = [spending_of(one).less(spending_of(two)) for one, two in zip(first, usual, strict=True)]
    return [*parts, Part("first warm-ups of both sides", sum(extra, NOTHING).times(2))]


def gate_paired(
    candidate: SessionRunner,
    reference: SessionRunner,
    workloads: Sequence[Workload],
    policy: Policy,
    *,
    blocks: int,
    say: Say | None = None,
) -> Gated:
    """Judge a lab's engine against a reference that runs at the same time.

    Args:
        workloads: as their files say; each visit takes a share of their repetitions.
        blocks: that a comparison may come to.

    Raises:
        MeasurementError, CalibrationError: a visit cannot be measured.
    """
    looks = looks_of(blocks)
    taken = _Blocks(candidate, reference, blocks, say)
    workloads, left_out = _with_room(candidate, workloads, blocks)
    early = replace(policy, alpha=policy.alpha * EARLY_SHARE / max(1, len(looks) - 1))
    # Fewer blocks than the first look has come of a limit; they decide nothing.
    last = replace(
        policy,
        alpha=policy.alpha * (1.0 if len(looks) == 1 else 1.0 - EARLY_SHARE),
        candidate_minimum=max(policy.candidate_minimum, LEAST_BLOCKS),
    )
    open_ones = list(workloads)
    for wanted in looks:
        taken.take(open_ones, wanted, planned=looks[0])
        result = taken.judged(last)
        if taken.stopped or wanted == looks[-1]:
            break
        proven = {(row.workload, row.metric) for row in taken.judged(early).findings if _regressed(row)}
        still = {row.workload for row in result.findings if _is_open(row, proven)}
        open_ones = [one for one in open_ones if any(cell.label in still for cell in one.cells)]
        if not open_ones:
            break
    stopped = taken.stopped or left_out
    if left_out is not None:
        result = _undecided_at_best(result, left_out)
    return Gated(result, tuple(taken.reference), tuple(taken.candidate), stopped)


def _with_room(runner: SessionRunner, workloads: Sequence[Workload], blocks: int) -> tuple[list[Workload], str | None]:
    """The workloads for whose first blocks the run's limits leave room, and which others they leave out, if any.

    Better some that can be decided than all of them begun; at least one is.
    """
    traffic = runner.traffic

    def asked(some: Sequence[Workload]) -> Spending:
        return in_all(paired_parts(some, runner.requests, blocks))

    whole = asked(workloads)
    limit = traffic.why_no_room(whole, of=whole)
    if limit is None:
        return list(workloads), None
    shortest_first = sorted(workloads, key=lambda one: asked([one]).output_tokens)
    chosen = shortest_first[:1]
    for one in shortest_first[1:]:
        if traffic.why_no_room(asked([*chosen, one]), of=whole) is None:
            chosen.append(one)
    others = [one.name for one in workloads if one not in chosen]
    if not others:
        return chosen, None
    reason = f"{limit} for {', '.join(others)}"
    traffic.leave_out(whole.less(asked(chosen)), reason)
    return chosen, reason


def _undecided_at_best(result: GateResult, left_out: str) -> GateResult:
    """The verdict of a comparison that some workloads were left out of: what was found stands, nothing passes."""
    warnings = (left_out, *result.warnings)
    if not result.verdict.green:
        return replace(result, warnings=warnings)
    return replace(
        result,
        verdict=Verdict.INCONCLUSIVE,
        reason=f"{left_out}; of what was measured, {result.reason}",
        warnings=warnings,
    )


def _regressed(row: Finding) -> bool:
    return row.verdict is Verdict.REGRESSION


def _is_open(row: Finding, proven: set[tuple[str, str]]) -> bool:
    """Whether more blocks could decide a comparison that decides the build."""
    if not row.gated or row.p is None or row.verdict in DECIDED:
        return False
    return not (_regressed(row) and (row.workload, row.metric) in proven)


@dataclass
class _Blocks:
    """Blocks measured one after another, whole ones only, until there are enough or a limit of the run ends it.

    Attributes:
        first, second: the labs of candidate and reference.
        most: blocks there may be.
        say: told what is going on.
        reference, candidate: the whole blocks of each side.
        stopped: which limit ended it, in one line, or None.
    """

    first: SessionRunner
    second: SessionRunner
    most: int
    say: Say | None
    reference: list[Session] = field(default_factory=list)
    candidate: list[Session] = field(default_factory=list)
    stopped: str | None = None

    def __post_init__(self) -> None:
        # The plan of each visit is in its workloads; the lab's own override would undo it.
        self._requests = self.first.requests
        self._labs = {"B": replace(self.first, requests=None), "A": replace(self.second, requests=None)}
        self._orders = block_orders(self.most, np.random.default_rng([self.first.seed, 7]))
        self._visited: set[str] = set()

    def judged(self, policy: Policy) -> GateResult:
        """The verdict on the blocks so far."""
        return judge(self.reference, self.candidate, policy, paired=True, planned=True, stopped=self.stopped)

    def take(self, workloads: Sequence[Workload], wanted: int, *, planned: int) -> None:
        """Measure until there are ``wanted`` blocks; those beyond ``planned`` only where the limits leave room."""
        asked = sum(map(spending_of, visit_of(workloads, self._requests)), NOTHING).times(2 * VISITS)
        more, traffic = wanted - len(self.candidate), self.first.traffic
        # All of them at once where there is room, so that the plan tells how long it takes; else one by one.
        room = len(self.candidate) < planned or traffic.why_not_more(asked.times(more)) is None
        while len(self.candidate) < wanted and self.stopped is None:
            if not room:
                self.stopped = traffic.why_not_more(asked)
            if self.stopped is None:
                try:
                    self._take_one(workloads, wanted)
                except LimitReachedError as error:
                    self.stopped = str(error)

    def _take_one(self, workloads: Sequence[Workload], wanted: int) -> None:
        number = len(self.candidate) + 1
        order = self._orders[number - 1]
        visits: dict[str, list[Session]] = {"A": [], "B": []}
        for letter in order:
            if self.say is not None:
                self.say(f"block {number} of {wanted}: {'reference' if letter == 'A' else 'candidate'}")
            runner = self._labs[letter] = self._labs[letter].renewed(restart=False)
            asked = visit_of(workloads, self._requests, first=letter not in self._visited)
            self._visited.add(letter)
            visits[letter].append(session_of(runner, runner.visit(asked), None))
        self.reference.append(_one_block(visits["A"], number, order))
        self.candidate.append(_one_block(visits["B"], number, order))


def _one_block(visits: Sequence[Session], number: int, order: str) -> Session:
    """The visits of one side in one block as a single session."""
    merged = [_merged(parts) for parts in zip(*(visit.measurements for visit in visits), strict=True)]
    client = {**visits[0].client, ORDER_KEY: order}
    return replace(visits[0], session_id=f"block-{number:03d}", measurements=tuple(merged), client=client)


def _merged(parts: Sequence[Measurement]) -> Measurement:
    """The same measurement of several visits, as one."""
    return replace(
        parts[0],
        samples=tuple(value for part in parts for value in part.samples),
        requests=sum(part.requests for part in parts),
        failed=sum(part.failed for part in parts),
        invalid=sum(part.invalid for part in parts),
        flags=tuple(sorted({flag for part in parts for flag in part.flags})),
    )
