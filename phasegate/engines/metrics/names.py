"""Which of an engine's metrics stands for which of our words. A table, and nothing else.

Names without the endings that Prometheus' text format adds (``_total`` of counters, ``_sum`` and ``_count`` of
histograms). Where an engine renamed a metric, both names stand here; the first that the page has is taken. Sources, and
what each engine leaves out: docs/reference/server-metrics.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Name:
    """A metric of an engine.

    Attributes:
        name: as the engine spells it.
        labels: labels that a sample must have to count, ``*`` for any ending; empty for all of them.
        scale: what its values are multiplied with to be seconds, tokens or bytes.
    """

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    scale: float = 1.0


@dataclass(frozen=True, slots=True)
class EngineNames:
    """One engine's page.

    Attributes:
        words: our word -> the engine's names, newest first.
        prefix: what every name on its page begins with; it tells whose page it is.
        tokenised_inside: the server's TTFT has the tokenising in it.
        enabled_by: what opens the page where it is closed, for a note.
        settle: seconds after an answer's end until all of it is on the page; these engines count in another task than
            the one that answers.
        probed: whether overheads are measured with requests of their own; not where all times are simulated.
    """

    words: Mapping[str, tuple[Name, ...]]
    prefix: str
    tokenised_inside: bool = False
    enabled_by: str = ""
    settle: float = 0.0
    probed: bool = True


def _names(**words: str) -> dict[str, tuple[Name, ...]]:
    return {word: tuple(Name(one) for one in names.split()) for word, names in words.items()}


_VLLM = _names(
    ttft="vllm:time_to_first_token_seconds",
    queue="vllm:request_queue_time_seconds",
    prefill="vllm:request_prefill_time_seconds",
    decode="vllm:request_decode_time_seconds",
    inference="vllm:request_inference_time_seconds",
    total="vllm:e2e_request_latency_seconds",
    requests="vllm:request_success",
    prompt_tokens="vllm:prompt_tokens",
    output_tokens="vllm:generation_tokens",
    cache_queries="vllm:prefix_cache_queries vllm:gpu_prefix_cache_queries",
    cache_hits="vllm:prefix_cache_hits vllm:gpu_prefix_cache_hits",
    preemptions="vllm:num_preemptions",
    drafted_tokens="vllm:spec_decode_num_draft_tokens",
    accepted_tokens="vllm:spec_decode_num_accepted_tokens",
    # A histogram of tokens a step, of which only the number of steps is taken: its sum has the prompts' tokens in it.
    steps="vllm:iteration_tokens_total_count",
    running="vllm:num_requests_running",
    waiting="vllm:num_requests_waiting",
    kv_usage="vllm:kv_cache_usage_perc vllm:gpu_cache_usage_perc",
    # Of the NIXL connector, on the page of the worker that fetches; one entry for each transfer, of each rank.
    handoff="vllm:nixl_xfer_time_seconds",
    handoff_bytes="vllm:nixl_bytes_transferred",
)

_SGLANG = {
    **_names(
        ttft="sglang:time_to_first_token_seconds",
        queue="sglang:queue_time_seconds",
        total="sglang:e2e_request_latency_seconds",
        requests="sglang:num_requests",
        prompt_tokens="sglang:prompt_tokens",
        output_tokens="sglang:generation_tokens",
        cached_tokens="sglang:cached_tokens",
        preemptions="sglang:num_retracted_requests",
        running="sglang:num_running_reqs",
        waiting="sglang:num_queue_reqs",
        kv_usage="sglang:token_usage",
    ),
    "prefill": (Name("sglang:per_stage_req_latency_seconds", {"stage": "prefill_forward"}),),
    # Of decode alone, with CUDA graphs and without.
    "steps": (Name("sglang:cuda_graph_passes", {"mode": "decode_*"}),),
    "step_streams": (Name("sglang:realtime_tokens", {"mode": "decode"}),),
    # The first two are told by the worker that read the prompt, the third by the one that writes: never added up.
    "handoff": (
        Name("sglang:kv_transfer_latency_ms", scale=1e-3),
        Name("sglang:per_stage_req_latency_seconds", {"stage": "prefill_transfer_kv_cache"}),
        Name("sglang:per_stage_req_latency_seconds", {"stage": "decode_transferred"}),
    ),
    # "MB" there are 2^20 bytes.
    "handoff_bytes": (Name("sglang:kv_transfer_total_mb", scale=2**20),),
}

_TGI = {
    **_names(
        queue="tgi_request_queue_duration",
        inference="tgi_request_inference_duration",
        total="tgi_request_duration",
        requests="tgi_request_count",
        prompt_tokens="tgi_request_input_length",
        output_tokens="tgi_request_generated_tokens",
        running="tgi_batch_current_size",
        waiting="tgi_queue_size",
    ),
    # Of batches, not of requests: the same number where one request runs at a time.
    "prefill": (Name("tgi_batch_inference_duration", {"method": "prefill"}),),
}

_LLAMA_CPP = _names(
    prefill="llamacpp:prompt_seconds",
    decode="llamacpp:tokens_predicted_seconds",
    computed_tokens="llamacpp:prompt_tokens",
    output_tokens="llamacpp:tokens_predicted",
    cached_tokens="llamacpp:prompt_tokens_cached",
    drafted_tokens="llamacpp:spec_decode_num_draft_tokens",
    accepted_tokens="llamacpp:spec_decode_num_accepted_tokens",
    # Its n_busy_slots_per_decode counts slots in work, in the step or not, and is a mean since the start.
    steps="llamacpp:n_decode",
    running="llamacpp:requests_processing",
    waiting="llamacpp:requests_deferred",
    kv_usage="llamacpp:kv_cache_usage_ratio",
)

_SIMULATOR = _names(
    ttft="phasegate_simulator_time_to_first_token_seconds",
    queue="phasegate_simulator_request_queue_seconds",
    prefill="phasegate_simulator_request_prefill_seconds",
    decode="phasegate_simulator_request_decode_seconds",
    requests="phasegate_simulator_requests",
    prompt_tokens="phasegate_simulator_prompt_tokens",
    output_tokens="phasegate_simulator_generation_tokens",
    cache_queries="phasegate_simulator_prefix_cache_queries",
    cache_hits="phasegate_simulator_prefix_cache_hits",
    preemptions="phasegate_simulator_preemptions",
    steps="phasegate_simulator_decode_steps",
    step_streams="phasegate_simulator_decode_step_streams",
    running="phasegate_simulator_requests_running",
    waiting="phasegate_simulator_requests_waiting",
    handoff="phasegate_simulator_kv_handoff_seconds",
)

# vLLM's clock starts before the tokenizer since its renderers do (seen in 0.32); that of early V1 versions behind it.
ENGINES: Mapping[str, EngineNames] = {
    "vllm": EngineNames(_VLLM, "vllm:", tokenised_inside=True, settle=0.1),
    "sglang": EngineNames(_SGLANG, "sglang:", tokenised_inside=True, settle=0.1, enabled_by="--enable-metrics"),
    "tgi": EngineNames(_TGI, "tgi_", tokenised_inside=True, settle=0.1),
    "llama.cpp": EngineNames(_LLAMA_CPP, "llamacpp:", enabled_by="--metrics"),
    "phasegate-simulator": EngineNames(_SIMULATOR, "phasegate_simulator_", tokenised_inside=True, probed=False),
}
"""Engine, as `ServerIdentity.engine` names it in lower case -> its names."""
