"""From a lab to a verdict: how many sessions are measured, against what, and in which order.

Stored: a few candidate sessions against those in ``baselines/``; a comparison that the first ones already acquit ends
there, the others get more sessions up to a budget fixed beforehand and are judged once, at the end. Stopping early only
ever acquits, so it costs no false alarms.

Paired: candidate and reference in one sitting, block by block in a random order that treats both alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from phasegate.baseline.store import BaselineStore
from phasegate.gate.blocks import ORDER_KEY
from phasegate.gate.client_growth import OWN_ERROR, tells_own_error
from phasegate.gate.comparable import differing_keys
from phasegate.gate.judge import Place, judge
from phasegate.gate.pinned import with_pinned
from phasegate.gate.policy import Policy
from phasegate.gate.verdict import GateResult, Verdict
from phasegate.lab import Lab
from phasegate.session import Measurement, Session
from phasegate.sitting import session_of, sit
from phasegate.stats.paired import block_orders
from phasegate.workload import Workload

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Gated:
    """A verdict and the sessions it was made from, baseline or reference first."""

    result: GateResult
    baseline: tuple[Session, ...]
    candidate: tuple[Session, ...]


def find_baseline(
    store: BaselineStore, server: Session, policy: Policy, pinned: str | None
) -> tuple[list[Session], str]:
    """Stored sessions of the same server, and a word on near ones where there is none.

    Keys that the policy names under ``compare_across`` may differ; the newest such baseline is taken.

    Raises:
        InvalidBaselineError: a stored session cannot be used.
    """
    own = store.read(server.fingerprint, pinned)
    if own:
        return own, ""
    others = [sessions for name in store.fingerprints(pinned) if (sessions := store.read(name, pinned))]
    if policy.compare_across:
        alike = [
            one for one in others if not differing_keys(one[-1].server, server.server, ignore=policy.compare_across)
        ]
        if alike:
            return max(alike, key=lambda sessions: sessions[-1].recorded_at), ""
    return [], f"{len(others)} baselines of other servers are stored" if others else ""


def gate_stored(
    lab: Lab,
    workloads: Sequence[Workload],
    store: BaselineStore,
    policy: Policy,
    *,
    sessions: int | None = None,
    pinned: str | None = None,
    record_with: str | None = None,
    say: Say | None = None,
) -> Gated:
    """Judge a lab's engine against stored sessions. The lab's own measurements are the first session.

    Args:
        sessions: candidate sessions to measure; None follows the policy's sequence.
        record_with: the command that would record a baseline, for the words of a missing one.

    Raises:
        InvalidBaselineError: a stored session cannot be used.
        MeasurementError, CalibrationError: a session cannot be measured.
    """
    known = session_of(lab, [], None)
    baseline, nearby = find_baseline(store, known, policy, pinned)
    place = Place(looked_for=str(store.folder(known.fingerprint, pinned)), nearby=nearby)
    place = place if record_with is None else replace(place, record_with=record_with)
    if not baseline:
        # Nothing to compare with, so nothing is lost to a disturbed host and no second try is worth its time.
        seen = [session_of(lab, [lab.measure(workload) for workload in workloads], None)]
        current = lab
        while len(seen) < (sessions or 1):
            sitting = sit(current, workloads, say=say, repeats=0)
            seen.append(sitting.session)
            current = sitting.lab
        return Gated(judge([], seen, policy, place=place), (), tuple(seen))
    first = sit(lab, workloads, fresh=False, say=say)
    candidate, current = [first.session], first.lab
    planned = sessions is None
    for wanted in (policy.first_sessions, policy.session_budget) if sessions is None else (sessions,):
        while len(candidate) < wanted:
            if say is not None:
                say(f"session {len(candidate) + 1} of {wanted}")
            sitting = sit(current, workloads, say=say)
            candidate.append(sitting.session)
            current = sitting.lab
        result = judge(baseline, candidate, policy, planned=planned, place=place)
        # Only what is still open is measured again.
        workloads = [one for one in workloads if any(cell.label in result.needs_more for cell in one.cells)]
        if not workloads:
            break
    if _regressed(result) and tells_own_error(baseline):
        lab.calibrations.measure([1])
        facts = {OWN_ERROR: lab.calibrations.as_json()}
        candidate = [replace(one, client={**one.client, **facts}) for one in candidate]
        result = judge(baseline, candidate, policy, planned=planned, place=place)
    if pinned is None:
        result = with_pinned(result, _against_pins(store, known, candidate, policy))
    return Gated(result, tuple(baseline), tuple(candidate))


def _regressed(result: GateResult) -> bool:
    return any(row.verdict is Verdict.REGRESSION for row in result.findings)


def _against_pins(
    store: BaselineStore, known: Session, candidate: Sequence[Session], policy: Policy
) -> dict[str, GateResult]:
    """The same candidate against every pinned baseline of this server: they see what creeps slowly."""
    return {
        label: judge(sessions, candidate, policy)
        for label in store.pins()
        if (sessions := store.read(known.fingerprint, label))
    }


def gate_paired(
    candidate: Lab,
    reference: Lab,
    workloads: Sequence[Workload],
    policy: Policy,
    *,
    blocks: int,
    say: Say | None = None,
) -> Gated:
    """Judge a lab's engine against a reference that runs at the same time.

    Every block visits each side twice, in one of the orders ABBA and BAAB, so that a drift of the host falls on both
    sides alike. The repetitions of each workload are spread over the visits.

    Raises:
        MeasurementError, CalibrationError: a visit cannot be measured.
    """
    # The plan of each visit is in its workloads; the lab's own override would undo it.
    labs = {"candidate": replace(candidate, requests=None), "reference": replace(reference, requests=None)}
    found: dict[str, list[Session]] = {"candidate": [], "reference": []}
    orders = block_orders(blocks, np.random.default_rng([candidate.seed, 7]))
    for number, order in enumerate(orders, 1):
        visits: dict[str, list[Session]] = {"candidate": [], "reference": []}
        for letter in order:
            side = "reference" if letter == "A" else "candidate"
            if say is not None:
                say(f"block {number} of {blocks}: {side}")
            lab = labs[side] = labs[side].renewed(restart=False)
            visits[side].append(session_of(lab, [lab.measure(workload) for workload in workloads], None))
        for side, sessions in visits.items():
            found[side].append(_one_block(sessions, number, order))
    result = judge(found["reference"], found["candidate"], policy, paired=True)
    return Gated(result, tuple(found["reference"]), tuple(found["candidate"]))


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


def spread_over_visits(workloads: Sequence[Workload], requests: int | None) -> list[Workload]:
    """The workloads with the repetitions of one visit: about a quarter of a session's, at least three."""
    return [
        replace(one, requests=max(3, (requests or one.requests) // 4), warmups=min(one.warmups, 1)) for one in workloads
    ]
