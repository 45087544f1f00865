"""What helps against each cause, in the order worth trying, each with what it cannot do; and what does not help."""

from __future__ import annotations

from collections.abc import Mapping

from phasegate.gate.levers import LEVERS, Lever

MORE_BANDWIDTH = "more memory bandwidth: prefill is bound by arithmetic"
MORE_COMPUTE = "a GPU with more FLOP/s at the same bandwidth: decode is bound by reading weights and KV cache"
FEWER_TOKENS = "fewer output tokens: they come after the first one"

MARK = Lever(
    "mark the shared beginning of each prompt (cache_control)",
    "a write into the cache is billed above a plain token, and is lost when not read for some minutes",
)
"""Before the others where an API caches only what a request marks."""

TELL_APART = Lever(
    "measure a second prompt length, or let the server tell its own times",
    "makes nothing faster; it tells reading apart from a fixed part (the way there, request handling)",
)
"""Before the others where reading and a fixed part cannot be told apart."""

REMEDIES: Mapping[str, tuple[Lever, ...]] = {
    "prefill": LEVERS["prefill"],
    "decode": LEVERS["decode"],
    "queueing": (
        Lever("more replicas", "cost as much again; a lone request gets no faster"),
        Lever("more slots or KV memory (max_num_seqs, parallel)", "each stream's TPOT grows with the batch"),
        Lever("admission control or a cap on concurrency", "moves the wait to the client; it does not shorten it"),
        Lever("shorter answers", "frees slots sooner; changes the answer"),
    ),
    "server-queue": (
        Lever("keep other traffic off it: replicas of its own for this service", "pays only where others keep it busy"),
        Lever("more replicas", "cost as much again; a request that waits for nobody gets no faster"),
        Lever("more slots or KV memory (max_num_seqs, parallel)", "each stream's TPOT grows with the batch"),
        Lever("priorities for short or interactive requests", "somebody else waits instead"),
    ),
    "kv-memory": (
        Lever(
            "more KV memory (a larger share of the device, a smaller context limit, more devices)",
            "lets more requests run together; a lone one gets no faster",
        ),
        Lever("a KV cache of fewer bytes (quantized, grouped-query attention)", "changes the model's output a little"),
        Lever("fewer requests in work at a time (max_num_seqs)", "the others wait in the queue instead"),
        Lever("shorter prompts and answers", "changes what the model is asked, or its answer"),
        Lever("more replicas", "cost as much again"),
    ),
    "prefill-queue": (
        Lever("more replicas", "cost as much again; a lone request gets no faster"),
        Lever("prompt (prefix) caching", "helps only tokens shared with an earlier prompt; decode stays as it is"),
        Lever("shorter prompts", "changes what the model is asked; the cost of each remaining token stays"),
        Lever("admission control or a cap on concurrency", "moves the wait to the client; it does not shorten it"),
    ),
    "batching": (
        Lever(
            "continuous batching (more slots: max_num_seqs, parallel)",
            "raises tokens per second over all streams; one stream gets no faster",
        ),
        Lever("room in KV memory for several requests", "helps only where memory keeps requests out of the batch"),
        Lever("more replicas", "buys throughput at full price, without sharing the reading of weights"),
    ),
    "batch-cost": (
        Lever(
            "more arithmetic (more cores or threads for the engine, a device with more FLOP/s)",
            "a step that waits for memory gets no faster",
        ),
        Lever("more replicas on hardware of their own", "cost as much again; a lone request gets no faster"),
        Lever("a smaller model", "is another model; its quality must be judged apart"),
        Lever("fewer output tokens", "changes the answer; the time per token stays as it is"),
        Lever("another number format or kernel for batches", "changes the model's output; measure which one is faster"),
    ),
    "stalls": (
        Lever(
            "chunked prefill, with a smaller token budget for each step",
            "the long prompt's own TTFT gets a little longer",
        ),
        Lever("separate prefill and decode servers", "adds a hand-off of the KV cache and a second pool to size"),
        Lever("a route of its own for long prompts", "needs a second server; long prompts still stall each other"),
    ),
    "cache": (
        Lever("prompt (prefix) caching", "helps only tokens shared with an earlier prompt; decode stays as it is"),
        Lever("the fixed part of the prompt first, what varies last", "without a prefix cache it changes nothing"),
        Lever("cache-aware routing of requests with the same beginning", "helps only with several replicas"),
    ),
    "reset": (
        Lever(
            "warm the cache before taking traffic (send each shared prompt once)", "helps only prompts known beforehand"
        ),
        Lever("roll out replica by replica", "each replica still starts cold; fewer users meet it at once"),
        Lever(
            "a KV cache outside the process (shared or on disk)",
            "loading it takes time as well, less than prefill on long prompts",
        ),
    ),
    "reasoning": (
        Lever(
            "fewer reasoning tokens (a lower reasoning effort or a budget)",
            "may cost quality, which must be judged apart",
        ),
        Lever(
            "stream the reasoning, or a summary of it",
            "the answer comes no sooner; the user sees that something happens",
        ),
        Lever("a faster decode: speculative decoding, quantized weights", "shortens each token; their number stays"),
    ),
    "speculation": (
        Lever("a draft that fits the model and the traffic", "pays only while drafts are accepted"),
        Lever("fewer guessed tokens a step", "limits the loss; it also limits the gain"),
        Lever("speculative decoding off", "returns to one token a step"),
    ),
    "network": (
        Lever("a server or gateway nearer to the clients, one hop less", "the engine's own share of TTFT stays"),
        Lever(
            "kept connections (no new TCP and TLS for each request)", "saves set-up, not the round trip of the request"
        ),
        Lever("no buffering in proxies (streaming passed through)", "helps only where a proxy collects chunks"),
    ),
    "handoff": (
        Lever(
            "a faster path for the KV cache between the pools (RDMA, NVLink, layer by layer)",
            "prefill itself stays as it is",
        ),
        Lever("prefill and decode on one machine for short prompts", "brings back stalls by long prompts"),
        Lever("a smaller KV cache (quantized KV, grouped-query attention)", "changes the model's output a little"),
    ),
    "bandwidth": (
        Lever("quantized weights or KV cache (fewer bytes a token)", "changes the model's output; prefill gains less"),
        Lever("speculative decoding or multi-token prediction", "pays only while drafts are accepted"),
        Lever("more memory bandwidth", "does not help prefill, which is bound by compute"),
        Lever("larger batches", "shares the reading of weights among users; one stream gets no faster"),
    ),
    "client": (
        Lever("more client processes or another client machine", "tells more truly; the server gets no faster"),
        Lever(
            "a quiet host: nothing else on the engine's or the client's cores",
            "changes the measurement, not the engine",
        ),
    ),
}
"""Cause -> levers. Prefill's and decode's are those that the gate names for a regression."""
