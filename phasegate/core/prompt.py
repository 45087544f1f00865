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

from phasegate.core.workload import Planned

CountTokens = Callable[[str], int]
"""Text of a prompt -> tokens the server counts for it, template included."""

MINIMUM_WORDS = 24
"""Fewer one-token words than this leave too few different prompt beginnings."""

FIRST_WORDS_TRIED = 24
"""How many words are tried at the first position, where no space precedes them; each costs one count."""


MOST_COUNTS = 160
"""After so many counts the search for words ends where it has not found `MINIMUM_WORDS`; a usual tokenizer takes fewer
than 50, and a hosted server bills each."""

LEAST_GROWTH = 0.25
"""Tokens that a word adds at least, on average, on any tokenizer, even one whose tokens reach over several words."""

UNBELIEVED = (
    "this server's prompt counts cannot be believed, and prompts of an exact length cannot be written; let it report "
    "usage.prompt_tokens as they are, or measure the server behind it"
)

NAME_WORDS = (
    "if these counts are right, name words of one token in an engine of your own (pytest_perf_engine); else measure "
    "the server behind it"
)


class CalibrationError(ValueError):
    """Prompts of exact length cannot be written for this server. The message is one line for the user."""


class UncountableError(CalibrationError):
    """No prompt of any exact length can be written for this server: its counts are wrong, or do not suit words."""


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
        UncountableError: the server counts otherwise than the vocabulary says.
    """
    vocabulary = tuple(words)
    few, many = (count(" ".join(vocabulary[:n])) for n in (8, 40))
    if many - few != 32:
        raise UncountableError(
            f"32 more words of the engine's own vocabulary changed its count by {many - few}, not by 32 tokens: "
            "is another model loaded than the one that was generated?"
        )
    return Calibration(vocabulary, vocabulary, few - 8, "the engine's known vocabulary")


def calibrate(candidates: Sequence[str], count: CountTokens) -> Calibration:
    """Calibration for an unknown tokenizer, by counting.

    A group of words is accepted whole when it adds as many tokens as it has words (each word adds at least
    one); otherwise it is halved, down to single words. This takes a few dozen counts for 200 words.

    Raises:
        UncountableError: fewer than `MINIMUM_WORDS` words are one token each, or the counts cannot be true.
    """
    anchor = candidates[0]
    base = count(anchor)
    if base <= 0:
        raise UncountableError(f"the server counts {base} tokens for a prompt of one word: {UNBELIEVED}")
    search = _Search(lambda group: count(" ".join((anchor, *group))) - base)
    added = search.count(candidates[1:])
    _check_growth(base, added, len(candidates) - 1)
    search.take(candidates[1:], added)
    regular = tuple(search.found)
    if len(regular) < MINIMUM_WORDS:
        raise UncountableError(
            f"only {len(regular)} of the {search.tried} common words tried are one token each on this server, which "
            f"counts {added / (len(candidates) - 1):.1f} tokens a word (at least {MINIMUM_WORDS} such words are "
            f"needed): {NAME_WORDS}"
        )
    # Two words: the second is one token, so what is left is the first word and the template.
    starts = {word: count(f"{word} {regular[0]}") - 1 for word in regular[:FIRST_WORDS_TRIED]}
    shortest = min(starts.values())
    first_words = tuple(word for word, tokens in starts.items() if tokens == shortest)
    return Calibration(regular, first_words, shortest - 1, "token counts of the server")


def _check_growth(base: int, added: int, words: int) -> None:
    """Refuse counts that a single comparison shows to be of no use, before words are tried one by one."""
    if added < LEAST_GROWTH * words:
        raise UncountableError(
            f"{words} more words changed the server's count of a prompt from {base} to {base + added} tokens: it cuts "
            f"prompts to so few (by a context window?), or {UNBELIEVED}"
        )
    each, rest = divmod(added, words)
    if each > 1 and rest == 0:
        raise UncountableError(
            f"the server counts {each} tokens for each of {words} common words, and a prompt of an exact length needs "
            f"words of one: {NAME_WORDS}"
        )


@dataclass
class _Search:
    """Looks for words of one token by halving groups; gives up where that would cost too many counts.

    Attributes:
        tokens_of: tokens that a group of words adds; each call is a request.
        found: words of one token, in their order.
        tried: words that were decided, alone or in a group.
        counts: calls so far.
    """

    tokens_of: Callable[[Sequence[str]], int]
    found: list[str] = field(default_factory=list)
    tried: int = 0
    counts: int = 0

    def count(self, words: Sequence[str]) -> int:
        """Tokens of a group."""
        self.counts += 1
        return self.tokens_of(words)

    def take(self, words: Sequence[str], tokens: int) -> None:
        """Decide a group that adds so many tokens."""
        if tokens == len(words) or len(words) == 1:
            self.tried += len(words)
            self.found += words if tokens == len(words) else ()
            return
        half = len(words) // 2
        for part in (words[:half], words[half:]):
            if self.counts >= MOST_COUNTS and len(self.found) < MINIMUM_WORDS:
                return
            self.take(part, self.count(part))


@dataclass
class PromptWriter:
    """Writes the prompts of one run. Equal seeds and calibrations give equal prompts.

    Attributes:
        calibration: what a word costs.
        seed: decides the words; two runs on a warm server need different ones (`SessionRunner.prompt_seed`).
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
            rng = np.random.default_rng(seed_of(self.seed, self.salt, key, attempt))
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


def seed_of(*parts: int | str) -> int:
    """A seed that depends on every part and on nothing else, such as the order of calls."""
    digest = hashlib.sha256("|".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:8], "big")
