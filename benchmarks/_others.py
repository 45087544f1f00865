"""Other load tools in the same run: vLLM's bench request function, AIPerf and GuideLLM, as their users run them.

Each is installed from the package index on request, into an environment of its own (`_other_venv`). It sends the same
number of requests at the same server at once, and what it *reports* as TTFT and as time per output token of each
request is compared with the server's log of the same request. All its processes together have the core that the server
leaves free, as ours has.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks._errors import summary
from benchmarks._other_aiperf import AIPerf
from benchmarks._other_guidellm import GuideLLM
from benchmarks._other_run import Job, Told, Tool, ToolFailedError
from benchmarks._other_venv import NotInstalledError
from benchmarks._other_vllm import VllmBench

Log = Mapping[str, Mapping[str, Any]]
"""Name of a request -> when it arrived and when each of its chunks left."""


def installed() -> tuple[dict[str, Tool], list[str]]:
    """The tools that can be had, by the name of their row, and a line for each that cannot."""
    found: dict[str, Tool] = {}
    trouble: list[str] = []
    for tool in (VllmBench(), AIPerf(), GuideLLM()):
        print(f"installing {tool.label} where it is not yet", file=sys.stderr, flush=True)
        try:
            found[f"{tool.label} {tool.install()}"] = tool
        except NotInstalledError as error:
            trouble.append(str(error))
    return found, trouble


def run_tool(
    tool: Tool, *, url: str, count: int, tokens: int, core: int | None, fetch_log: Callable[[], Log]
) -> dict[str, float]:
    """One run of a tool against a server, as errors against the server's log.

    Raises:
        ToolFailedError: it did not run to its end, or none of its requests is in the log.
    """
    with tempfile.TemporaryDirectory(prefix="phasegate-other-") as folder:
        ran = tool.run(Job(url, count, tokens, core, Path(folder)))
        pairs = matched(ran.told, fetch_log(), tokens)
        if not pairs:
            raise ToolFailedError(f"none of {len(ran.told)} reported requests is in the server's log")
        begin = min(entry["arrived"] for _, entry in pairs)
        end = max(entry["left"][-1] for _, entry in pairs)
        cpu, memory = ran.spent(begin, end)
    return summary(
        [one.ttft - (entry["left"][0] - entry["arrived"]) for one, entry in pairs],
        [_tpot_error(one.tpot, entry["left"]) for one, entry in pairs],
        pace=[(tokens - 1) / (entry["left"][-1] - entry["left"][0]) for _, entry in pairs],
        cpu=cpu / (len(pairs) * tokens),
        memory=memory / len(pairs),
        lost=count - len(pairs),
    )


def _tpot_error(told: float, left: Sequence[float]) -> float:
    return abs(told * (len(left) - 1) / (left[-1] - left[0]) - 1)


def matched(told: Sequence[Told], log: Log, tokens: int) -> list[tuple[Told, Mapping[str, Any]]]:
    """What a tool said of each request beside what the server knows of it; what one of them lacks is left out."""
    return [(one, log[one.name]) for one in told if one.name in log and len(log[one.name]["left"]) == tokens]
