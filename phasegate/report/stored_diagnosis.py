"""The diagnosis that a report keeps: what the run itself said, which the report's medians alone cannot say again.

A run knows the gate's rows, single requests and the server's own times when it explains itself; its report keeps the
explanation. Reading it back is therefore not the same as explaining the report anew. Findings are free mappings in the
layout, so anything that is missing in one is left out here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from phasegate.diagnose import Confidence, Diagnosis, Explanation
from phasegate.diagnose.codec import possible_figure
from phasegate.gate.levers import Lever
from phasegate.report.document.model import BAD, Document


def stored_diagnosis(document: Document, source: str = "report") -> Diagnosis | None:
    """What the run said of itself; None where the report keeps nothing of the kind.

    Args:
        source: the document's file, for messages.

    Raises:
        UnreadableObservationsError: seconds that cannot have been measured; one line naming the key.
    """
    if not document.diagnosis:
        return None
    found = tuple(
        _finding(one, f"{source}.diagnosis[{number}]")
        for number, one in enumerate(document.diagnosis)
        if one.get("rule")
    )
    share = next((one for one in document.diagnosis if not one.get("rule")), {})
    return Diagnosis(found, _text(share, "cause") or None, _text(share, "phase") or None)


def unexplained(document: Document, diagnosis: Diagnosis) -> tuple[str, ...]:
    """What the report found wrong and no finding explains, so that silence of the rules is not taken for health."""
    word, head = document.headline.verdict, document.headline
    explained = any(one.change for one in diagnosis.found) if word == "REGRESSION" else bool(diagnosis.found)
    return (head.title,) if word in BAD and not explained else ()


def verdict_line(document: Document) -> tuple[str, str]:
    """The report's own word, and its title with the deciding numbers."""
    head = document.headline
    return head.verdict, "; ".join(part for part in (head.title, head.how_much) if part)


def _finding(one: Mapping[str, Any], where: str) -> Explanation:
    seconds = one.get("seconds")
    seconds = 0.0 if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) else seconds
    return Explanation(
        rule=_text(one, "rule"),
        symptom=_text(one, "symptom"),
        cause=_text(one, "cause"),
        phase=_text(one, "phase"),
        seconds=float(possible_figure(seconds, f"{where}.seconds")),
        of=_text(one, "of"),
        evidence=_texts(one, "evidence"),
        confidence=Confidence.SURE if one.get("confidence") == Confidence.SURE.value else Confidence.LIKELY,
        levers=tuple(_lever(lever) for lever in _list(one, "levers")),
        will_not_help=_texts(one, "will_not_help"),
        change=one.get("change") is True,
    )


def _lever(one: object) -> Lever:
    return Lever(_text(one, "name"), _text(one, "cannot")) if isinstance(one, Mapping) else Lever(str(one), "")


def _text(one: Mapping[str, Any], name: str) -> str:
    value = one.get(name)
    return value if isinstance(value, str) else ""


def _list(one: Mapping[str, Any], name: str) -> list[Any]:
    value = one.get(name)
    return list(value) if isinstance(value, (list, tuple)) else []


def _texts(one: Mapping[str, Any], name: str) -> tuple[str, ...]:
    return tuple(str(text) for text in _list(one, name))
