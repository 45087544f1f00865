"""How a run ends: one word, its exit status, and what it covers. Summary and reports repeat what stands here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest

from phasegate.gate.exit_status import PYTEST_STATUS, RunWord, Spoken, run_word
from phasegate.pytest_plugin.scope import Scope, scope_of
from phasegate.pytest_plugin.tally import GATE

if TYPE_CHECKING:
    from phasegate.pytest_plugin.state import PerfState
    from phasegate.pytest_plugin.tally import Tally

PYTESTS_OWN = {2: "INTERRUPTED", 3: "INVALID_RUN", 4: "NOT_MEASURED", 5: "NOT_MEASURED", 15: "NOT_MEASURED"}
"""The word for a run that pytest itself ended with a status; 15 is that of `outcomes.NotMeasurable`."""

PARALLEL = "measuring in parallel would measure the neighbours: run perf tests without -n, or with -n 0"

TOLERATED = {
    "NO_BASELINE": "--missing-baseline skip, the default outside a pipeline, lets the run pass",
    "INCONCLUSIVE": "the policy lets it pass (inconclusive: pass-with-warning)",
}


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a run.

    Attributes:
        word, status: of the run.
        reason: one sentence where no test and no comparison says why; else empty.
        scope: what the word covers, and what it does not.
        measuring: whether the run was one that measures; the word of any other is for reports only.
    """

    word: str
    status: int
    reason: str
    scope: Scope
    measuring: bool

    def at(self, status: int) -> Ending:
        """The same end, or that of a run which an error has taken its word from since."""
        if status == self.status:
            return self
        return replace(self, word="INVALID_RUN", status=status, reason="an error ended its summary; see above")

    def lines(self) -> Iterator[str]:
        """The end in words, behind the word itself."""
        yield f"exit status {self.status}{': ' if self.reason else ''}{self.reason}"
        if self.scope.judged:
            yield f"judged: {', '.join(self.scope.judged)}"
        if self.scope.not_judged:
            yield f"not judged: {', '.join(self.scope.not_judged)}"


def end_of(session: pytest.Session, exitstatus: int, tally: Tally, state: PerfState | None) -> Ending:
    """The end of a run whose last test has ended, and whose sessions are stored or refused.

    Args:
        session: for its options and its count of failures.
        exitstatus: what pytest would end with.
        tally: how the tests ended.
        state: of the run; None where no test of this process measures.
    """
    config = session.config
    scope = scope_of(tally, state)
    if exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        word, reason = PYTESTS_OWN.get(int(exitstatus), "INTERRUPTED"), ""
        mine = exitstatus == pytest.ExitCode.INTERRUPTED and bool(tally.measuring)
        if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and tally.left:
            mine, reason = True, "the selection left out every test"
        return Ending(word, int(exitstatus), reason, scope, mine)
    spoken = [*tally.spoken(), *_unexplained(session, exitstatus, tally)]
    only_shown = any(config.getoption(name) for name in ("collectonly", "--perf-dry-run", "setupplan"))
    mine = not only_shown and bool(tally.measuring or tally.ended or config.getoption("--update-baselines"))
    if not mine:
        return Ending(run_word(spoken).word, int(exitstatus), "", scope, False)
    missing = _missing(config, tally, state)
    if cut_short(session, tally):
        spoken.append(Spoken("INTERRUPTED"))
    if state is not None and state.gate is not None:
        spoken += state.gate.spoken()
    found = run_word([*spoken, *([Spoken(missing[0])] if missing else [])])
    return Ending(found.word, found.status, _reason(found, missing, tally, state), scope, True)


def cut_short(session: pytest.Session, tally: Tally) -> bool:
    """Whether something other than a failure ended the run before its last test, such as ``pytest.exit`` in one."""
    return bool(tally.unreached) and not session.testsfailed and not session.config.getoption("setuponly")


def _unexplained(session: pytest.Session, exitstatus: int, tally: Tally) -> Iterator[Spoken]:
    """Failures of which no test spoke: a file that cannot be read, or another plugin's."""
    if exitstatus == pytest.ExitCode.TESTS_FAILED and (session.testsfailed != len(tally.failed) or not tally.failed):
        yield Spoken("FAIL")


def _missing(config: pytest.Config, tally: Tally, state: PerfState | None) -> tuple[str, str] | None:
    """A word and its reason where a run did not do what it was for: nothing measured, nothing stored; else None."""
    gate = state.gate if state is not None else None
    if tally.measuring and not tally.count("passed", "failed") and not _measured(state):
        idle = len(tally.measuring)
        return "NOT_MEASURED", f"{idle} tests that measure were chosen and none came to measure (-rs says why)"
    if not config.getoption("--update-baselines") or "NOT_MEASURED" in tally.failed:
        return None
    if gate is not None and not gate.updates and tally.count("failed", of=GATE):
        return "INVALID_RUN", "baselines not updated: no session could be measured; its tests say why"
    if gate is None or not (gate.updates or gate.refused):
        return "INVALID_RUN", "baselines not updated: no test of perf_tests/test_regression.py came to measure"
    if gate.refused and not gate.refused.by_failures:
        return "INVALID_RUN", f"baselines not updated: {gate.refused.reason}"
    return None


def _measured(state: PerfState | None) -> bool:
    """Whether anything was measured, by whatever test."""
    if state is None or state.runner is None:
        return False
    load, gate = state.load, state.gate
    return bool(
        state.runner.runs
        or (load is not None and not load.load.empty)
        or (gate is not None and (gate.gated is not None or gate.updates))
    )


def _reason(found: RunWord, missing: tuple[str, str] | None, tally: Tally, state: PerfState | None) -> str:
    if missing is not None and found.word == missing[0]:
        return missing[1]
    if found.word == "NOT_MEASURED" and state is None:
        return PARALLEL
    if found.word == "PASS" and state is not None and state.gate is not None and state.gate.stored:
        return "the measured sessions are stored"
    if found.word == "NOT_JUDGED":
        return "measured, and nothing was asked to be judged"
    if found.status != PYTEST_STATUS[found.word]:
        return TOLERATED.get(found.word, "")
    passed_over = found.word in ("REGRESSION", "SLO_BREACH") and found.word not in tally.failed
    if passed_over:
        return "a comparison says so whose test was left out; every comparison counts"
    gated = state.gate.gated if state is not None and state.gate is not None else None
    unsaid = gated is not None and gated.result.verdict.value == found.word and found.word not in tally.failed
    return gated.result.reason if gated is not None and unsaid and found.status else ""
