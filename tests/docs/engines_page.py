"""The reference page of the engine profiles, written from the profiles themselves."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

from phasegate.engines.evidence import KINDS
from phasegate.engines.profile import BEARER, EngineProfile, profiles
from phasegate.engines.profile_book import FOLDER
from tests.docs.blocks import ROOT

PROOFS = {
    "run": "run: the suite ran on the engine itself",
    "captured": "captured: its own streams, recorded from the running engine, are read in the tests",
    "replayed": "replayed: streams written from its documentation are replayed byte for byte in the tests",
    "read": "read: nothing beyond its documentation",
}

INTRODUCTION = """\
# Engine profiles

A profile says how to talk to one kind of engine: what gives it away, how an answer of exact length is asked for, where
counts, cached tokens, reasoning and timings stand in its streams, how its prefix cache is emptied, where its key, its
version and its metrics are. One YAML file each, in `phasegate/engines/profiles`. This page is written from those files.

With an address, `--perf-engine auto` (the default) finds out which one fits. What was found, and from what, stands in
the line `profile` of every run's summary and in its report. `--perf-engine NAME` names one instead:

```sh
pytest perf_tests --perf-base-url http://gpu-box:8000/v1 --perf-model m
pytest perf_tests --perf-base-url http://gpu-box:8000/v1 --perf-model m --perf-engine transformers
pytest perf_tests --perf-base-url https://api.anthropic.com/v1 --perf-model some-model --perf-endpoint messages
```

A hosted API is known by its address, and nothing is asked of it. Of other servers, the owner in the model list counts
first, then what their doors answer, then the `Server` header. A server that nothing fits is `unknown` and gets only
what no server of the OpenAI dialect refuses; if it answers in another dialect, that is an error with its own name
([streams](streams.md#other-peoples-words)).
"""

AFTER_KEYS = """\
The key comes from the variable in the table where it is set, else from `OPENAI_API_KEY`; it enters no file, log or
report.

That key goes to the server at the base URL and to no other. A reference (`--perf-reference-url`) or a sentinel
(`--perf-sentinel-url`) at another scheme, host or port gets the key in `PERF_REFERENCE_API_KEY` or
`PERF_SENTINEL_API_KEY`, or where its address is a hosted API's, that API's own variable from the table; else it is
asked without a key. Addresses with a user or a password in them are refused: they would stand in process lists.

An Azure deployment is given by its whole address, as its portal shows it, with the API version behind it or in
`OPENAI_API_VERSION`:

```sh
phasegate probe --base-url "https://NAME.openai.azure.com/openai/deployments/GPT?api-version=2024-10-21" --model GPT
```

The `/openai/v1` address of newer resources works like any other.

## Where nothing empties the cache

Prompts of cold workloads are new in every run, from their first word on, so a cache cannot help them whether it can be
emptied or not. Where `reset` is empty in the table, that is the only way, and the cached tokens that the server reports
are the check: a cold prompt with more of them than the chat template has is no sample.

## Where only what a request marks is cached

Most servers cache the beginnings of prompts unasked. Where the table has a `cache mark`, `--perf-mark-prefix` puts it
on the requests of workloads that share something. With `prefix: shared` a prompt is sent in two text parts, of which
the first, as long as the shared beginning, carries the mark; with `prefix: repeated` it is one part with a mark.
Controls are marked like the others, so that what writing into the cache costs falls on all. Together the parts are
the same text as without the option, to the letter. Such a workload has another digest, so baselines with marks and
without are never compared. Where the table has no mark for the endpoint, the option ends the run in one line before
anything is measured.

Where nothing unmarked is cached, or only longer beginnings are (`cached from`), a prefix-cache law without a hit
informs (`ADVISORY`) and does not fail.
"""

OWN = """\
## A profile of your own

YAML files in `{folder}` of your project come before the ones that ship. A file with the name of a shipped profile
changes it key by key; `extends` builds a profile of another name on a shipped one; without either it stands by itself.
An unknown key, a wrong value or an incomplete rule ends the run in one line that names the file and the line.

This repository has one, for an engine that tells its name nowhere (`{folder}/fastllm.yaml`):

```yaml
{example}```

Another example: a gateway in front of vLLM that hides `owned_by`, wants the key in a header of its own, and refuses the
parameters that force a length on chat:

```yaml
name: our-gateway
engines: [our-gateway]
extends: vllm
detect:
  - {{host: .llm.example.com}}
  - {{path: /about, equals: {{service: llm-gateway}}, version: build.version}}
key_header: x-gateway-key
key_env: [GATEWAY_KEY]
headers: {{x-team: serving}}
force: {{}}
reset_path: null
```

| key | meaning |
|---|---|
{keys}
"""

KEYS = {
    "name": "the profile's name, as `--perf-engine` takes it",
    "engines": "names of engines it fits; the first is what a server is called that `detect` gives away",
    "extends": "name of the shipped profile that the rest is taken from; only in files of your own",
    "title": "the engine's name for people",
    "detect": f"a list of rules. Each looks at one of {', '.join(f'`{kind}`' for kind in KINDS)}; a `path` must have "
    "the keys in `has` and the texts in `equals`. `version` and `settings` name keys (dots lead into objects) at that "
    "path or at `told_at`",
    "endpoints": "`chat`, `completions`, `messages` (Anthropic's own), `ollama` (Ollama's own)",
    "limit": "`max_tokens` or `max_completion_tokens`",
    "force": "parameters that make the answer exactly as long as the limit; `$output_tokens` stands for the number",
    "omit": "parameters that are never sent, because they are refused",
    "include_usage": "`false` where `stream_options` is refused",
    "key_header": "header of the key, or one for each endpoint; default: `Authorization: Bearer`",
    "key_env": "environment variables that may hold the key, before `OPENAI_API_KEY`",
    "headers": "further request headers; what looks like a key is refused, because the file is no place for one",
    "reset_path": "path that empties the prefix cache when posted to; `$slot` for every slot",
    "reset_needs": "what the server must be started with for that",
    "cache_block": "prompt tokens are cached in blocks of this many",
    "cache_from": "shorter beginnings than this many prompt tokens are never cached",
    "cache_mark": "for `chat` and `messages`: what is put on the text part behind which the reusable beginning of a "
    "prompt ends, as in `{messages: {cache_control: {type: ephemeral}}}`; sent with `--perf-mark-prefix` only",
    "caches_unmarked": "`false` where only what a request marks is cached",
    "reports_cached": "whether the counts name cached tokens; left out where it is a matter of flags",
    "lists_models": "`false` where the model list lacks names that are answered: aliases, deployments, later pages",
    "usage": "in words: where the counts arrive",
    "cached": "in words: where cached tokens do",
    "reasoning": "in words: where reasoning does",
    "timings": "in words: where the server's own timings do",
    "identity": "path that tells the version",
    "metrics": "path of the server's own metrics",
    "proof": "`run`, `captured`, `replayed` or `read`",
    "sources": "pages it was written from",
    "note": "what else a user must know",
}


def engines_page() -> str:
    """Every shipped profile, and how to write one."""
    example = (ROOT / FOLDER / "fastllm.yaml").read_text(encoding="utf-8")
    keys = "\n".join(f"| `{key}` | {meaning} |" for key, meaning in KEYS.items())
    own = OWN.format(folder=Path(FOLDER).as_posix(), example=example, keys=keys)
    return "\n".join([INTRODUCTION, *_body(), own.rstrip(), ""])


def _body() -> Iterator[str]:
    yield from _table(
        "## What they are known by and how they are asked",
        {
            "known by": lambda one: "; ".join(rule.describe() for rule in one.detect) or "its name only",
            "endpoints": lambda one: ", ".join(one.endpoints),
            "limit": lambda one: f"`{one.limit}`",
            "length forced with": lambda one: ", ".join(f"`{key}: {value}`" for key, value in one.force.items()) or "-",
            "never sent": _never_sent,
        },
    )
    yield from _table(
        "## Where things stand in their streams",
        {
            "usage": lambda one: one.usage or "-",
            "cached tokens": lambda one: one.cached or "-",
            "reasoning": lambda one: one.reasoning or "-",
            "timings": lambda one: one.timings or "-",
        },
    )
    yield from _table(
        "## Keys, caches and doors",
        {
            "key": _key,
            "reset": _reset,
            "cache block": lambda one: str(one.cache_block) if one.cache_block > 1 else "-",
            "cached from": lambda one: f"{one.cache_from:,} tokens" if one.cache_from > 1 else "-",
            "cache mark": _mark,
            "version": lambda one: f"`{one.identity}`" if one.identity else "-",
            "metrics": lambda one: f"`{one.metrics}`" if one.metrics else "-",
        },
    )
    yield AFTER_KEYS
    yield "## How each was proved"
    yield ""
    yield from (f"* **{word}**{meaning.removeprefix(word)}" for word, meaning in PROOFS.items())
    yield ""
    yield "| profile | engine | proved | written from | note |"
    yield "|---|---|---|---|---|"
    yield from (_proof(one) for one in profiles())
    yield ""


def _table(title: str, columns: dict[str, Callable[[EngineProfile], str]]) -> Iterator[str]:
    yield title
    yield ""
    yield f"| profile | {' | '.join(columns)} |"
    yield f"|---{'|---' * len(columns)}|"
    for one in profiles():
        yield f"| `{one.name}` | {' | '.join(column(one) for column in columns.values())} |"
    yield ""


def _never_sent(one: EngineProfile) -> str:
    refused = [*one.omit, *([] if one.include_usage else ["stream_options"])]
    return ", ".join(f"`{key}`" for key in refused) or "-"


def _key(one: EngineProfile) -> str:
    headers = sorted(set(one.key_header.values())) or [BEARER]
    where = ", ".join(f"`{header}`" for header in headers)
    if one.key_header and len(one.key_header) < len(one.endpoints):
        where += f" on {', '.join(one.key_header)}, else `{BEARER}`"
    return f"{where}; {', '.join(f'`{name}`' for name in one.key_env)}" if one.key_env else where


def _reset(one: EngineProfile) -> str:
    if one.reset_path is None:
        return "-"
    return f"`{one.reset_path}`" + (f", with {one.reset_needs}" if one.reset_needs else "")


def _mark(one: EngineProfile) -> str:
    known = [f"`{json.dumps(mark)}` on {endpoint}" for endpoint, mark in one.cache_mark.items()]
    only = "; nothing else is cached" if one.caches_unmarked is False else ""
    return ", ".join(known) + only if known else "-"


def _proof(one: EngineProfile) -> str:
    pages = ", ".join(f"[{number}]({page})" for number, page in enumerate(one.sources, 1)) or "-"
    return f"| `{one.name}` | {one.title} | {one.proof} | {pages} | {' '.join(one.note.split()) or '-'} |"
