"""The roofline in words: the arithmetic step by step, and the one line that says which hardware would help."""

from __future__ import annotations

from dataclasses import dataclass

from phasegate.core.units import format_percent, format_seconds
from phasegate.diagnose.roofline import (
    HardwareFacts,
    ModelFacts,
    RooflineError,
    Share,
    Work,
    bandwidth_share,
    decode_work,
    flops_share,
    prefill_work,
    slope_work,
)


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured of a model on some hardware; None for what was not.

    Attributes:
        prompt, output: tokens of prompt and answer that ``tpot`` was measured with.
        batch: requests that decoded together.
        tpot: seconds an output token.
        ttft: seconds to the first token of a prompt of ``prompt`` tokens.
        short, short_ttft: a second, shorter prompt and its TTFT: what is fixed in a TTFT falls out of the difference.
    """

    prompt: int
    output: int = 1
    batch: float = 1
    tpot: float | None = None
    ttft: float | None = None
    short: int | None = None
    short_ttft: float | None = None

    @property
    def context(self) -> float:
        """Tokens in the KV cache, on average over the answer."""
        return self.prompt + self.output / 2

    @property
    def slope(self) -> float | None:
        """Seconds that the longer prompt took beyond the shorter one; None where there are no two, or it took none."""
        if self.short is None or self.ttft is None or self.short_ttft is None or self.short >= self.prompt:
            return None
        return self.ttft - self.short_ttft if self.ttft > self.short_ttft else None


@dataclass(frozen=True, slots=True)
class Roofline:
    """A model on some hardware, with what was measured of it.

    Attributes:
        model, hardware, measured: as given.
        prefill, decode: the least work of the two phases.
        mfu: of prefill, from the slope where there are two prompts, else from the TTFT.
        mbu: of decode.
        decode_mfu: of decode, for engines whose arithmetic is the limit there, too.
    """

    model: ModelFacts
    hardware: HardwareFacts
    measured: Measured
    prefill: Work
    decode: Work
    mfu: Share
    mbu: Share
    decode_mfu: Share


def roofline(model: ModelFacts, hardware: HardwareFacts, measured: Measured) -> Roofline:
    """The floors, and what was reached of the limits.

    Raises:
        RooflineError: lengths that no arithmetic can be done with.
    """
    prefill = prefill_work(model, measured.prompt)
    decode = decode_work(model, measured.context, measured.batch)
    unmeasured = Share(None, "no TPOT was measured")
    mbu = decode_mfu = unmeasured
    if measured.tpot is not None:
        mbu = bandwidth_share(decode.bytes, measured.tpot, hardware)
        decode_mfu = flops_share(decode.flops, measured.tpot, hardware)
    return Roofline(model, hardware, measured, prefill, decode, _mfu(model, hardware, measured), mbu, decode_mfu)


def _mfu(model: ModelFacts, hardware: HardwareFacts, measured: Measured) -> Share:
    if measured.slope is not None and measured.short is not None:
        return flops_share(slope_work(model, measured.short, measured.prompt), measured.slope, hardware)
    if measured.ttft is not None:
        return flops_share(prefill_work(model, measured.prompt).flops, measured.ttft, hardware)
    return Share(None, "no TTFT was measured")


def arithmetic(one: Roofline) -> list[str]:
    """Every step with its numbers, so that a reader can do it again."""
    return [*_facts(one), *_prefill(one), *_decode(one)]


def _facts(one: Roofline) -> list[str]:
    model, hardware = one.model, one.hardware
    experts = f", {model.experts_used} of {model.experts} experts" if model.experts else ""
    window = f", in {model.windowed} of {model.layers} layers of the last {model.window} only" if model.windowed else ""
    lines = [
        f"model    {model.name}: {_big(model.active)} weights a token{experts}, {model.weight_bytes:.4g} B each, "
        f"KV cache {_bytes(model.kv_token_bytes)} a token{window} ({model.source or 'given'})"
    ]
    count = f" x{hardware.count}" if hardware.count > 1 else ""
    peak = f"{_big(hardware.peak)}FLOP/s {hardware.format}".rstrip() if hardware.peak else "peak FLOP/s unknown"
    band = f"{_bytes(hardware.reading)}/s" if hardware.reading else "bandwidth unknown"
    ridge = f", ridge {hardware.ridge:.3g} FLOP/B" if hardware.ridge else ""
    lines.append(f"hardware {hardware.name}{count}: {peak}, {band}{ridge} ({hardware.source or 'given'})")
    return lines


def _prefill(one: Roofline) -> list[str]:
    model, measured, work = one.model, one.measured, one.prefill
    body = model.active - model.head
    plain = 2 * (body * measured.prompt + model.head)
    lines = [
        f"prefill  {measured.prompt} tokens: 2 x ({_big(body)} x {measured.prompt} + {_big(model.head)}) "
        f"+ attention {_big(work.flops - plain)} = {_big(work.flops)}FLOP{_floor(work, one.hardware)}"
    ]
    slope = measured.slope
    if slope is not None and measured.short is not None:
        more = slope_work(model, measured.short, measured.prompt)
        lines.append(
            f"         {measured.short} -> {measured.prompt} tokens: {_big(more)}FLOP more in {format_seconds(slope)} "
            f"= {_big(more / slope)}FLOP/s{_of(one.mfu, one.hardware.peak, 'FLOP/s', 'MFU')}"
        )
    elif measured.ttft is not None:
        rate = work.flops / measured.ttft
        lines.append(
            f"         in {format_seconds(measured.ttft)} = {_big(rate)}FLOP/s"
            f"{_of(one.mfu, one.hardware.peak, 'FLOP/s', 'MFU')}"
        )
    return lines


def _decode(one: Roofline) -> list[str]:
    measured, work, hardware = one.measured, one.decode, one.hardware
    together = f", {measured.batch:.3g} requests together" if measured.batch > 1 else ""
    lines = [
        f"decode   a step at {measured.context:g} tokens of context{together}: weights {_bytes(work.weight_bytes)} "
        f"+ KV {_bytes(work.kv_bytes)} = {_bytes(work.bytes)}{_floor(work, hardware)}"
    ]
    if measured.tpot is not None:
        lines.append(
            f"         in {format_seconds(measured.tpot)} = {_bytes(work.bytes / measured.tpot)}/s"
            f"{_of(one.mbu, hardware.reading, 'B/s', 'MBU')}"
        )
    ridge = hardware.ridge
    if ridge is not None:
        side = "below" if work.intensity < ridge else "above"
        lines.append(
            f"         {_big(work.flops)}FLOP / {_bytes(work.bytes)} = {work.intensity:.3g} FLOP/B, {side} the ridge "
            f"of {ridge:.3g}: {'memory' if side == 'below' else 'arithmetic'} is its limit"
        )
    return lines


def _floor(work: Work, hardware: HardwareFacts) -> str:
    floor = work.floor(hardware)
    return "" if floor is None else f", at least {format_seconds(floor)}"


def _of(share: Share, limit: float | None, unit: str, name: str) -> str:
    if share.value is None or limit is None:
        return f"; {name} unknown: {share.problem}"
    if share.problem is not None:
        return f"; {name} refused: {share.problem}"
    return f", of {_big(limit)}{unit} is {name} {format_percent(share.value, digits=0)}"


def verdict_line(one: Roofline) -> str:
    """The line for people: what decode reaches of its limit, and which hardware would help it."""
    mbu, limit = one.mbu, one.decode.limit(one.hardware)
    if mbu.value is None:
        return f"decode against the hardware's limit: unknown ({mbu.problem})"
    if mbu.problem is not None:
        return f"decode against the hardware's limit: refused ({mbu.problem})"
    reached = f"decode runs at {format_percent(mbu.value, digits=0)} of the memory-bandwidth limit"
    if limit is None:
        return f"{reached}; the peak FLOP/s is unknown, so which limit it meets first is, too"
    if limit == "compute":
        return f"{reached}, but its arithmetic takes longer than its reading: a faster-FLOPs GPU would help"
    return f"{reached}: a faster-FLOPs GPU will not help; {_help(mbu.value)}"


def batch_line(one: Roofline, name: str) -> str:
    """One level of load in a line: how many requests shared a step, and what that does to the limit."""
    ridge, limit = one.hardware.ridge, one.decode.limit(one.hardware)
    bound = "" if limit is None or ridge is None else f" ({'below' if limit == 'memory' else 'above'} {ridge:.3g})"
    mbu, mfu = one.mbu.believable, one.decode_mfu.believable
    reached = f"share of the bandwidth {'unknown' if one.mbu.value is None else 'refused'} ({one.mbu.problem})"
    if mbu is not None:
        reached = f"{format_percent(mbu, digits=0)} of the bandwidth"
    also = "" if mfu is None else f", {format_percent(mfu, digits=0)} of the peak FLOP/s"
    return (
        f"{name}: {one.measured.batch:.3g} in each step on average, {one.decode.intensity:.3g} FLOP/B{bound}; "
        f"{reached}{also}"
    )


def _help(mbu: float) -> str:
    if mbu >= GOOD_MBU:
        return "fewer bytes (quantized weights or KV cache), a larger batch or more bandwidth will"
    return f"{format_percent(1 - mbu, digits=0)} of each step go elsewhere (kernel launches, sampling, HTTP, CPU)"


GOOD_MBU = 0.6
"""From this share on the memory itself is what decode waits for; published engines reach 0.6 to 0.85 at batch 1."""


def _big(value: float | None) -> str:
    """A number with a decimal prefix: ``104.7 G``."""
    if value is None:
        return "-"
    for factor, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= factor:
            return f"{value / factor:.4g} {prefix}"
    return f"{value:.4g} "


def _bytes(value: float | None) -> str:
    return f"{_big(value)}B"


__all__ = ["Measured", "Roofline", "RooflineError", "arithmetic", "batch_line", "roofline", "verdict_line"]
