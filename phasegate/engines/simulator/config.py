"""Every setting of the simulator in one frozen value, with a round trip through JSON.

All times are in the simulator's own seconds: ``speed`` says how many of them pass in one real second. The
defaults resemble the embedded engine on its generated model: 8 ms a token, 1,024 prompt tokens in 0.7 s.
"""

from __future__ import annotations

import difflib
import enum
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, TypeVar

from phasegate.engines.simulator import checks
from phasegate.engines.simulator.faults import Fault, FaultRule

E = TypeVar("E", bound=enum.Enum)

KEY_VARIABLE = "PHASEGATE_SIMULATOR_API_KEY"
"""The environment variable with the server's API key. It is no setting, so that it stands in no file and no command
line, which everybody on a machine can read."""

IDENTIFYING = (
    "speed template_tokens context_limit batching chunked_prefill step_token_budget max_sequences kv_capacity_tokens "
    "full_kv cache cache_block_tokens draft_tokens disaggregated"
).split()
"""Settings that an operator chooses and that belong to the engine's identity. Costs, factors, noise and faults do not:
they stand for what another version of the same engine, or chance, would change."""


class SimulatorConfigError(ValueError):
    """A setting that cannot be used. The message is one line for the user."""


class Batching(str, enum.Enum):
    """How requests share the engine."""

    CONTINUOUS = "continuous"
    """One loop of steps serves all running requests together."""
    ALONE = "alone"
    """Every request runs as if it had an engine to itself: a server of known timing at any concurrency."""


class CacheMode(str, enum.Enum):
    """What the prefix cache does."""

    ON = "on"
    """Cached blocks cost nothing to prefill."""
    OFF = "off"
    """There is none, and ``cached_tokens`` is always 0."""
    SLOWER = "slower"
    """Hits are found and reported, but the prompt takes ``cache_slower_factor`` times as long as a cold one."""


class FullKv(str, enum.Enum):
    """What happens when the KV memory runs out."""

    QUEUE = "queue"
    """A request waits until its prompt and its longest answer fit, and then never loses its place."""
    PREEMPT = "preempt"
    """A request starts when its prompt fits; the youngest one is thrown out and computed again when memory ends."""


class Speculation(str, enum.Enum):
    """How the several tokens of one speculative step leave."""

    CHUNK = "chunk"
    """Together, as one event."""
    BURST = "burst"
    """One event each, at the same moment."""


class Reasoning(str, enum.Enum):
    """What becomes of the reasoning before an answer."""

    STREAMED = "streamed"
    """It is sent as ``reasoning_content``."""
    HIDDEN = "hidden"
    """Nothing is sent until the answer begins; only ``usage`` counts it."""


@dataclass(frozen=True, slots=True)
class SimulatorConfig:
    """Settings of one simulated engine.

    Attributes:
        seed: decides every random draw.
        session: number of the session, from 0; another session draws another session effect.
        speed: simulated seconds in one real second.
        model: the model's name in the API.
        context_limit: longest prompt plus answer, tokens.
        template_tokens: tokens that the chat template puts in front of every chat prompt.
        default_max_tokens: answer length where the request names none.
        eos_probability: chance of the answer ending by itself after each token, unless ``ignore_eos`` is asked.
        batching: see `Batching`.
        step_seconds: fixed cost of one step (reading the weights).
        kv_seconds_per_token: cost of one step for each token that its decoding requests have in the KV cache.
        sequence_seconds: cost of one step for each decoding request.
        together_seconds: further cost of one step as soon as two or more requests decode (engines have a faster way
            for one: a product of matrix and vector instead of two matrices).
        prefill_tokens_per_second: prompt tokens computed in one second.
        prompt_seconds: fixed cost of a prompt, in the step that begins it.
        attention_seconds_per_token_pair: cost of each pair of a prompt token and a token before it.
        request_overhead_seconds: from a request's arrival to its place in the queue (parsing, tokenizing).
        gather_seconds: how long an engine with nothing to do waits for further requests before it begins, so that
            requests that come together are read in one step.
        network_seconds: from the end of a step to the departure of its chunks.
        network_jitter_seconds: further delay, uniform from 0 to this; order within an answer is kept.
        chunked_prefill: True: prompts are computed in pieces beside decoding. False: a prompt's prefill is one
            step in which nobody decodes.
        step_token_budget: most tokens computed in one step; at least ``max_sequences``.
        max_sequences: most requests that run at a time.
        kv_capacity_tokens: tokens that the KV memory holds; at least ``context_limit``.
        full_kv: see `FullKv`.
        cache: see `CacheMode`.
        cache_block_tokens: tokens in a block of the prefix cache; only whole blocks hit.
        cache_capacity_tokens: tokens that the prefix cache holds; the least recently used block goes first.
        cache_slower_factor: see `CacheMode`.
        draft_tokens: tokens guessed ahead in every decoding step; 0 without speculative decoding.
        draft_acceptance: chance of each guess being right, given that those before it were.
        draft_seconds: cost of one step for each guessed token of each decoding request.
        speculation: see `Speculation`.
        disaggregated: prompts are read by one pool of servers and answers written by another (see `pools`).
        handoff_seconds: how long the KV cache takes from the first pool to the second.
        reasoning_tokens: how many of an answer's first tokens are reasoning; chat only.
        reasoning: see `Reasoning`.
        report_timings: end every stream with the server's own times and draft counts, as llama.cpp does.
        prefill_cv, decode_cv: coefficient of variation between the requests of a session, per phase.
        step_cv: coefficient of variation between steps.
        session_prefill_cv, session_decode_cv: coefficient of variation between sessions, per phase.
        drift_per_request: fraction by which both phases grow with every request served.
        bad_session_probability: chance of a session being a bad one.
        bad_session_factor: both phases' cost in a bad session, against a good one.
        prefill_factor, decode_factor: a slowdown of one phase; 1.1 is 10 % slower.
        ttft_constant_seconds: breaks the law that TTFT grows with the prompt: every first token takes this long.
        tpot_growth_seconds: breaks the law that TPOT is flat: each token already written makes the next step
            of a decoding batch this much longer (the longest answer counts).
        pause_at_token: breaks the law that the total is linear: answers pause after this token; 0 for never.
        pause_seconds: how long they pause there.
        stall_every_tokens: answers stall after every so many tokens; 0 for never.
        stall_seconds: how long they stall.
        faults: the rules by which answers go wrong.
    """

    seed: int = 0
    session: int = 0
    speed: float = 1.0
    model: str = "simulated"
    context_limit: int = 32_768
    template_tokens: int = 8
    default_max_tokens: int = 128
    eos_probability: float = 0.0
    batching: Batching = Batching.CONTINUOUS
    step_seconds: float = 0.0075
    kv_seconds_per_token: float = 1e-7
    sequence_seconds: float = 0.0004
    together_seconds: float = 0.0
    prefill_tokens_per_second: float = 1_600.0
    prompt_seconds: float = 0.0
    attention_seconds_per_token_pair: float = 5e-8
    request_overhead_seconds: float = 0.002
    gather_seconds: float = 0.0
    network_seconds: float = 0.0
    network_jitter_seconds: float = 0.0
    chunked_prefill: bool = True
    step_token_budget: int = 2_048
    max_sequences: int = 256
    kv_capacity_tokens: int = 262_144
    full_kv: FullKv = FullKv.PREEMPT
    cache: CacheMode = CacheMode.ON
    cache_block_tokens: int = 16
    cache_capacity_tokens: int = 262_144
    cache_slower_factor: float = 1.5
    draft_tokens: int = 0
    draft_acceptance: float = 0.7
    draft_seconds: float = 0.0005
    speculation: Speculation = Speculation.CHUNK
    disaggregated: bool = False
    handoff_seconds: float = 0.0
    reasoning_tokens: int = 0
    reasoning: Reasoning = Reasoning.STREAMED
    report_timings: bool = False
    prefill_cv: float = 0.0
    decode_cv: float = 0.0
    step_cv: float = 0.0
    session_prefill_cv: float = 0.0
    session_decode_cv: float = 0.0
    drift_per_request: float = 0.0
    bad_session_probability: float = 0.0
    bad_session_factor: float = 1.3
    prefill_factor: float = 1.0
    decode_factor: float = 1.0
    ttft_constant_seconds: float | None = None
    tpot_growth_seconds: float = 0.0
    pause_at_token: int = 0
    pause_seconds: float = 0.5
    stall_every_tokens: int = 0
    stall_seconds: float = 0.1
    faults: tuple[FaultRule, ...] = ()

    def __post_init__(self) -> None:
        for name, (accepts, wanted) in _CHECKS.items():
            value = getattr(self, name)
            if not accepts(value):
                raise SimulatorConfigError(f"simulator setting {name} is {value!r}; it must be {wanted}")
        self._check_together()

    def _check_together(self) -> None:
        if self.step_token_budget < self.max_sequences:
            raise SimulatorConfigError(
                f"simulator setting step_token_budget is {self.step_token_budget}; it must be at least "
                f"max_sequences, {self.max_sequences}, so that every running request can decode"
            )
        if self.kv_capacity_tokens < self.context_limit:
            raise SimulatorConfigError(
                f"simulator setting kv_capacity_tokens is {self.kv_capacity_tokens}; it must be at least "
                f"context_limit, {self.context_limit}, so that every allowed request fits alone"
            )
        for rule in self.faults:
            problem = rule.problem()
            if problem is not None:
                raise SimulatorConfigError(f"simulator setting faults, rule {rule.fault.value}: {problem}")

    def changed(self, **changes: Any) -> SimulatorConfig:
        """The same settings with some changed.

        Raises:
            SimulatorConfigError: an unknown setting, or a value that cannot be used.
        """
        return replace(self, **_converted(changes))

    def identifying(self) -> dict[str, Any]:
        """The settings named in `IDENTIFYING`, as plain values."""
        plain = json.loads(self.to_json())
        return {name: plain[name] for name in IDENTIFYING}

    def to_json(self) -> str:
        """The settings as one line of JSON; `from_json` reads it back."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> SimulatorConfig:
        """Settings from a JSON object; what it does not name keeps its default.

        Raises:
            SimulatorConfigError: not a JSON object, an unknown setting, or a value that cannot be used.
        """
        try:
            plain = json.loads(text)
        except ValueError as error:
            raise SimulatorConfigError(f"simulator settings are not JSON: {error}") from None
        if not isinstance(plain, dict):
            raise SimulatorConfigError(f"simulator settings are {plain!r}; they must be a JSON object")
        return cls.from_mapping(plain)

    @classmethod
    def from_mapping(cls, plain: Mapping[str, Any]) -> SimulatorConfig:
        """Settings from plain values, as they stand in JSON or YAML.

        Raises:
            SimulatorConfigError: an unknown setting, or a value that cannot be used.
        """
        return cls(**_converted(plain))

    @classmethod
    def from_words(cls, text: str) -> SimulatorConfig:
        """Settings from words such as ``"prefill_factor=1.2 cache=off"``, each value as in JSON or a bare name.

        Raises:
            SimulatorConfigError: a word without ``=``, an unknown setting, or a value that cannot be used.
        """
        plain: dict[str, Any] = {}
        for word in text.split():
            name, sign, value = word.partition("=")
            if not sign:
                raise SimulatorConfigError(f"simulator settings: {word!r} is not of the form setting=value")
            try:
                plain[name] = json.loads(value)
            except ValueError:
                plain[name] = value
        return cls.from_mapping(plain)


def _converted(plain: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with names of members turned into members, and rules into rules."""
    _refuse_unknown(plain, [f.name for f in fields(SimulatorConfig)], "simulator setting")
    values = dict(plain)
    for name, kind in _ENUMS.items():
        if name in values:
            values[name] = _member(kind, values[name], f"simulator setting {name}")
    if "faults" in values:
        values["faults"] = _rules(values["faults"])
    return values


def _rules(plain: object) -> tuple[FaultRule, ...]:
    if not isinstance(plain, (list, tuple)):
        raise SimulatorConfigError(f"simulator setting faults is {plain!r}; it must be a list of rules")
    return tuple(_rule(item) for item in plain)


def _rule(plain: object) -> FaultRule:
    if isinstance(plain, FaultRule):
        return plain
    if not isinstance(plain, Mapping) or "fault" not in plain:
        raise SimulatorConfigError(f"simulator setting faults: {plain!r} is not a rule; it must name its fault")
    _refuse_unknown(plain, [f.name for f in fields(FaultRule)], "fault setting")
    values = dict(plain)
    values["fault"] = _member(Fault, values["fault"], "fault")
    for name, accepts, wanted in (
        ("every", checks.whole(0), "a whole number"),
        ("after_tokens", checks.whole(1), "a whole number of 1 or more"),
        ("probability", checks.at_least(0), "a number from 0 to 1"),
        ("seconds", checks.at_least(0), "a number of 0 or more"),
        ("at", checks.list_of_whole, "a list of request numbers, counted from 1"),
    ):
        if name in values and not accepts(values[name]):
            raise SimulatorConfigError(f"fault setting {name} is {values[name]!r}; it must be {wanted}")
    values["at"] = tuple(values.get("at", ()))
    return FaultRule(**values)


def _refuse_unknown(given: Mapping[str, Any], known: list[str], what: str) -> None:
    for key in given:
        if key not in known:
            near = difflib.get_close_matches(str(key), known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
            raise SimulatorConfigError(f"unknown {what} {key!r}; {hint}")


def _member(kind: type[E], value: object, what: str) -> E:
    try:
        return kind(value)
    except ValueError:
        known = ", ".join(str(member.value) for member in kind)
        raise SimulatorConfigError(f"{what} is {value!r}; it must be one of {known}") from None


_ENUMS: Mapping[str, type[enum.Enum]] = {
    "batching": Batching,
    "full_kv": FullKv,
    "cache": CacheMode,
    "speculation": Speculation,
    "reasoning": Reasoning,
}


_CHECKS_BY_KIND: tuple[tuple[checks.Check, str], ...] = (
    (
        checks.NOT_NEGATIVE,
        "kv_seconds_per_token sequence_seconds together_seconds prompt_seconds attention_seconds_per_token_pair "
        "request_overhead_seconds gather_seconds "
        "network_seconds network_jitter_seconds draft_seconds handoff_seconds prefill_cv decode_cv step_cv "
        "session_prefill_cv session_decode_cv tpot_growth_seconds pause_seconds stall_seconds",
    ),
    (
        checks.POSITIVE,
        "speed step_seconds prefill_tokens_per_second cache_slower_factor bad_session_factor prefill_factor "
        "decode_factor",
    ),
    (checks.COUNT, "seed session template_tokens draft_tokens reasoning_tokens pause_at_token stall_every_tokens"),
    (
        checks.SIZE,
        "context_limit default_max_tokens step_token_budget max_sequences kv_capacity_tokens cache_block_tokens "
        "cache_capacity_tokens",
    ),
    (checks.CHANCE, "eos_probability draft_acceptance bad_session_probability"),
)

_CHECKS: Mapping[str, checks.Check] = {
    **{name: check for check, names in _CHECKS_BY_KIND for name in names.split()},
    **{name: checks.is_member(kind) for name, kind in _ENUMS.items()},
    "drift_per_request": checks.NUMBER,
    "ttft_constant_seconds": checks.OPTIONAL,
    "chunked_prefill": checks.SWITCH,
    "disaggregated": checks.SWITCH,
    "report_timings": checks.SWITCH,
    "model": checks.NAME,
    "faults": (lambda value: isinstance(value, tuple), "a list of rules"),
}
