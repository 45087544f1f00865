"""Levels and coarse values of a comparison, as remarks with the values in the metric's unit."""

from __future__ import annotations

from collections.abc import Iterator

from phasegate.gate.question import Question
from phasegate.gate.validity import say
from phasegate.stats.compare_types import ComparedRow, TwoLevels
from phasegate.stats.levels_words import HOLD_FIXED, newest_level


def level_notes(question: Question, row: ComparedRow) -> Iterator[str]:
    """What the sessions' levels and the resolution of their values say, one line each."""
    for word, levels in (("baseline", row.baseline_levels), ("candidate", row.candidate_levels)):
        if levels is None:
            continue
        if levels.newest:
            yield f"{question.name}: {newest_level(levels)} ({_both(levels, question)})"
            continue
        counts = f"{levels.low_count} and {levels.high_count} of {levels.low_count + levels.high_count}"
        kinds = f"{question.name}: two kinds of sessions, {_both(levels, question)}"
        yield f"{kinds} ({counts} {word} sessions); {HOLD_FIXED}"
    if row.step:
        step = say(row.step, question.facts)
        yield f"{question.name}: its values come in steps of {step}; write them with more digits"


def _both(levels: TwoLevels, question: Question) -> str:
    """``97 and 148 ms``."""
    low, high = say(levels.low, question.facts), say(levels.high, question.facts)
    number, _, unit = low.partition(" ")
    return f"{number if high.endswith(f' {unit}') else low} and {high}"
