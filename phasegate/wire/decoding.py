"""From a recording to a timeline, in the dialect of the endpoint that was asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from phasegate.timeline import Recording, Timeline
from phasegate.wire import anthropic_stream, ollama_stream, openai_stream
from phasegate.wire.messages import without_key

_DECODERS: Mapping[str, Callable[[Recording], Timeline]] = {
    "messages": anthropic_stream.decode,
    "ollama": ollama_stream.decode,
}
"""Endpoint -> its decoder; all others speak OpenAI's chunks."""


def decode(recording: Recording, api_key: str | None = None) -> Timeline:
    """What the recorded request was, in token events, counts and moments. No input makes it raise.

    ``api_key`` is what the server was shown: where it repeats it in its words about a failure or as its model's name,
    the timeline does not.
    """
    line = _DECODERS.get(recording.expected.endpoint, openai_stream.decode)(recording)
    said, model = _hidden(line.error_message, api_key), _hidden(line.model, api_key)
    return line if (said, model) == (line.error_message, line.model) else replace(line, error_message=said, model=model)


def _hidden(text: str | None, api_key: str | None) -> str | None:
    return None if text is None else without_key(text, api_key)
