"""Telling people and trackers: the job's summary, the step's outputs, a comment's text, and values for histories."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from phasegate.cli.ci.measure import Measured
from phasegate.cli.ci.results import BENCHER, COMMENT, GITHUB_BENCHMARK, JSON, sign
from phasegate.report.document import UnreadableReportError
from phasegate.report.document.codec import from_json
from phasegate.report.trackers import bencher, github_action_benchmark

MARK = "<!-- phasegate -->"
"""First line of the comment: by it the next run finds the comment and replaces it, instead of adding one."""

LONGEST_COMMENT = 60_000
"""Characters; GitHub refuses comments above 65,536."""

MEANINGS: dict[int, str] = {
    0: "every claim that was judged held",
    1: "a metric regressed, an objective was broken, or a law failed",
    2: "stopped before the end",
    3: "an error inside pytest",
    4: "wrong usage: an option or a file",
    5: "no test was found",
    13: "inconclusive: measure more sessions",
    14: "no baseline, or none that compares",
    15: "invalid run or baseline, or nothing was measured",
}
"""pytest's exit status -> what it means; see docs/reference/exit-status.md."""


def meaning(status: int) -> str:
    """What an exit status says, in words."""
    return MEANINGS.get(status, "pytest did not end by itself" if status < 0 else "unknown to phasegate")


def text_of(measured: Measured) -> str:
    """The run in Markdown; also where it ended before it measured anything."""
    said = measured.summary
    if said is not None:
        return said
    return (
        f"## Phasegate: nothing was measured\n\nExit status {measured.status}: {meaning(measured.status)}. "
        "The log of this step says why.\n"
    )


def comment_of(text: str) -> str:
    """The text of the pull-request comment, marked so that it can be found again."""
    body = f"{MARK}\n{text}"
    if len(body) <= LONGEST_COMMENT:
        return body
    cut = body[:LONGEST_COMMENT]
    return cut[: cut.rfind("\n")] + "\n\n(shortened; the whole report is among the artifacts)\n"


def tell(measured: Measured, text: str, environment: Mapping[str, str]) -> None:
    """Write the comment, and what GitHub reads where this runs in one of its jobs; then sign the results.

    Raises:
        OSError: the disk refused.
    """
    (measured.out / COMMENT).write_text(comment_of(text), encoding="utf-8")
    _write_trackers(measured)
    sign(measured.out)
    _append(environment.get("GITHUB_STEP_SUMMARY"), text if text.endswith("\n") else f"{text}\n")
    _append(environment.get("GITHUB_OUTPUT"), f"status={measured.status}\nmeaning={meaning(measured.status)}\n")


def _write_trackers(measured: Measured) -> None:
    """The run's values for trackers of builds; nothing where it measured nothing."""
    report = measured.out / JSON
    try:
        document = from_json(report.read_text(encoding="utf-8"), str(report))
    except (OSError, UnreadableReportError):
        return  # pytest ended before there was one, which the status says
    for name, text in ((GITHUB_BENCHMARK, github_action_benchmark(document)), (BENCHER, bencher(document))):
        (measured.out / name).write_text(text, encoding="utf-8")


def _append(path: str | None, text: str) -> None:
    if path:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(text)
