"""What is said about a workload's run beside its table: a title, which lengths vary, and what went wrong."""

from __future__ import annotations

from collections.abc import Sequence

from phasegate.report.phase_tables import Row, attribution, cache_lines
from phasegate.stats.workload_run import WorkloadRun
from phasegate.wire.answer_words import other_prompt_words, unknown_field_words
from phasegate.wire.count_words import disproof_words, doubts


def reading_order(run: WorkloadRun) -> tuple[bool, bool, str]:
    """Sorts runs: prompt lengths, then output lengths, then what caching does to them."""
    workload = run.workload
    return workload.prefix != "unique", len(workload.input_tokens) == 1, workload.name


def title(run: WorkloadRun, rows: Sequence[Row]) -> str:
    """Name, what was asked, and what the table's lengths leave out."""
    fixed = [
        f"{name} {levels[0]} tokens"
        for name, levels in (("prompt", run.workload.input_tokens), ("output", run.workload.output_tokens))
        if len(levels) == 1
    ]
    fewest, most = min(row.requests for row in rows), max(row.requests for row in rows)
    count = f"{most} requests each" if fewest == most else f"{fewest} to {most} requests each"
    return f"{run.workload.name} ({', '.join([*fixed, count])})"


def axes(run: WorkloadRun) -> list[str]:
    """The lengths that vary: ``prompt``, ``output``, both or none."""
    lengths = (("prompt", run.workload.input_tokens), ("output", run.workload.output_tokens))
    return [name for name, levels in lengths if len(levels) > 1]


def said(run: WorkloadRun, rows: Sequence[Row]) -> list[str]:
    """What the lengths did to each phase, or what the cache saved."""
    if run.workload.prefix != "unique":
        return cache_lines(rows)
    return [line for axis in axes(run) if (line := attribution(rows, axis)) is not None]


def remarks(run: WorkloadRun) -> list[str]:
    """A stopped run, failed requests, answers unfit for a sample, counts in doubt, and notes of the client."""
    lines = [f"PARTIAL: stopped after {len(run.measured)} requests"] if run.partial else []
    lines += [f"failed: {count} x {kind}" for kind, count in run.failures().items()]
    lines += [f"unfit for a sample: {count} x {reason}" for reason, count in run.unfit().items()]
    said = (disproof_words, other_prompt_words, unknown_field_words)
    lines += [words for say in said if (words := say(run.timelines())) is not None]
    busy = [f"{run.disturbed} meanwhile: measure on a quieter machine"] if run.disturbed is not None else []
    return lines + [f"note: {note}" for note in (*doubts(run.timelines()), *run.left_out(), *busy, *run.notes)]
