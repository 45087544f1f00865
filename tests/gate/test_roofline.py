"""The roofline against numbers worked out by hand for Llama-3-8B, and properties that hold for every model."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phasegate.diagnose.from_limits import machine_of
from phasegate.diagnose.roofline import (
    HardwareFacts,
    ModelFacts,
    RooflineError,
    bandwidth_share,
    decode_work,
    flops_share,
    prefill_work,
    slope_work,
)
from phasegate.diagnose.roofline_words import Measured, arithmetic, batch_line, roofline, verdict_line

LLAMA = ModelFacts(
    name="Llama-3-8B",
    body=6_979_321_856,  # 32 x (4096 x 128 x (2 x 32 + 2 x 8) + 3 x 4096 x 14336)
    head=525_336_576,  # 4096 x 128256
    layers=32,
    heads=32,
    kv_heads=8,
    head_size=128,
    weight_bytes=2.0,
    format="bf16",
)
H100 = HardwareFacts("H100", 989.4e12, 3.35e12, "bf16")
A100 = HardwareFacts("A100", 312e12, 2.039e12, "bf16")


def test_a_decode_step_of_llama_3_8b_reads_its_weights_once_and_the_cache_of_every_request() -> None:
    """By hand: 7,504,658,432 weights x 2 B, and 2,048 tokens x 131,072 B."""
    one = decode_work(LLAMA, 2048)
    assert (one.weight_bytes, one.kv_bytes) == (15_009_316_864, 268_435_456)
    eight = decode_work(LLAMA, 2048, batch=8)
    assert (eight.weight_bytes, eight.kv_bytes) == (15_009_316_864, 8 * 268_435_456)
    assert eight.flops == 8 * one.flops


def test_the_decode_floor_is_the_memorys() -> None:
    """15.278 GB at 3.35 TB/s are 4.56 ms, at 2.039 TB/s 7.49 ms; the arithmetic takes a hundredth of that."""
    work = decode_work(LLAMA, 2048)
    assert work.floor(H100) == pytest.approx(4.5605e-3, rel=1e-4)
    assert work.floor(A100) == pytest.approx(7.4928e-3, rel=1e-4)
    assert work.limit(H100) == "memory"
    # 2 x 7,504,658,432 + 4 x 32 x 32 x 128 x 2,048 operations.
    assert work.compute_time(H100) == pytest.approx(16_083_058_688 / 989.4e12)


def test_the_prefill_floor_is_the_arithmetics() -> None:
    """2 x (6.979 G x 2,048 + 0.525 G) + 524,288 x 2,098,176 = 29.688 TFLOP: 30.0 ms and 95.2 ms."""
    work = prefill_work(LLAMA, 2048)
    assert work.flops == 29_688_401_494_016
    assert work.floor(H100) == pytest.approx(30.006e-3, rel=1e-4)
    assert work.floor(A100) == pytest.approx(95.155e-3, rel=1e-4)
    assert work.limit(H100) == "compute"


def test_a_cached_prefix_saves_its_own_arithmetic_and_costs_its_reading() -> None:
    """Computing the first half and then the rest takes the operations of the whole, the head once more."""
    whole, half, rest = prefill_work(LLAMA, 2048), prefill_work(LLAMA, 1024), prefill_work(LLAMA, 2048, cached=1024)
    assert half.flops + rest.flops == whole.flops + 2 * LLAMA.head
    assert rest.kv_bytes == 1024 * 131_072


def test_the_line_says_what_a_faster_gpu_would_not_do() -> None:
    """6.42 ms a token on an H100 are 71 % of its bandwidth."""
    one = roofline(LLAMA, H100, Measured(prompt=2048, output=0, tpot=6.4232e-3))
    assert verdict_line(one).startswith(
        "decode runs at 71 % of the memory-bandwidth limit: a faster-FLOPs GPU will not help"
    )
    assert "below the ridge of 295: memory is its limit" in "\n".join(arithmetic(one))


def test_a_level_of_load_is_one_line() -> None:
    """Eight requests share the weights: 8 x 15.28 GFLOP for 15.01 GB + 8 x 67 MB are 7.86 a byte."""
    one = roofline(LLAMA, H100, Measured(prompt=512, output=2, batch=8, tpot=10e-3))
    line = batch_line(one, "8 at a time")
    assert line.startswith("8 at a time: 8 in each step on average, 7.86 FLOP/B (below 295); ")
    assert line.endswith("46 % of the bandwidth, 1 % of the peak FLOP/s")
    refused = batch_line(roofline(LLAMA, H100, Measured(prompt=512, tpot=1e-3)), "1 at a time")
    assert "share of the bandwidth refused (" in refused
    assert "wrong of the bandwidth" not in refused


def test_from_the_ridge_on_arithmetic_is_the_limit() -> None:
    """A batch of 512 on short contexts does more than 295 operations a byte."""
    one = roofline(LLAMA, H100, Measured(prompt=16, output=2, batch=512, tpot=20e-3))
    assert one.decode.limit(H100) == "compute"
    assert "a faster-FLOPs GPU would help" in verdict_line(one)


def test_the_slope_leaves_out_what_every_prompt_pays() -> None:
    """The same 50 ms on both prompts do not touch the utilisation from the slope, and spoil that from one TTFT."""
    seconds = slope_work(LLAMA, 512, 2048) / (0.5 * 989.4e12)
    both = Measured(prompt=2048, ttft=0.05 + seconds, short=512, short_ttft=0.05)
    assert roofline(LLAMA, H100, both).mfu.believable == pytest.approx(0.5)
    alone = roofline(LLAMA, H100, replace(both, short=None, short_ttft=None)).mfu.believable
    assert alone is not None
    assert alone < 0.35


def test_more_than_the_limit_is_refused_and_not_printed_as_truth() -> None:
    """3 ms for a step that needs 4.56 ms: the facts are wrong, and the line says so instead of 152 %."""
    one = roofline(LLAMA, H100, Measured(prompt=2048, output=0, tpot=3e-3))
    assert one.mbu.believable is None
    assert "refused" in verdict_line(one)
    assert "cannot be: the facts of the model or of the hardware are wrong" in verdict_line(one)
    assert one.mbu.value is not None
    assert machine_of(one).bandwidth is None


def test_what_is_unknown_is_said_to_be_unknown() -> None:
    """Without a bandwidth there is no utilisation of it; without a peak nobody knows which limit comes first."""
    unknown = HardwareFacts("box", None, None)
    measured = Measured(prompt=512, tpot=0.01, ttft=0.1)
    assert "unknown (the bandwidth is unknown)" in verdict_line(roofline(LLAMA, unknown, measured))
    half = roofline(LLAMA, HardwareFacts("box", None, 3.35e12), measured)
    assert "the peak FLOP/s is unknown" in verdict_line(half)
    assert half.mfu.value is None


def test_two_devices_halve_the_floor() -> None:
    """Tensor parallelism shares weights and arithmetic; what its messages cost is not part of a floor."""
    floor = decode_work(LLAMA, 2048).floor(replace(H100, count=2))
    assert floor == pytest.approx(4.5605e-3 / 2, rel=1e-4)


GEMMA = ModelFacts(
    name="Gemma-3-27B",
    body=25_600_000_000,
    head=1_400_000_000,
    layers=62,
    heads=32,
    kv_heads=16,
    head_size=128,
    weight_bytes=2.0,
    window=1024,
    full_layers=10,
)


def test_a_layer_with_a_window_reads_and_computes_no_more_than_its_last_tokens() -> None:
    """By hand, with 8,192 B a token and layer: 10 layers x 32,000 tokens, and 52 x 1,024."""
    assert decode_work(GEMMA, 32_000).kv_bytes == 8_192 * (10 * 32_000 + 52 * 1_024)
    assert decode_work(GEMMA, 1_000).kv_bytes == 8_192 * 62 * 1_000
    pairs = 10 * 32_000 * 32_001 / 2 + 52 * (1_024 * 1_025 / 2 + (32_000 - 1_024) * 1_024)
    plain = 2 * (GEMMA.body * 32_000 + GEMMA.head)
    assert prefill_work(GEMMA, 32_000).flops == pytest.approx(plain + 4 * 32 * 128 * pairs)
    assert prefill_work(GEMMA, 1_000).flops == prefill_work(replace(GEMMA, window=0, full_layers=0), 1_000).flops
    rest = prefill_work(GEMMA, 32_000, cached=20_000)
    assert rest.kv_bytes == 8_192 * (10 * 20_000 + 52 * 1_024)
    assert "KV cache 507.9 kB a token, in 52 of 62 layers of the last 1024 only" in "".join(
        arithmetic(roofline(GEMMA, H100, Measured(prompt=32_000)))
    )


def test_the_pairs_of_a_window_are_those_that_are_counted_one_by_one() -> None:
    """Each token with itself and the two before it, where there are two."""
    small = replace(GEMMA, layers=1, window=3, full_layers=0)
    for tokens in range(1, 9):
        assert small.pairs(tokens) == sum(min(place, 3) for place in range(1, tokens + 1))


@pytest.mark.parametrize(("window", "full"), [(0, 1), (-1, 0), (8, 63), (8, -1)])
def test_windows_that_cannot_be_are_refused(window: int, full: int) -> None:
    """More layers without a window than layers, and layers without one where none has one."""
    with pytest.raises(RooflineError, match=r"of 62 layers without it cannot be"):
        replace(GEMMA, window=window, full_layers=full)


MIXTURE = replace(LLAMA, body=1_000_000, head=100_000, expert=500_000, experts=8, experts_used=2)


def test_one_token_reads_its_own_experts_and_a_large_batch_all_of_them() -> None:
    """Two of eight at batch 1; with 64 tokens that choose evenly, practically all."""
    assert MIXTURE.weights_read(1) == pytest.approx(1_100_000 + 2 * 500_000)
    assert MIXTURE.weights_read(64) == pytest.approx(1_100_000 + 8 * 500_000, rel=1e-3)
    assert MIXTURE.active == 2_100_000


models = st.builds(
    ModelFacts,
    name=st.just("any"),
    body=st.integers(1_000, 10**11),
    head=st.integers(0, 10**9),
    layers=st.integers(1, 128),
    heads=st.integers(1, 128),
    kv_heads=st.integers(1, 128),
    head_size=st.integers(1, 512),
    weight_bytes=st.floats(0.25, 4),
    kv_bytes=st.floats(0.5, 4),
    expert=st.integers(0, 10**9),
    experts=st.integers(8, 256),
    experts_used=st.integers(1, 8),
    window=st.sampled_from((0, 1, 1_024, 65_536)),
)


@given(models, st.integers(1, 100_000), st.integers(1, 1024))
def test_floors_never_fall_when_anything_grows(model: ModelFacts, length: int, batch: int) -> None:
    """A longer prompt, a longer context or a larger batch never takes less; a batch never takes more than its parts."""
    for shorter, longer in (
        (prefill_work(model, length), prefill_work(model, length + 1)),
        (decode_work(model, length, batch), decode_work(model, length + 1, batch)),
        (decode_work(model, length, batch), decode_work(model, length, batch + 1)),
    ):
        assert longer.flops >= shorter.flops
        assert longer.bytes >= shorter.bytes * (1 - 1e-12)
    together, alone = decode_work(model, length, batch), decode_work(model, length)
    assert together.bytes <= batch * alone.bytes * (1 + 1e-9)
    assert together.intensity >= alone.intensity * (1 - 1e-9)


@given(models, st.integers(1, 10_000), st.floats(1e-6, 1e3))
def test_no_share_above_the_limit_is_ever_believed(model: ModelFacts, length: int, seconds: float) -> None:
    """Whatever was measured, a believed share lies between nothing and the limit."""
    work = decode_work(model, length)
    for share in (flops_share(work.flops, seconds, H100), bandwidth_share(work.bytes, seconds, H100)):
        assert share.believable is None or 0 <= share.believable <= 1


@pytest.mark.parametrize(("prompt", "cached"), [(0, 0), (10, 10), (10, -1)])
def test_impossible_lengths_are_one_line(prompt: int, cached: int) -> None:
    """No prompt, and prompts that are all cache or less than nothing."""
    with pytest.raises(RooflineError, match="must be"):
        prefill_work(LLAMA, prompt, cached)


def test_impossible_facts_are_one_line() -> None:
    """A model without layers; a device slower than nothing; more experts used than there are."""
    with pytest.raises(RooflineError, match="layers is 0"):
        replace(LLAMA, layers=0)
    with pytest.raises(RooflineError, match="bandwidth is -1"):
        HardwareFacts("box", None, -1)
    with pytest.raises(RooflineError, match="only 0 experts"):
        replace(LLAMA, experts_used=2)
