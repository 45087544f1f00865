"""Settings of the embedded engine, in the words of llama.cpp, and how a line of text becomes them."""

from __future__ import annotations

import dataclasses
import difflib
from dataclasses import dataclass, field
from typing import Any

from phasegate.engines.base import EngineError
from phasegate.engines.generated.spec import ModelSpec

KV_TYPES = ("f16", "f32", "bf16", "q8_0", "q4_0")
FLASH_ATTENTION = ("auto", "on", "off")
SLOT_CONTEXT = 8192
"""Tokens of prompt and answer that every slot takes unless ``n_ctx`` says otherwise."""

_SHAPE = ModelSpec()
_OF_THE_GENERATED_MODEL = ("layers", "feed_forward", "weights", "seed", "draft_tokens")


DRAFT_FEED_FORWARD = 1024
"""Width of the twin's one layer: an eighth of the model's, and half as many layers. The output head, which each step of
either reads, stays: both must know the same words."""


@dataclass(frozen=True, slots=True)
class EmbeddedConfig:
    """One embedded engine.

    Attributes:
        model: ``"generated"``, ``"smollm2"``, or the path of a GGUF file.
        layers, feed_forward, weights, seed: of the generated model; see `ModelSpec`.
        threads: threads that decode; one, so that a busy neighbour cannot stop them all.
        threads_batch: threads that prefill; None takes ``threads``.
        n_parallel: slots, that is requests that run at a time.
        n_ctx: KV cache in tokens, divided among the slots; None gives each slot `SLOT_CONTEXT`.
        n_batch: prompt tokens between two looks at the other requests (chunked prefill).
        n_ubatch: prompt tokens computed together.
        flash_attn: one of `FLASH_ATTENTION`.
        cache_type_k, cache_type_v: one of `KV_TYPES`.
        cache_prompt: whether a slot keeps its last prompt for the next one (the prefix cache).
        cont_batching: whether requests join running ones.
        pinned: whether the engine stays on cores of its own, away from the client.
        draft_tokens: tokens that a smaller twin of the generated model guesses ahead (speculative decoding); None
            without.
        draft_yield: tokens that a step then yields on average, whatever the guesses are worth: llama.cpp throws away
            the others, as it would those of a draft that does not fit. None leaves it to the draft.
    """

    model: str = "generated"
    layers: int = _SHAPE.layers
    feed_forward: int = _SHAPE.feed_forward
    weights: str = _SHAPE.weights
    seed: int = 0
    threads: int = 1
    threads_batch: int | None = None
    n_parallel: int = 4
    n_ctx: int | None = None
    n_batch: int = 2048
    n_ubatch: int = 512
    flash_attn: str = field(default="auto", metadata={"choices": FLASH_ATTENTION})
    cache_type_k: str = field(default="f16", metadata={"choices": KV_TYPES})
    cache_type_v: str = field(default="f16", metadata={"choices": KV_TYPES})
    cache_prompt: bool = True
    cont_batching: bool = True
    pinned: bool = True
    draft_tokens: int | None = None
    draft_yield: int | None = None

    def __post_init__(self) -> None:
        for one in dataclasses.fields(self):
            value, choices = getattr(self, one.name), one.metadata.get("choices")
            if choices and value not in choices:
                raise EngineError(f"engine setting {one.name}={value}: it must be one of {', '.join(choices)}")
            if isinstance(value, int) and not isinstance(value, bool) and value < 1 and one.name != "seed":
                raise EngineError(f"engine setting {one.name}={value}: it must be at least 1")
        self._check_weights()
        try:
            self.spec()
        except ValueError as error:
            raise EngineError(f"engine settings: {error}") from None

    def _check_weights(self) -> None:
        """Refuse settings of the generated model for other weights, where they would change nothing."""
        if self.draft_yield is not None and self.draft_tokens is None:
            raise EngineError(f"engine setting draft_yield={self.draft_yield}: it needs draft_tokens as well")
        if self.model == "generated":
            return
        for one in dataclasses.fields(self):
            if one.name in _OF_THE_GENERATED_MODEL and getattr(self, one.name) != one.default:
                raise EngineError(
                    f"engine setting {one.name}={getattr(self, one.name)}: it shapes the generated model, "
                    f"and the model is {self.model}; leave one of the two out"
                )

    def spec(self) -> ModelSpec:
        """The generated model these settings ask for."""
        return ModelSpec(seed=self.seed, layers=self.layers, feed_forward=self.feed_forward, weights=self.weights)

    def draft_spec(self) -> ModelSpec | None:
        """The twin that guesses ahead: the same words, one narrow layer. None without speculative decoding."""
        if self.draft_tokens is None:
            return None
        return ModelSpec(seed=self.seed, layers=1, feed_forward=DRAFT_FEED_FORWARD, weights=self.weights)

    @property
    def context(self) -> int:
        """KV cache of all slots together, in tokens."""
        return self.n_ctx if self.n_ctx is not None else SLOT_CONTEXT * self.n_parallel

    def params(self) -> dict[str, Any]:
        """The settings under the names of llama.cpp's parameter structure."""
        return {
            "n_parallel": self.n_parallel,
            "n_ctx": self.context,
            "n_batch": self.n_batch,
            "n_ubatch": self.n_ubatch,
            "cont_batching": self.cont_batching,
            "cache_prompt": self.cache_prompt,
            # 0: no copies of old prompts in main memory, so that only what the slots hold is cached.
            "cache_ram_mib": 0,
            "flash_attn_type": {
                "auto": "LLAMA_FLASH_ATTN_TYPE_AUTO",
                "on": "LLAMA_FLASH_ATTN_TYPE_ENABLED",
                "off": "LLAMA_FLASH_ATTN_TYPE_DISABLED",
            }[self.flash_attn],
            "cache_type_k": f"GGML_TYPE_{self.cache_type_k.upper()}",
            "cache_type_v": f"GGML_TYPE_{self.cache_type_v.upper()}",
            "cpuparams.n_threads": self.threads,
            "cpuparams_batch.n_threads": self.threads_batch or self.threads,
            "n_threads_http": max(4, self.n_parallel + 2),
            **self._speculation(),
        }

    def _speculation(self) -> dict[str, Any]:
        """Parameters of speculative decoding; the draft's path is the engine's to say. Empty without."""
        if self.draft_tokens is None:
            return {}
        return {
            "speculative.types": ["COMMON_SPECULATIVE_TYPE_DRAFT_SIMPLE"],
            "speculative.draft.n_max": self.draft_tokens,
            "speculative.draft.cpuparams.n_threads": self.threads,
            "speculative.draft.cpuparams_batch.n_threads": self.threads,
            **({} if self.draft_yield is None else {"speculative.synth_len": float(self.draft_yield)}),
        }

    def settings(self) -> dict[str, Any]:
        """The settings that bear on serving, for the server's identity; those of a draft only where there is one."""
        told = {**dataclasses.asdict(self), "n_ctx": self.context}
        return {name: value for name, value in told.items() if value is not None or not name.startswith("draft_")}


def parse_config(text: str, *, source: str, base: EmbeddedConfig | None = None) -> EmbeddedConfig:
    """Settings from words such as ``"n_ubatch=32 flash_attn=off"``; what is not named keeps its value in ``base``.

    Raises:
        EngineError: one line naming the word, where it came from and what is allowed.
    """
    changes: dict[str, Any] = {}
    fields = {one.name: one for one in dataclasses.fields(EmbeddedConfig)}
    for word in text.split():
        name, equals, value = word.partition("=")
        if not equals or name not in fields:
            near = difflib.get_close_matches(name, fields, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(fields)}"
            raise EngineError(f"{source}: {word!r} is not a setting of the embedded engine; {hint}")
        changes[name] = _convert(value, str(fields[name].type), f"{source}: {word!r}")
    return dataclasses.replace(base or EmbeddedConfig(), **changes)


def _convert(value: str, kind: str, where: str) -> Any:
    if kind == "bool":
        words = {"true": True, "on": True, "1": True, "false": False, "off": False, "0": False}
        if value.lower() not in words:
            raise EngineError(f"{where}: it must be true or false")
        return words[value.lower()]
    if kind.startswith("int"):
        try:
            return int(value)
        except ValueError:
            raise EngineError(f"{where}: it must be a whole number") from None
    return value
