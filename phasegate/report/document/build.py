"""A document from what a finished run left behind: the lab, the laws, the gate, the load, and how the tests ended.

Any part may be missing: a run that was stopped, refused or never reached its server has a document as well.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from phasegate import __version__
from phasegate.core.session import Session
from phasegate.gate.policy import Policy
from phasegate.gate.slo import Objective
from phasegate.gate.slo_share import Kept
from phasegate.gate.verdict import GateResult
from phasegate.measure.load_runner import LoadRunner
from phasegate.measure.session_runner import SessionRunner
from phasegate.report.document.codec import plain
from phasegate.report.document.from_gate import gate_of, trends_of
from phasegate.report.document.from_load import load_of
from phasegate.report.document.from_runner import example_request, tables_of
from phasegate.report.document.headline import Parts, headline_of
from phasegate.report.document.model import SCHEMA, Document, Environment, Failure, Law, Reproduce
from phasegate.report.document.scrub import scrubbed
from phasegate.report.document.surroundings import environment_of, session_environment, validity_of
from phasegate.stats.outcome import LawResult


@dataclass(frozen=True, slots=True)
class Finished:
    """What a run left behind.

    Attributes:
        created: UTC time in ISO 8601.
        exit_status: of the run.
        word: of the run, as its exit status was decided by; empty where nobody has decided one, as for stored sessions.
        scope: what the word covers, and what it does not, each in few words.
        lab: None where no engine could be reached.
        laws: (test, result) in the order of judging.
        result: the gate's; None where nothing was gated.
        baseline, candidate: the gate's sessions, baseline or reference first.
        stored: one line on the candidate's sessions, where they became a baseline.
        record_with: the command that records a baseline; empty where nothing was gated.
        paired: whether the sides were measured in one sitting.
        policy: by which it was judged.
        load, objectives, judged: what was measured under load, what was promised, and how that was judged.
        invalid: why parts of the run prove nothing.
        failures, outcomes: how the tests ended.
        interrupted: whether the user stopped it.
        duration: seconds; None where unknown.
        commands: what was typed, and what would show or repeat it.
        secrets: values that must not appear, such as the API key.
        remarks: what a reader must know of the run as a whole.
        diagnosis: findings as frozen values or mappings.
        server_timings, roofline: as the parts that measured them wrote them.
    """

    created: str
    exit_status: int | None = None
    word: str = ""
    scope: tuple[Sequence[str], Sequence[str]] = ((), ())
    runner: SessionRunner | None = None
    laws: Sequence[tuple[str, LawResult]] = ()
    result: GateResult | None = None
    baseline: Sequence[Session] = ()
    candidate: Sequence[Session] = ()
    stored: str = ""
    record_with: str = ""
    paired: bool = False
    policy: Policy = field(default_factory=Policy)
    load: LoadRunner | None = None
    objectives: Sequence[Objective] = ()
    judged: Sequence[Kept] = ()
    invalid: Sequence[str] = ()
    failures: Sequence[Failure] = ()
    outcomes: Mapping[str, int] = field(default_factory=dict)
    interrupted: bool = False
    duration: float | None = None
    commands: Sequence[str] = ()
    secrets: Collection[str] = field(default=(), repr=False)
    remarks: Sequence[str] = ()
    diagnosis: Sequence[Any] = ()
    server_timings: Mapping[str, Any] | None = None
    roofline: Mapping[str, Any] | None = None


def build(run: Finished) -> Document:
    """The document of a finished run, free of secrets."""
    runs = [] if run.runner is None else list(run.runner.runs.values())
    sides = (run.baseline, run.candidate)
    gate = None if run.result is None else gate_of(run.result, *sides, run.policy, paired=run.paired)
    laws = tuple(_law(test, result) for test, result in run.laws)
    load = None if run.load is None else load_of(run.load, run.objectives, run.judged)
    validity = validity_of(
        run.runner, run.invalid, run.failures, run.outcomes, sides, interrupted=run.interrupted, duration=run.duration
    )
    validity = replace(validity, remarks=(*run.remarks, *validity.remarks))
    headline = headline_of(Parts(gate, laws, load, validity, run.stored, run.record_with), run.word)
    document = Document(
        schema=SCHEMA,
        phasegate=__version__,
        created=run.created,
        exit_status=run.exit_status,
        headline=replace(headline, judged=tuple(run.scope[0]), not_judged=tuple(run.scope[1])),
        gate=gate,
        laws=laws,
        workloads=tables_of(runs),
        load=load,
        request=example_request(runs),
        trends=trends_of(gate, *sides, run.policy) if run.candidate else (),
        validity=validity,
        environment=_environment(run),
        reproduce=Reproduce(tuple(run.commands), None if run.runner is None else run.runner.seed),
        diagnosis=tuple(plain(one) for one in run.diagnosis),
        server_timings=None if run.server_timings is None else plain(run.server_timings),
        roofline=None if run.roofline is None else plain(run.roofline),
    )
    return scrubbed(document, run.secrets)


def _environment(run: Finished) -> Environment:
    reference = run.baseline if run.paired else ()
    if run.runner is not None:
        return environment_of(
            run.runner, run.policy, list(dict.fromkeys(one.text for one in run.objectives)), reference
        )
    if run.candidate:
        return session_environment(run.candidate, reference, run.policy)
    return Environment()


def from_sessions(
    candidate: Sequence[Session],
    policy: Policy,
    *,
    created: str,
    baseline: Sequence[Session] = (),
    result: GateResult | None = None,
    paired: bool = False,
    commands: Sequence[str] = (),
) -> Document:
    """The document of stored sessions: no laws, no load and no single request, which sessions do not hold."""
    document = build(
        Finished(
            created, policy=policy, baseline=baseline, candidate=candidate, paired=paired, result=result,
            commands=commands,
        )
    )  # fmt: skip
    sent = [one for session in candidate for one in session.measurements if one.metric in ("e2el", "request_latency")]
    counted = replace(
        document.validity,
        requests=sum(one.requests for one in sent),
        failed=sum(one.failed for one in sent),
        unfit=sum(one.invalid for one in sent),
    )
    return replace(document, validity=counted)


def _law(test: str, result: LawResult) -> Law:
    return Law(
        law=result.law,
        outcome=result.outcome.value,
        reason=result.reason,
        unit=result.unit,
        confidence=result.confidence,
        n=result.n,
        effect=result.effect,
        low=result.low,
        high=result.high,
        needed=result.needed,
        warnings=result.warnings,
        detail=result.detail,
        test=test,
    )


__all__ = ["Finished", "build", "from_sessions"]
