"""The diagnosis at the end of a pytest run: everything that the run measured, explained."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from phasegate.diagnose import Diagnosis, Observations, diagnose
from phasegate.diagnose.from_gate import diagnose_gated
from phasegate.diagnose.from_limits import machine_of
from phasegate.diagnose.from_runs import observations_of
from phasegate.diagnose.from_sessions import observations_of_sessions
from phasegate.gate.verdict import Verdict
from phasegate.report.diagnosis_lines import write_diagnosis

if TYPE_CHECKING:
    from phasegate.diagnose.roofline_words import Roofline
    from phasegate.measure.compare_runs import Gated
    from phasegate.pytest_plugin.state import PerfState


def write_run_diagnosis(terminal: Any, state: PerfState, limits: Roofline | None = None) -> None:
    """Write the block, where there is one."""
    found = run_diagnosis(state, limits)
    if found is not None:
        write_diagnosis(terminal, found)


def run_diagnosis(state: PerfState, limits: Roofline | None = None) -> Diagnosis | None:
    """What takes the time; None where nothing was measured, and about figures that cannot be judged."""
    now = observations_of_run(state)
    if now is None or state.invalid:
        return None
    if limits is not None:
        now = replace(now, machine=machine_of(limits))
    return explain_run(state, now)


def explain_run(state: PerfState, now: Observations) -> Diagnosis:
    """The diagnosis of a run; against its baseline where the gate found a regression, which is more than noise."""
    found = explain_gated(state.gate.gated if state.gate is not None else None, now)
    if found.found or state.load is None:
        return found
    return replace(found, missed=tuple(state.load.broken))


def explain_gated(gated: Gated | None, now: Observations) -> Diagnosis:
    """The diagnosis of what a run measured, and where its gate found a regression, of what that proved."""
    if gated is None or gated.result.verdict is not Verdict.REGRESSION:
        return diagnose(now)
    return diagnose_gated(gated.result, gated.baseline, gated.candidate, now)


def observations_of_run(state: PerfState) -> Observations | None:
    """What a run measured; None where it measured nothing."""
    if state.runner is None:
        return _observations_of_gate(state)
    load = state.load.load if state.load is not None else None
    runs = [run for run in state.runner.runs.values() if run.measured]
    levels = {**load.searched, **load.levels}.values() if load is not None else ()
    if not runs and not levels:
        return _observations_of_gate(state)
    return observations_of(
        runs,
        levels=levels,
        collisions=load.collisions if load is not None else (),
        objectives=state.load_options.objectives,
        host=tuple(dict.fromkeys(_disturbances(state))),
    )


def _observations_of_gate(state: PerfState) -> Observations | None:
    """What the sessions of a run measured that did nothing but gate, without those of a frozen reference."""
    gate = state.gate
    if gate is None or gate.gated is None:
        return None
    found = observations_of_sessions(gate.gated.candidate)
    own = tuple(ask for ask in found.asks if not state.policy.is_sentinel(ask.name))
    calls = tuple(one for one in found.caches if not state.policy.is_sentinel(one.name))
    return replace(found, asks=own, caches=calls) if own else None


def _disturbances(state: PerfState) -> Iterator[str]:
    """What disturbed the engine's host: in the sessions that were judged or are to be stored, else in the whole run."""
    gate = state.gate
    sessions = [*(gate.updates if gate is not None else ()), *(gate.gated.candidate if gate and gate.gated else ())]
    yield from (one.disturbed for one in sessions if one.disturbed)
    if not sessions and state.disturbed is not None:
        yield state.disturbed
