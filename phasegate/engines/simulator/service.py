"""What the simulated server answers at each address."""

from __future__ import annotations

import asyncio
import hmac
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from phasegate import __version__
from phasegate.engines.simulator import http1, metrics_text, words
from phasegate.engines.simulator.ask import Ask, RefusalError, prompt_tokens, read_ask, read_object
from phasegate.engines.simulator.chance import rng_for
from phasegate.engines.simulator.config import CacheMode, SimulatorConfig
from phasegate.engines.simulator.connection import Connection
from phasegate.engines.simulator.delivery import Delivery
from phasegate.engines.simulator.engine_room import EngineRoom
from phasegate.engines.simulator.extras import Extras
from phasegate.engines.simulator.faults import BREAKS_AT_TOKEN, REFUSALS, Fault, FaultRule, rule_for
from phasegate.engines.simulator.frames import Frames
from phasegate.engines.simulator.http1 import HttpRequest
from phasegate.engines.simulator.model import Arrival
from phasegate.engines.simulator.prefix_cache import block_keys
from phasegate.engines.simulator.truth import Truth, write_log

ENGINE_NAME = "phasegate-simulator"
"""What the server calls itself; it never pretends to be another engine."""


@dataclass
class Service:
    """The server behind the connections.

    Attributes:
        config: the engine's settings.
        loop: the event loop it lives on.
        api_key: what clients must present, or None for no check.
    """

    config: SimulatorConfig
    loop: asyncio.AbstractEventLoop
    api_key: str | None = field(default=None, repr=False)
    room: EngineRoom = field(init=False)
    truths: list[Truth] = field(default_factory=list)
    _count: int = 0
    _under_way: dict[Connection, Truth] = field(default_factory=dict)
    _started: float = field(default_factory=time.time)

    def __post_init__(self) -> None:
        self.room = EngineRoom(self.config, self.loop)

    def handle(self, request: HttpRequest, connection: Connection, arrived: float) -> None:
        """See `connection.App`."""
        try:
            self._answer(request, connection, arrived)
        except RefusalError as refusal:
            self._refuse(refusal, connection)

    def gone(self, connection: Connection) -> None:
        """See `connection.App`."""
        truth = self._under_way.pop(connection, None)
        if truth is None or truth.ended is not None:
            return
        self.room.abandon(truth.number)
        truth.outcome, truth.ended = "abandoned", self.loop.time()

    def _refuse(self, refusal: RefusalError, connection: Connection) -> None:
        extra = [] if refusal.retry_after is None else [("Retry-After", f"{refusal.retry_after:g}")]
        connection.write(http1.response(refusal.status, refusal.body(), extra=extra))
        connection.done()

    def _answer(self, request: HttpRequest, connection: Connection, arrived: float) -> None:
        self._check_key(request)
        generate = _GENERATE.get(request.path)
        if generate is not None:
            _check_method(request, "POST")
            self._generate(request, connection, arrived, chat=generate)
            return
        known = _ROUTES.get(request.path)
        if known is None:
            raise RefusalError(404, f"there is nothing at {request.path}", "not_found_error")
        method, answer = known
        _check_method(request, method)
        kind, body = answer(self, request)
        connection.write(http1.response(200, body, kind))
        connection.done()

    def _check_key(self, request: HttpRequest) -> None:
        if self.api_key is None or request.path == "/health":
            return
        given = request.headers.get("authorization", "")
        if not hmac.compare_digest(given.encode(), f"Bearer {self.api_key}".encode()):
            raise RefusalError(401, "Incorrect API key provided.", "authentication_error")

    def _generate(self, request: HttpRequest, connection: Connection, arrived: float, *, chat: bool) -> None:
        self._count += 1
        truth = Truth(self._count, arrived, self.room.clock.simulated(arrived))
        self.truths.append(truth)
        rule = rule_for(self.config.faults, self._count, self.config.seed, self.config.session)
        truth.fault = rule.fault.value if rule is not None else None
        try:
            if rule is not None and self._fails_at_once(rule, connection, truth):
                return
            ask = read_ask(request.body, chat=chat, config=self.config)
        except RefusalError:
            truth.outcome, truth.ended = "refused", self.loop.time()
            raise
        self._start(ask, rule, connection, truth)

    def _fails_at_once(self, rule: FaultRule, connection: Connection, truth: Truth) -> bool:
        """Act out a fault that needs no engine; False when the fault is of another kind."""
        if rule.fault in REFUSALS:
            status, message = REFUSALS[rule.fault]
            retry_after = rule.seconds if rule.fault is Fault.HTTP_429 else None
            raise RefusalError(status, message, "server_error", retry_after)
        if rule.fault is Fault.NO_ANSWER:
            pass  # the client has to give up
        elif rule.fault is Fault.RESET_BEFORE_HEADERS:
            connection.reset()
        elif rule.fault is Fault.NOT_HTTP:
            connection.write(b"\x15\x03\x01\x00\x02\x02\x28 this is not HTTP\r\n\r\n")
            connection.close()
        else:
            return False
        truth.outcome, truth.ended = "broken", self.loop.time()
        return True

    def _start(self, ask: Ask, rule: FaultRule | None, connection: Connection, truth: Truth) -> None:
        fault = rule.fault if rule is not None else None
        stream = ask.stream and fault is not Fault.NOT_STREAMED
        length, reason = self._answer_length(ask, truth.number)
        if rule is not None and (fault is Fault.EARLY_EOS or (stream and fault in BREAKS_AT_TOKEN)):
            length, reason = min(length, rule.after_tokens), "stop"
        if fault is Fault.EMPTY_ANSWER:
            length, reason = 1, "stop"
        truth.prompt_tokens, truth.output_tokens = len(ask.prompt), length
        rng = rng_for(self.config, "answer", truth.number)
        answer_id = f"{'chatcmpl' if ask.chat else 'cmpl'}-{self.config.seed}-{self.config.session}-{truth.number}"
        delivery = Delivery(
            connection,
            truth,
            Frames(chat=ask.chat, answer_id=answer_id, model=self.config.model, created=int(time.time())),
            words.escaped(words.answer_words(rng, length)),
            rule,
            stream=stream,
            usage=ask.include_usage,
            running_usage=ask.running_usage,
            reason=reason,
            extras=Extras.of(self.config, chat=ask.chat),
        )
        self._under_way[connection] = truth
        delivery.begin()
        cached = self.config.cache is not CacheMode.OFF
        keys = block_keys(ask.prompt, self.config.cache_block_tokens) if cached else ()
        self.room.start(Arrival(truth.number, truth.simulated_at, len(ask.prompt), length, keys), delivery)

    def _answer_length(self, ask: Ask, number: int) -> tuple[int, str]:
        """How long the answer becomes and why it ends there."""
        if ask.ignore_eos or self.config.eos_probability == 0:
            return ask.max_tokens, "length"
        rng = rng_for(self.config, "eos", number)
        length = max(1, ask.min_tokens)
        while length < ask.max_tokens and rng.random() >= self.config.eos_probability:
            length += 1
        return (ask.max_tokens, "length") if length >= ask.max_tokens else (length, "stop")

    def health(self, _: HttpRequest) -> tuple[str, bytes]:
        """Ready as soon as it listens."""
        return _json({"status": "ok"})

    def version(self, _: HttpRequest) -> tuple[str, bytes]:
        """Who answers."""
        return _json({"version": __version__, "engine": ENGINE_NAME})

    def props(self, _: HttpRequest) -> tuple[str, bytes]:
        """Who answers: the settings that identify it, and the whole configuration beside them."""
        told = {"engine": ENGINE_NAME, "version": __version__, "settings": self.config.identifying()}
        return _json({**told, "config": json.loads(self.config.to_json())})

    def models(self, _: HttpRequest) -> tuple[str, bytes]:
        """The one model."""
        model = {
            "id": self.config.model,
            "object": "model",
            "created": int(self._started),
            "owned_by": ENGINE_NAME,
            "max_model_len": self.config.context_limit,
        }
        return _json({"object": "list", "data": [model]})

    def tokenize(self, request: HttpRequest) -> tuple[str, bytes]:
        """Tokens of ``messages``, or of a text in ``prompt`` or ``content``."""
        plain = read_object(request.body)
        text = plain.get("prompt", plain.get("content"))
        if "messages" in plain:
            tokens = list(prompt_tokens(plain, chat=True, config=self.config))
        elif isinstance(text, str):
            tokens = words.tokenize(text)
        else:
            raise RefusalError(400, "give messages, or a text as prompt or content")
        ids = [words.token_id(token) for token in tokens]
        return _json({"count": len(ids), "max_model_len": self.config.context_limit, "tokens": ids})

    def metrics(self, _: HttpRequest) -> tuple[str, bytes]:
        """Counters and gauges for Prometheus."""
        text = metrics_text.render(self.truths, self.room.timetable, self.room.cache)
        return "text/plain; version=0.0.4", text.encode()

    def reset_prefix_cache(self, _: HttpRequest) -> tuple[str, bytes]:
        """Forget every cached block."""
        self.room.cache.clear()
        return _json({"success": True})

    def log(self, _: HttpRequest) -> tuple[str, bytes]:
        """The truth log."""
        return "application/jsonl", write_log(self.truths)

    def reset_log(self, _: HttpRequest) -> tuple[str, bytes]:
        """Forget the truth of requests that have ended; numbers go on."""
        self.truths = [truth for truth in self.truths if truth.ended is None]
        return _json({"success": True})


def _check_method(request: HttpRequest, wanted: str) -> None:
    if request.method != wanted:
        raise RefusalError(405, f"{request.path} takes {wanted}, not {request.method}")


def _json(plain: Mapping[str, object]) -> tuple[str, bytes]:
    return "application/json", json.dumps(plain).encode()


_GENERATE: Mapping[str, bool] = {"/v1/chat/completions": True, "/v1/completions": False}
"""Where answers are generated -> whether in the chat format."""

_ROUTES: Mapping[str, tuple[str, Callable[[Service, HttpRequest], tuple[str, bytes]]]] = {
    "/health": ("GET", Service.health),
    "/version": ("GET", Service.version),
    "/props": ("GET", Service.props),
    "/v1/models": ("GET", Service.models),
    "/tokenize": ("POST", Service.tokenize),
    "/metrics": ("GET", Service.metrics),
    "/reset_prefix_cache": ("POST", Service.reset_prefix_cache),
    "/log": ("GET", Service.log),
    "/log/reset": ("POST", Service.reset_log),
}
"""Every other address -> its method and its answer."""
