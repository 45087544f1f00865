"""Hugging Face Transformers' own server (``transformers serve``).

The prefix cache and requests that run together need ``--continuous-batching``, which is given here; its cache is sized
by hand, because a CPU has no memory that it could measure.
"""

from __future__ import annotations

from collections.abc import Sequence

from phasegate.engines.managed.kind import ADDRESS, MODEL, Kind, Launch
from phasegate.engines.managed.numbers import Numbers, torch_numbers

AUTO = {"bfloat16": "bfloat16", "float16": "float16", "float32": "float32"}
"""What ``--dtype auto`` makes of stored weights: it leaves them."""

UNKNOWN_BESIDE = ("--quantization",)


def _call(launch: Launch) -> list[str]:
    return [
        str(launch.program), "-c", "import sys; from transformers.cli.transformers import main; sys.exit(main())",
        "serve", launch.model, "--host", "127.0.0.1", "--port", str(launch.port),
    ]  # fmt: skip


def _flags(launch: Launch) -> list[str]:
    batching = ["--continuous-batching"]
    if launch.on_gpu:
        return batching
    return [
        "--device", "cpu", "--dtype", "float32", *batching,
        "--cb-num-blocks", "512", "--cb-block-size", "32", "--cb-max-batch-tokens", "512",
    ]  # fmt: skip


def _environment(launch: Launch) -> dict[str, str | None]:
    return {} if launch.on_gpu else {"OMP_NUM_THREADS": str(len(launch.cores))}


def _numbers(words: Sequence[str], stored: str | None) -> Numbers | None:
    return torch_numbers(words, stored, AUTO, UNKNOWN_BESIDE)


KIND = Kind(
    name="transformers",
    distributions=("transformers",),
    executable="transformers",
    install="pip install 'transformers[serving]' torch accelerate in an environment of its own",
    call=_call,
    flags=_flags,
    environment=_environment,
    numbers=_numbers,
    refused={"--host": ADDRESS, "--port": ADDRESS, "--force-model": MODEL},
    names_model_by_path=True,
)
