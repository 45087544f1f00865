"""The margins of the phase laws: what counts as material, and why. Fractions are fractions: 0.10 is 10 %."""

from __future__ import annotations

ALPHA = 0.05
"""Error probability of each one-sided bound: the usual size of an equivalence test (Schuirmann 1987).

It is the chance of calling an engine lawful that sits exactly on a margin. An engine well inside passes far more
often than 95 %, because margins are wide against its noise; docs/explanation/laws.md has the figures."""

TTFT_RISE_MIN = 0.10
"""Least rise of TTFT from the shortest to the longest prompt that counts as a rise.

Small on purpose: on a fast GPU behind a slow network most of TTFT is not prefill. A server whose TTFT does not move
by even this much either answers before it has read the prompt, or reads it from a cache."""

TTFT_FLAT_MARGIN = 0.10
"""Largest difference of TTFT between output lengths: the default tolerance of prefill metrics."""

TPOT_FLAT_MARGIN = 0.15
"""Largest difference of TPOT between output lengths.

Healthy engines differ by a few percent, since the first steps after prefill find cold caches and the KV cache grows
with the answer. Recomputing the prefix in each step, the fault that this law is for, multiplies TPOT."""

TPOT_SLOPE_MARGIN = 0.15
"""Largest growth of TPOT per 1,000 prompt tokens, as a fraction of TPOT at the shortest prompt.

Decode reads weights and KV cache. With the proportions of real models, 1,000 tokens of cache add from one percent
(8 billion parameters with grouped-query attention) to about ten (small models with many KV heads)."""

LINEAR_STEP_MARGIN = 0.10
"""Largest step or bend of the total over output lengths, as a fraction of the total at that place."""

LINEAR_INTERCEPT_MARGIN = 0.15
"""Largest difference between the line's start and TTFT, as a fraction of TTFT."""

LINEAR_INTERCEPT_TOKENS = 2.0
"""A difference below this many TPOTs is never material: where TTFT is short against a token's time, the start of the
line cannot be known to a fraction of TTFT."""

STALL_FACTOR = 5.0
"""A gap is a stall when it exceeds this many usual gaps plus `STALL_FLOOR`: three times is a disturbed step."""

STALL_FLOOR = 0.05
"""Seconds that a gap may last beyond its multiple of the usual gap: schedulers of shared machines take that."""

STALLED_TOLERATED = 0.05
"""Share of requests with a stall that a host's own hiccups may cause; proven to be above is a FAIL."""

STALLED_REFUSED = 0.20
"""Share of requests with a stall that must be excluded for a PASS."""

CACHE_SAVING_MIN = 0.20
"""Least saving of TTFT by a cached prefix that counts as faster."""

CACHE_CONTROL_MARGIN = 0.10
"""A fresh prompt of the same length may not be faster than the cold call by more than this."""

CACHE_SLOWER_MIN = 0.05
"""A cached call this much slower than the cold one is called slower; less is a cache that does nothing."""

AMORTISE_MIN = 1.2
"""Least ratio of output throughput under several streams to that of one for decode to count as batched.

Small on purpose: a GPU reaches nearly the number of streams, but a CPU that is bound by arithmetic gains little; one
request after another gives 1.0."""
