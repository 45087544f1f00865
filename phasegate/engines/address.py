"""From what a user names (an address, perhaps an engine) to where requests go and what they carry.

The key comes from the environment: from the variable of the API that the address belongs to, else from
``OPENAI_API_KEY``. It is never taken from the variable of another API. These are for the base URL: a reference or a
sentinel elsewhere gets the key of its own variable, or that of the hosted API it belongs to, and no other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit, urlunsplit

from phasegate.core.settings_file import SettingsError
from phasegate.core.target import Azure, Target
from phasegate.engines.ask import address_problem, without_userinfo
from phasegate.engines.base import EngineError
from phasegate.engines.detect import profile_of_host
from phasegate.engines.profile import EngineProfile, profile_named
from phasegate.engines.profile_book import read_profiles
from phasegate.load.route import route_to

DETECT = ("auto", "embedded")
"""Words for the engine that leave it to the server at the address to say what it is; the second is the default."""

DEPLOYMENTS = "/openai/deployments/"
"""What the address of an Azure deployment has in it; the ``/openai/v1`` of newer resources is like any other API."""

ENDPOINT_PATHS = ("/chat/completions", "/completions", "/responses", "/messages", "/models", "/api/chat")
"""How the address of an endpoint ends, the longer before the shorter."""

API_KEY = "OPENAI_API_KEY"
API_VERSION = "OPENAI_API_VERSION"


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server is, and what is known of it before anything was asked.

    Attributes:
        base_url: where requests go; the resource's endpoint for an Azure deployment.
        azure: what a deployment needs beside it, or None.
        named: the profile that the user named, or None to find out.
        hosted: the profile of the hosted API that is known by its address, or None.
        known: all profiles, the project's own first.
        key_name: environment variable that held the key, or would.
    """

    base_url: str
    azure: Azure | None
    named: EngineProfile | None
    hosted: EngineProfile | None
    known: tuple[EngineProfile, ...]
    key_name: str

    @property
    def told(self) -> EngineProfile | None:
        """The profile that holds already, before the server was asked."""
        return self.named or self.hosted


def address_of(
    base_url: str, engine: str, folder: Path, environ: Mapping[str, str], own_key: str | None = None
) -> Address:
    """What an address and the name of an engine say.

    Args:
        engine: a profile's name, or one of `DETECT`.
        folder: the project's own profiles.
        own_key: environment variable for the key of a server that is not the one at the base URL; None for that one.

    Raises:
        EngineError: no such profile, a profile that cannot be used, no address at all, an incomplete one of Azure's,
            one that is no base of others, or one that no way leads to; one line.
    """
    try:
        known = read_profiles(folder)
        named = None if engine in DETECT else profile_named(engine, known)
    except SettingsError as error:
        raise EngineError(str(error)) from None
    problem = address_problem(base_url)
    if problem:
        raise EngineError(f"base URL {without_userinfo(base_url)!r}: {problem}")
    hosted = profile_of_host(base_url, known)
    url, azure = _without_deployment(base_url, environ)
    if azure is None:
        _check(base_url)
    if "@" in urlsplit(base_url).netloc:
        raise EngineError(
            f"base URL {without_userinfo(base_url)!r} has a user or password in it, which a list of processes shows; "
            f"take it out: a key belongs into {own_key or API_KEY}, a login into the headers of a profile"
        )
    route_to(url, environ)  # a proxy that cannot be used is said before anything is started
    names = _key_names(named, hosted, own_key)
    return Address(url, azure, named, hosted, known, next((name for name in names if environ.get(name)), names[0]))


def _key_names(named: EngineProfile | None, hosted: EngineProfile | None, own_key: str | None) -> tuple[str, ...]:
    """Variables that may hold the key, the first that is set before the others."""
    if own_key is None:
        told = named or hosted
        return (*(told.key_env if told else ()), API_KEY)
    # The named engine is what the base URL's server is; only the address itself says whose key is meant for it.
    return (own_key, *(hosted.key_env if hosted else ()))


def target_at(
    base_url: str,
    profile: EngineProfile,
    model: str,
    api_key: str | None,
    *,
    timeout: float,
    idle_timeout: float,
    azure: Azure | None = None,
) -> Target:
    """Where requests go, in the manner of a profile. ``timeout`` and ``idle_timeout`` are seconds."""
    return Target(
        base_url=base_url,
        model=model,
        api_key=api_key,
        headers=profile.headers,
        key_headers=profile.key_header,
        azure=azure,
        timeout=timeout,
        idle_timeout=idle_timeout,
        include_usage=profile.include_usage,
    )


def _check(base_url: str) -> None:
    """Refuse what no path can be appended to: it would be asked as something else than was meant.

    A query is no part of a base: it may be a key, which reports would show, and servers read it at one path only.
    """
    if any(mark.isspace() for mark in base_url):
        raise EngineError(
            f"base URL {without_userinfo(base_url)!r} has a space in it; write %20 for it, or take it out"
        )
    if "?" in base_url or "#" in base_url:
        raise EngineError(
            f"base URL {without_userinfo(base_url)!r} goes on behind a ? or #, where no path can follow; leave that "
            f"out: a key belongs into {API_KEY}, other parameters into the headers or force of a profile in "
            "fixtures/engines"
        )
    path = base_url.rstrip("/ ")
    ending = next((one for one in ENDPOINT_PATHS if path.endswith(one)), None)
    if ending is not None:
        raise EngineError(
            f"base URL {without_userinfo(base_url)!r} ends in {ending}, which requests append themselves; "
            f"the base URL ends before that: {without_userinfo(path.removesuffix(ending))}"
        )


def _without_deployment(base_url: str, environ: Mapping[str, str]) -> tuple[str, Azure | None]:
    """The resource's endpoint and its deployment, where the address is one of Azure's; else the address alone."""
    parts = urlsplit(base_url)
    head, found, tail = parts.path.partition(DEPLOYMENTS)
    deployment = unquote(tail.split("/", 1)[0])
    if not found or not deployment:
        return base_url, None
    version = parse_qs(parts.query).get("api-version", [environ.get(API_VERSION, "")])[0]
    if not version:
        raise EngineError(
            f"{parts.scheme}://{parts.hostname}{parts.path}: an Azure deployment needs an API version; write it behind "
            f"the address, as ?api-version=2024-10-21, or into {API_VERSION}"
        )
    return urlunsplit((parts.scheme, parts.netloc, head, "", "")), Azure(version, deployment)
