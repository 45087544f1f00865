"""The simulator's tokenizer and its answers: a token is a word, and words are what white space separates.

Prompts therefore have exactly as many tokens as words, plus those that the chat template puts in front. Answers
are words drawn from the seed and the request's number, so a run can be checked word for word.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Sequence

from phasegate.core.prompt_vocabulary import COMMON_WORDS


def tokenize(text: str) -> list[str]:
    """The tokens of a text."""
    return text.split()


def token_id(token: str) -> int:
    """A number for a token, the same in every process; two tokens may share one."""
    return int.from_bytes(hashlib.blake2b(token.encode(), digest_size=4).digest(), "big") >> 1


def template(tokens: int) -> list[str]:
    """The tokens that the chat template puts in front of every chat prompt."""
    return [f"<|template-{index}|>" for index in range(tokens)]


def answer_words(rng: random.Random, count: int) -> list[str]:
    """An answer of that many tokens; joining the words gives its text, so all but the first begin with a space."""
    words = rng.choices(COMMON_WORDS, k=count)
    return [word if index == 0 else f" {word}" for index, word in enumerate(words)]


def escaped(words: Sequence[str]) -> list[bytes]:
    """Words as they stand inside a JSON string."""
    return [json.dumps(word)[1:-1].encode() for word in words]
