"""The generated model's words and the cycle they are answered in."""

from __future__ import annotations

import pytest

from phasegate.engines.generated.spec import ModelSpec
from phasegate.engines.generated.vocabulary import next_word, vocabulary, word_cycle

SIZE = 8192


def test_there_are_5625_different_words_of_four_letters() -> None:
    """15 consonants and 5 vowels, twice."""
    words = vocabulary(SIZE).words
    assert len(set(words)) == len(words) == (15 * 5) ** 2
    assert all(len(word) == 4 and word.isascii() and word.isalpha() for word in words)


def test_no_token_stands_twice() -> None:
    """Two tokens of one spelling would make token counts ambiguous."""
    tokens = vocabulary(SIZE).tokens
    assert len(set(tokens)) == len(tokens) == SIZE


def test_every_merge_makes_a_token_of_two_tokens() -> None:
    """A tokenizer with a dangling merge is refused by some engines."""
    known = vocabulary(SIZE)
    tokens = set(known.tokens)
    assert all({left, right, left + right} <= tokens for left, right in known.merges)


def test_answers_walk_through_all_words_before_one_comes_again() -> None:
    """One cycle and not several: no answer loops within 5,625 tokens."""
    following, word, seen = next_word(0, SIZE), "babe", set[str]()
    while word not in seen:
        seen.add(word)
        word = following[word]
    assert word == "babe"
    assert seen == set(vocabulary(SIZE).words)


def test_the_end_of_an_answer_is_not_in_the_cycle() -> None:
    """Greedy decoding can never stop early."""
    assert not set(word_cycle(0, SIZE)) & set(vocabulary(SIZE).special.values())


def test_another_seed_walks_another_way() -> None:
    """The seed is part of what is measured."""
    assert next_word(0, SIZE) != next_word(1, SIZE)


def test_a_vocabulary_without_room_for_the_words_is_refused() -> None:
    """The message names both numbers."""
    with pytest.raises(ValueError, match="vocabulary is 4096; it must be at least 7"):
        vocabulary(4096)


def test_the_default_has_the_proportions_of_large_models() -> None:
    """The KV cache of 2,048 tokens is less than 2 % of the weights a token reads, as in an 8B model."""
    spec = ModelSpec()
    cache_of_a_token = spec.layers * 2 * spec.kv_heads * spec.head_size * 2
    read = (spec.parameters - spec.vocabulary * spec.hidden) * 34 / 32
    assert cache_of_a_token <= 1024
    assert 60e6 <= read <= 150e6
    assert 2048 * cache_of_a_token < 0.02 * read
