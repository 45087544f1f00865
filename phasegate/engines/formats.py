"""Names of number formats that facts in files may use, so that a misspelt one is no hardware without a peak."""

from __future__ import annotations

BLOCK_FORMATS = ("q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "q4_k", "q5_k", "q6_k")
"""Formats of llama.cpp whose products are computed in 8 bits."""

KNOWN = (
    "f32", "tf32", "bf16", "f16", "fp16", "fp8", "fp6", "fp4", "mxfp4", "nvfp4", "int8", "int4", "q2_k", "q3_k",
    "iq4_nl", "iq4_xs", *BLOCK_FORMATS,
)  # fmt: skip
"""Formats of weights or of arithmetic."""


def known_format(value: object) -> str:
    """A converter for names of number formats.

    Raises:
        ValueError: the name is not known.
    """
    if value not in KNOWN:
        raise ValueError
    return str(value)
