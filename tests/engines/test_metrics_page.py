"""A server's ``/metrics`` page in our words: captured pages, pages as documented, and pages that cannot be read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from phasegate.engines.metrics.names import ENGINES
from phasegate.engines.metrics.page import MetricsPages
from phasegate.engines.metrics.readings import read_page, words_without_meaning
from phasegate.stats.counters import Kind, counted_between
from tests.engines.front_doors import listening

pytest.importorskip("prometheus_client")

STREAMS = Path(__file__).parents[2] / "fixtures" / "streams"

VLLM = """\
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{{engine="0",model_name="m"}} 1.0
# HELP vllm:kv_cache_usage_perc KV-cache usage. 1 means 100 percent usage.
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{{engine="0",model_name="m"}} 0.25
# HELP vllm:prefix_cache_queries_total Prefix cache queries, in terms of number of queried tokens.
# TYPE vllm:prefix_cache_queries_total counter
vllm:prefix_cache_queries_total{{engine="0",model_name="m"}} {queries}
# HELP vllm:prefix_cache_hits_total Prefix cache hits, in terms of number of cached tokens.
# TYPE vllm:prefix_cache_hits_total counter
vllm:prefix_cache_hits_total{{engine="0",model_name="m"}} {hits}
# HELP vllm:num_preemptions_total Cumulative number of preemption from the engine.
# TYPE vllm:num_preemptions_total counter
vllm:num_preemptions_total{{engine="0",model_name="m"}} 0.0
# HELP vllm:request_success_total Count of successfully processed requests.
# TYPE vllm:request_success_total counter
vllm:request_success_total{{engine="0",finished_reason="stop",model_name="m"}} 2.0
vllm:request_success_total{{engine="0",finished_reason="length",model_name="m"}} {requests}
# HELP vllm:generation_tokens_total Number of generation tokens processed.
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{{engine="0",model_name="m"}} {output}
# HELP vllm:iteration_tokens_total Histogram of number of tokens per engine_step.
# TYPE vllm:iteration_tokens_total histogram
vllm:iteration_tokens_total_bucket{{engine="0",le="+Inf",model_name="m"}} {steps}
vllm:iteration_tokens_total_count{{engine="0",model_name="m"}} {steps}
vllm:iteration_tokens_total_sum{{engine="0",model_name="m"}} 99000.0
# HELP vllm:time_to_first_token_seconds Histogram of time to first token in seconds.
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{{engine="0",le="0.25",model_name="m"}} {requests}
vllm:time_to_first_token_seconds_bucket{{engine="0",le="+Inf",model_name="m"}} {requests}
vllm:time_to_first_token_seconds_count{{engine="0",model_name="m"}} {requests}
vllm:time_to_first_token_seconds_sum{{engine="0",model_name="m"}} {ttft}
# HELP vllm:request_queue_time_seconds Histogram of time spent in WAITING phase for request.
# TYPE vllm:request_queue_time_seconds histogram
vllm:request_queue_time_seconds_bucket{{engine="0",le="+Inf",model_name="m"}} {requests}
vllm:request_queue_time_seconds_count{{engine="0",model_name="m"}} {requests}
vllm:request_queue_time_seconds_sum{{engine="0",model_name="m"}} 0.004
# HELP vllm:request_prefill_time_seconds Histogram of time spent in PREFILL phase for request.
# TYPE vllm:request_prefill_time_seconds histogram
vllm:request_prefill_time_seconds_bucket{{engine="0",le="+Inf",model_name="m"}} {requests}
vllm:request_prefill_time_seconds_count{{engine="0",model_name="m"}} {requests}
vllm:request_prefill_time_seconds_sum{{engine="0",model_name="m"}} {prefill}
"""
"""vLLM's page in the form of its documentation, shortened."""

TGI = """\
# TYPE tgi_request_queue_duration histogram
tgi_request_queue_duration_bucket{le="+Inf"} 3
tgi_request_queue_duration_sum 0.006
tgi_request_queue_duration_count 3
# TYPE tgi_batch_inference_duration histogram
tgi_batch_inference_duration_bucket{method="prefill",le="+Inf"} 3
tgi_batch_inference_duration_sum{method="prefill"} 0.3
tgi_batch_inference_duration_count{method="prefill"} 3
tgi_batch_inference_duration_bucket{method="decode",le="+Inf"} 90
tgi_batch_inference_duration_sum{method="decode"} 1.8
tgi_batch_inference_duration_count{method="decode"} 90
# TYPE tgi_queue_size gauge
tgi_queue_size 0
"""


def vllm_page(requests: int, ttft: float, prefill: float, queries: int = 0, hits: int = 0, **more: int) -> str:
    counts = {"output": 0, "steps": 0, **more}
    return VLLM.format(requests=requests, ttft=ttft, prefill=prefill, queries=queries, hits=hits, **counts)


def test_vllms_page_says_what_happened_between_two_readings() -> None:
    """Four requests; the labels of finished reasons are added up."""
    names = ENGINES["vllm"]
    before = read_page(vllm_page(10, 5.0, 4.0, 1000, 100), names)
    after = read_page(vllm_page(14, 5.4, 4.3, 1400, 300), names)
    counts = counted_between(before, after)
    assert counts.mean("ttft") == pytest.approx(0.1)
    assert counts.mean("prefill") == pytest.approx(0.075)
    assert counts.mean("queue") == pytest.approx(0.0)
    assert counts.grown["requests"] == 4
    assert counts.cache_hit_rate == pytest.approx(0.5)
    assert counts.gauges == {"running": 1.0, "kv_usage": 0.25}


def test_vllms_steps_are_how_often_its_histogram_was_added_to() -> None:
    """Not the tokens it was added, which have the prompts' among them."""
    names = ENGINES["vllm"]
    before = read_page(vllm_page(10, 5.0, 4.0, output=1000, steps=990), names)
    after = read_page(vllm_page(14, 5.4, 4.3, output=1120, steps=1022), names)
    assert counted_between(before, after).streams_per_step == pytest.approx(3.75)


def test_a_captured_page_of_llama_cpp_is_read() -> None:
    """From llama-server itself."""
    text = (STREAMS / "llama-server-b11434" / "metrics.txt").read_text(encoding="utf-8")
    readings = read_page(text, ENGINES["llama.cpp"])
    assert readings["computed_tokens"].value == 386
    assert readings["cached_tokens"].value == 406
    assert readings["prefill"].value == pytest.approx(0.365815)
    assert readings["decode"].value == pytest.approx(0.108062)
    assert readings["running"].kind is Kind.GAUGE
    assert (readings["steps"].value, readings["output_tokens"].value) == (42, 42)
    assert counted_between({}, readings).streams_per_step == pytest.approx(1.0)


def test_a_captured_page_of_sglang_is_read() -> None:
    """From SGLang itself: streaming and not, added up; prefill is one stage of several."""
    text = (STREAMS / "sglang-0.5.23-cpu" / "metrics.txt").read_text(encoding="utf-8")
    readings = read_page(text, ENGINES["sglang"])
    assert readings["ttft"].count == 87
    assert readings["ttft"].value == pytest.approx(0.12664102644066588 + 154.62618607300465)
    assert readings["prefill"].value == pytest.approx(144.75172620899048)
    assert readings["queue"].count == 88
    assert readings["cached_tokens"].value == 10572
    assert readings["kv_usage"].value == pytest.approx(0.01)
    assert counted_between({}, readings).streams_per_step == pytest.approx(4771 / 2503)


def test_sglangs_steps_are_those_of_decode_with_graphs_and_without() -> None:
    """Passes that read prompts are none."""
    modes = {"prefill_none": 7, "decode_none": 10, "decode_cuda_graph": 30}
    lines = ["# TYPE sglang:cuda_graph_passes_total counter"]
    lines += [f'sglang:cuda_graph_passes_total{{mode="{mode}"}} {count}' for mode, count in modes.items()]
    assert read_page("\n".join([*lines, ""]), ENGINES["sglang"])["steps"].value == 40


def test_tgis_prefill_is_one_method_of_its_batches() -> None:
    """Decode batches are not mixed in."""
    readings = read_page(TGI, ENGINES["tgi"])
    assert readings["prefill"].value == pytest.approx(0.3)
    assert readings["queue"].count == 3
    assert readings["waiting"].value == 0


def test_every_word_of_the_table_has_a_meaning() -> None:
    """And a word that has none is found."""
    for engine in ENGINES.values():
        assert words_without_meaning(engine.words) == []
    assert words_without_meaning(["ttft", "speed"]) == ["speed"]


@contextmanager
def serving(status: int, body: str) -> Iterator[tuple[str, list[str]]]:
    """A server with one page, its base URL, and the paths it was asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            content = body.encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            pass

    with listening(Handler) as root:
        yield f"{root}/v1", asked


def test_the_page_stands_at_the_servers_root() -> None:
    """Not below the API's version path."""
    with serving(200, vllm_page(1, 0.1, 0.1)) as (url, asked):
        page = MetricsPages(url, "vLLM").read()
    assert asked == ["/metrics"]
    assert page.note is None
    assert page.readings["ttft"].count == 1


@pytest.mark.parametrize("status", [401, 404, 501])
def test_a_page_that_is_refused_is_a_note_and_is_asked_for_once(status: int) -> None:
    """The note names the way to open it; the numbers stay silent."""
    with serving(status, "no") as (url, asked):
        door = MetricsPages(url, "llama.cpp")
        pages = [door.read(), door.read()]
    assert asked == ["/metrics"]
    assert pages[1].readings == {}
    assert pages[1].note is not None
    assert f"HTTP {status}" in pages[1].note
    assert "--metrics opens it" in pages[1].note


def test_a_page_that_is_no_page_is_a_note() -> None:
    """HTML, as gateways answer."""
    with serving(200, "<html><body>hello {} </body></html>") as (url, _):
        page = MetricsPages(url, "vllm").read()
    assert page.readings == {}
    assert page.note is not None
    assert "not a page in Prometheus" in page.note


def test_an_unknown_engine_is_not_asked() -> None:
    """And there is nothing to note: nobody knows what its page would say."""
    with serving(200, vllm_page(1, 0.1, 0.1)) as (url, asked):
        page = MetricsPages(url, "unknown").read()
    assert (page.readings, page.note, asked) == ({}, None, [])
