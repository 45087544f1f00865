"""Texts in fields that nobody knows: found wherever they stand, and told apart into output and remarks about it.

A server may give its model's thoughts a name of its own, and whoever does not know it must not lose them: time to the
first token would be that of another token. But servers also label and decorate their chunks. What is output by its name
(`is_metadata`) can be told at once; the rest by how a field comes, over the whole answer: output comes in chunks of its
own, remarks ride along with text that is understood, or stand as one bare word at the beginning or the end. And what is
output is counted: sentences for which the count leaves no room, beside the text that is understood, are remarks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from phasegate.wire.texts import DEEPEST, is_sealed

METADATA = frozenset(
    """
    id object created model index role name type event kind status state phase channel author recipient provider
    finish_reason native_finish_reason stop_reason stop_sequence matched_stop stop end_turn done_reason
    logprobs top_logprobs prompt_logprobs token_ids prompt_token_ids tokens bytes input_ids output_ids hidden_states
    usage timings metrics x_groq system_fingerprint service_tier obfuscation p padding nvext sglext meta_info
    kv_transfer_params weight_version region node server version format encoding language mime_type effort
    signature thought_signature thoughtsignature encrypted_content encrypted redacted redacted_thinking data b64_json
    citations annotations search_results sources references web_search images image image_url url uri link title file
    content_filter content_filters content_filter_result content_filter_results content_filter_offsets
    prompt_filter_results prompt_annotations safety safety_ratings moderation grounding_metadata
    error errors warning warnings message detail debug timestamp time date latency cost
    """.split()
)
"""Names under which nothing is output, in lower case: identifiers, states, counts, padding, seals, sources."""

_ENDINGS = ("_id", "_ids", "_at", "_ms", "_url", "_uri", "_type", "_status", "_version", "_fingerprint", "_hash",
            "_tier", "_reason", "_region", "_signature", "_time", "_name", "_count", "_code", "_metadata")  # fmt: skip

MOST = 16
"""Texts that are looked at in one chunk."""

LONGEST_WORD = 64
"""Characters beyond which a text without a space is data in letters, not a piece of language."""


MISCOUNTED = 1
"""Tokens that a server may count too few: some leave one out."""


class Found(NamedTuple):
    """A text, and the field that it stood in: ``delta.scratch``, ``delta.extra.notes``."""

    field: str
    text: str


def is_metadata(name: str) -> bool:
    """Whether what stands under a name is known to be no output, whatever it is."""
    lower = name.lower()
    return lower in METADATA or lower.endswith(_ENDINGS) or name.endswith(("Id", "ID"))


def texts_in(fields: Mapping[str, Any], but: Collection[str] = (), prefix: str = "") -> Iterator[Found]:
    """Texts that are not empty in the fields of an object, those named in ``but`` and metadata left out."""
    found: dict[str, str] = {}
    for name, value in fields.items():
        if name not in but and value:
            _look(f"{prefix}{name}", name, value, found, 0)
    yield from (Found(field, text) for field, text in found.items())


def _look(place: str, name: str, value: object, found: dict[str, str], depth: int) -> None:
    if depth > DEEPEST or len(found) >= MOST:
        return
    if isinstance(value, str):
        if value and not is_metadata(name) and not _is_data(value):
            found[place] = found.get(place, "") + value
    elif isinstance(value, list):
        for entry in value:
            _look(place, name, entry, found, depth + 1)
    elif isinstance(value, dict) and not is_metadata(name) and not is_sealed(value):
        for key, inner in value.items():
            _look(f"{place}.{key}", key, inner, found, depth + 1)


def _is_data(text: str) -> bool:
    return len(text) > LONGEST_WORD and _is_bare(text)


def _is_bare(text: str) -> bool:
    """Whether a text is one word of ASCII without a space: an identifier or a state as well as a word."""
    return text.isascii() and not any(mark.isspace() for mark in text)


@dataclass
class _Field:
    """How one field came: alone in a chunk, beside text that is understood, at an edge of the answer."""

    text: str
    alone: int = 0
    beside: int = 0
    first: int = 0
    last: int = 0
    varied: bool = False
    worded: bool = False
    words: int = 0

    def is_output(self, answered: bool, room: int | None) -> bool:
        """Whether it is the model's.

        Args:
            answered: other text of the answer is understood.
            room: tokens that the answer's count leaves beside that text; None where that is not known.
        """
        if answered and self._is_beyond(room):
            return False
        rides_along = self.beside > 0 and (self.beside >= self.alone or not self.varied)
        at_edges = self.alone == self.first + self.last
        label = at_edges and (not self.worded or (answered and not self.first))
        return self.alone > 0 and not rides_along and not label

    def _is_beyond(self, room: int | None) -> bool:
        """Whether a count has no room for it, a word being a token at least; of sentences, and of what came once.

        Thoughts that come piece by piece are believed all the same: some servers do not count them.
        """
        sentences = self.alone == 1 or self.words >= 2 * self.alone
        return room is not None and sentences and self.words > room + MISCOUNTED


class Unnamed:
    """The fields of one answer that are not understood.

    ``ignored`` are those that an earlier reading of the same answer found to be no output.

    Attributes:
        answered: whether any text of the answer is understood.
        room: tokens that the answer's count leaves beside that text, set when all of it is read; None while unknown.
    """

    __slots__ = ("_fields", "_ignored", "answered", "room")

    def __init__(self, ignored: Collection[str] = ()) -> None:
        self._ignored = frozenset(ignored)
        self._fields: dict[str, _Field] = {}
        self.answered = False
        self.room: int | None = None

    def beside(self, found: Found) -> None:
        """A text came in a chunk that holds text which is understood."""
        self._seen(found).beside += 1

    def alone(self, found: Found, *, first: bool, last: bool) -> bool:
        """A text came alone in its chunk, which may be the first one or one that ends the answer; is it output?"""
        field = self._seen(found)
        field.alone += 1
        field.words += len(found.text.split())
        field.last += last
        field.first += first and not last
        return found.field not in self._ignored

    def outside(self, found: Found) -> None:
        """A text came in an event that is no chunk: to be remarked, and never output."""
        self._seen(found).varied = True

    def _seen(self, found: Found) -> _Field:
        field = self._fields.setdefault(found.field, _Field(found.text))
        field.varied = field.varied or found.text != field.text
        field.worded = field.worded or not _is_bare(found.text)
        return field

    def no_output(self) -> frozenset[str]:
        """Fields that were taken for output and, with the whole answer read, are not."""
        fields = self._fields.items()
        taken = {name for name, field in fields if field.alone and not field.is_output(self.answered, self.room)}
        return frozenset(taken) - self._ignored

    def names(self) -> tuple[str, ...]:
        """The fields to remark: those whose text is output, and those whose text is language and may have been it."""
        return tuple(
            name
            for name, field in self._fields.items()
            if (name not in self._ignored and field.is_output(self.answered, self.room))
            or (field.worded and (field.varied or field.is_output(self.answered, None)))
        )
