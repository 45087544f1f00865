"""One run of the phase suite on one real engine, with its figures kept: ``python -m benchmarks._engine_suite ORDER``

The suite runs as any user runs it, ``pytest perf_tests`` with options; a plugin of one hook looks at what the run knows
when it is over and writes it down. ORDER is a JSON object: ``engine``, ``options``, ``result`` (a path).
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks._page import write_page
from phasegate.core.timeline import Timeline
from phasegate.engines.generated.spec import ModelSpec
from phasegate.engines.generated.vocabulary import next_word
from phasegate.measure.session_runner import SessionRunner
from phasegate.plugin import STATE
from phasegate.pytest_plugin.state import PerfState
from phasegate.report.document.from_server import server_timings_of
from phasegate.stats.workload_run import WorkloadRun

CLAIMS = ("test_prefill.py", "test_decode.py", "test_prefix_cache.py", "test_rows.py", "test_batching.py")


class Keeper:
    """The plugin: counts how items ended, and writes the facts when the run is over."""

    def __init__(self, engine: str, result: Path) -> None:
        self._engine = engine
        self._result = result
        self._began = time.monotonic()
        self._outcomes: Counter[str] = Counter()
        self._troubles: list[str] = []
        self._informing: list[str] = []
        self._foreign: float | None = None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count the item, by its own word where it has one."""
        if report.when == "call" or report.failed:
            word = getattr(report, "perf_word", None) or report.outcome.upper()
            self._outcomes[word] += 1
            if word == "ADVISORY" and isinstance(report.longrepr, tuple):
                self._informing.append(str(report.longrepr[2]))
            if word not in ("PASSED", "PASS"):
                self._troubles.append(f"{report.nodeid}: {report.longreprtext.strip().splitlines()[-1:]}")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item, nextitem: pytest.Item | None) -> None:
        """Ask how busy others were while the engine still runs: what it used counts as the suite's own only then."""
        state = item.config.stash.get(STATE, None)
        if nextitem is None and state is not None and state.runner is not None and state.runner.watch is not None:
            self._foreign = state.runner.watch.report().foreign

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Write down what was measured."""
        state = session.config.stash.get(STATE, None)
        facts: dict[str, Any] = {
            "engine": self._engine,
            "exit_status": int(exitstatus),
            "seconds": time.monotonic() - self._began,
            "outcomes": dict(self._outcomes),
            "troubles": self._troubles,
            "informing": self._informing,
            "foreign_cores": self._foreign,
        }
        if state is not None and state.runner is not None:
            facts |= facts_of(state, state.runner)
        write_page(self._result, json.dumps(facts, indent=1))


def facts_of(state: PerfState, runner: SessionRunner) -> dict[str, Any]:
    """What a run says of its engine, as plain values. Times are in seconds."""
    runs = list(runner.runs.values())
    lines = [line for run in runs for line in run.timelines()]
    checked, wrong = check_answers(lines)
    return {
        "version": runner.server.version,
        "model": runner.server.model,
        "hardware": runner.server.hardware,
        "settings": dict(runner.server.settings),
        "start_seconds": getattr(runner.engine, "start_seconds", None),
        "token_sources": dict(Counter(str(line.token_source) for line in lines)),
        "answers_checked": checked,
        "answers_wrong": wrong,
        "invalid": list(state.invalid),
        "laws": [
            {
                "id": where.partition("::")[2],
                "law": law.law,
                "outcome": law.outcome.value,
                "reason": law.reason,
                "effect": law.effect,
                "detail": law.detail,
            }
            for where, law in state.laws
        ],
        "cells": [one for run in runs for one in cells_of(run)],
        "levels": levels_of(state),
        "first_token": server_timings_of(runner.server_metrics, runs),
    }


def cells_of(run: WorkloadRun) -> list[dict[str, Any]]:
    """The medians of every cell of a workload."""
    found = []
    for cell in run.workload.cells:
        told = [count for count in run.cached_tokens(cell) if count is not None]
        found.append(
            {
                "workload": cell.workload,
                "role": cell.role,
                "input_tokens": cell.input_tokens,
                "output_tokens": cell.output_tokens,
                "requests": len(run.timelines(cell)),
                "cached_tokens": float(np.median(told)) if told else None,
                **{metric: _median(run.values(metric, cell).values()) for metric in ("ttft", "tpot")},
            }
        )
    return found


def levels_of(state: PerfState) -> dict[str, float]:
    """Requests in flight -> output tokens a second, where load was measured."""
    if state.load is None:
        return {}
    return {str(level): run_rate(run.rounds) for level, run in sorted(state.load.load.levels.items())}


def run_rate(rounds: Sequence[Any]) -> float:
    """Output tokens a second over the rounds of a level."""
    seconds = sum(one.window for one in rounds)
    return sum(one.output_tokens for one in rounds) / seconds if seconds else 0.0


def check_answers(lines: Sequence[Timeline]) -> tuple[int, int]:
    """Answers that were looked at, and how many of them do not walk the generated model's cycle of words."""
    following = next_word(0, ModelSpec().vocabulary)
    answers = [line.text.split() for line in lines if line.status == "ok"]
    wrong = sum(
        1 for words in answers if not words or any(following.get(word) != after for word, after in pairwise(words))
    )
    return len(answers), wrong


def _median(values: Any) -> float | None:
    found = list(values)
    return float(np.median(found)) if found else None


def main() -> int:
    """Run the suite as the order says; the exit status is pytest's own."""
    order = json.loads(sys.argv[1])
    suite = Path(__file__).parents[1] / "perf_tests"
    arguments = ["-p", "no:cacheprovider", *(str(suite / name) for name in CLAIMS), *order["options"]]
    return int(pytest.main(arguments, plugins=[Keeper(order["engine"], Path(order["result"]))]))


if __name__ == "__main__":
    sys.exit(main())
