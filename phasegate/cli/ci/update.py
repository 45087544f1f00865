"""Recording baselines in a pipeline: what changed, as a table that a reviewer of the pull request can read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from phasegate.core.session import Session
from phasegate.core.showing import in_markdown, in_markdown_cell, in_markdown_code
from phasegate.core.units import format_percent
from phasegate.gate.changes import Change, changes
from phasegate.gate.facts import facts_of
from phasegate.gate.validity import say
from phasegate.store.baseline_folder import read_session
from phasegate.store.session_file import InvalidBaselineError


def stored(baselines: Path) -> set[Path]:
    """Every stored session's file. None is ever overwritten, so that a name says all."""
    return {path for path in baselines.rglob("*.json") if not any(part.startswith(".") for part in path.parts[-2:])}


def before_and_after(baselines: Path, known: Collection[Path], own: Collection[str]) -> str | None:
    """What a run added to a folder, as Markdown; None where it added nothing.

    Args:
        known: `stored` before the run.
        own: ids of the run's sessions: others may have been stored by another job meanwhile.
    """
    new = sorted(path for path in stored(baselines) if path not in known and path.stem in own)
    if not new:
        return None
    parts = ["## Baselines updated", ""]
    for folder in dict.fromkeys(path.parent for path in new):
        added = [path for path in new if path.parent == folder]
        former = [path for path in known if path.parent == folder and path not in added]
        parts += [f"**{in_markdown(folder.name)}**: {len(added)} sessions added beside {len(former)}.", ""]
        parts += [*_table(_read(former), _read(added)), ""]
    return "\n".join(parts)


def _read(paths: Sequence[Path]) -> list[Session]:
    found = []
    for path in sorted(paths):
        try:
            found.append(read_session(path))
        except InvalidBaselineError:
            continue  # said by the gate, which refuses it
    return found


def _table(before: Sequence[Session], after: Sequence[Session]) -> Iterator[str]:
    yield "| workload | metric | before | after | change | 95 % interval |"
    yield "| --- | --- | ---: | ---: | ---: | --- |"
    for one in changes(before, after):
        names = in_markdown_code(one.workload, cell=True), in_markdown_cell(one.metric)
        yield f"| {' | '.join((*names, *_cells(one)))} |"


def _cells(one: Change) -> tuple[str, str, str, str]:
    facts = facts_of(one.metric)
    old, new = (
        "-" if value is None else say(value, facts) if facts is not None else f"{value:.4g}"
        for value in (one.before, one.after)
    )
    if one.ratio is None:
        return old, new, "new" if one.before is None else "gone", ""
    change = format_percent(one.ratio - 1, signed=True)
    if one.low is None or one.high is None:
        return old, new, change, "one session on a side"
    return old, new, change, " to ".join(format_percent(end - 1, signed=True) for end in (one.low, one.high))
