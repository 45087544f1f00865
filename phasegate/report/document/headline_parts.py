"""What every first screen is made from: the parts of a run, and sentences that several screens share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from phasegate.core.units import format_percent
from phasegate.report.document.model import Gate, Headline, Law, Load, ObjectiveRow, Row, Validity
from phasegate.report.document.words import (
    interval,
    plural,
    sessions_words,
    source_words,
)


@dataclass(frozen=True, slots=True)
class Parts:
    """What the headline is made from.

    Attributes:
        stored: what is said of sessions that became a baseline; empty where none did.
        record_with: the command that records a baseline; empty where it is not known.
    """

    gate: Gate | None
    laws: Sequence[Law]
    load: Load | None
    validity: Validity
    stored: str = ""
    record_with: str = ""

    @property
    def objectives(self) -> Sequence[ObjectiveRow]:
        """Objectives judged under load."""
        return self.load.objectives if self.load is not None else ()

    def gated(self, word: str) -> list[Row]:
        """The gated rows that ended with a word."""
        return [] if self.gate is None else [row for row in self.gate.rows if row.gated and row.verdict == word]


def also_words(parts: Parts, shown: str) -> tuple[str, ...]:
    """What else is not green, in few words, so that one bad word hides no other."""
    lines = []
    if parts.gate is not None and parts.gate.verdict != shown:
        lines.append(f"gate: {parts.gate.verdict}")
    for name, words in (
        ("law", [law.outcome for law in parts.laws]),
        ("objective", [one.verdict for one in parts.objectives]),
    ):
        for word in dict.fromkeys(words):
            if word not in ("PASS", shown):
                lines.append(f"{plural(words.count(word), name)}: {word}")
    return tuple(lines)


def excess(row: Row) -> float:
    """How far a row is beyond its tolerance."""
    if row.ratio is None:
        return 0.0
    worse = row.ratio if row.better == "lower" else 1 / row.ratio
    return worse - 1 - (row.tolerance or 0.0)


PHASE_WORDS = {"prefill": "Prefill", "decode": "Decode", "both": "Prefill and decode"}
"""Phase -> how a title names it."""


def phase_of(rows: Sequence[Row]) -> str:
    """The phase that some rows speak of; a whole request got slower because a phase did."""
    phases = {row.phase for row in rows}
    named = phases - {"both"} or phases
    return named.pop() if len(named) == 1 else "both"


def try_words(lever: str | None) -> str:
    """A gate's lever as a step to take; empty for none."""
    return f"to win the time back, try {lever.split(': ', 1)[-1]}" if lever else ""


def sure_words(row: Row, gate: Gate | None) -> str:
    """The interval beside the limits, what would have been found, and on how many sessions."""
    parts = []
    if row.ratio_low is not None and row.ratio_high is not None:
        fails = f", fails from {format_percent(row.fails_from)}" if row.fails_from is not None else ""
        allowed = f"{fails}, tolerance {format_percent(row.tolerance)}" if row.tolerance is not None else ""
        source = (
            f" ({source_words(row.tolerance_source)})" if row.tolerance_source and row.tolerance is not None else ""
        )
        parts.append(f"95 % interval {interval(row)}{allowed}{source}")
    weak = row.mde is not None and row.tolerance is not None and row.mde > row.tolerance
    # What is proven needs no word on what might have been missed.
    if row.mde is not None and not (weak and row.verdict == "REGRESSION"):
        parts.append(f"{'only ' if weak else ''}a worsening of {format_percent(row.mde)} would have been found")
    parts.append(sessions_words(row, gate))
    return "; ".join(part for part in parts if part)


def said_screen(parts: Parts, word: str, title: str) -> Headline:
    """The screen of a word that the gate or an item said of the run as a whole, with its sentence."""
    spoken = parts.gate.reason if parts.gate is not None and parts.gate.verdict == word else ""
    if not spoken:
        spoken = next(
            (one.message.removeprefix(f"{word}: ") for one in parts.validity.failures if one.word == word), ""
        )
    lever = parts.gate.lever if parts.gate else None
    return Headline(word, title, None, spoken, "", ("see the reason",), lever, spoken, also_words(parts, word))
