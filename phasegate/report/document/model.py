"""What a finished run has to say, as plain values: every report is made from this and from nothing else.

The document is frozen and versioned. It holds numbers in seconds, seconds per token and fractions, words as the gate
and the laws said them, and no object of the run itself; so it can be written to a file, read back elsewhere, and shown
as HTML, Markdown, CSV or on a screen with the same result. Whatever was not measured is None or empty: a report leaves
it out or says what would fill it. Infinite values (a percentile that falls on a failed request) are None as well, with
the failures counted beside them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from phasegate.gate.exit_status import BAD, BROKEN, GOOD, OPEN, WORDS
from phasegate.report.document.model_judged import Gate, Law, Row, Trend, TrendPoint
from phasegate.report.document.model_measured import (
    MOST_SAMPLES,
    CellRow,
    Estimate,
    Fit,
    Gaps,
    LevelRow,
    LimitRow,
    Load,
    ObjectiveRow,
    RequestLine,
    ServerCounted,
    WorkloadTable,
)

__all__ = [
    "BAD",
    "BROKEN",
    "GOOD",
    "MOST_SAMPLES",
    "OPEN",
    "SCHEMA",
    "WORDS",
    "CellRow",
    "Document",
    "Environment",
    "Estimate",
    "Failure",
    "Fit",
    "Gaps",
    "Gate",
    "Headline",
    "Law",
    "LevelRow",
    "LimitRow",
    "Load",
    "ObjectiveRow",
    "PolicyValue",
    "Reproduce",
    "RequestLine",
    "Row",
    "ServerCounted",
    "Trend",
    "TrendPoint",
    "Validity",
    "WorkloadTable",
    "tone_of",
]

SCHEMA = "phasegate-report/1"
"""Name and version of this layout. A reader refuses another version instead of guessing at it."""


def tone_of(word: str) -> str:
    """How a word is shown: ``good``, ``bad``, ``open`` or ``broken``; ``open`` for a word that is not known."""
    tones = {"good": GOOD, "bad": BAD, "open": OPEN, "broken": BROKEN}
    return next((tone for tone, words in tones.items() if word in words), "open")


@dataclass(frozen=True, slots=True)
class Headline:
    """The answer in one screen: what happened, in which phase, how much, how sure, and what to do.

    Attributes:
        verdict: one of `WORDS`.
        title: one short sentence for people.
        phase: ``prefill``, ``decode``, ``both``, or None where no phase is concerned.
        how_much: the deciding numbers in one sentence; empty where there are none.
        how_sure: interval, smallest change that would have been found, sessions; empty where nothing was compared.
        what_to_do: the next steps, the first one first; empty for nothing to do.
        lever: what usually helps the phase; None for a run without a slower phase.
        reason: the gate's or the run's own sentence, in full.
        also: words of other parts of the run, such as ``1 law: FAIL``.
        judged, not_judged: what the word covers, and what it does not, each in few words; empty where no run said so.
        phase_note: what of the phase it is, where that is known: ``waiting for a turn before the prompt is read``.
    """

    verdict: str
    title: str
    phase: str | None = None
    how_much: str = ""
    how_sure: str = ""
    what_to_do: tuple[str, ...] = ()
    lever: str | None = None
    reason: str = ""
    also: tuple[str, ...] = ()
    judged: tuple[str, ...] = ()
    not_judged: tuple[str, ...] = ()
    phase_note: str = ""


@dataclass(frozen=True, slots=True)
class Failure:
    """A test of the run that did not pass: its name, its word (``FAIL`` for any other failure), and what it said."""

    test: str
    word: str
    message: str


@dataclass(frozen=True, slots=True)
class Validity:
    """Whether the numbers may be believed.

    Attributes:
        invalid: why parts of the run prove nothing.
        failures: tests that did not pass.
        outcomes: word -> tests that ended with it (``passed`` for those that passed).
        requests, failed, unfit: of everything that was sent, to whichever server, warm-ups and counting included.
        remarks: host disturbances, notes of the client, stopped runs.
        sessions: sessions measured for the gate, baseline or reference first.
        interrupted: whether the run was stopped before its end.
        duration: seconds of the whole run; None where unknown.
    """

    invalid: tuple[str, ...] = ()
    failures: tuple[Failure, ...] = ()
    outcomes: dict[str, int] = field(default_factory=dict)
    requests: int = 0
    failed: int = 0
    unfit: int = 0
    remarks: tuple[str, ...] = ()
    sessions: tuple[int, int] = (0, 0)
    interrupted: bool = False
    duration: float | None = None


@dataclass(frozen=True, slots=True)
class PolicyValue:
    """A number that decided something: its name, its value as text, and where it came from."""

    name: str
    value: str
    source: str


@dataclass(frozen=True, slots=True)
class Environment:
    """On what was measured, from where, and by which numbers it was judged.

    Attributes:
        server, client: facts as text; unknown ones are left out.
        reference: the server compared with, in a paired run; empty otherwise.
        settings: settings that the server told, as text.
        prompts: how prompts were written, in one line.
        plan: how a budget of time was divided; None without one.
        policy: values that applied.
        objectives: as they are written.
    """

    server: dict[str, str] = field(default_factory=dict)
    client: dict[str, str] = field(default_factory=dict)
    reference: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    prompts: str = ""
    plan: str | None = None
    policy: tuple[PolicyValue, ...] = ()
    objectives: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reproduce:
    """How to measure the same again: commands to type, and the seed of prompts and order."""

    commands: tuple[str, ...] = ()
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """A finished run.

    Attributes:
        schema: `SCHEMA`.
        phasegate: version that made it.
        created: UTC time in ISO 8601.
        exit_status: of the run; None where it had none (made from sessions).
        headline: the first screen.
        gate, load, request: None where nothing of the kind was measured.
        diagnosis: findings of the diagnosis, each a mapping with at least ``title`` and ``text``.
        server_timings: the server's own times beside the client's, as the part that measured them wrote them.
        roofline: what the hardware allows at best, as the part that worked it out wrote it.
    """

    schema: str
    phasegate: str
    created: str
    headline: Headline
    exit_status: int | None = None
    gate: Gate | None = None
    laws: tuple[Law, ...] = ()
    workloads: tuple[WorkloadTable, ...] = ()
    load: Load | None = None
    request: RequestLine | None = None
    trends: tuple[Trend, ...] = ()
    validity: Validity = field(default_factory=Validity)
    environment: Environment = field(default_factory=Environment)
    reproduce: Reproduce = field(default_factory=Reproduce)
    diagnosis: tuple[dict[str, Any], ...] = ()
    server_timings: dict[str, Any] | None = None
    roofline: dict[str, Any] | None = None
