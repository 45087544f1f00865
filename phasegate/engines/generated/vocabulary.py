"""The generated model's tokenizer: a byte-level BPE in which every four-letter word behind a space is one token.

Words are consonant-vowel-consonant-vowel, such as `` babe``. Merges build them letter by letter, so the tokenizer is
an ordinary GPT-2 one and every engine reads it. All other text falls back to single bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

CONSONANTS = "bdfgklmnprstvzj"
VOWELS = "aeiou"
SPECIAL = ("<|bos|>", "<|eos|>", "<|pad|>", "<|im_start|>", "<|im_end|>")

CHAT_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Tokens by number.

    Attributes:
        tokens: every token as the file spells it; those behind ``used`` are padding.
        merges: pairs in order of priority.
        word_ids: numbers of the four-letter words.
        special: special token -> number.
        used: how many tokens can occur at all.
    """

    tokens: tuple[str, ...]
    merges: tuple[tuple[str, str], ...]
    word_ids: tuple[int, ...]
    special: dict[str, int]
    used: int

    @property
    def words(self) -> tuple[str, ...]:
        """The four-letter words without their space."""
        return tuple(self.tokens[number][1:] for number in self.word_ids)


def _byte_letters() -> list[str]:
    """The printable letter that stands for each byte in a GPT-2 vocabulary file."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = {byte: chr(byte) for byte in printable}
    hidden = (byte for byte in range(256) if byte not in letters)
    letters.update({byte: chr(256 + place) for place, byte in enumerate(hidden)})
    return [letters[byte] for byte in range(256)]


@cache
def vocabulary(size: int) -> Vocabulary:
    """The vocabulary, padded to a size.

    Raises:
        ValueError: the size is too small for the words.
    """
    tokens = _byte_letters()
    space = tokens[32]
    merges: list[tuple[str, str]] = []
    stems = [space]
    for letters in (CONSONANTS, VOWELS, CONSONANTS, VOWELS):
        grown = [(stem, letter) for stem in stems for letter in letters]
        merges += grown
        stems = [stem + letter for stem, letter in grown]
        tokens += stems
    word_ids = tuple(range(len(tokens) - len(stems), len(tokens)))
    special = {name: len(tokens) + place for place, name in enumerate(SPECIAL)}
    tokens += SPECIAL
    used = len(tokens)
    if size < used:
        raise ValueError(f"vocabulary is {size}; it must be at least {used}")
    tokens += [f"<|unused{number}|>" for number in range(size - used)]
    return Vocabulary(tuple(tokens), tuple(merges), word_ids, special, used)


@cache
def word_cycle(seed: int, size: int) -> tuple[int, ...]:
    """Numbers of all words in the order in which greedy decoding walks them, round and round."""
    numbers = np.array(vocabulary(size).word_ids)
    np.random.default_rng([seed, 1]).shuffle(numbers)
    return tuple(int(number) for number in numbers)


def next_word(seed: int, size: int) -> dict[str, str]:
    """Word -> the word that greedy decoding writes after it. Every answer can be checked with it."""
    cycle, tokens = word_cycle(seed, size), vocabulary(size).tokens
    following = (*cycle[1:], cycle[0])
    return {tokens[a][1:]: tokens[b][1:] for a, b in zip(cycle, following, strict=True)}
