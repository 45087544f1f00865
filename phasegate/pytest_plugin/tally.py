"""How the tests of a run ended, kept as plain values: what the word of the run is decided from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import pytest

from phasegate.gate.exit_status import BROKEN, PYTEST_STATUS, Spoken
from phasegate.pytest_plugin.chosen import ROW, measures

GATE, LAW, OBJECTIVE = "perf_gate", "perf_law", "perf_objective"
"""The fixtures by which tests compare with a baseline, judge a law, and judge an objective."""

KINDS = frozenset({GATE, LAW, OBJECTIVE, ROW})


@dataclass(eq=False)
class Tally:
    """The tests of one run that measure, and how all tests ended; a plugin of that run.

    Attributes:
        measuring: chosen test that measures -> which of `KINDS` it takes.
        left: tests that measure and were left out by a selection (``-k``, ``-m``, ``--deselect``, ``--lf``).
        elsewhere: one line on tests that measure and were not asked for; empty where there are none.
        failed: the word of every failure, FAIL where it has none.
        tolerated: the words of tests that were skipped with one that a run can end with.
        ended: how measuring tests ended: ``passed``, ``failed``, ``told`` (skipped with a word) or ``skipped``.
        proven: measuring tests that ran and whose numbers could be used: they judged something.
    """

    measuring: dict[str, frozenset[str]] = field(default_factory=dict)
    left: set[str] = field(default_factory=set)
    elsewhere: str = ""
    failed: list[str] = field(default_factory=list)
    tolerated: list[str] = field(default_factory=list)
    ended: dict[str, str] = field(default_factory=dict)
    proven: set[str] = field(default_factory=set)

    def choose(self, items: Iterable[pytest.Item]) -> None:
        """Keep which of the chosen tests measure what."""
        for item in filter(measures, items):
            self.measuring[item.nodeid] = KINDS & set(getattr(item, "fixturenames", ()))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count one report of one test; a test that was expected to fail says nothing."""
        word, expected = getattr(report, "perf_word", None), hasattr(report, "wasxfail")
        if report.failed and not expected:
            self.failed.append(str(word or "FAIL"))
        if report.skipped and not expected and word in PYTEST_STATUS:
            self.tolerated.append(str(word))
        # The tests of a worker are collected there; here only their words tell that they were to measure.
        if report.nodeid in self.measuring or word is not None:
            if report.when == "call" and not report.skipped and not expected and word not in BROKEN:
                self.proven.add(report.nodeid)
            if report.failed:
                self.ended[report.nodeid] = "failed"
            elif report.skipped:
                self.ended[report.nodeid] = "told" if word is not None or expected else "skipped"
            elif report.when == "call":
                self.ended[report.nodeid] = "passed"

    def spoken(self) -> Iterable[Spoken]:
        """What the tests say of the run."""
        yield from map(Spoken, self.failed)
        yield from (Spoken(word, tolerated=True) for word in self.tolerated)
        # A row shows what was measured and claims nothing of it.
        if self.count("passed") > self.count("passed", of=ROW):
            yield Spoken("PASS")

    def others(self) -> int:
        """Measuring tests of none of `KINDS` that judged something: claims of a suite's own."""
        return sum(1 for nodeid in self.proven if not self.measuring.get(nodeid))

    def claims(self, of: str) -> int:
        """Measuring tests with a fixture that judged something."""
        return sum(1 for nodeid in self.proven if of in self.measuring.get(nodeid, ()))

    def count(self, *how: str, of: str | None = None) -> int:
        """Measuring tests that ended so; of those that take a fixture where one is named."""
        return sum(
            1
            for nodeid, ended in self.ended.items()
            if ended in how and (of is None or of in self.measuring.get(nodeid, ()))
        )

    def chosen(self, of: str) -> int:
        """Chosen tests that take a fixture."""
        return sum(1 for kinds in self.measuring.values() if of in kinds)

    @property
    def unreached(self) -> int:
        """Measuring tests that were chosen and did not run."""
        return len(set(self.measuring) - set(self.ended))
