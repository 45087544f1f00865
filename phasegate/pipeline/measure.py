"""One run of the suite in a pipeline: pytest in a process of its own, and its results in one folder.

The folder holds ``junit.xml``, ``report.html``, ``report.json``, ``summary.md`` and ``sessions/``. It is emptied of
these first: a run that measured nothing must not show the results of the one before.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from phasegate.pipeline.settings import PipelineError, Settings

TOLD = ("comment.md", "github-action-benchmark.json", "bencher.json")
"""What `tell` writes afterwards."""

JUNIT, HTML, JSON, SUMMARY, SESSIONS = "junit.xml", "report.html", "report.json", "summary.md", "sessions"


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
    def summary(self) -> str | None:
        """The run in Markdown, or None where it ended before there was anything to say."""
        path = self.out / SUMMARY
        return path.read_text(encoding="utf-8") if path.is_file() else None


def measure(settings: Settings, more: Sequence[str] = ()) -> Measured:
    """Run the suite; ``more`` are pytest options that the settings may overrule.

    Raises:
        PipelineError: the folder of results cannot be written.
    """
    out = settings.out
    _empty(out)
    results = [f"--junitxml={out / JUNIT}", *(f"--perf-report={out / name}" for name in (HTML, JSON, SUMMARY))]
    words = [settings.suite, *results, f"--perf-save-sessions={out / SESSIONS}", *more, *settings.options]
    # The environment goes on as it is: the key reaches pytest without standing in a command line.
    done = subprocess.run([sys.executable, "-m", "pytest", *words], check=False)
    return Measured(done.returncode, out)


def _empty(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name in (JUNIT, HTML, JSON, SUMMARY, *TOLD):
            (out / name).unlink(missing_ok=True)
        shutil.rmtree(out / SESSIONS, ignore_errors=True)
    except OSError as error:
        raise PipelineError(
            f"results cannot be written to {out} ({error.strerror}); name another with PERF_OUT"
        ) from None
