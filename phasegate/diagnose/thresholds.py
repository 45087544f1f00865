"""From when a measured figure counts as a sign, each with its reason. Fractions are fractions, times are seconds."""

from __future__ import annotations

from phasegate.gate import slower_phase

START_LIMIT = 0.45
STREAM_LIMIT = 0.04
"""What counts as slow to start (TTFT) and slow to stream (TPOT) where nobody gave an objective: the limits of MLPerf
Inference's interactive scenario for Llama 2 70B. An objective of the user's takes their place."""

MATERIAL_SHARE = 0.20
"""A cause that explains less than a fifth of what it is a part of is not named: removing it would hardly be felt."""

MATERIAL_SECONDS = 0.003
"""Nor is one of less than 3 ms: schedulers of a shared machine take that."""

CHANGED = 0.10
"""A figure that moved by a tenth has changed: the gate's default tolerance. Whether it is more than noise is for the
gate to say; here a change is only explained."""

UNCHANGED = 0.05
"""A figure within a twentieth has not moved: half of what counts as a change, so that nothing is both."""

READING_SHARE = slower_phase.OWN_SHARE
"""TTFT has one step of decode in it, that of the first token. Reading the prompt is called slower where at least half
of TTFT's growth is left when the growth of such a step is taken off; else decode alone explains it."""

WAITING_SHARE = 0.5
"""Waiting for a turn is named where it is at least half of what load added to TTFT."""

QUEUE_GROWTH = 1.0
"""TTFT under load must have at least doubled (grown by its own size) for a queue to be named: less is shared steps."""

ROOM_TO_SHARE = 2.0
"""A lone request must take twice its TTFT for throughput to say something about batching: only decode can be shared,
so with less of it the best of engines gains little."""

TOGETHER_STREAMS = 1.5
"""Streams that decode at a time, on average, from which requests are answered together: tokens a second times seconds a
token, by Little's law. One after another gives at most 1, and a half is for streams that overlap at their ends. Of a
step's streams by the server's own count, as many times those of a lone user."""

STALL_SHARE = 0.5
"""A stall of half the long prompt's own prefill or more shows that the prompt was read in one piece."""

STALL_GAPS = 5.0
"""A stall is felt from five usual gaps on, as for the law of streams without stalls."""

HANDOFF_GAPS = 3.0
"""The gap before the second token against the usual one: a hand-off between machines is named from three times on. The
first step after a prefill finds cold caches, but does not take three."""

PAUSE_SHARE = 0.20
"""And it must be a fifth of the wait for the second token: a smaller one is not felt behind the wait for the first."""

SEVERAL_TOKENS = 1.5
"""Tokens a step from which several are guessed ahead rather than sent together now and then: a server that falls behind
its connection puts two into a chunk here and there, which made 1.15 a step in what was measured of it."""

ONE_SIZE = 0.9
"""Guesses are right at times and wrong at times, so their steps have several sizes. Where nine chunks of ten have the
same one, the engine sends every so many tokens."""

PREEMPTED_SHARE = 0.05
"""Requests thrown out of the KV memory are named from one in twenty on: fewer are not even the slowest twentieth."""

OTHERS_SHARE = 0.05
"""Somebody else uses the server where it counts a twentieth more requests than were sent: fewer may be probes."""

REASONING_SHARE = 0.5
"""Reasoning is named where the user waits for it at least half of the time to the first answer token."""

LEAST_ACCEPTANCE = 0.4
"""Share of guessed tokens accepted below which speculation does not pay: a step then yields at most 1 / (1 - 0.4) = 1.7
tokens however many are guessed (Leviathan, Kalman and Matias 2023, equation 1), and checking guesses costs the rest."""

USUAL_ACCEPTANCE = 0.7
"""Acceptance of a draft that fits its model, for telling what a step could yield (the same paper's table 2 has 0.5 to
0.9)."""

BANDWIDTH_BOUND = 0.6
"""Share of the memory bandwidth from which decode runs at the hardware's limit: kernels reach 0.6 to 0.9 of the data
sheet."""

COMPUTE_BOUND = 0.4
"""Share of the peak FLOP/s from which prefill runs at the hardware's limit: dense kernels reach 0.4 to 0.7 of the data
sheet."""

HIT_SHARE = 0.5
"""A prefix counts as cached where half of the prompt came from the cache."""

MISS_SHARE = 0.1
"""And as not cached where less than a tenth did: what remains are the template's own tokens."""
