"""How to talk to an engine: what it is known by, forcing the output length, counting, resetting the cache.

One YAML file for each. Profiles ship inside the package (``phasegate/engines/profiles``); a project's own stand in
``fixtures/engines`` and come first (`profile_book`). An unknown server gets the conservative profile, which sends
nothing that a server of the OpenAI dialect could refuse.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from phasegate.core.identity import ServerIdentity
from phasegate.core.settings_file import Located, SettingsError, list_of, load_mapping, one_of, text, whole_number
from phasegate.core.workload import ENDPOINTS
from phasegate.engines.cache_mark import WANTED_MARKS, marks
from phasegate.engines.evidence import Evidence, door, parse_evidence
from phasegate.engines.profile_checks import headers, key_headers, refuse_substance

SLOT = "$slot"
"""Stands in a ``reset_path`` for the number of a slot, where every slot is emptied by itself."""

LENGTH = "$output_tokens"
"""Stands in a profile's ``force`` values for the number of output tokens that is wanted."""

LIMITS = ("max_tokens", "max_completion_tokens")

BEARER = "authorization"
"""The header in which a key travels as ``Bearer KEY``; in any other header it stands alone."""

PROOFS = ("run", "captured", "replayed", "read")
"""How a profile was proved: on the running engine; on its recorded streams; on streams written from its
documentation; not at all beyond reading that."""


@dataclass(frozen=True, slots=True)
class EngineProfile:
    """How one kind of engine wants to be asked.

    Attributes:
        name: the profile's name.
        engines: engine names (lower case, as in `ServerIdentity.engine`) that it fits; the first is what a server
            is called that the profile's evidence gives away.
        limit: the parameter that limits the output.
        force: parameters that make the output exactly as long as the limit; empty where nothing can.
        endpoints: endpoints the engine offers.
        reset_path: path below the server's root that empties the prefix cache when posted to, or None.
        cache_block: prompt tokens are cached in blocks of this many.
        cache_from: shorter beginnings than this many prompt tokens are never cached; 1 where any may be.
        cache_mark: endpoint -> what is put on the text part behind which the reusable beginning of a prompt ends;
            empty where no request can mark one.
        caches_unmarked: False where only what a request marks is cached; None where that is unknown or differs.
        include_usage: whether token counts are asked for (``stream_options``); False where that is refused.
        reports_cached: whether the counts name cached prompt tokens; None where that is unknown or a matter of flags.
        lists_models: whether its model list names every model by the name it is asked by.
        title: the engine's name for people.
        detect: what gives such a server away.
        key_header: endpoint -> header in which the key travels there, where that is not ``Authorization``.
        key_env: environment variables that may hold the key, before ``OPENAI_API_KEY``.
        headers: further request headers; no secrets.
        omit: parameters that are never sent, because the engine refuses them.
        usage, cached, reasoning, timings: where in the stream each arrives, in words; None for nowhere.
        reset_needs: what the server must be started with for ``reset_path`` to work, or None.
        identity: door that tells the version, or None.
        metrics: door of the server's own metrics, or None.
        proof: one of `PROOFS`.
        sources: pages the profile was written from.
        note: what else a user must know, in one or two sentences.
    """

    name: str
    engines: tuple[str, ...]
    limit: str
    force: Mapping[str, Any]
    endpoints: tuple[str, ...]
    reset_path: str | None
    cache_block: int
    include_usage: bool = True
    reports_cached: bool | None = None
    lists_models: bool = True
    cache_from: int = 1
    cache_mark: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    caches_unmarked: bool | None = None
    title: str = ""
    detect: tuple[Evidence, ...] = ()
    key_header: Mapping[str, str] = field(default_factory=dict)
    key_env: tuple[str, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    omit: tuple[str, ...] = ()
    usage: str | None = None
    cached: str | None = None
    reasoning: str | None = None
    timings: str | None = None
    reset_needs: str | None = None
    identity: str | None = None
    metrics: str | None = None
    proof: str = "read"
    sources: tuple[str, ...] = ()
    note: str = ""

    def forces_length(self, endpoint: str) -> bool:
        """Whether answers are exactly as long as asked; else the model may stop early and real counts are used.

        Anthropic's and Ollama's own endpoints have no parameter that forces a length.
        """
        return bool(self.force) and endpoint in ("chat", "completions")

    def request_extras(self, endpoint: str, output_tokens: int) -> dict[str, Any]:
        """The part of a request's body that decides how long the answer will be."""
        if endpoint == "ollama":
            return {"options": {"num_predict": output_tokens, "temperature": 0}}
        # Only /chat/completions ever got the newer name of the limit.
        limit = self.limit if endpoint == "chat" else "max_tokens"
        force = self.force if self.forces_length(endpoint) else {}
        forced = {key: output_tokens if value == LENGTH else value for key, value in force.items()}
        return {limit: output_tokens, **forced}

    def allowed(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """A request's body without the parameters that the engine refuses."""
        return {key: value for key, value in body.items() if key not in self.omit}

    def asking(self, api_key: str | None) -> tuple[str | None, dict[str, str]]:
        """How to show the key at side doors: as a bearer (first), and headers to send beside it."""
        header = next(iter(self.key_header.values()), BEARER)
        if header == BEARER or api_key is None:
            return api_key, dict(self.headers)
        return None, {header: api_key, **self.headers}

    def reset_paths(self, settings: Mapping[str, Any]) -> tuple[str, ...]:
        """The paths to post to for an empty prefix cache; none where there is no way to.

        ``settings`` are the server's own, of which the number of slots may be needed.
        """
        if self.reset_path is None:
            return ()
        if SLOT not in self.reset_path:
            return (self.reset_path,)
        slots = settings.get("total_slots") or settings.get("n_parallel") or 0
        return tuple(self.reset_path.replace(SLOT, str(slot)) for slot in range(slots))


_KEYS = tuple(EngineProfile.__dataclass_fields__)


def parse_profile(source_text: str, source: str) -> EngineProfile:
    """The profile in a YAML text.

    Raises:
        SettingsError: one line naming the value, the place and the remedy.
    """
    return profile_of(load_mapping(source_text, source))


def profile_of(given: Located) -> EngineProfile:
    """The profile in a mapping that was read from a file.

    Raises:
        SettingsError: one line naming the value, the place and the remedy.
    """
    given.refuse_unknown(_KEYS)
    for key in ("name", "engines"):
        given.require(key)
    profile = EngineProfile(
        name=given.take("name", text, "", wanted="a text"),
        engines=given.take("engines", list_of(text), (), wanted="one or more engine names"),
        limit=given.take("limit", one_of(*LIMITS), LIMITS[0], wanted=" or ".join(LIMITS)),
        force=given.take("force", _mapping, {}, wanted="a mapping of request parameters"),
        endpoints=given.take(
            "endpoints", list_of(one_of(*ENDPOINTS)), ("chat",), wanted=f"one or more of {', '.join(ENDPOINTS)}"
        ),
        reset_path=given.take("reset_path", _door_or_none, None, wanted="a path such as /reset_prefix_cache"),
        cache_block=given.take("cache_block", whole_number(1), 1, wanted="a whole number from 1 on"),
        cache_from=given.take("cache_from", whole_number(1), 1, wanted="a whole number of tokens from 1 on"),
        cache_mark=given.take("cache_mark", marks, {}, wanted=WANTED_MARKS),
        caches_unmarked=given.take("caches_unmarked", _truth, None, wanted="true or false"),
        include_usage=given.take("include_usage", _truth, True, wanted="true or false"),
        reports_cached=given.take("reports_cached", _truth, None, wanted="true or false"),
        lists_models=given.take("lists_models", _truth, True, wanted="true or false"),
        detect=parse_evidence(given.values["detect"], given.where("detect")) if "detect" in given.values else (),
        key_header=given.take(
            "key_header", key_headers(ENDPOINTS), {}, wanted="the name of a header, or one for each endpoint"
        ),
        key_env=given.take("key_env", list_of(text), (), wanted="one or more environment variables"),
        headers=headers(given),
        omit=given.take("omit", list_of(text), (), wanted="one or more request parameters"),
        identity=given.take("identity", door, None, wanted="a path such as /version"),
        metrics=given.take("metrics", door, None, wanted="a path such as /metrics"),
        proof=given.take("proof", one_of(*PROOFS), "read", wanted=f"one of {', '.join(PROOFS)}"),
        sources=given.take("sources", list_of(_page), (), wanted="one or more addresses of pages"),
        title=given.take("title", text, "", wanted="a text"),
        usage=given.take("usage", _text_or_none, None, wanted="a text"),
        cached=given.take("cached", _text_or_none, None, wanted="a text"),
        reasoning=given.take("reasoning", _text_or_none, None, wanted="a text"),
        timings=given.take("timings", _text_or_none, None, wanted="a text"),
        reset_needs=given.take("reset_needs", _text_or_none, None, wanted="a text"),
        note=given.take("note", text, "", wanted="a text"),
    )  # fmt: skip
    refuse_substance(given, "force", profile.force)
    refuse_substance(given, "omit", profile.omit)
    return profile


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _text_or_none(value: Any) -> str | None:
    """``null`` says that there is none, for a file that takes back what it builds on."""
    return None if value is None else text(value)


def _door_or_none(value: Any) -> str | None:
    return None if value is None else door(value)


def _mapping(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise TypeError
    return dict(value)


def _page(value: Any) -> str:
    if not text(value).startswith("https://"):
        raise ValueError
    return str(value)


@cache
def profiles() -> tuple[EngineProfile, ...]:
    """All profiles that ship with the package."""
    return tuple(profile_of(given) for given in shipped())


@cache
def shipped() -> tuple[Located, ...]:
    """The files of the package, read but not yet understood, for those that build on them."""
    folder = resources.files("phasegate.engines") / "profiles"
    files = sorted((one for one in folder.iterdir() if one.name.endswith(".yaml")), key=lambda one: one.name)
    return tuple(load_mapping(one.read_text(encoding="utf-8"), one.name) for one in files)


def profile_named(name: str, known: tuple[EngineProfile, ...] | None = None) -> EngineProfile:
    """The profile of that name, among those that ship with the package or among ``known``.

    Raises:
        SettingsError: there is none; the message lists those there are.
    """
    candidates = profiles() if known is None else known
    for profile in candidates:
        if profile.name == name:
            return profile
    raise SettingsError(f"unknown engine profile {name!r}; known: {', '.join(one.name for one in candidates)}")


def profile_for(identity: ServerIdentity, known: tuple[EngineProfile, ...] | None = None) -> EngineProfile:
    """The profile that fits a server, the conservative one where none does."""
    candidates = profiles() if known is None else known
    engine = identity.engine.lower()
    fitting = (profile for profile in candidates if engine in profile.engines)
    return next(fitting, profile_named("unknown", candidates))
