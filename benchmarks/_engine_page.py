"""docs/engines.md: what was seen on every real engine, from the kept facts of its last run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from benchmarks._engine_recipes import Recipe
from benchmarks._page import row, write_page
from phasegate import __version__
from phasegate.core.units import format_seconds

Facts = Mapping[str, Any]

HEAD = f"""# Real engines

Written by `make test-engines` (`python -m benchmarks.engine_runs`); do not edit. Phasegate {__version__}.

The phase suite (`pytest perf_tests`: prefill, decode, prefix cache, rows, batching) on engines that were installed and
started here, each on the generated model ([why that one](decisions/0002-embedded-model.md)): the same weights for all,
as GGUF (q8_0) for llama.cpp and in bfloat16 for the others, of which SGLang and Transformers compute in float32 on a
CPU. The figures compare phases within an engine; they do not rank engines, which have other number formats here and
were made for other hardware.

What could not be run here (TGI, TensorRT-LLM, hosted APIs) is *replayed*: the suite is tested against servers that play
their documented streams back byte for byte; these rows stand at the [end](#replayed).
"""

STREAMS = Path(__file__).parents[1] / "tests" / "engines" / "replay" / "streams.yaml"
"""Every replayed stream with its source, and what must be read out of it; ``tests/engines/replay`` plays them."""


def write_engines_page(path: Path, results: Mapping[str, Facts], recipes: Mapping[str, Recipe]) -> None:
    """Write the page in one step."""
    write_page(path, engines_page(results, recipes))


def engines_page(results: Mapping[str, Facts], recipes: Mapping[str, Recipe]) -> str:
    """The page in Markdown."""
    measured = {name: facts for name, facts in results.items() if facts.get("cells")}
    parts = [HEAD, _missing(results, recipes), _installed(measured, recipes), _figures(measured), _clocks(measured)]
    parts.append(_laws(measured))
    parts += [_details(name, facts) for name, facts in measured.items()]
    parts.append(_replayed())
    return "\n".join(part for part in parts if part)


def _missing(results: Mapping[str, Facts], recipes: Mapping[str, Recipe]) -> str:
    absent = [name for name in recipes if not results.get(name, {}).get("cells")]
    return f"Not run, and so not shown below: {', '.join(absent)}.\n" if absent else ""


def _installed(measured: Mapping[str, Facts], recipes: Mapping[str, Recipe]) -> str:
    lines = [
        "## How they were run\n",
        row(
            [
                "engine",
                "version",
                "disk",
                "installed in",
                "ready after",
                "suite took",
                "others used",
                "measured",
                "remarks",
            ]
        ),
        row(["---", "---", "---:", "---:", "---:", "---:", "---:", "---", "---"]),
    ]
    for name, facts in measured.items():
        size, seconds = facts.get("install_bytes"), facts.get("install_seconds")
        lines.append(
            row(
                [
                    name,
                    str(facts["version"]),
                    f"{size / 1e9:.2f} GB" if size else "-",
                    f"{seconds:.0f} s" if seconds else "-",
                    format_seconds(facts.get("start_seconds")),
                    f"{facts['seconds']:.0f} s",
                    _cores(facts.get("foreign_cores")),
                    str(facts["when"]),
                    recipes[name].remark if name in recipes else "the default engine",
                ]
            )
        )
    hosts = sorted({str(facts["host"]) for facts in measured.values()})
    lines += [
        "",
        "*Others used* is what other processes of the machine took meanwhile. Above a quarter of a core, times are",
    ]
    lines += ["longer than on a quiet machine, and laws end INCONCLUSIVE more often.", ""]
    return "\n".join([*lines, *(f"Machine: {host}." for host in hosts), ""])


def _cores(used: float | None) -> str:
    return "-" if used is None else f"{used:.2f} cores"


def _figures(measured: Mapping[str, Facts]) -> str:
    lengths = sorted(
        {c["input_tokens"] for f in measured.values() for c in f["cells"] if c["workload"] == "prompt-length"}
    )
    shown = " / ".join(map(str, lengths))
    lines = [
        "## What was measured\n",
        "Medians. *Again* is the TTFT of a prompt of 512 tokens that was sent just before; *batching* is what 4 users "
        "get together, in tokens a second, against one.\n",
        row(
            [
                "engine", f"TTFT at {shown} tokens", f"TPOT at {shown}", "new 512", "again", "cached tokens",
                "tokens/s 1 / 4", "batching", "token counts from", "answers checked, wrong",
            ]
        ),
        row(["---", "---", "---", "---:", "---:", "---:", "---:", "---:", "---", "---:"]),
    ]  # fmt: skip
    lines += [row(_figures_row(name, facts)) for name, facts in measured.items()]
    return "\n".join([*lines, ""])


def _figures_row(name: str, facts: Facts) -> list[str]:
    prompts = [cell for cell in facts["cells"] if cell["workload"] == "prompt-length"]
    roles = {cell["role"]: cell for cell in facts["cells"] if cell["workload"] == "prefix-cache"}
    rates = [float(rate) for _, rate in sorted((int(level), rate) for level, rate in facts["levels"].items())]
    cached = roles.get("cached", {}).get("cached_tokens")
    return [
        name,
        " / ".join(format_seconds(cell["ttft"]) for cell in prompts) or "-",
        " / ".join(format_seconds(cell["tpot"]) for cell in prompts) or "-",
        format_seconds(roles.get("cold", {}).get("ttft")),
        format_seconds(roles.get("cached", {}).get("ttft")),
        "not told" if cached is None else f"{cached:.0f} of 512",
        " / ".join(f"{rate:.0f}" for rate in rates) or "-",
        _batching(facts),
        ", ".join(source for source in facts["token_sources"]) or "-",
        f"{facts['answers_checked']}, {facts['answers_wrong']}",
    ]


def _batching(facts: Facts) -> str:
    """What the law of batching found: paired round by round, so not quite the ratio of the two rates."""
    found = [law.get("effect") for law in facts["laws"] if law["id"].startswith("test_batching")]
    return f"{found[0]:.2f}x" if found and found[0] is not None else "-"


CLOCKS = ("TTFT", "server", "queue", "prefill", "http", "tokenising", "held back", "unexplained")


def _clocks(measured: Mapping[str, Facts]) -> str:
    """The first token by both clocks, where the engine tells its own."""
    lines = [
        "## Where the first token went\n",
        "Milliseconds, by the client's clock (TTFT) and the server's; the unexplained is what both and the parts "
        "that are measured beside them leave ([how](explanation/first-token.md)). By cell where answers carry times, "
        "else means of a workload.\n",
        row(["engine", "cell", *CLOCKS]),
        row(["---", "---", *("---:" for _ in CLOCKS)]),
    ]
    rows = [
        row([name, label, *(f"{parts[part] * 1e3:.2f}" if part in parts else "-" for part in CLOCKS)])
        for name, facts in measured.items()
        for label, parts in (facts.get("first_token") or {}).items()
    ]
    return "\n".join([*lines, *rows, ""]) if rows else ""


def _laws(measured: Mapping[str, Facts]) -> str:
    names = list(dict.fromkeys(law["law"] for facts in measured.values() for law in facts["laws"]))
    lines = [
        "## What each law gave\n",
        row(["law", *measured]),
        row(["---", *("---" for _ in measured)]),
    ]
    for name in names:
        found = ({law["law"]: law["outcome"] for law in facts["laws"]} for facts in measured.values())
        lines.append(row([name, *(one.get(name, "-") for one in found)]))
    said = "A dash: not judged there. On one CPU core llama.cpp has nothing to share, so batching only informs."
    return "\n".join([*lines, "", said, ""])


def _details(name: str, facts: Facts) -> str:
    lines = [f"## {name}: every law with its figures\n", f"Started with `{facts['settings'].get('flags', '')}`.\n"]
    if not facts["settings"].get("flags"):
        del lines[1]
    lines += [f"* **{law['outcome']}** {law['law']}: {law['reason']}" for law in facts["laws"]]
    lines += [f"* **INVALID_RUN** {reason}" for reason in facts["invalid"]]
    lines += [f"* {_informing(text)}" for text in facts.get("informing", [])]
    return "\n".join([*lines, ""])


def _replayed() -> str:
    """The engines that were not run, a row for each stream that the tests play back."""
    lines = [
        "## Replayed\n",
        "Not run, and so without figures: the tests in `tests/engines/replay` play these streams back over a socket, "
        "block by block, and check every token's moment, the counts, the reason to end and the errors that are read "
        "out of them. The texts are this project's own; the shape is the documented one.\n",
        row(["engine", "stream", "endpoint", "proof", "bytes", "source"]),
        row(["---", "---", "---", "---", "---", "---"]),
    ]
    for name, one in yaml.safe_load(STREAMS.read_text(encoding="utf-8")).items():
        lines.append(
            row([one["profile"], name, one.get("endpoint", "chat"), "replayed", one["how"], f"<{one['source']}>"])
        )
    return "\n".join([*lines, ""])


def _informing(text: str) -> str:
    """An item that only informs, as ``**WORD** reason``: pytest puts the name of the exception before them."""
    word, _, reason = text.rpartition("NotJudged: ")[2].removeprefix("Skipped: ").partition(": ")
    return f"**{word}** {reason}"
