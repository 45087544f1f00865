"""Prompts of an exact token length, as the server counts them.

Prompts are rows of words that are one token each, so that adding a word adds a token. Which words those are, and
how many tokens the chat template adds around them, is measured on the server (`calibrate`); every answer's
``usage.prompt_tokens`` is then checked against the promise.

Prompts of one run differ from their first token on, so that a prefix cache can help none of them unless the
workload wants it to: no two prompts start with the same pair of words.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from phasegate.workload import Planned

CountTokens = Callable[[str], int]
"""Text of a prompt -> tokens the server counts for it, template included."""

MINIMUM_WORDS = 24
"""Fewer one-token words than this leave too few different prompt beginnings."""

FIRST_WORDS_TRIED = 24
"""How many words are tried at the first position, where no space precedes them; each costs one count."""


class CalibrationError(ValueError):
    """Prompts of exact length cannot be written for this server. The message is one line for the user."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """What is known about the server's token counts.

    Attributes:
        words: words that are one token each behind a space.
        first_words: words that are one token each at the very start.
        overhead: tokens that the template adds to every prompt.
        how: where this knowledge comes from, for the report.
    """

    words: tuple[str, ...]
    first_words: tuple[str, ...]
    overhead: int
    how: str


def calibrate_known(words: Sequence[str], count: CountTokens) -> Calibration:
    """Calibration for an engine whose vocabulary is known: only the template's overhead is measured.

    Raises:
        CalibrationError: the server counts otherwise than the vocabulary says.
    """
    vocabulary = tuple(words)
    few, many = (count(" ".join(vocabulary[:n])) for n in (8, 40))
    if many - few != 32:
        raise CalibrationError(
            f"32 more words of the engine's own vocabulary changed its count by {many - few}, not by 32 tokens: "
            "is another model loaded than the one that was generated?"
        )
    return Calibration(vocabulary, vocabulary, few - 8, "the engine's known vocabulary")


def calibrate(candidates: Sequence[str], count: CountTokens) -> Calibration:
    """Calibration for an unknown tokenizer, by counting.

    A group of words is accepted whole when it adds as many tokens as it has words (each word adds at least
    one); otherwise it is halved, down to single words. This takes a few dozen counts for 200 words.

    Raises:
        CalibrationError: fewer than `MINIMUM_WORDS` words are one token each.
    """
    anchor = candidates[0]
    base = count(anchor)
    regular = _one_token_words(candidates[1:], lambda group: count(" ".join((anchor, *group))) - base)
    if len(regular) < MINIMUM_WORDS:
        raise CalibrationError(
            f"only {len(regular)} of {len(candidates)} common words are one token each on this server "
            f"(at least {MINIMUM_WORDS} are needed); give a word list that suits the model's tokenizer"
        )
    # Two words: the second is one token, so what is left is the first word and the template.
    starts = {word: count(f"{word} {regular[0]}") - 1 for word in regular[:FIRST_WORDS_TRIED]}
    shortest = min(starts.values())
    first_words = tuple(word for word, tokens in starts.items() if tokens == shortest)
    return Calibration(regular, first_words, shortest - 1, "token counts of the server")


def _one_token_words(words: Sequence[str], tokens_of: Callable[[Sequence[str]], int]) -> tuple[str, ...]:
    """The words of the group that are one token each, in their order."""
    if not words:
        return ()
    if tokens_of(words) == len(words):
        return tuple(words)
    if len(words) == 1:
        return ()
    half = len(words) // 2
    return _one_token_words(words[:half], tokens_of) + _one_token_words(words[half:], tokens_of)


@dataclass
class PromptWriter:
    """Writes the prompts of one run. Equal seeds and calibrations give equal prompts.

    Attributes:
        calibration: what a word costs.
        seed: decides the words; two runs on a warm server need different seeds.
        salt: keeps the prompts of sessions of one run apart; "" for none.
    """

    calibration: Calibration
    seed: int
    salt: str = ""
    _beginnings: dict[tuple[str, ...], str] = field(default_factory=dict)

    def write(self, planned: Planned, shared_tokens: int = 0) -> str:
        """The prompt of one planned request, exactly ``planned.input_tokens`` long on the server.

        Raises:
            CalibrationError: the template alone is as long as the wanted prompt.
        """
        return "".join(self.parts(planned, shared_tokens))

    def parts(self, planned: Planned, shared_tokens: int = 0) -> tuple[str, str]:
        """The prompt in two: the beginning that may be read from a cache later, and the rest.

        Together they are `write`'s prompt to the letter: the rest keeps the space before its first word, so that a
        cut there changes no token. Where nothing in particular is shared, the whole prompt is the beginning. A prompt
        of its own in a workload that shares ``shared_tokens`` is cut where the others are.

        Raises:
            CalibrationError: as `write`.
        """
        words = planned.input_tokens - self.calibration.overhead
        if words < 2:
            raise CalibrationError(
                f"a prompt of {planned.input_tokens} tokens cannot be written: the server's template alone adds "
                f"{self.calibration.overhead}; ask for at least {self.calibration.overhead + 2} input tokens"
            )
        if planned.prefix_key is None:
            row = self._row(planned.prompt_key, words)
            cut = self._shared_words(shared_tokens) if shared_tokens else words
            return _in_two(row[:cut], row[cut:])
        prefix = self._row(planned.prefix_key, self._shared_words(shared_tokens))
        # The suffix differs from its first word on, else the two prompts would share more than they say.
        return _in_two(prefix, self._row(planned.prompt_key, words - len(prefix)) if words > len(prefix) else [])

    def _shared_words(self, shared_tokens: int) -> int:
        """Words of a beginning of so many tokens, the template's among them."""
        return max(2, shared_tokens - self.calibration.overhead)

    def _row(self, key: str, length: int) -> list[str]:
        """``length`` words for a key, whose first two words no other key of this writer has."""
        for attempt in range(1000):
            rng = np.random.default_rng(_seed_of(self.seed, self.salt, key, attempt))
            first = self.calibration.first_words[int(rng.integers(len(self.calibration.first_words)))]
            rest = rng.integers(len(self.calibration.words), size=max(0, length - 1))
            row = [first, *(self.calibration.words[int(i)] for i in rest)][:length]
            beginning = tuple(row[:2])
            if self._beginnings.setdefault(beginning, key) == key:
                return row
        raise CalibrationError(
            f"no new beginning for a prompt is left after {len(self._beginnings)} prompts "
            f"({len(self.calibration.first_words)} first words x {len(self.calibration.words)} words)"
        )


def _in_two(beginning: Sequence[str], rest: Sequence[str]) -> tuple[str, str]:
    return " ".join(beginning), " ".join(["", *rest])


def _seed_of(seed: int, salt: str, key: str, attempt: int) -> int:
    """A seed that depends on every part of the key and on nothing else, such as the order of calls."""
    digest = hashlib.sha256(f"{seed}|{salt}|{key}|{attempt}".encode()).digest()
    return int.from_bytes(digest[:8], "big")
