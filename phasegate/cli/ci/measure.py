"""One run of the suite in a pipeline: pytest in a process of its own, and its results in one folder (`results`).

What an earlier run left there is removed first: a run that measured nothing must not show the results of the one
before.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from phasegate.cli.ci.results import HTML, JSON, JUNIT, SESSIONS, SUMMARY, make_room
from phasegate.cli.ci.settings import Settings


@dataclass(frozen=True, slots=True)
class Measured:
    """What a run left behind.

    Attributes:
        status: pytest's exit status.
        out: the folder of results.
    """

    status: int
    out: Path

    @property
    def sessions(self) -> frozenset[str]:
        """Ids of the sessions that the run measured, as far as it saved them."""
        return frozenset(path.stem for path in (self.out / SESSIONS).glob("*.json"))

    @property
    def summary(self) -> str | None:
        """The run in Markdown, or None where it ended before there was anything to say."""
        path = self.out / SUMMARY
        return path.read_text(encoding="utf-8") if path.is_file() else None


def measure(settings: Settings, more: Sequence[str] = ()) -> Measured:
    """Run the suite; ``more`` are pytest options that the settings may overrule.

    Raises:
        PipelineError: the folder of results cannot be written, or holds something else under their names.
    """
    out = settings.out
    make_room(out)
    results = [f"--junitxml={out / JUNIT}", *(f"--perf-report={out / name}" for name in (HTML, JSON, SUMMARY))]
    words = [settings.suite, *results, f"--perf-save-sessions={out / SESSIONS}", *more, *settings.options]
    # The environment goes on as it is: the key reaches pytest without standing in a command line.
    done = subprocess.run([sys.executable, "-m", "pytest", *words], check=False)
    return Measured(done.returncode, out)
