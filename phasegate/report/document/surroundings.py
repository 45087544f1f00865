"""Environment and validity in the document: on what was measured, by which numbers, and whether to believe it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from phasegate.cli.profile_lines import profile_words
from phasegate.core.identity import UNKNOWN, ClientIdentity, ServerIdentity
from phasegate.core.session import Session
from phasegate.core.units import format_percent, format_seconds
from phasegate.gate.policy import Policy
from phasegate.measure.session_runner import SessionRunner
from phasegate.report import run_words
from phasegate.report.document.model import Environment, Failure, PolicyValue, Validity


def environment_of(
    runner: SessionRunner, policy: Policy, objectives: Sequence[str], reference: Sequence[Session]
) -> Environment:
    """The surroundings of a lab's run. ``reference`` are the blocks of the server compared with, in a paired run."""
    return Environment(
        server={
            **server_facts(runner.server),
            "profile": profile_words(runner.profile, runner.server, runner.endpoint, mark_prefix=runner.mark_prefix),
        },
        client=client_facts(runner.client),
        reference=_texts(reference[-1].server) if reference else {},
        settings=_texts(runner.server.settings),
        prompts=runner.prompt_line(),
        plan=runner.plan,
        policy=tuple(policy_values(policy)),
        objectives=tuple(objectives),
    )


def server_facts(server: ServerIdentity) -> dict[str, str]:
    """What is known of the server, each fact with where it was learnt; unknown ones are left out."""
    facts = {
        "engine": server.engine,
        "version": server.version,
        "model": server.model,
        "hardware": server.hardware,
        "host": server.host,
    }
    known = {name: str(value) for name, value in facts.items() if value and value != UNKNOWN}
    return {name: f"{value}{_source(server.sources, name)}" for name, value in known.items()}


def _source(sources: Mapping[str, str], name: str) -> str:
    source = sources.get(name)
    return f" (from {source})" if source else ""


def client_facts(client: ClientIdentity) -> dict[str, str]:
    """The machine and software that measured."""
    facts = {one.name: getattr(client, one.name) for one in fields(client)}
    facts["affinity"] = ", ".join(map(str, client.affinity)) or "any core"
    return {name: str(value) for name, value in facts.items() if value not in ("", UNKNOWN)}


def _texts(facts: Mapping[str, Any]) -> dict[str, str]:
    """Facts as text; nested ones (settings, sources) and unknown ones are left out."""
    return {
        str(name): str(value)
        for name, value in facts.items()
        if value not in (None, "", UNKNOWN) and not isinstance(value, (Mapping, list, tuple))
    }


def session_environment(sessions: Sequence[Session], baseline: Sequence[Session], policy: Policy) -> Environment:
    """The surroundings that stored sessions tell of."""
    newest = sessions[-1]
    settings = newest.server.get("settings")
    return Environment(
        server=_texts(newest.server),
        client=_texts(newest.client),
        reference=_texts(baseline[-1].server) if baseline else {},
        settings=_texts(settings) if isinstance(settings, Mapping) else {},
        policy=tuple(policy_values(policy)),
        objectives=tuple(one.text for one in policy.slos),
    )


def policy_values(policy: Policy) -> Iterable[PolicyValue]:
    """Every general number of the policy with its source, then the rules of a file."""
    for phase, value in policy.tolerance.items():
        key = f"tolerance.{phase}"
        yield PolicyValue(key, format_percent(value), policy.source(key))
    for phase in policy.tolerance:
        key = f"fail-from.{phase}"
        size = policy.fail_from.get(phase)
        yield PolicyValue(key, "half the tolerance" if size is None else format_percent(size), policy.source(key))
    for phase, value in policy.floor.items():
        key = f"floor.{phase}"
        yield PolicyValue(key, format_seconds(value), policy.source(key))
    general = {
        "gate": policy.gate,
        "other-phase": "off" if policy.other_phase is None else f"{policy.other_phase:g} times the tolerance",
        "percentiles": ", ".join(f"p{one:g}" for one in policy.percentiles),
        "alpha": f"{policy.alpha:g}",
        "sessions.first": f"{policy.first_sessions}",
        "sessions.budget": f"{policy.session_budget}",
        "sessions.window": f"{policy.window}",
        "inconclusive": policy.inconclusive,
        "max_error_rate": format_percent(policy.max_error_rate),
        "max_unfit_rate": format_percent(policy.max_unfit_rate),
    }
    for key, text in general.items():
        yield PolicyValue(key, text, policy.source(key))
    for rule in policy.rules:
        what = "; ".join(
            f"{name} {value}"
            for name in ("tolerance", "fail-from", "floor", "percentiles", "gate")
            if (value := getattr(rule, name.replace("-", "_"))) is not None
        )
        whom = " ".join(part for part in (rule.workload, rule.metric or "", rule.phase or "") if part)
        yield PolicyValue(f"rule for {whom}", what, next(iter(rule.lines.values()), "default"))


def validity_of(
    runner: SessionRunner | None,
    invalid: Sequence[str],
    failures: Sequence[Failure],
    outcomes: Mapping[str, int],
    sides: tuple[Sequence[Session], Sequence[Session]],
    *,
    interrupted: bool,
    duration: float | None,
) -> Validity:
    """Whether the numbers may be believed; ``sides`` are the gate's sessions, baseline first."""
    runs = [] if runner is None else sorted(runner.runs.values(), key=run_words.reading_order)
    remarks = [] if runner is None else list(runner.warnings)
    remarks += [f"{run.workload.name}: {line}" for run in runs for line in run_words.remarks(run)]
    for word, sessions in zip(("baseline", "run"), sides, strict=True):
        remarks += [f"session {one.session_id} of the {word}: {one.disturbed}" for one in sessions if one.disturbed]
    return Validity(
        invalid=tuple(invalid),
        failures=tuple(failures),
        outcomes=dict(outcomes),
        requests=0 if runner is None else runner.traffic.sent.requests,
        failed=0 if runner is None else runner.traffic.failed,
        unfit=0 if runner is None else runner.traffic.unfit,
        remarks=tuple(remarks),
        sessions=(len(sides[0]), len(sides[1])),
        interrupted=interrupted or any(run.partial for run in runs),
        duration=duration,
    )
