"""SGLang, started through its own server.

Without a GPU it needs attention and sampling in plain PyTorch, and no CUDA graphs; that is not a configuration its
makers support, but scheduler, radix cache and chunked prefill are the real ones.
"""

from __future__ import annotations

from collections.abc import Sequence

from phasegate.engines.managed.kind import ADDRESS, ALIAS, MODEL, NO_KEY, Kind, Launch
from phasegate.engines.managed.numbers import Numbers, torch_numbers

AUTO = {"bfloat16": "bfloat16", "float16": "float16"}
"""What ``--dtype auto`` makes of stored weights; of 32 bits it depends on the architecture."""

UNKNOWN_BESIDE = (
    "--quantization", "--spec", "--torchao", "--json-model-override-args", "--load-format", "--config", "--tp",
    "--tensor-parallel", "--pp", "--pipeline-parallel", "--dp", "--data-parallel",
)  # fmt: skip


def _call(launch: Launch) -> list[str]:
    return [
        str(launch.program), "-m", "sglang.launch_server",
        "--model-path", launch.model, "--served-model-name", launch.alias,
        "--host", "127.0.0.1", "--port", str(launch.port),
    ]  # fmt: skip


def _flags(launch: Launch) -> list[str]:
    told = ["--enable-metrics", "--enable-cache-report"]  # cached tokens are told only on request
    length = ["--context-length", "8192"] if launch.generated else []
    if launch.on_gpu:
        return [*told, *length]
    return [
        *told, *length,
        "--device", "cpu", "--dtype", "float32", "--attention-backend", "torch_native",
        "--sampling-backend", "pytorch", "--grammar-backend", "none", "--disable-cuda-graph",
        "--disable-overlap-schedule", "--mem-fraction-static", "0.2", "--max-total-tokens", "32768",
    ]  # fmt: skip


def _environment(launch: Launch) -> dict[str, str | None]:
    if launch.on_gpu:
        return {}
    return {"SGLANG_USE_CPU_ENGINE": "1", "OMP_NUM_THREADS": str(len(launch.cores))}


def _numbers(words: Sequence[str], stored: str | None) -> Numbers | None:
    return torch_numbers(words, stored, AUTO, UNKNOWN_BESIDE)


KIND = Kind(
    name="sglang",
    distributions=("sglang",),
    executable="sglang",
    install="pip install sglang in an environment of its own (python -m benchmarks.engine_envs sglang without a GPU)",
    call=_call,
    flags=_flags,
    environment=_environment,
    numbers=_numbers,
    refused={
        "--host": ADDRESS,
        "--port": ADDRESS,
        "--api-key": NO_KEY,
        "--admin-api-key": NO_KEY,
        "--model": MODEL,
        "--model-path": MODEL,
        "--served-model-name": ALIAS,
    },
)
