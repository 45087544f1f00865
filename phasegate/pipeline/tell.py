"""Telling people: the job's summary, the outputs of the step, and the text of a pull-request comment."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from phasegate.pipeline.measure import Measured

MARK = "<!-- phasegate -->"
"""First line of the comment: by it the next run finds the comment and replaces it, instead of adding one."""

LONGEST_COMMENT = 60_000
"""Characters; GitHub refuses comments above 65,536."""

MEANINGS: dict[int, str] = {
    0: "every claim held",
    1: "a metric regressed, an objective was broken, or a law failed",
    2: "stopped before the end",
    3: "an error inside pytest",
    4: "wrong usage: an option or a file",
    5: "no test was found",
    13: "inconclusive: measure more sessions",
    14: "no baseline, or none that compares",
    15: "invalid run or baseline",
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
    """Write the comment, and what GitHub reads where this runs in one of its jobs."""
    (measured.out / "comment.md").write_text(comment_of(text), encoding="utf-8")
    _append(environment.get("GITHUB_STEP_SUMMARY"), text if text.endswith("\n") else f"{text}\n")
    _append(environment.get("GITHUB_OUTPUT"), f"status={measured.status}\nmeaning={meaning(measured.status)}\n")


def _append(path: str | None, text: str) -> None:
    if path:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(text)
