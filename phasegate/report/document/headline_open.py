"""First screens of runs that decided nothing, and of those whose numbers prove nothing."""

from __future__ import annotations

from collections.abc import Callable

from phasegate.gate.undecided import hardest, needed_besides
from phasegate.report.document.headline_parts import (
    Parts,
    also_words,
    phase_of,
    said_screen,
    sure_words,
)
from phasegate.report.document.model import Headline
from phasegate.report.document.words import (
    metric_name,
    plural,
    values_words,
)


def inconclusive(parts: Parts) -> Headline:
    """The screen of a build that was not decided: the row that needs the most, and what would decide."""
    rows = parts.gated("INCONCLUSIVE")
    if not rows:
        laws = [law for law in parts.laws if law.outcome == "INCONCLUSIVE"]
        open_ones = [(law.law, law.reason) for law in laws]
        open_ones += [(one.objective, one.reason) for one in parts.objectives if one.verdict == "INCONCLUSIVE"]
        if not open_ones:
            return said_screen(parts, "INCONCLUSIVE", "Not decided: these measurements cannot tell")
        name, reason = open_ones[0]
        more = f"{plural(len(open_ones), 'claim')} not decided"
        return Headline(
            "INCONCLUSIVE", f"Not decided: {name}", None, reason, more, (_remedy(reason),), None, reason,
            also_words(parts, "INCONCLUSIVE"),
        )  # fmt: skip
    row = hardest(rows)
    besides = needed_besides(row, rows, parts.gate.unit if parts.gate else "session")
    compared = [one for one in parts.gate.rows if one.gated] if parts.gate else []
    return Headline(
        verdict="INCONCLUSIVE",
        title=f"Not decided: {metric_name(row.metric)} could be slower or not",
        phase=phase_of(rows),
        how_much=f"{values_words(row)} in {row.workload}, but noise alone could do that",
        how_sure=f"{sure_words(row, parts.gate)}; {len(rows)} of {len(compared)} gated comparisons are open",
        what_to_do=tuple(filter(None, [row.advice or row.remedy or "measure more sessions", besides])),
        reason=parts.gate.reason if parts.gate else row.reason,
        also=also_words(parts, "INCONCLUSIVE"),
    )


def _remedy(reason: str) -> str:
    """The part of a reason that says what would decide: the statistics word it as a remedy."""
    sentences = [part.strip() for part in reason.split(" [")[0].split("; ")]
    words = ("measure", "need", "send", "record", "quiet", "more", "compare", "decide")
    return next((one for one in reversed(sentences) if any(word in one for word in words)), "measure more sessions")


def no_baseline(parts: Parts) -> Headline:
    """The screen of a run without anything to compare with."""
    reason = parts.gate.reason if parts.gate else ""
    record = parts.record_with
    kept = [law for law in parts.laws if law.outcome == "PASS"]
    measured = f"{len(kept)} of {plural(len(parts.laws), 'law')} of the phases hold" if parts.laws else ""
    return Headline(
        verdict="NO_BASELINE",
        title="Nothing to compare with yet",
        how_much=measured,
        how_sure="this run says how fast the server is, not whether it got slower",
        what_to_do=(f"record a baseline: {record}" if record else "record a baseline with --update-baselines",),
        reason=reason,
        also=also_words(parts, "NO_BASELINE"),
    )


def not_judged(parts: Parts) -> Headline:
    """The screen of a run that was asked to judge nothing."""
    measured = bool(parts.load is not None or parts.validity.requests)
    return Headline(
        verdict="NOT_JUDGED",
        title="Measured; nothing was asked to be judged" if measured else "No test that measures was run",
        how_sure="these figures were compared with nothing and held to nothing" if measured else "",
        what_to_do=("promise something: --perf-slo ttft:p95:500ms, or a baseline with --update-baselines",),
        also=also_words(parts, "NOT_JUDGED"),
    )


def not_comparable(parts: Parts) -> Headline:
    """The screen of a run whose baseline speaks of another server."""
    return said_screen(parts, "NOT_COMPARABLE", "The baseline speaks of something else")


def broken(word: str, title: str) -> Callable[[Parts], Headline]:
    """The screen of a word that says that nothing is known, under a title."""

    def screen(parts: Parts) -> Headline:
        rows = parts.gated(word)
        gate_reason = parts.gate.reason if parts.gate is not None and parts.gate.verdict == word else ""
        failures = [one.message.removeprefix(f"{word}: ") for one in parts.validity.failures if one.word == word]
        reason = next(filter(None, [gate_reason, *parts.validity.invalid, *failures]), "")
        advice = tuple(dict.fromkeys(row.advice for row in rows if row.advice))
        return Headline(
            verdict=word,
            title=title,
            how_much=reason,
            how_sure="not at all: nothing in this report says anything about the server",
            what_to_do=advice[:2] or (_repair(word, reason),),
            reason=reason,
            also=also_words(parts, word),
        )

    return screen


_REPAIRS = {
    "INVALID_BASELINE": "mend or remove the stored session that is named, or record the baseline again",
    "INTERRUPTED": "run it again and let it end; what was measured until then is below",
    "NOT_MEASURED": "see why nothing was measured, then run it again",
}

_REPAIRS_BY_REASON = {
    "requests failed": "find out why requests fail, in the server's log, then measure again",
    "request failed": "find out why requests fail, in the server's log, then measure again",
    "unfit": "see what makes the answers unfit, such as a cache or a buffering proxy, then measure again",
    "quiet host": "measure again on a quiet host",
}


def _repair(word: str, reason: str) -> str:
    """What to do where the gate's rows do not say it."""
    by_reason = (advice for part, advice in _REPAIRS_BY_REASON.items() if part in reason)
    return _REPAIRS.get(word) or next(by_reason, "mend what is named here, then measure again")
