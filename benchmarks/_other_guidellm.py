"""GuideLLM by its command line, with one prompt for each request and every request in flight at once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from benchmarks._other_run import Job, Ran, Told, ToolFailedError, run_command
from benchmarks._other_venv import python_with, version_in
from benchmarks._server import PROMPT_MARK


class GuideLLM:
    """Several processes; requests are matched by the first word of their prompts, which is in its records too."""

    label = "guidellm"
    about = (
        "`guidellm run` with a concurrent profile of N streams and N requests; `time_to_first_token_ms` and "
        "`inter_token_latency_ms` of its `benchmarks.json`; matched request by request by the first word of the prompt"
    )

    def install(self) -> str:
        """See `Tool`."""
        self._python = python_with("guidellm", ["guidellm"])
        return version_in(self._python, "guidellm")

    def run(self, job: Job) -> Ran:
        """See `Tool`."""
        prompts = job.folder / "prompts.jsonl"
        lines = [{"prompt": f"{PROMPT_MARK}{number} " + "word " * 200} for number in range(job.count)]
        prompts.write_text("".join(json.dumps(line) + "\n" for line in lines))
        words = [self._python.with_name("guidellm"), "run"]
        words += ["--backend", f"kind=openai_http,target={job.root},model=m"]
        words += ["--profile", f"kind=concurrent,streams={job.count}"]
        words += ["--constraint", f"kind=max_requests,count={job.count}"]
        words += ["--data", f"kind=json_file,path={prompts}"]
        words += ["--output", f"kind=json,path={job.folder / 'benchmarks.json'}", "--disable-console"]
        _, watched = run_command(words, job)
        return Ran(_records(job), watched.between)


def _records(job: Job) -> list[Told]:
    files = sorted(job.folder.rglob("benchmarks.json"))
    if not files:
        raise ToolFailedError("guidellm wrote no benchmarks.json")
    document = json.loads(files[0].read_text(encoding="utf-8"))
    told = []
    for request in document["benchmarks"][0]["requests"]["successful"]:
        name = next(_marked(request.get("request_args")), None)
        if name is not None:
            ttft, tpot = (request[key] / 1e3 for key in ("time_to_first_token_ms", "inter_token_latency_ms"))
            told.append(Told(name, ttft, tpot))
    return told


def _marked(value: Any) -> Iterator[str]:
    """Names of requests anywhere in what GuideLLM kept of one."""
    if isinstance(value, str):
        _, mark, after = value.partition(PROMPT_MARK)
        if mark:
            yield after.split(maxsplit=1)[0]
    elif isinstance(value, dict):
        for child in value.values():
            yield from _marked(child)
    elif isinstance(value, list):
        for child in value:
            yield from _marked(child)
