"""A recording of an OpenAI-dialect stream, understood: raw reads -> `Timeline`.

`sse` finds the events, `chunks` puts the answer together (`deltas`: what is output; `usage`: where counts
come from), `outcome` says how it ended, `flags` what a reader of the numbers must know. A pure function of
the recording: no clock, no I/O, and no input that makes it raise.
"""

from __future__ import annotations

from dataclasses import replace

from phasegate.core.timeline import Recording, Timeline, TokenEvent
from phasegate.wire.chunks import read_stream
from phasegate.wire.flags import FLAGS, flags_of
from phasegate.wire.messages import clean
from phasegate.wire.outcome import ERROR_KINDS, outcome_of
from phasegate.wire.streamed import STRANGE_FIELDS, STRANGE_LENGTH, StreamedAnswer

__all__ = ["ERROR_KINDS", "FLAGS", "UNFIT", "UNFIT_COLD", "decode"]

UNFIT = frozenset({"buffered", "prompt_length_mismatch"})
"""Flags that keep an answer out of every latency sample."""

UNFIT_COLD = frozenset({"cached_prompt"})
"""Further ones where a cold prompt was due."""


def decode(recording: Recording) -> Timeline:
    """What the recorded request was, in token events, counts and moments.

    A token event's moment is that of the read which brought its blank line.
    """
    return timeline_of(recording, read_stream(recording))


def timeline_of(recording: Recording, answer: StreamedAnswer) -> Timeline:
    """The timeline of an answer that was read from a recording, in whatever dialect."""
    outcome = outcome_of(recording, answer)
    expected = recording.expected
    answered = recording.http_status is not None and 200 <= recording.http_status < 300
    # A refusal is no stream, and has every right to another content type.
    content_type = recording.header("content-type") if answered else None
    flags = flags_of(answer, expected, outcome.status, content_type)
    output_tokens, source = answer.output_tokens()
    unfit = UNFIT | UNFIT_COLD if expected.cold_prompt else UNFIT
    return Timeline(
        request_id=recording.request_id,
        status=outcome.status,
        error_kind=outcome.kind,
        error_message=outcome.message,
        due=recording.due,
        sent=recording.sent,
        connect_time=recording.connect_time,
        tokens=_token_events(answer),
        output_tokens=output_tokens,
        token_source=source,
        output_tokens_estimate=len(answer.tokens) or None if output_tokens is None else None,
        prompt_tokens=answer.ledger.prompt,
        cached_tokens=answer.ledger.believed_cached,
        reasoning_tokens=answer.ledger.reasoning,
        finish_reason=answer.choices[min(answer.choices)].finish_reason if answer.choices else None,
        choices=len(answer.choices),
        flags=flags,
        malformed_events=answer.malformed,
        first_byte=next((read.at for read in recording.reads if read.data), None),
        stream_end=recording.ended_at if answer.done_at is None else answer.done_at,
        server_timings=answer.timings,
        model=answer.model,
        sample_valid=outcome.status == "ok" and unfit.isdisjoint(flags),
        expected=expected,
        unnamed_fields=tuple(clean(name)[:STRANGE_LENGTH] for name in answer.unnamed.names()[:STRANGE_FIELDS]),
        count_problem=answer.ledger.problem if output_tokens is None else None,
    )


def _token_events(answer: StreamedAnswer) -> tuple[TokenEvent, ...]:
    """The token events. None keeps a count where a running one went back, nor where there are several choices, because
    servers run one total over all or one each."""
    if answer.ledger.shrank or (len(answer.choices) > 1 and answer.ledger.reports > 1):
        return tuple(replace(event, tokens=None) for event in answer.tokens)
    return tuple(answer.tokens)
