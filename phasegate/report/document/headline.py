"""The first screen: one word, one title, and the answers to four questions: which phase, how much, how sure, what now.

The worst word of the run decides, in the order of the exit statuses. Everything said here is taken from the parts of
the document, so the first screen can say nothing that the rest does not show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from phasegate.gate.levers import lever_line
from phasegate.report.document.model import (
    BROKEN,
    WORDS,
    Gate,
    Headline,
    Law,
    Load,
    ObjectiveRow,
    Row,
    Validity,
)
from phasegate.report.document.words import (
    change,
    interval,
    metric_name,
    plural,
    sessions_words,
    source_words,
    value,
    values_words,
)
from phasegate.units import format_percent, format_seconds


@dataclass(frozen=True, slots=True)
class Parts:
    """What the headline is made from."""

    gate: Gate | None
    laws: Sequence[Law]
    load: Load | None
    validity: Validity

    @property
    def objectives(self) -> Sequence[ObjectiveRow]:
        """Objectives judged under load."""
        return self.load.objectives if self.load is not None else ()

    def gated(self, word: str) -> list[Row]:
        """The gated rows that ended with a word."""
        return [] if self.gate is None else [row for row in self.gate.rows if row.gated and row.verdict == word]


def headline_of(parts: Parts) -> Headline:
    """The first screen of a run."""
    words = list(_words(parts))
    word = min(words, key=_badness) if words else "NOT_MEASURED"
    if word == "PASS" and parts.gate is not None and parts.gate.verdict == "IMPROVED":
        # Laws and objectives know no better word than PASS.
        word = "IMPROVED"
    return _SCREENS[word](parts)


def _badness(word: str) -> int:
    return WORDS.index(word) if word in WORDS else WORDS.index("FAIL")


def _words(parts: Parts) -> Iterator[str]:
    """The word of every part of the run that has one."""
    if parts.validity.interrupted:
        yield "INTERRUPTED"
    if parts.validity.invalid:
        yield "INVALID_RUN"
    if parts.gate is not None:
        yield parts.gate.verdict
    yield from (law.outcome for law in parts.laws)
    yield from (one.verdict for one in parts.objectives)
    if parts.gate is None and parts.validity.sessions[1]:
        yield "PASS" if _stored(parts) else "NO_BASELINE"
    yield from (one.word if one.word in WORDS else "FAIL" for one in parts.validity.failures)


def _stored(parts: Parts) -> str:
    """What the gate said of sessions that became a baseline; empty where none did."""
    return next((line for line in parts.validity.remarks if line.startswith("stored ")), "")


def _also(parts: Parts, shown: str) -> tuple[str, ...]:
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


# --- something is proven worse -------------------------------------------------------------------------------------


def _regression(parts: Parts) -> Headline:
    rows = parts.gated("REGRESSION")
    if not rows:
        return _said(parts, "REGRESSION", "Slower than the baseline")
    row = max(rows, key=_excess)
    phase = _phase(rows)
    compared = [one for one in parts.gate.rows if one.gated] if parts.gate else []
    among = f"; {len(rows)} of {len(compared)} gated comparisons are slower" if len(compared) > 1 else ""
    lever = parts.gate.lever if parts.gate else None
    return Headline(
        verdict="REGRESSION",
        title=f"{_PHASE_WORDS[phase]} got slower: {metric_name(row.metric)} {change(row)}",
        phase=phase,
        how_much=f"{values_words(row)} in {row.workload}{among}",
        how_sure=_sure(row, parts.gate),
        what_to_do=tuple(filter(None, [row.advice, _try(lever)])),
        lever=lever,
        reason=parts.gate.reason if parts.gate else row.reason,
        also=_also(parts, "REGRESSION"),
    )


def _excess(row: Row) -> float:
    """How far a row is beyond its tolerance."""
    if row.ratio is None:
        return 0.0
    worse = row.ratio if row.better == "lower" else 1 / row.ratio
    return worse - 1 - (row.tolerance or 0.0)


_PHASE_WORDS = {"prefill": "Prefill", "decode": "Decode", "both": "Prefill and decode"}


def _phase(rows: Sequence[Row]) -> str:
    """The phase that some rows speak of; a whole request got slower because a phase did."""
    phases = {row.phase for row in rows}
    named = phases - {"both"} or phases
    return named.pop() if len(named) == 1 else "both"


def _try(lever: str | None) -> str:
    return f"to win the time back, try {lever.split(': ', 1)[-1]}" if lever else ""


def _sure(row: Row, gate: Gate | None) -> str:
    """The interval beside the tolerance, what would have been found, and on how many sessions."""
    parts = []
    if row.ratio_low is not None and row.ratio_high is not None:
        allowed = f", tolerance {format_percent(row.tolerance)}" if row.tolerance is not None else ""
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


def _breach(parts: Parts) -> Headline:
    broken = [one for one in parts.objectives if one.verdict == "SLO_BREACH"]
    if not broken:
        rows = parts.gated("SLO_BREACH")
        return _breach_of_row(parts, rows[0]) if rows else _said(parts, "SLO_BREACH", "An objective is broken")
    one = min(broken, key=lambda row: row.level)
    message = next((f.message for f in parts.validity.failures if f.word == "SLO_BREACH"), one.reason)
    _, _, cause = message.partition("; cause: ")
    word = cause.split(":")[0]
    lever = lever_line("throughput" if word == "queueing" else one.phase)
    return Headline(
        verdict="SLO_BREACH",
        title=f"{metric_name(one.metric)} breaks its objective at {_level(one)}{f': {word}' if word else ''}",
        phase=one.phase,
        how_much=_broken_promise(parts, one, broken) + (f"; {cause.removeprefix(f'{word}: ')}" if cause else ""),
        how_sure=_missed(one),
        what_to_do=tuple(filter(None, [_what_it_keeps(parts, one), _try(lever)])),
        lever=lever,
        reason=message,
        also=_also(parts, "SLO_BREACH"),
        phase_note="waiting for a turn before the prompt is read" if word == "queueing" else "",
    )


def _broken_promise(parts: Parts, one: ObjectiveRow, broken: Sequence[ObjectiveRow]) -> str:
    said = f"p{one.percentile:g} of {metric_name(one.metric)} is {_percentile(parts, one)}, promised are "
    others = sorted({f"{row.objective} at {_level(row)}" for row in broken if row is not one})
    more = f"; also broken: {', '.join(others[:3])}{' and more' if len(others) > 3 else ''}" if others else ""
    return f"{said}{format_seconds(one.limit)}{more}"


def _missed(one: ObjectiveRow) -> str:
    if one.missed is None or one.missed_low is None:
        return ""
    return (
        f"{format_percent(one.missed)} of all requests missed it, surely at least {format_percent(one.missed_low)} "
        f"(95 % bound); promised are at most {format_percent(1 - one.percentile / 100)}"
    )


def _what_it_keeps(parts: Parts, one: ObjectiveRow) -> str:
    """The highest load that is proven to keep the objective, where the search found one."""
    limits = parts.load.limits if parts.load is not None else ()
    found = next((row for row in limits if row.objective == one.objective and row.by_rate == one.by_rate), None)
    return f"send it no more than it keeps: {found.text}" if found is not None and found.kept is not None else ""


def _breach_of_row(parts: Parts, row: Row) -> Headline:
    lever = parts.gate.lever if parts.gate else None
    return Headline(
        verdict="SLO_BREACH",
        title=f"{metric_name(row.metric)} breaks its objective in {row.workload}",
        phase=row.phase,
        how_much=row.reason,
        how_sure=sessions_words(row, parts.gate),
        what_to_do=tuple(filter(None, [row.advice, _try(lever)])),
        lever=lever,
        reason=parts.gate.reason if parts.gate else row.reason,
        also=_also(parts, "SLO_BREACH"),
    )


def _level(one: ObjectiveRow) -> str:
    return f"{one.level:.3g} requests/s" if one.by_rate else f"{one.level:g} at a time"


def _percentile(parts: Parts, one: ObjectiveRow) -> str:
    levels = parts.load.levels if parts.load is not None else ()
    for row in levels:
        if (row.level, row.by_rate) == (one.level, one.by_rate):
            found = row.percentiles.get(one.metric, {}).get(f"p{one.percentile:g}")
            if found is not None:
                return format_seconds(found.value) if found.value is not None else "infinite (requests failed)"
    return "not known"


def _fail(parts: Parts) -> Headline:
    broken = [law for law in parts.laws if law.outcome == "FAIL"]
    failures = [one for one in parts.validity.failures if one.word not in WORDS or one.word == "FAIL"]
    if not broken:
        first = failures[0] if failures else None
        said = first.message if first else ""
        title = f"{plural(len(failures), 'test')} failed"
        return Headline("FAIL", title, None, "", "", ("see the failures below",), None, said, _also(parts, "FAIL"))
    law = broken[0]
    phase = _phase_of_law(law)
    more = f"; {len(broken)} of {len(parts.laws)} laws are broken" if len(broken) > 1 else ""
    return Headline(
        verdict="FAIL",
        title=f"A law of the phases is broken: {law.law}",
        phase=phase,
        how_much=law.reason + more,
        how_sure=f"each bound holds with {format_percent(law.confidence, digits=0)}; {plural(law.n, 'repetition')}",
        what_to_do=("the engine is misconfigured, misreports, or does not do what its numbers suggest: see the law",),
        reason=law.reason,
        also=_also(parts, "FAIL"),
    )


def _phase_of_law(law: Law) -> str | None:
    """The phase a law's own words name."""
    prefill = any(word in law.law for word in ("TTFT", "prefix", "prefill"))
    decode = any(word in law.law for word in ("TPOT", "decode", "stream"))
    return {(True, False): "prefill", (False, True): "decode"}.get((prefill, decode))


# --- nothing is decided --------------------------------------------------------------------------------------------


def _inconclusive(parts: Parts) -> Headline:
    rows = parts.gated("INCONCLUSIVE")
    if not rows:
        laws = [law for law in parts.laws if law.outcome == "INCONCLUSIVE"]
        open_ones = [(law.law, law.reason) for law in laws]
        open_ones += [(one.objective, one.reason) for one in parts.objectives if one.verdict == "INCONCLUSIVE"]
        if not open_ones:
            return _said(parts, "INCONCLUSIVE", "Not decided: these measurements cannot tell")
        name, reason = open_ones[0]
        more = f"{plural(len(open_ones), 'claim')} not decided"
        return Headline(
            "INCONCLUSIVE", f"Not decided: {name}", None, reason, more, (_remedy(reason),), None, reason,
            _also(parts, "INCONCLUSIVE"),
        )  # fmt: skip
    row = max(rows, key=_suspicion)
    compared = [one for one in parts.gate.rows if one.gated] if parts.gate else []
    return Headline(
        verdict="INCONCLUSIVE",
        title=f"Not decided: {metric_name(row.metric)} could be slower or not",
        phase=_phase(rows),
        how_much=f"{values_words(row)} in {row.workload}, but noise alone could do that",
        how_sure=f"{_sure(row, parts.gate)}; {len(rows)} of {len(compared)} gated comparisons are open",
        what_to_do=(row.advice or _remedy(row.reason),),
        reason=parts.gate.reason if parts.gate else row.reason,
        also=_also(parts, "INCONCLUSIVE"),
    )


def _suspicion(row: Row) -> float:
    """How many times its tolerance an undecided row could be slower; infinite where nothing bounds it."""
    end = row.ratio_high if row.better == "lower" else (1 / row.ratio_low if row.ratio_low else None)
    return float("inf") if end is None else (end - 1) / (row.tolerance or 1.0)


def _remedy(reason: str) -> str:
    """The part of a reason that says what would decide: the statistics word it as a remedy."""
    sentences = [part.strip() for part in reason.split(" [")[0].split("; ")]
    words = ("measure", "need", "send", "record", "quiet", "more", "compare", "decide")
    return next((one for one in reversed(sentences) if any(word in one for word in words)), "measure more sessions")


def _no_baseline(parts: Parts) -> Headline:
    reason = parts.gate.reason if parts.gate else ""
    record = reason.split("; record one with: ")[-1] if "; record one with: " in reason else ""
    kept = [law for law in parts.laws if law.outcome == "PASS"]
    measured = f"{len(kept)} of {plural(len(parts.laws), 'law')} of the phases hold" if parts.laws else ""
    return Headline(
        verdict="NO_BASELINE",
        title="Nothing to compare with yet",
        how_much=measured,
        how_sure="this run says how fast the server is, not whether it got slower",
        what_to_do=(f"record a baseline: {record}" if record else "record a baseline with --update-baselines",),
        reason=reason,
        also=_also(parts, "NO_BASELINE"),
    )


def _not_comparable(parts: Parts) -> Headline:
    return _said(parts, "NOT_COMPARABLE", "The baseline speaks of something else")


# --- the measurement itself is broken ------------------------------------------------------------------------------


def _broken(word: str, title: str) -> Callable[[Parts], Headline]:
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
            also=_also(parts, word),
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


def _said(parts: Parts, word: str, title: str) -> Headline:
    """The screen of a word that the gate or an item said of the run as a whole, with its sentence."""
    spoken = parts.gate.reason if parts.gate is not None and parts.gate.verdict == word else ""
    if not spoken:
        spoken = next(
            (one.message.removeprefix(f"{word}: ") for one in parts.validity.failures if one.word == word), ""
        )
    lever = parts.gate.lever if parts.gate else None
    return Headline(word, title, None, spoken, "", ("see the reason",), lever, spoken, _also(parts, word))


# --- green ---------------------------------------------------------------------------------------------------------


def _green(word: str) -> Callable[[Parts], Headline]:
    def screen(parts: Parts) -> Headline:
        rows = [row for row in (parts.gate.rows if parts.gate else ()) if row.gated and row.ratio is not None]
        if not rows:
            return _green_without_rows(parts, word)
        worst = max(rows, key=lambda row: _excess(row) + (row.tolerance or 0.0))
        best = min(rows, key=lambda row: _excess(row) + (row.tolerance or 0.0))
        row = best if word == "IMPROVED" else worst
        title = "No slower than the baseline"
        if word == "IMPROVED":
            title = f"Faster than the baseline: {metric_name(row.metric)} {change(row)}"
        found = [one.mde for one in rows if one.mde is not None]
        power = f"a worsening of {_range(found)} would have been found" if found else ""
        told = "largest change for the worse" if word == "PASS" else "largest gain"
        gained = sum(one.verdict == "IMPROVED" for one in rows)
        gains = f", {gained} of them faster: up to {metric_name(best.metric)} {change(best)}"
        also = gains if gained and word == "PASS" else ""
        return Headline(
            verdict=word,
            title=title,
            phase=_phase([row]) if word == "IMPROVED" else None,
            how_much=f"{told}: {metric_name(row.metric)} {change(row)} ({value(row, before=True)} to {value(row)}) in "
            f"{row.workload}; all {plural(len(rows), 'gated comparison')} within limits{also}",
            how_sure="; ".join(filter(None, [power, f"95 % interval of that change {interval(row)}",
                                             sessions_words(row, parts.gate)])),
            what_to_do=_green_advice(word),
            reason=parts.gate.reason if parts.gate else "",
            also=_also(parts, word),
        )  # fmt: skip

    return screen


def _range(found: Sequence[float]) -> str:
    low, high = min(found), max(found)
    if format_percent(low) == format_percent(high):
        return format_percent(low)
    return f"{format_percent(low)} to {format_percent(high)}"


def _green_advice(word: str) -> tuple[str, ...]:
    if word == "IMPROVED":
        return ("go ahead; record a new baseline, or this gain could be lost again unseen",)
    return ("go ahead",)


def _green_without_rows(parts: Parts, word: str) -> Headline:
    """Laws and objectives alone: nothing was compared with a baseline."""
    stored = _stored(parts)
    if stored and parts.gate is None:
        return Headline(
            verdict=word,
            title="A new baseline is recorded",
            how_much=stored,
            how_sure="these sessions were compared with nothing: whoever accepts them vouches for this server",
            what_to_do=("review what changed, listed among the remarks, then commit it",),
            also=_also(parts, word),
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
        also=_also(parts, word),
    )


_TITLES = {
    "INTERRUPTED": "Stopped before its end",
    "INVALID_BASELINE": "A stored session cannot be used",
    "INVALID_RUN": "The numbers of this run prove nothing",
    "NOT_MEASURED": "Nothing was measured",
}

_SCREENS: dict[str, Callable[[Parts], Headline]] = {
    **{word: _broken(word, _TITLES[word]) for word in BROKEN},
    "REGRESSION": _regression,
    "SLO_BREACH": _breach,
    "FAIL": _fail,
    "NOT_COMPARABLE": _not_comparable,
    "NO_BASELINE": _no_baseline,
    "INCONCLUSIVE": _inconclusive,
    "PASS": _green("PASS"),
    "IMPROVED": _green("IMPROVED"),
}
