"""How to talk to an engine: forcing the output length, counting, resetting the cache. One YAML file for each.

Profiles ship inside the package (``phasegate/engines/profiles``). An unknown server gets the conservative one, which
sends nothing that a server of the OpenAI dialect could refuse.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from phasegate.engines.identity import ServerIdentity
from phasegate.strict_yaml import Located, SettingsError, list_of, load_mapping, one_of, text, whole_number

SLOT = "$slot"
"""Stands in a ``reset_path`` for the number of a slot, where every slot is emptied by itself."""

LENGTH = "$output_tokens"
"""Stands in a profile's ``force`` values for the number of output tokens that is wanted."""

_KEYS = (
    "name",
    "engines",
    "limit",
    "force",
    "endpoints",
    "reset_path",
    "cache_block",
    "include_usage",
    "reports_cached",
)


@dataclass(frozen=True, slots=True)
class EngineProfile:
    """How one kind of engine wants to be asked.

    Attributes:
        name: the profile's name.
        engines: engine names (lower case, as in `ServerIdentity.engine`) that it fits.
        limit: the parameter that limits the output.
        force: parameters that make the output exactly as long as the limit; empty where nothing can.
        endpoints: endpoints the engine offers.
        reset_path: path below the server's root that empties the prefix cache when posted to, or None.
        cache_block: prompt tokens are cached in blocks of this many.
        include_usage: whether a stream ends with token counts where they are asked for.
        reports_cached: whether the counts name cached prompt tokens; None where that is unknown or a matter of flags.
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

    @property
    def length_is_forced(self) -> bool:
        """Whether answers are exactly as long as asked; else the model may stop early and real counts are used."""
        return bool(self.force)

    def request_extras(self, endpoint: str, output_tokens: int) -> dict[str, Any]:
        """The part of a request's body that decides how long the answer will be."""
        forced = {key: output_tokens if value == LENGTH else value for key, value in self.force.items()}
        # /completions never got the newer name of the limit.
        limit = "max_tokens" if endpoint == "completions" else self.limit
        return {limit: output_tokens, **forced}

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


def parse_profile(source_text: str, source: str) -> EngineProfile:
    """The profile in a YAML text.

    Raises:
        SettingsError: one line naming the value, the place and the remedy.
    """
    given: Located = load_mapping(source_text, source)
    given.refuse_unknown(_KEYS)
    for key in ("name", "engines"):
        given.require(key)
    return EngineProfile(
        name=given.take("name", text, "", wanted="a text"),
        engines=given.take("engines", list_of(text), (), wanted="one or more engine names"),
        limit=given.take(
            "limit", one_of("max_tokens", "max_completion_tokens"), "max_tokens",
            wanted="max_tokens or max_completion_tokens",
        ),
        force=given.take("force", _mapping, {}, wanted="a mapping of request parameters"),
        endpoints=given.take(
            "endpoints", list_of(one_of("chat", "completions")), ("chat",), wanted="chat, completions or both"
        ),
        reset_path=given.take("reset_path", text, None, wanted="a path such as /reset_prefix_cache"),
        cache_block=given.take("cache_block", whole_number(1), 1, wanted="a whole number from 1 on"),
        include_usage=given.take("include_usage", _truth, True, wanted="true or false"),
        reports_cached=given.take("reports_cached", _truth, None, wanted="true or false"),
    )  # fmt: skip


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _mapping(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise TypeError
    return dict(value)


@cache
def profiles() -> tuple[EngineProfile, ...]:
    """All profiles that ship with the package."""
    folder = resources.files("phasegate.engines") / "profiles"
    files = sorted((one for one in folder.iterdir() if one.name.endswith(".yaml")), key=lambda one: one.name)
    return tuple(parse_profile(one.read_text(encoding="utf-8"), one.name) for one in files)


def profile_named(name: str) -> EngineProfile:
    """The profile of that name.

    Raises:
        SettingsError: there is none; the message lists those there are.
    """
    for profile in profiles():
        if profile.name == name:
            return profile
    raise SettingsError(f"unknown engine profile {name!r}; known: {', '.join(one.name for one in profiles())}")


def profile_for(identity: ServerIdentity) -> EngineProfile:
    """The profile that fits a server, the conservative one where none does."""
    engine = identity.engine.lower()
    fitting = (profile for profile in profiles() if engine in profile.engines)
    return next(fitting, profile_named("unknown"))
