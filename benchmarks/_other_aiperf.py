"""AIPerf by its command line, with one prompt for each request and every request in flight at once."""

from __future__ import annotations

import json

from benchmarks._other_run import Job, Ran, Told, ToolFailedError, run_command
from benchmarks._other_tokenizer import write_tokenizer
from benchmarks._other_venv import python_with, version_in

SECONDS_PER = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0}


class AIPerf:
    """Several processes; requests are matched by the ``x-request-id`` header, which is in its records too."""

    label = "aiperf"
    about = (
        "`aiperf profile --streaming --concurrency N --request-count N`, with one warm-up request; TTFT and "
        "`inter_token_latency` of its `profile_export.jsonl`; matched request by request by its `x-request-id`"
    )

    def install(self) -> str:
        """See `Tool`."""
        self._python = python_with("aiperf", ["aiperf"])
        return version_in(self._python, "aiperf")

    def run(self, job: Job) -> Ran:
        """See `Tool`."""
        prompts = job.folder / "prompts.jsonl"
        prompts.write_text("".join(json.dumps({"text": "word " * 200}) + "\n" for _ in range(job.count)))
        tokenizer = write_tokenizer(job.folder / "tokenizer")
        words = [self._python.with_name("aiperf"), "profile", "--model", "m", "--url", job.root]
        words += ["--endpoint-type", "chat", "--streaming", "--tokenizer", tokenizer, "--use-server-token-count"]
        words += ["--input-file", prompts, "--custom-dataset-type", "single_turn"]
        words += ["--concurrency", job.count, "--request-count", job.count, "--warmup-request-count", 1]
        words += ["--output-artifact-dir", job.folder, "--export-level", "records", "--ui", "none"]
        words += ["--no-gpu-telemetry", "--no-server-metrics"]
        _, watched = run_command(words, job)
        return Ran(_records(job), watched.between)


def _records(job: Job) -> list[Told]:
    """The successful requests of the measured phase."""
    files = sorted(job.folder.rglob("profile_export.jsonl"))
    if not files:
        raise ToolFailedError("aiperf wrote no profile_export.jsonl")
    told = []
    for line in files[0].read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        metrics = record.get("metrics") or {}
        if record["metadata"].get("benchmark_phase") == "warmup" or record.get("error"):
            continue
        if "time_to_first_token" in metrics and "inter_token_latency" in metrics:
            ttft, tpot = (_seconds(metrics[name]) for name in ("time_to_first_token", "inter_token_latency"))
            told.append(Told(str(record["metadata"].get("x_request_id")), ttft, tpot))
    return told


def _seconds(block: dict[str, object]) -> float:
    return float(str(block["value"])) * SECONDS_PER[str(block["unit"])]
