"""Reference pages of the server's own metrics and of known hardware, written from the tables in code."""

from __future__ import annotations

from phasegate.engines.hardware import devices
from phasegate.engines.metrics.names import ENGINES, EngineNames
from phasegate.stats.counters import COUNTS, GAUGES, TIMES

SOURCES = {
    "vllm": "[production metrics](https://docs.vllm.ai/en/stable/usage/metrics/)",
    "sglang": "[production metrics](https://docs.sglang.io/references/production_metrics.html), and a page captured "
    "from 0.5.23",
    "tgi": "[metrics](https://huggingface.co/docs/text-generation-inference/reference/metrics)",
    "llama.cpp": "[server README](https://github.com/ggml-org/llama.cpp/tree/master/tools/server), and a page captured "
    "from build 11434",
    "phasegate-simulator": "[simulator](simulator.md)",
}

INTRODUCTION = """\
# The server's own metrics

Beside the client's clock stands the server's: its `/metrics` page is read before and after every workload, never while
one is measured, and the times that come with an answer are kept. Both are in the section *the server's own clock* of
the summary, and in a session's `observed` facts.

Where the page is missing, nothing is guessed: the numbers stay silent and one note says why. A counter that fell in
between was reset; it is named and not used. A server that counted another number of requests than were sent had other
users, and its means are not put beside ours.

## Columns of the summary

$COLUMNS

Medians over the requests of a cell where every answer carries times (llama.cpp; vLLM with
`--enable-per-request-metrics`), else means over the whole workload, since histograms give no others. Without `http`
(servers that tell no time of their own) there is no rest.

A rest that is large and steady lies in front of the engine: a proxy, a load balancer, a queue of the web server. One
that comes and goes is other work on the hosts. [Where the first token went](../explanation/first-token.md) has the
figures of the embedded engine.
"""


AT_A_MOMENT = """
## Requests at a moment

A gauge such as `running` says who is there when the page is read, and it is read when everything measured is over, so
it is close to 0. How many requests ran and waited on average while a level of load was measured follows from counters:
the growth of the sum of `queue` over the seconds of the level is the mean number that waited (Little's law, exact where
the server is idle at both ends), and the growth of `inference`, else of `prefill` and `decode`, else of `total` less
`queue`, is the mean number that ran. Both stand beside every level, and nothing stands there where a server does not
tell the times.

## Workers behind a router

A router's page knows nothing of the engines behind it. `--perf-metrics-url URL`, given once for each worker, reads the
workers' pages instead of the server's own: counters and histograms are added up, gauges too, but of shares of memory
the largest counts. Whose page it is, the names on it say. A word has one name on all pages of an engine, so that what
two workers tell of the same thing is not counted twice. All pages are needed, before and after; a worker that began
anew in between is found out although the sum may have grown. A request may pass more than one worker: where the workers
counted twice as many requests as were sent, `queue` and `prefill` are sums over both, and there is no `server`.
[Disaggregated serving](../howto/disaggregated.md) says what to make of it.

## Hand-off

* **vLLM** tells each transfer of its NIXL connector (read in the source of 0.32), one for each rank, on the page of the
  worker that moves the cache. Its decode worker counts the wait for the cache as `queue`.
* **SGLang** tells the transfer's latency in milliseconds and its size in units of 2^20 bytes on the prefill worker's
  page (read in the source of 0.5.23); where only a decode worker's page is read, its stage `decode_transferred` stands
  in.
* The **simulator**'s pools tell from the end of the prompt to the cache's arrival. Its decode begins at the first
  token, so the hand-off is a part of it.

"""


STREAMS_IN_A_STEP = """\
## Streams in a step

How many streams share a step of the engine is `step_streams` / `steps` between two readings, and where nothing counts
streams, (`output_tokens` - `accepted_tokens`) / `steps`: a stream gets one token of its own from a step. It stands
beside every level of load and decides between two causes of low throughput
([diagnosis](../explanation/diagnosis.md#what-cannot-be-told-apart)). There it is put beside the figure of a lone user,
because engines do not all count the same steps:

* **vLLM** counts steps that yielded any token, those that completed a prompt among them. Several API servers
  (`--api-server-count`) count each for itself, so the figure is too low there.
* **SGLang** counts the steps of decode alone. With speculative decoding accepted drafts are among its tokens, so the
  figure is of tokens there, not of streams.
* **llama.cpp** counts every call of `llama_decode`. Calls that only read a prompt lower the figure, by little where
  answers are longer than prompts have pieces. Its gauge `n_busy_slots_per_decode` is not used: it counts slots in work,
  whether the call had a token of theirs or not, and as a mean since the start with six digits it gets coarse with age.
* **TGI** is left out: no page of it was at hand to check names against.
"""


COLUMNS = (
    ("TTFT", "time to first token as the client measured it", "the client"),
    ("server", "from the arrival at the engine to the first token", "the server"),
    ("queue", "waiting for the engine", "histograms, vLLM's per-request times"),
    ("prefill", "computing the prompt, the first token included", "llama.cpp's `timings.prompt_ms`, histograms"),
    ("front", "server - queue - prefill: the server's front end, handing over to the engine and back", "histograms"),
    (
        "http",
        "connection, parsing, chat template: the client's TTFT less the server's, on nine requests of a word and one "
        "token, the cheapest of which counts",
        "measured once, after the first workload",
    ),
    ("text", "splitting the prompt's text into tokens", "measured once at `/tokenize`, at four lengths"),
    (
        "held",
        "the first token was ready and came later because the next step had begun: the server's span of decoding less "
        "the client's",
        "llama.cpp's `timings.predicted_ms`, histograms of decode",
    ),
    ("rest", "TTFT - server - http - text - held; nothing is fitted, so it may be negative", "-"),
    (
        "hand-off",
        "moving a KV cache from the worker that read the prompt to the one that writes, the mean of all moves",
        "histograms of disaggregated serving",
    ),
    ("TPOT, decode", "time per output token by the client's clock and by the server's", "both"),
)


def server_metrics_page() -> str:
    """What each word stands for on each engine."""
    columns = "\n".join(
        ["| column | what it is | where from |", "|---|---|---|", *(f"| {' | '.join(row)} |" for row in COLUMNS)]
    )
    lines = [INTRODUCTION.replace("$COLUMNS", columns), "## Names", ""]
    engines = list(ENGINES)
    for title, words in (("Times, in seconds of a request", TIMES), ("Counts", COUNTS), ("Gauges", GAUGES)):
        lines += [f"### {title}", "", f"| word | {' | '.join(engines)} |", "|---|" + "---|" * len(engines)]
        for word in words:
            cells = [_cell(ENGINES[engine], word) for engine in engines]
            lines.append(f"| `{word}` | {' | '.join(cells)} |")
        lines.append("")
    lines += [
        "Two names in a cell: the first is that of newer versions. `prompt_tokens` are those sent, `computed_tokens`",
        "those that were not in the cache. TGI's prefill is of batches: the same where one request runs at a time.",
        "",
        "| engine | source | opened by | tokenising |",
        "|---|---|---|---|",
    ]
    for engine, names in ENGINES.items():
        inside = "inside its own TTFT" if names.tokenised_inside else "before its own TTFT begins"
        opened = f"`{names.enabled_by}`" if names.enabled_by else "open"
        lines.append(f"| {engine} | {SOURCES[engine]} | {opened} | {inside} |")
    return "\n".join([*lines, AT_A_MOMENT + STREAMS_IN_A_STEP])


def _cell(names: EngineNames, word: str) -> str:
    shown = []
    for name in names.words.get(word, ()):
        labels = ",".join(f'{key}="{value}"' for key, value in name.labels.items())
        shown.append(f"`{name.name}{{{labels}}}`" if labels else f"`{name.name}`")
    return " ".join(shown) or "-"


def hardware_page() -> str:
    """The table of common accelerators."""
    lines = [
        "# Hardware",
        "",
        "Peaks that `phasegate roofline --hardware NAME` and `--perf-hardware-facts NAME` know, from the vendors' data",
        "sheets. Arithmetic is dense: where a sheet gives a figure with sparsity, half of it stands here. Case, dashes",
        "and the vendor's name do not matter. A label such as `--perf-hardware 'H200 x8'` is understood as well.",
        "",
        "All rows but those of `H100-NVL` and `RTX-3090` were compared with tables that others publish from the sheets",
        "(2026-11-29), not with the sheets themselves: check the row you rely on, or give your own facts.",
        "",
        "| name | also | memory | TFLOP/s or TOP/s | source |",
        "|---|---|---:|---|---|",
    ]
    for device in devices():
        peaks = ", ".join(f"{name} {rate / 1e12:,.4g}" for name, rate in device.flops.items())
        band = "unknown" if device.bandwidth is None else f"{device.bandwidth / 1e9:,.0f} GB/s"
        lines.append(f"| `{device.name}` | {', '.join(device.also) or '-'} | {band} | {peaks} | <{device.source}> |")
    lines += [
        "",
        "Other hardware goes into a YAML file, given instead of a name:",
        "",
        "```yaml",
        "name: my box",
        "flops: {bf16: 100.0e12, fp8: 200.0e12}   # dense operations a second for each number format",
        "bandwidth: 1000.0e9                      # bytes a second",
        "source: where the figures are from",
        "```",
    ]
    return "\n".join(lines) + "\n"
