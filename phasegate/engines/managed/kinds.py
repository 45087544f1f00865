"""The managed engines by name."""

from __future__ import annotations

from phasegate.engines.managed import llama_server, sglang, transformers_serve, vllm
from phasegate.engines.managed.kind import Kind

KINDS: dict[str, Kind] = {
    kind.name: kind for kind in (llama_server.KIND, vllm.KIND, sglang.KIND, transformers_serve.KIND)
}
