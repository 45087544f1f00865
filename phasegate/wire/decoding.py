"""From a recording to a timeline, in the dialect of the endpoint that was asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from phasegate.core.hiding import hide_key
from phasegate.core.timeline import Read, Recording, Timeline
from phasegate.wire import anthropic_stream, ollama_stream, openai_stream

_DECODERS: Mapping[str, Callable[[Recording], Timeline]] = {
    "messages": anthropic_stream.decode,
    "ollama": ollama_stream.decode,
}
"""Endpoint -> its decoder; all others speak OpenAI's chunks."""


def decode(recording: Recording, api_key: str | None = None) -> Timeline:
    """What the recorded request was, in token events, counts and moments. No input makes it raise.

    ``api_key`` is what the server was shown: where it repeats it, in its words about a failure or a count, as its
    model's name or as a reason to end, the timeline does not.
    """
    read = _DECODERS.get(recording.expected.endpoint, openai_stream.decode)
    line = read(recording)
    if line.error_message is not None or line.count_problem is not None:
        # Hidden in what came, before a word of it was shortened: a key that was cut would not be found any more.
        said = read(_without_key(recording, api_key))
        line = replace(line, error_message=said.error_message, count_problem=said.count_problem)
    model, reason = _hidden(line.model, api_key), _hidden(line.finish_reason, api_key)
    same = (model, reason) == (line.model, line.finish_reason)
    return line if same else replace(line, model=model, finish_reason=reason)


def _hidden(text: str | None, api_key: str | None) -> str | None:
    return None if text is None else hide_key(text, api_key)


def _without_key(recording: Recording, api_key: str | None) -> Recording:
    """The recording without the key in whatever the server or the transport said; its moments are lost."""
    body = b"".join(read.data for read in recording.reads)
    hidden = hide_key(body.decode("latin-1"), api_key).encode("latin-1")
    return replace(
        recording,
        headers=tuple((name, hide_key(value, api_key)) for name, value in recording.headers),
        detail=hide_key(recording.detail, api_key),
        reads=recording.reads if hidden == body else (Read(recording.reads[-1].at, hidden),),
    )
