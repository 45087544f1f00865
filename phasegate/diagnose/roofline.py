"""The two phases against the hardware's limit: how fast prefill and decode could be, and which limit they meet.

The roofline model (Williams, Waterman, Patterson: Roofline, CACM 52(4), 2009): work takes at least the time of its
arithmetic at the peak rate, and at least the time of moving its bytes at the memory's bandwidth. Prefill computes every
token of the prompt with weights that it reads once; decode reads every weight for one token of each request. What is
counted, and what is left out, stands in docs/explanation/roofline.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

FLOPS_PER_WEIGHT = 2
"""One multiplication and one addition for every weight and token."""

WRONG_ABOVE = 1.05
"""A share of the hardware's limit above this cannot be: the facts are wrong. The 5 % are the error of the clocks and of
a peak that was measured."""


class RooflineError(ValueError):
    """Facts or lengths that no arithmetic can be done with; one line."""


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What decides a model's arithmetic and its bytes.

    Attributes:
        name: for the reader.
        body: weights that every token is multiplied with, the output head and the embedding left out. Of a mixture of
            experts: without the experts.
        head: weights of the output head, which prefill needs for the last token only.
        layers, heads, kv_heads, head_size: of attention.
        weight_bytes: bytes of one weight as decode reads it, averaged over the matrices (1.0625 for q8_0).
        kv_bytes: bytes of one number in the KV cache.
        expert: weights of one expert in all layers together; 0 for a dense model.
        experts, experts_used: how many there are in a layer, and how many a token takes.
        window: tokens that a layer with a sliding window looks at, the newest among them; 0 where no layer has one.
        full_layers: layers that look at all tokens where others have a window.
        format: the number format that the arithmetic is done in, such as ``"bf16"``; empty where unknown.
        source: where the facts are from.
    """

    name: str
    body: int
    head: int
    layers: int
    heads: int
    kv_heads: int
    head_size: int
    weight_bytes: float
    kv_bytes: float = 2.0
    expert: int = 0
    experts: int = 0
    experts_used: int = 0
    window: int = 0
    full_layers: int = 0
    format: str = ""
    source: str = ""

    def __post_init__(self) -> None:
        for name in ("body", "layers", "heads", "kv_heads", "head_size", "weight_bytes", "kv_bytes"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise RooflineError(f"model facts: {name} is {value}; it must be a positive number")
        if self.experts_used > self.experts:
            raise RooflineError(
                f"model facts: experts_used is {self.experts_used}; there are only {self.experts} experts"
            )
        if self.window < 0 or not 0 <= self.full_layers <= (self.layers if self.window else 0):
            raise RooflineError(
                f"model facts: a window of {self.window} tokens and {self.full_layers} of {self.layers} layers "
                "without it cannot be"
            )

    @property
    def windowed(self) -> int:
        """Layers that look at the last `window` tokens only."""
        return self.layers - self.full_layers if self.window else 0

    def over_layers(self, full: float, windowed: float) -> float:
        """A sum over the layers: so much in each that looks at all tokens, so much in each with a window."""
        return (self.layers - self.windowed) * full + self.windowed * windowed

    @property
    def active(self) -> int:
        """Weights that one token is multiplied with, the output head included."""
        return self.body + self.experts_used * self.expert + self.head

    @property
    def kv_token_bytes(self) -> float:
        """Bytes that one token takes in the KV cache: keys and values of every layer."""
        return self.layers * self._kv_layer_bytes

    @property
    def _kv_layer_bytes(self) -> float:
        return 2 * self.kv_heads * self.head_size * self.kv_bytes

    def kv_read(self, context: float) -> float:
        """Bytes of the KV cache that a token after so many reads; a layer with a window reads no more than that."""
        return self._kv_layer_bytes * self.over_layers(context, self._seen(context))

    def pairs(self, tokens: float) -> float:
        """Pairs of each of so many tokens with itself or an earlier one it looks at, over all layers."""
        seen = self._seen(tokens)
        return self.over_layers(tokens * (tokens + 1) / 2, seen * (seen + 1) / 2 + (tokens - seen) * seen)

    def pairs_of_last(self, context: float) -> float:
        """Pairs of one token with those it looks at, over all layers."""
        return self.over_layers(context, self._seen(context))

    def _seen(self, context: float) -> float:
        """Of so many tokens, those that a layer with a window looks at."""
        return min(context, self.window)

    def weights_read(self, batch: float) -> float:
        """Weights that one decode step reads for a batch, each once, however many requests share it.

        Of experts as many as the batch takes on average where every token picks its own evenly:
        ``E * (1 - (1 - k/E) ** batch)``.
        """
        if not self.experts:
            return self.body + self.head
        touched = self.experts * (1 - math.pow(1 - self.experts_used / self.experts, batch))
        return self.body + self.head + touched * self.expert


@dataclass(frozen=True, slots=True)
class HardwareFacts:
    """What the hardware can do at best.

    Attributes:
        name: for the reader.
        flops: peak of dense arithmetic in operations a second, in the number format that the engine computes in; None
            where unknown.
        bandwidth: of memory, in bytes a second; None where unknown.
        format: the number format of ``flops``.
        count: how many of these devices share the model (tensor parallel); both limits are multiplied by it.
        source: where the facts are from.
    """

    name: str
    flops: float | None
    bandwidth: float | None
    format: str = ""
    count: int = 1
    source: str = ""

    def __post_init__(self) -> None:
        for name in ("flops", "bandwidth"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value > 0):
                raise RooflineError(f"hardware facts: {name} is {value}; it must be a positive number")
        if self.count < 1:
            raise RooflineError(f"hardware facts: count is {self.count}; it must be at least 1")

    @property
    def peak(self) -> float | None:
        """Operations a second of all devices together."""
        return None if self.flops is None else self.flops * self.count

    @property
    def reading(self) -> float | None:
        """Bytes a second of all devices together."""
        return None if self.bandwidth is None else self.bandwidth * self.count

    @property
    def ridge(self) -> float | None:
        """Operations a byte above which arithmetic is the limit, and below which memory is."""
        return None if self.flops is None or self.bandwidth is None else self.flops / self.bandwidth


@dataclass(frozen=True, slots=True)
class Work:
    """What a phase has to do at least.

    Attributes:
        flops: operations.
        weight_bytes, kv_bytes: bytes to be read.
    """

    flops: float
    weight_bytes: float
    kv_bytes: float

    @property
    def bytes(self) -> float:
        """All bytes to be read."""
        return self.weight_bytes + self.kv_bytes

    @property
    def intensity(self) -> float:
        """Operations for every byte."""
        return self.flops / self.bytes

    def compute_time(self, hardware: HardwareFacts) -> float | None:
        """Seconds of the arithmetic at the peak; None where that is unknown."""
        return None if hardware.peak is None else self.flops / hardware.peak

    def memory_time(self, hardware: HardwareFacts) -> float | None:
        """Seconds of the reading at full bandwidth; None where that is unknown."""
        return None if hardware.reading is None else self.bytes / hardware.reading

    def floor(self, hardware: HardwareFacts) -> float | None:
        """The shortest time the hardware allows, in seconds; None where nothing is known of it."""
        known = [one for one in (self.compute_time(hardware), self.memory_time(hardware)) if one is not None]
        return max(known) if known else None

    def limit(self, hardware: HardwareFacts) -> str | None:
        """``"memory"`` or ``"compute"``, whichever takes longer; None where one of both is unknown."""
        compute, memory = self.compute_time(hardware), self.memory_time(hardware)
        if compute is None or memory is None:
            return None
        return "memory" if memory >= compute else "compute"


def prefill_work(model: ModelFacts, prompt: int, cached: int = 0) -> Work:
    """What computing a prompt takes.

    Two operations for every weight and new token, the output head for the last token only, and attention: four
    operations for every query head, number of a head and pair of a token with itself or an earlier one that its layer
    looks at. Every weight is read once.

    Args:
        prompt: tokens of the prompt.
        cached: of these, already in the prefix cache.
    """
    _refuse(prompt=prompt)
    if not 0 <= cached < prompt:
        raise RooflineError(f"cached is {cached}; it must be from 0 to less than the prompt's {prompt} tokens")
    new = prompt - cached
    pairs = model.pairs(prompt) - model.pairs(cached)
    active_body = model.active - model.head
    flops = FLOPS_PER_WEIGHT * (active_body * new + model.head) + _attention(model, pairs)
    return Work(flops, model.weights_read(new) * model.weight_bytes, model.kv_read(cached))


def decode_work(model: ModelFacts, context: float, batch: float = 1) -> Work:
    """What one step takes that gives one token to every request of a batch.

    The weights are read once for all of them, the KV cache once for each.

    Args:
        context: tokens in the KV cache of each request, on average over its answer.
        batch: requests that decode together, on average.
    """
    _refuse(context=context, batch=batch)
    flops = batch * (FLOPS_PER_WEIGHT * model.active + _attention(model, model.pairs_of_last(context)))
    return Work(flops, model.weights_read(batch) * model.weight_bytes, batch * model.kv_read(context))


def _attention(model: ModelFacts, pairs: float) -> float:
    """Operations of scores and of the weighted sum of values: a multiplication and an addition in each.

    Args:
        pairs: of tokens, over all layers.
    """
    return 2 * FLOPS_PER_WEIGHT * model.heads * model.head_size * pairs


def _refuse(**values: float) -> None:
    for name, value in values.items():
        if not (math.isfinite(value) and value >= 1):
            raise RooflineError(f"{name} is {value}; it must be at least 1")


def slope_work(model: ModelFacts, short: int, long: int) -> float:
    """Operations that a longer prompt needs beyond a shorter one."""
    if long <= short:
        raise RooflineError(f"prompts of {short} and {long} tokens: the second must be longer")
    return prefill_work(model, long).flops - prefill_work(model, short).flops


@dataclass(frozen=True, slots=True)
class Share:
    """How much of a limit was reached.

    Attributes:
        value: fraction of the limit; None where it is not known.
        problem: why there is no value, or why it cannot be believed, in one sentence; None where it stands.
    """

    value: float | None
    problem: str | None = None

    @property
    def believable(self) -> float | None:
        """The fraction, where nothing speaks against it."""
        return self.value if self.problem is None else None


def flops_share(flops: float, seconds: float, hardware: HardwareFacts) -> Share:
    """Model FLOP/s utilisation: operations in a time, against the peak (PaLM, Chowdhery et al. 2022, appendix B)."""
    return _share(flops, seconds, hardware.peak, "peak FLOP/s")


def bandwidth_share(amount: float, seconds: float, hardware: HardwareFacts) -> Share:
    """Model bandwidth utilisation: bytes that must be read in a time, against the memory's bandwidth."""
    return _share(amount, seconds, hardware.reading, "bandwidth")


def _share(amount: float, seconds: float, rate: float | None, what: str) -> Share:
    if rate is None:
        return Share(None, f"the {what} is unknown")
    if not (math.isfinite(seconds) and seconds > 0):
        return Share(None, f"a time of {seconds} s says nothing")
    value = amount / seconds / rate
    if value > WRONG_ABOVE:
        return Share(value, f"{value:.0%} of the {what} cannot be: the facts of the model or of the hardware are wrong")
    return Share(min(value, 1.0))
