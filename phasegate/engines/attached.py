"""A server that runs already, reached by its URL. It is found, asked who it is, and never started or stopped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from phasegate.core.hiding import hide_key
from phasegate.core.identity import ServerIdentity
from phasegate.core.showing import shown
from phasegate.core.target import Azure
from phasegate.engines.address import Address
from phasegate.engines.ask import (
    AskError,
    address_problem,
    ask,
    key_problem,
    root_of,
    tell,
    without_userinfo,
)
from phasegate.engines.base import EngineError
from phasegate.engines.detect import detect, told_by
from phasegate.engines.profile import EngineProfile, profile_for
from phasegate.engines.refusal import refusal_words

LISTED = 8
"""At most this many model names stand in a message."""


class AttachedEngine:
    """A server by its address.

    Args:
        base_url: with its version path, such as ``http://127.0.0.1:8000/v1``.
        model: the model to ask for; None takes the only one the server lists.
        api_key: what clients present, or None for nothing.
        hardware: what the user says the server runs on, or None.
        address: what is known of the server before it is asked; None for nothing.
    """

    can_restart = False
    words: Sequence[str] = ()
    log_path: Path | None = None

    def __init__(
        self,
        base_url: str,
        model: str | None = None,
        api_key: str | None = None,
        hardware: str | None = None,
        address: Address | None = None,
    ) -> None:
        self._address = address
        self._base_url = (base_url if address is None else address.base_url).rstrip("/")
        if address is not None and address.azure is not None:
            model = model or address.azure.deployment
        self._model = model
        self._api_key = api_key
        self._hardware = hardware
        self._identity: ServerIdentity | None = None
        self._unlisted: str | None = None
        self._silent: list[str] = []

    def __repr__(self) -> str:
        return f"AttachedEngine({without_userinfo(self._base_url)!r}, model={self._model!r})"

    @property
    def base_url(self) -> str:
        """Where the API is."""
        return self._base_url

    @property
    def model(self) -> str:
        """The model to ask for.

        Raises:
            EngineError: none was named and the engine is not started yet.
        """
        if self._model is None:
            raise EngineError("no model was named; give one (--perf-model, or --model of probe)")
        return self._model

    @property
    def api_key(self) -> str | None:
        """What clients present."""
        return self._api_key

    def start(self) -> None:
        """Find the server and settle on a model.

        The list of models decides only where the user named none: keys may chat and not list, gateways have no list, a
        part of one or one that hangs, and servers answer to names that they do not list. What is asked next tells a
        wrong key or name.

        Raises:
            EngineError: nobody answers there, or no model was named and none can be chosen; with the remedy.
        """
        problem = address_problem(self._base_url) or key_problem(self._api_key)
        if problem:
            where = self.key_name if "key" in problem else f"base URL {without_userinfo(self._base_url)!r}"
            raise EngineError(f"{where}: {problem}")
        listed = self._models()
        if self._model is None:
            if listed is None or len(listed) != 1:
                which = "it lists none" if not listed else f"it has {self._names(listed)}"
                raise EngineError(
                    f"{self._where()}: which model? {which}; name one (--perf-model, or --model of probe)"
                )
            self._model = listed[0]
        elif listed and not _is_listed(self._model, listed):
            self._unlisted = (
                f"model {shown(self._model)!r} is not in the list of {self._where()}, which has "
                f"{self._names(listed)}; it is asked for all the same"
            )

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader must know of a server that is measured all the same."""
        return () if self._unlisted is None else (self._unlisted,)

    def _models(self) -> list[str] | None:
        """Names of the models the server lists; None where it lists none but does answer."""
        if self._told is not None and not self._told.lists_models:
            return None
        key, headers = self._asking
        door = f"{self._base_url}/models"
        try:
            answer = ask(door, api_key=key, headers=headers)
        except AskError as error:
            if not error.answered:
                self._silent.append(door)
            problem = self._problem(error)
            if problem is None:
                return None
            raise EngineError(f"{self._where()}: {problem}") from None
        entries = answer.get("data") if isinstance(answer, dict) else None
        if not isinstance(entries, list):
            return None
        named = (entry.get("id") if isinstance(entry, dict) else entry for entry in entries)
        return [name for name in named if isinstance(name, str) and name]

    def _names(self, models: Sequence[str]) -> str:
        """The first few names, for a message."""
        more = f" and {len(models) - LISTED} more" if len(models) > LISTED else ""
        return hide_key(", ".join(" ".join(shown(one).split()) for one in models[:LISTED]), self._api_key) + more

    def _problem(self, error: AskError) -> str | None:
        """Why nothing can be asked here without a model list, and the remedy; None where it can."""
        status = error.status
        if error.barred:
            return str(error)
        if not error.reached:
            return f"no server answers there ({error}); start it, or check the address"
        if not error.answered:
            listing = f"connections are taken there, but the list of models does not come ({error})"
            remedy = "name the model (--perf-model, or --model of probe), or check the address"
            return f"{listing}; {remedy}" if self._model is None else None
        # A wrong path, another kind of server, or one that never lists.
        elsewhere = status in (404, None) and not self._base_url.endswith("/v1")
        if elsewhere and self._answers_below_v1():
            return f"no API there; it is at {self._where()}/v1"
        if self._model is not None:
            return None
        if status is None:
            return f"something answers there, but not an OpenAI-style API ({error}); check the address"
        return refusal_words(status, self.key_name, listing=True)

    def _answers_below_v1(self) -> bool:
        key, headers = self._asking
        try:
            ask(f"{self._base_url}/v1/models", api_key=key, headers=headers)
        except AskError:
            return False
        return True

    @property
    def _told(self) -> EngineProfile | None:
        return None if self._address is None else self._address.told

    @property
    def _asking(self) -> tuple[str | None, dict[str, str]]:
        """The key as a bearer and the headers of every question: those that requests carry, as far as is known."""
        profile = self._told
        if profile is None and self._identity is not None:
            profile = self.profile
        return (self._api_key, {}) if profile is None else profile.asking(self._api_key)

    @property
    def key_name(self) -> str:
        """The variable that holds the key."""
        return "OPENAI_API_KEY" if self._address is None else self._address.key_name

    def _where(self) -> str:
        return without_userinfo(self._base_url)

    def stop(self) -> None:
        """Nothing: what was found running goes on running."""

    def restart(self) -> None:
        """Nothing: see ``can_restart``."""

    def identity(self) -> ServerIdentity:
        """What the server tells about itself; asked once."""
        if self._identity is None:
            found = self._asked().without_key(self._api_key)
            if self._hardware is not None:
                found = replace(
                    found, hardware=self._hardware, sources={**found.sources, "hardware": "--perf-hardware"}
                )
            self._identity = found
        return self._identity

    def _asked(self) -> ServerIdentity:
        """What the server says it is; where the user said it, only the rest is asked."""
        address = self._address
        if address is None:
            return detect(self._base_url, self.model, self._api_key, silent=self._silent)
        if address.named is None:
            return detect(self._base_url, self.model, self._api_key, address.known, silent=self._silent)
        engine = address.named.engines[0]
        key, headers = address.named.asking(self._api_key)
        found = told_by(address.named, self._base_url, self.model, key, headers)
        return replace(found, engine=engine, sources={**found.sources, "engine": "--perf-engine"})

    @property
    def azure(self) -> Azure | None:
        """What an Azure deployment needs beside its address; None for every other server."""
        return None if self._address is None else self._address.azure

    @property
    def profile(self) -> EngineProfile:
        """How to talk to the server: as the user said, else as it says of itself."""
        if self._address is None:
            return profile_for(self.identity())
        return self._address.named or profile_for(self.identity(), self._address.known)

    def reset_prefix_cache(self) -> bool:
        """Empty the prefix cache where the engine has a door for it."""
        paths = self.profile.reset_paths(self.identity().settings)
        key, headers = self._asking
        try:
            for path in paths:
                tell(root_of(self._base_url) + path, api_key=key, headers=headers)
        except AskError:
            return False
        return bool(paths)

    def tokenize(self, text: str) -> int | None:
        """Tokens of a text where the engine has ``/tokenize``; hosted APIs have none."""
        if self._address is not None and self._address.hosted is not None:
            return None
        key, headers = self._asking
        for body in ({"content": text}, {"model": self.model, "prompt": text}):
            try:
                answer = ask(f"{root_of(self._base_url)}/tokenize", api_key=key, headers=headers, body=body)
            except AskError:
                continue
            if isinstance(answer, dict):
                if isinstance(answer.get("count"), int):
                    return int(answer["count"])
                if isinstance(answer.get("tokens"), list):
                    return len(answer["tokens"])
        return None


def _is_listed(model: str, listed: Sequence[str]) -> bool:
    """Whether a model is in the list, by its name or by the one that Ollama gives a name without a tag."""
    return model in listed or f"{model}:latest" in listed
