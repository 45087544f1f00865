"""Sends requests with vLLM's own bench request function; run by the interpreter of an environment that has it.

``python _other_vllm_reader.py MODULE URL COUNT TOKENS`` with the path of ``endpoint_request_func.py``; nothing of the
project is imported. Prints JSON. As in ``vllm bench serve``: one aiohttp session, one request before the measured ones,
then a task for each request, all at once.
"""

from __future__ import annotations

import asyncio
import gc
import importlib.util
import json
import resource
import sys
import time
from typing import Any


def load(path: str) -> Any:
    """The module by its file, without the package around it."""
    spec = importlib.util.spec_from_file_location("endpoint_request_func", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


async def run(module: Any, url: str, count: int, tokens: int) -> dict[str, Any]:
    """All requests at once, and what they cost this process."""
    import aiohttp  # type: ignore[import-not-found,unused-ignore]

    def wanted(name: str) -> Any:
        return module.RequestFuncInput(
            prompt="word " * 200,
            api_url=f"{url}/chat/completions",
            prompt_len=200,
            output_len=tokens,
            model="m",
            extra_body={"user": name},
        )

    send = module.async_request_openai_chat_completions
    connector = aiohttp.TCPConnector(limit=count, limit_per_host=count, ttl_dns_cache=300, keepalive_timeout=60)
    timeout = aiohttp.ClientTimeout(total=6 * 60 * 60)
    async with aiohttp.ClientSession(connector=connector, trust_env=True, timeout=timeout) as session:
        await send(wanted("warm-up"), session)
        gc.collect()
        memory, cpu = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
        tasks = [asyncio.create_task(send(wanted(str(n)), session)) for n in range(count)]
        outputs = await asyncio.gather(*tasks)
        spent = time.process_time() - cpu
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory
    seen = []
    for number, output in enumerate(outputs):
        if output.success and output.output_tokens == tokens:
            # tpot as `vllm bench serve` computes it from the function's output.
            tpot = (output.latency - output.ttft) / (output.output_tokens - 1)
            seen.append({"name": str(number), "ttft": output.ttft, "tpot": tpot})
    return {"seen": seen, "cpu": spent, "memory": grown * 1024}


if __name__ == "__main__":
    path, url, count, tokens = sys.argv[1:]
    print(json.dumps(asyncio.run(run(load(path), url, int(count), int(tokens)))))
