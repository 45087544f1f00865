"""The simulator's prefix cache: whole blocks of prompt tokens, found by the chain of all blocks before them."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field


def block_keys(tokens: Sequence[str], block_tokens: int) -> tuple[bytes, ...]:
    """One key for each whole block; it stands for the block and everything before it."""
    chain = hashlib.blake2b(digest_size=16)
    keys = []
    for start in range(0, len(tokens) - block_tokens + 1, block_tokens):
        chain.update("\0".join(tokens[start : start + block_tokens]).encode() + b"\1")
        keys.append(chain.copy().digest())
    return tuple(keys)


@dataclass
class PrefixCache:
    """Blocks of prompts seen before; the least recently used goes first.

    Attributes:
        block_tokens: tokens in a block.
        capacity_tokens: tokens that the cache holds, rounded down to whole blocks.
        queries, hits: tokens looked up and found since the start.
    """

    block_tokens: int
    capacity_tokens: int
    queries: int = 0
    hits: int = 0
    _blocks: OrderedDict[bytes, None] = field(default_factory=OrderedDict)

    def cached_tokens(self, keys: Sequence[bytes], prompt_tokens: int) -> int:
        """How many leading tokens of a prompt are cached; at least the prompt's last token never is.

        Its keys and values may be known, but the first answer token still has to be computed from it.
        """
        found = 0
        for key in keys[: (prompt_tokens - 1) // self.block_tokens]:
            if key not in self._blocks:
                break
            self._blocks.move_to_end(key)
            found += self.block_tokens
        self.queries += prompt_tokens
        self.hits += found
        return found

    def insert(self, keys: Sequence[bytes]) -> None:
        """Remember the blocks of a prompt."""
        for key in keys:
            self._blocks[key] = None
            self._blocks.move_to_end(key)
        while len(self._blocks) * self.block_tokens > self.capacity_tokens:
            self._blocks.popitem(last=False)

    def clear(self) -> None:
        """Forget every block; the counters go on."""
        self._blocks.clear()
