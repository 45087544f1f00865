"""Learning what a server is by asking it: every fact with the door it came through.

The rules stand in the profiles (`evidence`). A hosted API is known by its address alone, and nothing is asked of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from phasegate.core.identity import UNKNOWN, ServerIdentity
from phasegate.engines.ask import SECONDS, AskError, ask, root_of, server_header
from phasegate.engines.evidence import KINDS, Evidence
from phasegate.engines.profile import EngineProfile, profiles

SECONDS_AFTER_SILENCE = 1.0
"""To wait at each further door of a server that left one unanswered: there is no use in waiting long at all of them."""


@dataclass(frozen=True, slots=True)
class _Server:
    """Where to ask, and what was answered so far: no door is knocked at twice."""

    root: str
    base_url: str
    model: str
    api_key: str | None
    more: Mapping[str, str] = field(default_factory=dict)
    answers: dict[str, Mapping[str, Any] | None] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    silent: list[str] = field(default_factory=list)

    def get(self, url: str) -> Mapping[str, Any] | None:
        """The JSON object at a URL, or None."""
        if url not in self.answers:
            try:
                seconds = SECONDS if not self.silent else SECONDS_AFTER_SILENCE
                answer = ask(url, api_key=self.api_key, headers=self.more, seconds=seconds)
            except AskError as error:
                answer = None
                if not error.answered:
                    self.silent.append(url)
            self.answers[url] = answer if isinstance(answer, dict) else None
        return self.answers[url]

    def header(self) -> str:
        """The ``Server`` header of the model list."""
        if f"{self.base_url}/models" in self.silent:
            return ""
        if "server" not in self.headers:
            self.headers["server"] = server_header(f"{self.base_url}/models", api_key=self.api_key, headers=self.more)
        return self.headers["server"]

    def owner(self) -> str | None:
        """The owner that the model list gives the model, or gives all of its models."""
        listed = self.get(f"{self.base_url}/models")
        entries = listed.get("data") if listed is not None else None
        named = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
        own = [entry for entry in named if entry.get("id") == self.model] or named
        owners = {str(entry.get("owned_by")) for entry in own if entry.get("owned_by")}
        return owners.pop() if len(owners) == 1 else None


def detect(
    base_url: str,
    model: str,
    api_key: str | None = None,
    known: Iterable[EngineProfile] | None = None,
    headers: Mapping[str, str] | None = None,
    silent: Iterable[str] = (),
) -> ServerIdentity:
    """What the server tells about itself; unknown stays unknown. Never raises for a silent server.

    ``known`` are the profiles whose rules are tried, those that ship with the package where it is None; ``headers`` are
    sent beside the usual ones, and ``silent`` are URLs that a question before these went unanswered at.
    """
    candidates = tuple(profiles() if known is None else known)
    hosted = profile_of_host(base_url, candidates)
    if hosted is not None:
        return ServerIdentity(hosted.engines[0], UNKNOWN, model, sources={"engine": "the address"})
    server = _Server(root_of(base_url), base_url.rstrip("/"), model, api_key, headers or {}, silent=list(silent))
    for kind in KINDS[1:]:
        for profile in candidates:
            for rule in profile.detect:
                if rule.kind == kind and _HOLDS[kind](rule, server):
                    return _identity(profile.engines[0], rule, server)
    return ServerIdentity(UNKNOWN, UNKNOWN, model)


def told_by(
    profile: EngineProfile, base_url: str, model: str, api_key: str | None, headers: Mapping[str, str]
) -> ServerIdentity:
    """What a server tells whose engine is known already: version and settings, by the first rule whose door tells them.

    Never raises for a silent server; nothing is asked of a hosted API.
    """
    engine = profile.engines[0]
    if profile_of_host(base_url, (profile,)) is not None:
        return ServerIdentity(engine, UNKNOWN, model)
    server = _Server(root_of(base_url), base_url.rstrip("/"), model, api_key, headers)
    told = (_identity(engine, rule, server) for rule in profile.detect if rule.place)
    return next((one for one in told if one.version != UNKNOWN), ServerIdentity(engine, UNKNOWN, model))


def profile_of_host(base_url: str, known: Iterable[EngineProfile]) -> EngineProfile | None:
    """The profile of a hosted API that is known by its address; None for every other server."""
    host = urlsplit(base_url).hostname or ""
    fitting = (profile for profile in known if any(rule.is_of_host(host) for rule in profile.detect))
    return next(fitting, None)


_HOLDS: Mapping[str, Callable[[Evidence, _Server], bool]] = {
    "owned_by": lambda rule, server: server.owner() == rule.owned_by,
    "path": lambda rule, server: rule.fits(server.get(f"{server.root}{rule.path}")),
    "server_header": lambda rule, server: server.header().lower() == (rule.server_header or "").lower(),
}

_SOURCES: Mapping[str, str] = {"owned_by": "/v1/models", "server_header": "the Server header"}


def _identity(engine: str, rule: Evidence, server: _Server) -> ServerIdentity:
    """The engine, and what the rule's door tells of version and settings."""
    sources = {"engine": _SOURCES.get(rule.kind) or str(rule.path)}
    told = server.get(f"{server.root}{rule.place}") if rule.place else None
    version = UNKNOWN
    settings: dict[str, Any] = {}
    if told is not None:
        version, settings = rule.told_version(told) or UNKNOWN, rule.settings_in(told)
    if version != UNKNOWN:
        sources["version"] = str(rule.place)
    if settings:
        sources["settings"] = str(rule.place)
    return ServerIdentity(engine, version, server.model, settings=settings, sources=sources)
