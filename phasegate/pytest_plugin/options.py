"""The options of the measuring suite. A table of plain values, so that importing it costs nothing."""

from __future__ import annotations

from typing import Any

OPTIONS: tuple[tuple[tuple[str, ...], str, dict[str, Any]], ...] = (
    (
        ("--perf-base-url",),
        "measure the OpenAI-compatible server at this URL (ending in /v1) instead of starting one; "
        "default: OPENAI_BASE_URL. The key is read from OPENAI_API_KEY",
        {"metavar": "URL"},
    ),
    (("--perf-model",), "the model to ask for; default: the only model the server has", {"metavar": "NAME"}),
    (
        ("--perf-engine",),
        "what to start when no URL is given: embedded (llama.cpp in a wheel, the default), simulator, or an engine "
        "that is installed: llama.cpp (llama-server), vllm, sglang or transformers; with a URL, auto (the default) "
        "finds out what the server is, and a name says so (docs/reference/engines.md)",
        {"metavar": "NAME", "default": "embedded"},
    ),
    (
        ("--perf-engine-model",),
        "weights of the started engine: generated (the default), smollm2 (embedded), or a path: a GGUF file for "
        "embedded and llama.cpp, a folder for the others",
        {"metavar": "MODEL", "default": None},
    ),
    (
        ("--perf-engine-config",),
        "settings of the embedded engine or the simulator, as 'key=value key=value'",
        {"metavar": "SETTINGS", "default": ""},
    ),
    (
        ("--perf-engine-args",),
        "arguments for the server of llama.cpp, vllm, sglang or transformers, as in a shell (written with =, as in "
        "--perf-engine-args='--dtype float32'); they come behind the suite's own",
        {"metavar": "ARGS", "default": ""},
    ),
    (
        ("--perf-engine-python",),
        "interpreter of the environment which that engine is installed in; default: that of the command on PATH, else "
        "this one",
        {"metavar": "PATH"},
    ),
    (
        ("--perf-endpoint",),
        "endpoint for workloads that name none: chat (the default), completions, messages (Anthropic's own) or ollama "
        "(Ollama's own)",
        {"choices": ("chat", "completions", "messages", "ollama"), "default": "chat"},
    ),
    (
        ("--perf-mark-prefix",),
        "mark the beginnings that a workload shares, for APIs that cache only what a request marks (Anthropic), or "
        "cache it better (OpenAI from GPT-5.6 on); baselines with marks and without are not compared",
        {"action": "store_true"},
    ),
    (
        ("--perf-hardware",),
        "what the server runs on, where it does not tell itself, such as 'H200 x1'; part of the baselines' key",
        {"metavar": "LABEL"},
    ),
    (
        ("--perf-metrics-url",),
        "metrics page of a worker behind the server, such as http://decode-1:8000/metrics, to read instead of the "
        "server's own; repeatable: what the workers count is added up (docs/howto/disaggregated.md)",
        {"metavar": "URL", "action": "append", "default": None},
    ),
    (("--perf-workloads",), "folder of workload files; default: fixtures/workloads", {"metavar": "DIR"}),
    (
        ("--perf-requests",),
        "measure every cell of every workload this many times instead of what its file says",
        {"metavar": "N", "type": int},
    ),
    (
        ("--perf-seed",),
        "seed of the order; prompts are new in every run all the same",
        {"metavar": "N", "type": int},
    ),
    (("--perf-timeout",), "longest time for one request, such as 120s", {"metavar": "TIME", "default": "120s"}),
    (("--perf-idle-timeout",), "longest silence within a request", {"metavar": "TIME", "default": "60s"}),
    (("--perf-policy",), "policy file; default: fixtures/policy.yaml where it exists", {"metavar": "FILE"}),
    (("--perf-baselines",), "folder of baselines; default: baselines", {"metavar": "DIR"}),
    (
        ("--perf-sessions",),
        "sessions to measure; default: what the policy's sequence needs, and 8 with --update-baselines",
        {"metavar": "N", "type": int},
    ),
    (
        ("--perf-pinned",),
        "compare with, or update, the baseline pinned under this label instead of the rolling one",
        {"metavar": "LABEL"},
    ),
    (
        ("--missing-baseline",),
        "where no baseline is stored: fail (the default in a pipeline: CI is set, and not to false, 0, no or off) or "
        "skip, loudly (the default otherwise)",
        {"choices": ("fail", "skip"), "default": None},
    ),
    (("--update-baselines",), "store this run's sessions as accepted ones", {"action": "store_true"}),
    (
        ("--perf-update-anyway",),
        "with --update-baselines: store them although some item failed",
        {"action": "store_true"},
    ),
    (
        ("--perf-reference-url",),
        "compare with the server at this URL, block by block in one sitting, instead of with stored sessions",
        {"metavar": "URL"},
    ),
    (("--perf-reference-model",), "model of the reference; default: the candidate's", {"metavar": "NAME"}),
    (
        ("--perf-reference-config",),
        "compare with a second started engine that has these settings, or these arguments ('' for the defaults)",
        {"metavar": "SETTINGS"},
    ),
    (
        ("--perf-sentinel-url",),
        "a frozen server on the same kind of host, measured in every session: what moves it is the host's doing",
        {"metavar": "URL"},
    ),
    (("--perf-sentinel-model",), "model of the sentinel; default: the only one it has", {"metavar": "NAME"}),
    (
        ("--perf-blocks",),
        "most blocks of a paired comparison, at least 5 (default 16): 5 are measured, and more while something is open",
        {"metavar": "N", "type": int, "default": None},
    ),
    (
        ("--perf-concurrency",),
        "requests in flight to measure load at (default 1 4 16); paths go before this option",
        {"metavar": "N", "nargs": "+", "default": None},
    ),
    (
        ("--perf-slo",),
        "objectives to judge under load, as METRIC:PERCENTILE:LIMIT, such as ttft:p95:500ms tpot:p95:50ms; "
        "paths go before this option",
        {"metavar": "SLO", "nargs": "+", "default": None},
    ),
    (
        ("--perf-load-requests",),
        "requests of each level of load (default: what the objectives need, up to 60)",
        {"metavar": "N", "type": int},
    ),
    (
        ("--perf-find-limit",),
        "search for the highest load that keeps every objective",
        {"action": "store_true"},
    ),
    (
        ("--perf-max-level",),
        "highest concurrency of that search (default 64)",
        {"metavar": "N", "type": int, "default": 64},
    ),
    (
        ("--perf-budget",),
        "time the run may take, such as 5m: plans what fits, says what it chose, and ends there with what it has",
        {"metavar": "TIME"},
    ),
    (
        ("--perf-workers",),
        "processes that send load: a number, auto (the default: one, and more where one proves too slow), ray for a "
        "Ray cluster, or ray://host:port",
        {"metavar": "N"},
    ),
    (
        ("--perf-max-stall",),
        "longest gap that a long prompt may cause in running streams, such as 200ms; "
        "default: twice the long prompt's own prefill",
        {"metavar": "TIME"},
    ),
    (
        ("--perf-batching-factor",),
        "how many times the throughput of one user several must reach together (default 1.2)",
        {"metavar": "X", "type": float},
    ),
    (
        ("--perf-request-rate",),
        "arrivals a second of an open loop, such as 4, inf for all at once, or a ramp such as 1:10:60s",
        {"metavar": "RATE"},
    ),
    (
        ("--perf-burstiness",),
        "how they come: 1 (the default) is Poisson, below 1 in bursts, above 1 more evenly, inf at equal gaps",
        {"metavar": "X"},
    ),
    (("--perf-max-concurrency",), "cap on requests in flight of that load; default: none", {"metavar": "N"}),
    (("--perf-num-prompts",), "requests of that load; default: what the workload says", {"metavar": "N"}),
    (("--perf-num-warmups",), "requests sent before that load; default: what the workload says", {"metavar": "N"}),
    (
        ("--perf-mix",),
        "what users ask for under load, as workload=weight of files in fixtures/load, such as 'chat=3 report=1'; "
        "default: concurrency",
        {"metavar": "MIX", "nargs": "+", "default": None},
    ),
    (
        ("--perf-trace",),
        "replay the arrivals and lengths of this trace (Mooncake JSONL, or CSV as Azure's) as that load",
        {"metavar": "FILE"},
    ),
    (
        ("--perf-trace-scale",),
        "what the trace's times are multiplied with: 0.5 replays twice as fast (default 1)",
        {"metavar": "X"},
    ),
    (
        ("--perf-model-facts",),
        "the model's shape, for the hardware's limit: a .gguf file, a config.json, or a YAML file",
        {"metavar": "FILE"},
    ),
    (
        ("--perf-hardware-facts",),
        "what the server's hardware can do: a name such as H100, a YAML file with flops and bandwidth, or measure "
        "(this machine's processor)",
        {"metavar": "HARDWARE"},
    ),
    (
        ("--perf-dry-run",),
        "say how many requests and tokens the run would ask for, and send nothing",
        {"action": "store_true"},
    ),
    (
        ("--perf-max-tokens-spent",),
        "send nothing that would ask for more tokens than this in all, prompts and answers together; what was measured "
        "until then is judged",
        {"metavar": "N", "type": int},
    ),
    (
        ("--perf-save-sessions",),
        "folder that gets this run's sessions, judged or not, as pytest-benchmark JSON",
        {"metavar": "DIR"},
    ),
    (
        ("--perf-report",),
        "write a report of the run here, also of a failed or stopped one: .html, .md, .json or .csv; repeatable",
        {"metavar": "PATH", "action": "append", "default": None},
    ),
)
"""Names, help and keyword arguments of every option."""
