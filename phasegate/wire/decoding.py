"""From a recording to a timeline, in the dialect of the endpoint that was asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from phasegate.timeline import Recording, Timeline
from phasegate.wire import anthropic_stream, ollama_stream, openai_stream

_DECODERS: Mapping[str, Callable[[Recording], Timeline]] = {
    "messages": anthropic_stream.decode,
    "ollama": ollama_stream.decode,
}
"""Endpoint -> its decoder; all others speak OpenAI's chunks."""


def decode(recording: Recording) -> Timeline:
    """What the recorded request was, in token events, counts and moments. No input makes it raise."""
    return _DECODERS.get(recording.expected.endpoint, openai_stream.decode)(recording)
