"""Results as other tools write them, small and made up: the layouts are theirs, the numbers are not."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

Change = Callable[[dict[str, Any]], None]


def spread(*seed: object) -> Callable[[float], float]:
    """Values a little apart, the same for the same seed."""
    rng = random.Random(repr(seed))
    return lambda middle: middle * rng.gauss(1, 0.01)


def vllm(run: int, *, speed: float = 1.0, requests: int = 20, inputs: int = 512, outputs: int = 32) -> dict[str, Any]:
    """One run of vLLM bench serve with single requests."""
    near = spread("vllm", run, speed)
    gaps = [[near(0.01 * speed) for _ in range(outputs - 1)] for _ in range(requests)]
    return {
        "date": f"202601{run + 1:02d}-120000", "backend": "openai-chat", "endpoint_type": "openai-chat",
        "model_id": "tiny", "num_prompts": requests, "request_rate": "inf", "burstiness": 1.0, "max_concurrency": 4,
        "duration": 30.0, "completed": requests, "failed": 0, "total_input_tokens": inputs * requests,
        "total_output_tokens": outputs * requests, "request_throughput": 1.0, "output_throughput": 30.0,
        "input_lens": [inputs] * requests, "output_lens": [outputs] * requests,
        "ttfts": [near(0.2 * speed) for _ in range(requests)], "itls": gaps, "errors": [""] * requests,
    }  # fmt: skip


def fail(document: dict[str, Any], *which: int) -> None:
    """Make requests of a run of vLLM or SGLang fail."""
    for index in which:
        document["ttfts"][index], document["itls"][index], document["output_lens"][index] = 0.0, [], 0
        document["errors"][index] = "Internal Server Error"
        document["input_lens"][index] = 0
    document["completed"] -= len(which)


def shorten(document: dict[str, Any], index: int, tokens: int) -> None:
    """Make an answer of a run of vLLM or SGLang stop early."""
    document["itls"][index] = document["itls"][index][: tokens - 1]
    document["output_lens"][index] = tokens


def without_requests(document: dict[str, Any]) -> dict[str, Any]:
    """A run of vLLM or SGLang as the tool writes it where it was not asked for single requests."""
    lists = ("input_lens", "output_lens", "ttfts", "itls", "errors")
    medians = {
        "median_ttft_ms": 1e3 * sorted(document["ttfts"])[len(document["ttfts"]) // 2],
        "median_tpot_ms": 1e3 * document["itls"][0][0],
    }
    return {**{key: value for key, value in document.items() if key not in lists}, **medians}


def sglang(run: int, **options: Any) -> dict[str, Any]:
    """One run of SGLang bench_serving with single requests."""
    document = vllm(run, **options)
    for key in ("date", "endpoint_type", "model_id", "burstiness", "failed"):
        del document[key]
    tokens = document["total_output_tokens"]
    return {
        **document, "backend": "sglang", "dataset_name": "sharegpt", "request_rate": 4.0, "random_input_len": 1024,
        "random_output_len": 128, "random_range_ratio": 0.0, "total_output_tokens_retokenized": tokens,
    }  # fmt: skip


def guidellm(
    run: int, *, speed: float = 1.0, requests: int = 20, streams: Sequence[int] = (1,), sweep: bool = False
) -> dict[str, Any]:
    """One ``benchmarks.json`` of GuideLLM with single requests."""
    near = spread("guidellm", run, speed)
    benchmarks = []
    for count in streams:
        rows = []
        for _ in range(requests):
            ttft, gap = near(200 * speed * count), near(10 * speed)
            rows.append({
                "time_to_first_token_ms": ttft, "inter_token_latency_ms": gap, "time_per_output_token_ms": 3 * gap,
                "request_latency": (ttft + 31 * gap) / 1e3 + 0.002, "prompt_tokens": 256, "output_tokens": 32,
            })  # fmt: skip
        strategy = {"type_": "concurrent", "streams": count}
        if sweep:
            strategy = {"type_": "constant", "rate": near(1.5 * count)}
        profile = {"type_": "sweep" if sweep else "concurrent"}
        benchmarks.append({
            "type_": "generative_benchmark", "start_time": 1.7e9 + run,
            "config": {"strategy": strategy, "profile": profile, "backend": {"model": "tiny"}},
            "metrics": {"request_totals": {"successful": requests, "errored": 0, "incomplete": 0, "total": requests}},
            "requests": {"successful": rows, "errored": [], "incomplete": []},
        })  # fmt: skip
    return {"metadata": {"version": 1}, "args": {}, "benchmarks": benchmarks}


def guidellm_medians(run: int, **options: Any) -> dict[str, Any]:
    """The same without single requests."""
    document = guidellm(run, **options)
    for one in document["benchmarks"]:
        rows = one["requests"]["successful"]
        for key, name in (
            ("time_to_first_token_ms",) * 2, ("inter_token_latency_ms",) * 2, ("request_latency",) * 2,
            ("prompt_tokens", "prompt_token_count"), ("output_tokens", "output_token_count"),
        ):  # fmt: skip
            values = sorted(row[key] for row in rows)
            one["metrics"][name] = {"successful": {"median": values[len(values) // 2], "count": len(rows)}}
        one["requests"] = {"successful": [], "errored": [], "incomplete": []}
    return document


def aiperf_record(
    number: int, *, ttft: float, gap: float, tokens: int = 16, start: int = 0, **metadata: Any
) -> dict[str, Any]:
    """One line of ``profile_export.jsonl``; times in milliseconds, ``start`` in seconds."""
    latency = ttft + gap * (tokens - 1)
    begun = int((1.7e9 + start) * 1e9) + number * 1_000
    return {
        "metadata": {
            "session_num": number, "benchmark_phase": "profiling", "was_cancelled": False,
            "request_start_ns": begun, "request_end_ns": begun + int(latency * 1e6), **metadata,
        },
        "metrics": {
            "time_to_first_token": {"value": ttft, "unit": "ms"},
            "inter_token_latency": {"value": gap, "unit": "ms"},
            "request_latency": {"value": latency, "unit": "ms"},
            "input_sequence_length": {"value": 100, "unit": "tokens"},
            "output_sequence_length": {"value": tokens, "unit": "tokens"},
        },
        "error": None,
    }  # fmt: skip


def aiperf_records(run: int, *, speed: float = 1.0, requests: int = 12) -> list[dict[str, Any]]:
    """The lines of one run."""
    near = spread("aiperf", run, speed)
    return [
        aiperf_record(number, ttft=near(50 * speed), gap=near(8 * speed), start=1000 * run + number)
        for number in range(requests)
    ]


def aiperf_summary(concurrency: int, *, run: int = 0, speed: float = 1.0, model: str = "tiny") -> dict[str, Any]:
    """A ``profile_export_aiperf.json``."""
    near = spread("aiperf", run, concurrency, speed)
    warmup = {"name": "warmup", "kind": "warmup", "exclude_from_results": True, "concurrency": 1}
    phase = {"name": "profiling", "kind": "profiling", "type": "concurrency", "concurrency": concurrency}

    def block(middle: float, unit: str = "ms") -> dict[str, Any]:
        return {"unit": unit, "avg": near(middle), "p50": near(middle), "count": 40}

    return {
        "schema_version": "1.4", "start_time": f"2026-01-01T00:{run:02d}:00", "was_cancelled": False,
        "time_to_first_token": block(50 * speed * concurrency), "inter_token_latency": block(8 * speed),
        "request_latency": block((50 * concurrency + 120) * speed),
        "input_sequence_length": {"unit": "tokens", "avg": 100.0, "p50": 100.0},
        "output_sequence_length": {"unit": "tokens", "avg": 16.0, "p50": 16.0},
        "error_request_count": {"unit": "requests", "avg": 0.0},
        "input_config": {
            "models": {"items": [{"name": model}]}, "endpoint": {"type": "chat", "urls": ["http://127.0.0.1:1"]},
            "phases": [warmup, phase],
        },
    }  # fmt: skip


def inferencex(run: int, *, concurrency: int = 8, speed: float = 1.0, **facts: Any) -> dict[str, Any]:
    """One point of InferenceX."""
    near = spread("inferencex", run, concurrency, speed)
    return {
        "hw": "gpu-a", "tp": 8, "ep": 1, "dp_attention": "false", "conc": concurrency, "model": "tiny",
        "framework": "vllm", "precision": "fp8", "isl": 1024, "osl": 512, "tput_per_gpu": 900.0,
        "median_ttft": near(0.3 * speed), "median_tpot": near(0.01 * speed), "median_intvty": 100.0,
        "median_e2el": near(5.4 * speed), **facts,
    }  # fmt: skip


def trtllm(run: int, *, speed: float = 1.0, streaming: bool = True) -> dict[str, Any]:
    """One report of trtllm-bench."""
    near = spread("trtllm", run, speed)
    document: dict[str, Any] = {
        "engine": {"model": "tiny", "version": "1.0", "backend": "Pytorch", "dtype": "bfloat16"},
        "machine": {"name": "GPU A"},
        "world_info": {"tp_size": 1, "pp_size": 1, "max_batch_size": 64},
        "request_info": {
            "num_requests": 64, "avg_num_concurrent_requests": near(16.0), "avg_input_length": 128.0,
            "avg_output_length": 128.0,
        },
        "performance": {"request_latency_percentiles_ms": {"p50": near(1500.0 * speed), "p99": 1600.0 * speed}},
    }  # fmt: skip
    if streaming:
        document["streaming_metrics"] = {
            "ttft_percentiles": {"p50": near(200.0 * speed)}, "tpot_percentiles": {"p50": near(10.0 * speed)},
        }  # fmt: skip
    return document


def write(path: Path, document: Any) -> Path:
    """A document as a file, by its suffix: JSON, or JSON lines for a list in a ``.jsonl``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".jsonl":
        path.write_text("".join(f"{json.dumps(one)}\n" for one in document), encoding="utf-8")
    else:
        path.write_text(json.dumps(document), encoding="utf-8")
    return path


def folder(path: Path, make: Callable[[int], dict[str, Any]], *, runs: int = 8, first: int = 0) -> Path:
    """A folder with one file for each run."""
    for run in range(first, first + runs):
        write(path / f"run{run}.json", make(run))
    return path
