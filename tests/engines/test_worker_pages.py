"""Pages of the workers behind a router, read as one, and the hand-off of a KV cache from one worker to another."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from phasegate.engines.metrics.names import ENGINES
from phasegate.engines.metrics.page import MetricsPages, page_url
from phasegate.engines.metrics.readings import read_page, readings_of_workers, samples_of
from phasegate.stats.counters import ServerCounts, counted_between
from phasegate.stats.first_token import FirstToken, split_by_counts
from tests.engines.front_doors import Door, house
from tests.timelines import timeline

pytest.importorskip("prometheus_client")


def page(values: Mapping[str, tuple[float, float] | float]) -> str:
    """A page of histograms, given as sum and count, and counters and gauges, given as they are."""
    lines = []
    for name, value in values.items():
        if isinstance(value, tuple):
            lines += [f"# TYPE {name} histogram", f'{name}_bucket{{le="+Inf"}} {value[1]}']
            lines += [f"{name}_sum {value[0]}", f"{name}_count {value[1]}"]
        else:
            lines += [f"# TYPE {name} untyped", f"{name} {value}"]
    return "\n".join([*lines, ""])


def prefiller(requests: int) -> str:
    """vLLM's prefill worker after so many requests of 0.3 s, of which 0.1 s of waiting."""
    return page(
        {
            "vllm:time_to_first_token_seconds": (0.3 * requests, requests),
            "vllm:request_queue_time_seconds": (0.1 * requests, requests),
            "vllm:request_prefill_time_seconds": (0.2 * requests, requests),
            "vllm:num_requests_waiting": 2.0,
            "vllm:kv_cache_usage_perc": 0.25,
        }
    )


def decoder(requests: int) -> str:
    """vLLM's decode worker: a first token from a cache that was fetched in 80 ms, then the others."""
    return page(
        {
            "vllm:time_to_first_token_seconds": (0.15 * requests, requests),
            "vllm:request_queue_time_seconds": (0.12 * requests, requests),
            "vllm:request_prefill_time_seconds": (0.02 * requests, requests),
            "vllm:num_requests_waiting": 1.0,
            "vllm:kv_cache_usage_perc": 0.75,
            "vllm:nixl_xfer_time_seconds": (0.08 * requests, requests),
            "vllm:nixl_bytes_transferred": (5e6 * requests, requests),
        }
    )


def between(before: list[str], after: list[str]) -> ServerCounts:
    """What several workers counted together."""
    first, last = (readings_of_workers([samples_of(one) for one in pages]) for pages in (before, after))
    return counted_between(first, last, len(after))


def test_counters_and_histograms_of_workers_are_added_up() -> None:
    """And gauges, but of shares of memory the largest."""
    readings = readings_of_workers([samples_of(prefiller(4)), samples_of(decoder(4))])
    assert readings["queue"].value == pytest.approx(0.88)
    assert readings["queue"].count == 8
    assert readings["waiting"].value == 3
    assert readings["kv_usage"].value == 0.75
    assert readings["queue"].parts == pytest.approx((0.4, 0.48))


def test_workers_of_two_engines_are_added_up_too() -> None:
    """Each by its own names; what nobody knows tells nothing."""
    other = page({"sglang:queue_time_seconds": (1.0, 2), "sglang:num_queue_reqs": 5.0})
    readings = readings_of_workers([samples_of(one) for one in (prefiller(4), other, page({"envoy_requests": 9.0}))])
    assert readings["queue"].value == pytest.approx(1.4)
    assert readings["queue"].count == 6
    assert readings["waiting"].value == 7


def test_a_request_that_passes_two_workers_waits_and_is_read_on_both() -> None:
    """Means are of the client's requests; a TTFT of the server there is none, and the hand-off is of each move."""
    counts = between([prefiller(10), decoder(10)], [prefiller(14), decoder(14)])
    lines = [timeline(ttft=0.46) for _ in range(4)]
    split = split_by_counts(lines, counts)
    assert isinstance(split, FirstToken)
    assert (split.server, split.unexplained) == (None, None)
    assert split.queue == pytest.approx(0.22)
    assert split.prefill == pytest.approx(0.22)
    assert counts.mean("handoff") == pytest.approx(0.08)
    assert counts.grown["handoff_bytes"] == pytest.approx(4 * 5e6)


def test_replicas_share_the_requests_and_are_split_like_one_server() -> None:
    """Three requests here and one there: the server's TTFT is that of the worker that had it."""
    counts = between([prefiller(10), prefiller(20)], [prefiller(13), prefiller(21)])
    split = split_by_counts([timeline(ttft=0.31) for _ in range(4)], counts)
    assert isinstance(split, FirstToken)
    assert split.server == pytest.approx(0.3)
    assert split.unexplained == pytest.approx(0.01)


@pytest.mark.parametrize(("workers", "sent"), [(1, 4), (2, 5), (2, 2)])
def test_other_users_are_found_out(workers: int, sent: int) -> None:
    """Eight counted: twice four is a hand-off only where there are two workers, and never four times two."""
    counts = ServerCounts({"ttft": 1.0, "queue": 0.1}, {"ttft": 8, "queue": 8}, workers=workers)
    assert not isinstance(split_by_counts([timeline(ttft=0.3) for _ in range(sent)], counts), FirstToken)


def test_one_worker_that_began_anew_is_found_although_the_sum_grew() -> None:
    """The other one counted more than the first lost."""
    counts = between([prefiller(10), prefiller(20)], [prefiller(2), prefiller(60)])
    assert "ttft" in counts.reset
    assert "ttft" not in counts.grown


def test_sglangs_hand_off_is_told_in_milliseconds_and_mebibytes() -> None:
    """By the worker that read the prompt; where only the other one's page is read, by its stage."""
    stage = 'sglang:per_stage_req_latency_seconds_{}{{stage="decode_transferred"}} {}'
    waits = "\n".join(["# TYPE sglang:per_stage_req_latency_seconds histogram", stage.format("sum", 1.0), ""])
    waits += stage.format("count", 4) + "\n"
    reads = page({"sglang:kv_transfer_latency_ms": (320.0, 4), "sglang:kv_transfer_total_mb": (40.0, 4)})
    alone = read_page(waits, ENGINES["sglang"])["handoff"]
    assert (alone.value, alone.count) == (1.0, 4)
    both = readings_of_workers([samples_of(waits), samples_of(reads)])
    assert both["handoff"].value == pytest.approx(0.32)
    assert both["handoff"].count == 4
    assert both["handoff_bytes"].value == 40 * 2**20


def test_a_door_reads_the_workers_and_not_the_router() -> None:
    """The router's profile does not matter, and its key goes to no other host or port."""
    with (
        house({"/metrics": Door(prefiller(4))}) as first,
        house({"/deep/metrics": Door(decoder(4))}) as second,
        house({"/metrics": Door(page({"vllm:request_success_total": 99.0}))}) as router,
    ):
        workers = (first.root, f"{second.root}/deep/metrics", f"{router.root}/metrics")
        door = MetricsPages(router.base_url, "unknown", "secret-key", workers)
        told = door.read()
    assert told.note is None
    assert told.readings["ttft"].count == 8
    assert told.readings["requests"].value == 99
    assert door.pages == 3
    assert door.names is ENGINES["vllm"]
    assert "authorization" not in first.knocks[0].headers
    assert router.knocks[0].headers["authorization"] == "Bearer secret-key"


def test_one_page_that_cannot_be_read_silences_all_in_one_line() -> None:
    """A sum with a worker missing would be taken for the whole; passwords in its address are not told."""
    with house({"/metrics": Door(prefiller(4))}) as first, house({}) as second:
        address = f"http://user:pass-word@{second.root.removeprefix('http://')}/metrics"
        door = MetricsPages("http://127.0.0.1:9/v1", "vllm", None, (first.root, address))
        told = [door.read(), door.read()]
    assert told[1].readings == {}
    assert told[1].note is not None
    assert f"{second.root}/metrics gave HTTP 404" in told[1].note
    assert "pass-word" not in told[1].note
    assert len(second.knocks) == 1


def test_a_page_of_somebody_else_is_named() -> None:
    """A router's own page, say."""
    with house({"/metrics": Door(page({"envoy_requests": 9.0}))}) as other:
        told = MetricsPages("http://127.0.0.1:9/v1", "vllm", None, (other.root,)).read()
    assert told.readings == {}
    assert f"{other.root}/metrics is the page of no engine" in (told.note or "")


@pytest.mark.parametrize(
    ("given", "page_at"),
    [
        ("http://a:1", "http://a:1/metrics"),
        ("http://a:1/v1/", "http://a:1/metrics"),
        ("https://a/b/metrics", "https://a/b/metrics"),
    ],
)
def test_a_page_stands_where_it_is_said_or_below_the_root(given: str, page_at: str) -> None:
    """As it is written where it ends in /metrics."""
    assert page_url(given) == page_at


def test_no_address_is_refused_in_one_line() -> None:
    """Naming value, place and remedy."""
    with pytest.raises(ValueError, match=r"--perf-metrics-url 'decode-1:8000' is no address.*http://host:port"):
        page_url("decode-1:8000")
