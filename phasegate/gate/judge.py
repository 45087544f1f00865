"""The gate: two sets of sessions and a policy in, a verdict with its reasons out.

The order is fixed. First what makes a whole run unfit (nothing measured, other hardware, another host); then what
makes a single comparison unfit; then the statistics, which see only comparisons that may be made; then the words. The
binding phase is decided from the baseline before anybody looks at the candidate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from phasegate.core.session import Session
from phasegate.gate.answers import answer
from phasegate.gate.attribution import attribute
from phasegate.gate.binding import Binding, binding_phase, flip
from phasegate.gate.blocks import paired_blocks
from phasegate.gate.client_growth import unless_the_client
from phasegate.gate.comparable import (
    KEYS,
    OTHER_HOST,
    differing_keys,
    host_problem,
    host_warning,
    say_differences,
    tells_nothing,
)
from phasegate.gate.headline import headline
from phasegate.gate.levels import Side
from phasegate.gate.levers import lever_line
from phasegate.gate.objectives import judge_objectives
from phasegate.gate.policy import Policy
from phasegate.gate.question import questions
from phasegate.gate.remarks import idle_rules, same_sessions
from phasegate.gate.slower_phase import slower_phase
from phasegate.gate.validity import Problem
from phasegate.gate.verdict import Coverage, Finding, GateResult, Verdict, refused, worst
from phasegate.gate.window import choose_window

BROKEN = (Verdict.REGRESSION, Verdict.SLO_BREACH)
"""The words of rows that broke a limit: those a lever is named for."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the baseline was looked for, and how there comes to be one; for the words of a missing one.

    Attributes:
        looked_for: the place.
        record_with: the command that records one there.
        nearby: what is there instead.
        otherwise: what to do where no command records one there; empty where ``record_with`` does.
    """

    looked_for: str = "the baseline"
    record_with: str = "pytest perf_tests --update-baselines --perf-sessions 8"
    nearby: str = ""
    otherwise: str = ""


def judge(
    baseline: Sequence[Session],
    candidate: Sequence[Session],
    policy: Policy,
    *,
    paired: bool = False,
    planned: bool = False,
    whole_baseline: bool = False,
    place: Place | None = None,
    stopped: str | None = None,
) -> GateResult:
    """Judge a candidate.

    Args:
        baseline: accepted sessions, or the reference's blocks when paired; empty where there is none.
        candidate: sessions of the server under test, or its blocks when paired.
        policy: the numbers that decide.
        paired: both sides were measured in one sitting, block by block; sessions are then paired by their ids, or in
            order where the ids differ, and neither host nor fingerprint is compared.
        planned: the candidate's sessions follow the policy's sequence; ``needs_more`` of the result then names the
            workloads to measure again.
        whole_baseline: judge by every given session instead of the newest ``sessions.window``.
        place: for the words of a missing baseline.
        stopped: which limit of the run ended it before its plan was done, in one line: what it did not measure is then
            not decided, and no fault of the run; None where it came to its end.
    """
    fit, warnings = _without_disturbed(candidate, "run")
    warnings += [stopped] if stopped else []
    if not any(one.samples or one.requests for session in fit for one in session.measurements):
        reason, remedy = _nothing(candidate)
        expected = _expected(baseline, policy)
        if stopped and not candidate:
            return refused(Verdict.INCONCLUSIVE, f"nothing was measured: {stopped}", expected=expected)
        return refused(Verdict.INVALID_RUN, reason, remedy=remedy, expected=expected, warnings=warnings)
    if not baseline:
        return _without_baseline(Side.of(fit), policy, place or Place(), warnings)
    known, more = _without_disturbed(baseline, "baseline")
    more += [line for line in (same_sessions(known, fit),) if line]
    if not known:
        reason, remedy = "every session of the baseline was disturbed", "record it again on a quiet host"
        return refused(Verdict.INVALID_BASELINE, reason, remedy=remedy, warnings=(*warnings, *more))
    problem = None if paired else _not_comparable(known, fit, policy)
    if problem is not None:
        expected = _expected(baseline, policy)
        return refused(
            problem.verdict, problem.reason, remedy=problem.advice, expected=expected, warnings=(*warnings, *more)
        )
    newest = None if whole_baseline else policy.window
    return _compare(
        known, fit, policy, [*warnings, *more], paired=paired, planned=planned, newest=newest, stopped=stopped
    )


def _without_disturbed(sessions: Sequence[Session], word: str) -> tuple[list[Session], list[str]]:
    """The sessions that may be used, and a warning for each that may not."""
    return (
        [one for one in sessions if one.disturbed is None],
        [f"session {one.session_id} of the {word} is left out: {one.disturbed}" for one in sessions if one.disturbed],
    )


def _nothing(candidate: Sequence[Session]) -> tuple[str, str]:
    """Why nothing was measured, and what to do."""
    if candidate and all(one.disturbed for one in candidate):
        return f"every session of the run was disturbed ({candidate[0].disturbed})", "measure again on a quiet host"
    return "this run measured nothing, so nothing is known about the server", "see why it ended and run it again"


def _expected(baseline: Sequence[Session], policy: Policy) -> int:
    side = Side.of(baseline)
    return sum(1 for _ in questions(side, Side.of(()), _bindings(side, policy), policy))


def _bindings(side: Side, policy: Policy) -> dict[str, Binding]:
    return {workload: binding_phase(side, workload, policy) for workload in side.workloads()}


def _without_baseline(candidate: Side, policy: Policy, place: Place, warnings: Sequence[str]) -> GateResult:
    nearby = f" ({place.nearby})" if place.nearby else ""
    remedy = place.otherwise or f"record one with: {place.record_with}"
    reason = f"no baseline: looked for {place.looked_for}{nearby}; {remedy}"
    rows = tuple(judge_objectives(candidate, policy))
    verdict = worst([Verdict.NO_BASELINE, *(row.verdict for row in rows)])
    said = reason if verdict is Verdict.NO_BASELINE else f"{headline(verdict, rows, rows)} Also: {reason}"
    return GateResult(verdict, said, Coverage(0, 0), rows, tuple(warnings), refusal_remedy=remedy)


def _not_comparable(baseline: Sequence[Session], candidate: Sequence[Session], policy: Policy) -> Problem | None:
    """Why the sides speak of different servers, or None."""
    for word, sessions in (("baseline", baseline), ("run", candidate)):
        newest = sessions[-1].server
        found = (differing_keys(one.server, newest, ignore=policy.compare_across) for one in sessions)
        mixed = next((differences for differences in found if differences), None)
        if mixed:
            reason = f"the {word} mixes servers: {say_differences(mixed)}"
            return Problem(Verdict.NOT_COMPARABLE, reason, "keep one server in a set of sessions")
    differences = differing_keys(baseline[-1].server, candidate[-1].server, ignore=policy.compare_across)
    silent = _silent(baseline, candidate)
    if differences and silent:
        advice = (
            f"compare results of one kind, or name the keys ({', '.join(KEYS)}) under compare_across in the policy "
            "where you know that it is"
        )
        return Problem(Verdict.NOT_COMPARABLE, f"{silent}, so nobody knows whether it is the same one", advice)
    if differences:
        advice = (
            "record a baseline for this one, or name the keys under compare_across in the policy where the change is "
            "what you test"
        )
        reason = f"the baseline comes from another server: {say_differences(differences)}"
        return Problem(Verdict.NOT_COMPARABLE, reason, advice)
    host = host_problem(baseline, candidate)
    return Problem(Verdict.NOT_COMPARABLE, host, OTHER_HOST) if host else None


def _compare(
    known: Sequence[Session],
    fit: Sequence[Session],
    policy: Policy,
    warnings: list[str],
    *,
    paired: bool,
    planned: bool,
    newest: int | None,
    stopped: str | None,
) -> GateResult:
    if paired:
        known, fit, remark = paired_blocks(known, fit)
        if not known:
            reason = "the sides have different numbers of blocks and none in common, so nothing can be paired"
            remedy = "give both sides the same number of blocks, or leave out --paired"
            return refused(Verdict.INVALID_RUN, reason, remedy=remedy, warnings=warnings)
        warnings += [line for line in (remark, *_what_differs(known, fit)) if line]
    else:
        window = choose_window(known, policy, newest)
        known = window.sessions
        warnings += [line for line in (window.warning, host_warning(known, fit)) if line]
    baseline, candidate = Side.of(known), Side.of(fit)
    binding = _bindings(baseline, policy)
    for workload in candidate.workloads():
        binding.setdefault(workload, binding_phase(candidate, workload, policy))
    asked = list(questions(baseline, candidate, binding, policy))
    answers = answer(asked, baseline, candidate, policy, paired=paired, planned=planned, stopped=stopped)
    warnings += [line for line in (answers.common_shift, *_flips(baseline, candidate, policy)) if line]
    warnings += _unknown_metrics(baseline, candidate, policy)
    warnings += idle_rules(policy, (question.workload for question in asked))
    warnings += [] if planned or stopped else _gaps(candidate)
    warnings += [note for row in answers.rows for note in row.notes]
    rows = [*answers.rows, *judge_objectives(candidate, policy)]
    if not paired:  # in one sitting both sides had the same client
        rows = [unless_the_client(row, known, fit) for row in rows]
    expected = [question for question in asked if baseline.measurements(question.key)]
    compared = sum(1 for row in rows if row.ratio is not None)
    unit = "block" if paired else "session"
    result = _result(rows, Coverage(len(expected), compared), warnings, binding, (baseline, candidate), unit)
    return replace(result, needs_more=answers.needs_more)


def _what_differs(baseline: Sequence[Session], candidate: Sequence[Session]) -> list[str]:
    differences = differing_keys(baseline[-1].server, candidate[-1].server)
    if not differences:
        return []
    return [_silent(baseline, candidate) or f"the two servers differ in: {say_differences(differences)}"]


def _silent(baseline: Sequence[Session], candidate: Sequence[Session]) -> str | None:
    """One clause where one side tells nothing of its server, else None."""
    for word, sessions in (("baseline", baseline), ("run", candidate)):
        if tells_nothing(sessions[-1].server):
            return f"the {word} does not say which server it measured"
    return None


def _flips(baseline: Side, candidate: Side, policy: Policy) -> Iterator[str]:
    for workload in candidate.workloads():
        line = flip(baseline, candidate, workload, policy) if workload in set(baseline.workloads()) else None
        if line:
            yield line


def _gaps(candidate: Side) -> list[str]:
    """A line for every workload that some sessions of an unplanned run did not measure."""
    found = {}
    for (workload, _), row in candidate.by_key.items():
        if len(row) < len(candidate.sessions):
            found[workload] = f"{workload} was measured in {len(row)} of {len(candidate.sessions)} sessions; see why"
    return list(found.values())


def _unknown_metrics(baseline: Side, candidate: Side, policy: Policy) -> list[str]:
    names = {metric for _, metric in (*baseline.by_key, *candidate.by_key) if policy.facts(metric) is None}
    return [f"the metric {name!r} is not judged: declare it under metrics in the policy" for name in sorted(names)]


def _result(
    rows: Sequence[Finding],
    coverage: Coverage,
    warnings: Sequence[str],
    binding: Mapping[str, Binding],
    sides: tuple[Side, Side],
    unit: str,
) -> GateResult:
    ordered = tuple(sorted(rows, key=lambda row: (not row.gated, -row.verdict.badness)))
    gated = [row for row in ordered if row.gated]
    # Without a gated row nothing was decided, whatever the informing rows say.
    verdict = worst(row.verdict for row in gated) if gated else Verdict.INCONCLUSIVE
    if verdict.green:  # Whether a build improved is for the phases that bind to say.
        verdict = worst(row.verdict for row in [row for row in gated if row.binds] or gated)
    slower = {row.workload for row in rows if row.verdict is Verdict.REGRESSION}
    told = {workload: attribute(*sides, workload) for workload in sorted(slower)}
    return GateResult(
        verdict=verdict,
        reason=headline(verdict, gated, ordered, unit),
        coverage=coverage,
        findings=ordered,
        warnings=tuple(dict.fromkeys([*warnings, *_advisory_warnings(ordered)])),
        binding={workload: one.reason for workload, one in binding.items()},
        attributions={workload: line for workload, line in told.items() if line},
        lever=_lever(gated, ordered) if verdict in BROKEN else None,
    )


def _advisory_warnings(rows: Sequence[Finding]) -> Iterator[str]:
    for row in rows:
        if not row.gated and row.verdict is Verdict.REGRESSION:
            yield f"not gated, but slower: {row.reason}"
        elif row.gated and row.verdict is Verdict.PASS and row.proven_slower:
            yield f"slower, but by too little to fail: {row.reason}"


def _lever(gated: Sequence[Finding], every: Sequence[Finding]) -> str:
    return lever_line(slower_phase([row for row in gated if row.verdict in BROKEN], every))
