"""In which number formats a started engine keeps its weights and its KV cache, as far as its arguments tell.

What cannot be known is not guessed: an argument that may change what is read or computed (a quantization, a second
model that drafts, a file with more arguments) makes all of it unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

DTYPES = {
    "float32": "float32", "float": "float32", "float16": "float16", "half": "float16", "bfloat16": "bfloat16",
}  # fmt: skip
"""What engines call a number format -> its usual name."""

CACHE_BYTES = {"float32": 4.0, "float16": 2.0, "bfloat16": 2.0}


@dataclass(frozen=True, slots=True)
class Numbers:
    """The formats of one start.

    Attributes:
        dtype: of the weights, ``float32``, ``float16`` or ``bfloat16``; None for what the file has.
        kv_bytes: bytes of one number in the KV cache, on average over keys and values.
    """

    dtype: str | None
    kv_bytes: float


class UnclearError(ValueError):
    """Arguments that may mean several things."""


def value_of(words: Sequence[str], *flags: str, abbreviated: bool = False) -> str | None:
    """The last value that arguments give to a flag, under any of its names; None where it is not among them.

    Args:
        abbreviated: whether the program takes abbreviations, as argparse does.

    Raises:
        UnclearError: a flag without its value, or what may be an abbreviation of it.
    """
    found = None
    for position, word in enumerate(words):
        name, equals, value = _split(word)
        if name in flags:
            found = value if equals else next(iter(words[position + 1 :]), None)
            if found is None:
                raise UnclearError(word)
        elif abbreviated and _is_long(name) and any(flag.startswith(name) for flag in flags):
            raise UnclearError(word)
    return found


def mentions(words: Sequence[str], flags: Sequence[str]) -> bool:
    """Whether one of these flags is among the arguments: long ones also longer or abbreviated, as argparse has it."""
    names = [_split(word)[0] for word in words]
    long = [name for name in names if _is_long(name)]
    return any(flag in names for flag in flags) or any(
        name.startswith(flag) or flag.startswith(name) for flag in flags if _is_long(flag) for name in long
    )


def _is_long(name: str) -> bool:
    return name.startswith("--") and len(name) > 2


def _split(word: str) -> tuple[str, str, str]:
    """Name, sign and value of a word; underscores in a name are dashes to argparse."""
    name, equals, value = word.partition("=")
    return (name.replace("_", "-") if name.startswith("--") else name), equals, value


def torch_numbers(
    words: Sequence[str], stored: str | None, auto: Mapping[str, str], unknown: Sequence[str]
) -> Numbers | None:
    """The formats of an engine that computes with PyTorch and is told them with ``--dtype``; None where unknown.

    Args:
        words: its arguments.
        stored: format of the weights on disk, or None.
        auto: stored format -> what the engine makes of it where it is not told; others are unknown.
        unknown: flags beside which the formats are not known.
    """
    if mentions(words, unknown):
        return None
    try:
        told, cache = (value_of(words, flag, abbreviated=True) or "auto" for flag in ("--dtype", "--kv-cache-dtype"))
    except UnclearError:
        return None
    dtype = auto.get(stored or "") if told == "auto" else DTYPES.get(told)
    if dtype is None:
        return None
    kv_bytes = 1.0 if cache.startswith("fp8") else CACHE_BYTES.get(dtype if cache == "auto" else cache)
    return None if kv_bytes is None else Numbers(dtype, kv_bytes)
