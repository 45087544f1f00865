"""First screens of green runs: what was compared, and what would have been found."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from phasegate.core.units import format_percent
from phasegate.report.document.headline_parts import (
    Parts,
    also_words,
    excess,
    phase_of,
)
from phasegate.report.document.model import Headline
from phasegate.report.document.words import (
    change,
    interval,
    metric_name,
    other_side,
    plural,
    sessions_words,
    value,
)


def green(word: str) -> Callable[[Parts], Headline]:
    """The screen of a green word: the largest change, and what would have been found."""

    def screen(parts: Parts) -> Headline:
        rows = [row for row in (parts.gate.rows if parts.gate else ()) if row.gated and row.ratio is not None]
        if not rows:
            return _green_without_rows(parts, word)
        worst = max(rows, key=lambda row: excess(row) + (row.tolerance or 0.0))
        best = min(rows, key=lambda row: excess(row) + (row.tolerance or 0.0))
        row = best if word == "IMPROVED" else worst
        title = f"No slower than the {other_side(parts.gate)}"
        if word == "IMPROVED":
            title = f"Faster than the {other_side(parts.gate)}: {metric_name(row.metric)} {change(row)}"
        found = [one.mde for one in rows if one.mde is not None]
        power = f"a worsening of {_range(found)} would have been found" if found else ""
        told = "largest change for the worse" if word == "PASS" else "largest gain"
        gained = sum(one.verdict == "IMPROVED" for one in rows)
        gains = f", {gained} of them faster: up to {metric_name(best.metric)} {change(best)}"
        also = gains if gained and word == "PASS" else ""
        return Headline(
            verdict=word,
            title=title,
            phase=phase_of([row]) if word == "IMPROVED" else None,
            how_much=f"{told}: {metric_name(row.metric)} {change(row)} ({value(row, before=True)} to {value(row)}) in "
            f"{row.workload}; all {plural(len(rows), 'gated comparison')} within limits{also}",
            how_sure="; ".join(filter(None, [power, f"95 % interval of that change {interval(row)}",
                                             sessions_words(row, parts.gate)])),
            what_to_do=_green_advice(parts, word),
            reason=parts.gate.reason if parts.gate else "",
            also=also_words(parts, word),
        )  # fmt: skip

    return screen


def _range(found: Sequence[float]) -> str:
    low, high = min(found), max(found)
    if format_percent(low) == format_percent(high):
        return format_percent(low)
    return f"{format_percent(low)} to {format_percent(high)}"


def _green_advice(parts: Parts, word: str) -> tuple[str, ...]:
    if word == "IMPROVED" and other_side(parts.gate) == "baseline":
        return ("go ahead; record a new baseline, or this gain could be lost again unseen",)
    return ("go ahead",)


def _green_without_rows(parts: Parts, word: str) -> Headline:
    """Laws and objectives alone: nothing was compared with a baseline."""
    if parts.stored and parts.gate is None:
        return Headline(
            verdict=word,
            title="A new baseline is recorded",
            how_much=parts.stored,
            how_sure="these sessions were compared with nothing: whoever accepts them vouches for this server",
            what_to_do=("review what changed, listed among the remarks, then commit it",),
            also=also_words(parts, word),
        )
    said = [
        f"{plural(len(parts.laws), 'law')} of the phases" if parts.laws else "",
        plural(len(parts.objectives), "objective") if parts.objectives else "",
    ]
    told = " and ".join(filter(None, said))
    verb = "holds" if len(parts.laws) + len(parts.objectives) == 1 else "hold"
    return Headline(
        verdict=word,
        title=f"{told} {verb}" if told else "Every test passed",
        how_much="",
        how_sure="nothing was compared with a baseline in this run",
        what_to_do=("to find out whether it got slower, record a baseline with --update-baselines",),
        reason=parts.gate.reason if parts.gate else "",
        also=also_words(parts, word),
    )
