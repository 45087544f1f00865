"""How a kind of server gives itself away: by its address, by the owner in its model list, by a door, by a header.

Evidence is data in a profile, so that a user's own engine is recognised by a file and no code. A rule names one
place to look, what must be found there, and where the version and settings are told.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from phasegate.core.settings_file import Located, SettingsError, list_of, text

KINDS = ("host", "owned_by", "path", "server_header")
"""Where to look, in the order in which rules are tried. What a server says of itself comes before what its doors look
like: SGLang and llama.cpp answer at doors of Ollama's too."""

_KEYS = (*KINDS, "has", "equals", "version", "settings", "told_at")


@dataclass(frozen=True, slots=True)
class Evidence:
    """One rule; exactly one of the first four says where to look.

    Attributes:
        host: names of hosts; one that begins with a dot stands for every host that ends so.
        owned_by: owner that the model list gives the model.
        path: door below the server's root that answers with a JSON object.
        server_header: the ``Server`` header of the model list.
        has: keys that the object at ``path`` must have.
        equals: keys and the texts that they must hold there.
        version: key of the version; dots lead into objects.
        settings: name -> key of a setting worth keeping, or the key of an object that is kept whole.
        told_at: door at which version and settings are told where that is not ``path``.
    """

    host: tuple[str, ...] = ()
    owned_by: str | None = None
    path: str | None = None
    server_header: str | None = None
    has: tuple[str, ...] = ()
    equals: Mapping[str, str] = field(default_factory=dict)
    version: str | None = None
    settings: Mapping[str, str] | str = field(default_factory=dict)
    told_at: str | None = None

    @property
    def kind(self) -> str:
        """Which of `KINDS` it is."""
        return next(kind for kind in KINDS if getattr(self, kind))

    @property
    def place(self) -> str | None:
        """The door where version and settings are told, or None for nowhere."""
        return self.told_at or self.path

    def describe(self) -> str:
        """Where to look and for what, in a few words."""
        if self.host:
            return f"the address ({', '.join(self.host)})"
        if self.owned_by:
            return f"`owned_by: {self.owned_by}` in /v1/models"
        if self.server_header:
            return f"`Server: {self.server_header}`"
        wanted = [*self.has, *(f"{key}: {value}" for key, value in self.equals.items())]
        return f"{self.path} (`{', '.join(wanted)}`)"

    def is_of_host(self, host: str) -> bool:
        """Whether a host name is one of those that are known."""
        return any(host == name or (name.startswith(".") and host.endswith(name)) for name in self.host)

    def fits(self, told: Mapping[str, Any] | None) -> bool:
        """Whether the object at ``path`` has what it must."""
        if told is None:
            return False
        return all(at_key(told, key) is not None for key in self.has) and all(
            at_key(told, key) == value for key, value in self.equals.items()
        )

    def told_version(self, told: Mapping[str, Any]) -> str | None:
        """The version that an object tells, or None."""
        found = at_key(told, self.version) if self.version else None
        return str(found) if isinstance(found, (str, int, float)) and not isinstance(found, bool) else None

    def settings_in(self, told: Mapping[str, Any]) -> dict[str, Any]:
        """The settings that an object tells; those that it does not are left out."""
        if isinstance(self.settings, str):
            whole = at_key(told, self.settings)
            return dict(whole) if isinstance(whole, dict) else {}
        found = {name: at_key(told, key) for name, key in self.settings.items()}
        return {name: value for name, value in found.items() if value is not None}


def at_key(told: Mapping[str, Any], key: str) -> Any:
    """The value at a key, dots leading into objects; None where there is none. A key with dots in it comes first."""
    if key in told:
        return told[key]
    head, dot, rest = key.partition(".")
    inner = told.get(head)
    return at_key(inner, rest) if dot and isinstance(inner, dict) else None


def parse_evidence(value: Any, where: str) -> tuple[Evidence, ...]:
    """The rules in a profile's ``detect``.

    Raises:
        SettingsError: one line naming the rule, the value and the remedy.
    """
    entries = value if isinstance(value, list) else [value]
    return tuple(_rule(entry, f"{where}: detect rule {number}") for number, entry in enumerate(entries, 1))


def _rule(entry: Any, where: str) -> Evidence:
    if not isinstance(entry, dict):
        raise SettingsError(f"{where}: {entry!r} is no mapping; write one such as {{owned_by: vllm}}")
    given = Located(entry, {}, where)
    given.refuse_unknown(_KEYS)
    kinds = [kind for kind in KINDS if kind in entry]
    if len(kinds) != 1:
        named = " and ".join(kinds) or "none"
        raise SettingsError(f"{where}: names {named} of {', '.join(KINDS)}; a rule looks at exactly one of them")
    rule = Evidence(
        host=given.take("host", list_of(text), (), wanted="one or more host names"),
        owned_by=given.take("owned_by", text, None, wanted="a text"),
        path=given.take("path", door, None, wanted="a path such as /version"),
        server_header=given.take("server_header", text, None, wanted="a text"),
        has=given.take("has", list_of(text), (), wanted="one or more keys"),
        equals=given.take("equals", texts, {}, wanted="keys with a text each"),
        version=given.take("version", text, None, wanted="a key"),
        settings=given.take("settings", _text_or_texts, _NONE, wanted="names with a key each, or one key"),
        told_at=given.take("told_at", door, None, wanted="a path such as /version"),
    )
    if rule.path and not (rule.has or rule.equals):
        raise SettingsError(f"{where}: says nothing of what {rule.path} must hold; add has or equals")
    return rule


_NONE: dict[str, str] | str = {}


def door(value: Any) -> str:
    """A converter for paths below a server's root."""
    if not text(value).startswith("/"):
        raise ValueError
    return str(value)


def texts(value: Any) -> dict[str, str]:
    """A converter for mappings of texts to texts."""
    if not isinstance(value, dict) or not all(isinstance(one, str) for pair in value.items() for one in pair):
        raise TypeError
    return dict(value)


def _text_or_texts(value: Any) -> dict[str, str] | str:
    return value if isinstance(value, str) else texts(value)
