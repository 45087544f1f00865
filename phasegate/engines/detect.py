"""Learning what a server is by asking it: every fact with the door it came through."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from phasegate.engines.ask import AskError, ask, root_of, server_header
from phasegate.engines.identity import UNKNOWN, ServerIdentity

HOSTED = {"api.openai.com": "openai"}
"""Hosted APIs that are known by their address."""


@dataclass(frozen=True, slots=True)
class _Server:
    """Where to ask."""

    root: str
    base_url: str
    model: str
    api_key: str | None

    def get(self, url: str) -> Mapping[str, Any] | None:
        """The JSON object at a URL, or None."""
        try:
            answer = ask(url, api_key=self.api_key)
        except AskError:
            return None
        return answer if isinstance(answer, dict) else None


def detect(base_url: str, model: str, api_key: str | None = None) -> ServerIdentity:
    """What the server tells about itself; unknown stays unknown. Never raises for a silent server."""
    host = urlsplit(base_url).hostname or ""
    if host in HOSTED:
        return ServerIdentity(HOSTED[host], UNKNOWN, model, sources={"engine": "the address"})
    server = _Server(root_of(base_url), base_url.rstrip("/"), model, api_key)
    for look in (_by_props, _by_version, _by_server_info, _by_models, _by_header):
        found = look(server)
        if found is not None:
            return found
    return ServerIdentity(UNKNOWN, UNKNOWN, model)


def _by_props(server: _Server) -> ServerIdentity | None:
    """llama.cpp's ``/props``, which the simulator speaks too under its own name."""
    props = server.get(f"{server.root}/props")
    if props is None:
        return None
    if props.get("engine"):
        settings = props.get("settings")
        return ServerIdentity(
            str(props["engine"]),
            str(props.get("version", UNKNOWN)),
            server.model,
            settings=settings if isinstance(settings, dict) else {},
            sources={"engine": "/props", "version": "/props", "settings": "/props"},
        )
    if "build_info" not in props:
        return None
    defaults = props.get("default_generation_settings")
    settings = {"total_slots": props.get("total_slots")}
    if isinstance(defaults, dict):
        settings["n_ctx"] = defaults.get("n_ctx")
    return ServerIdentity(
        "llama.cpp",
        str(props["build_info"]),
        server.model,
        settings={key: value for key, value in settings.items() if value is not None},
        sources={"engine": "/props", "version": "/props", "settings": "/props"},
    )


def _by_server_info(server: _Server) -> ServerIdentity | None:
    """SGLang's ``/get_server_info``."""
    info = server.get(f"{server.root}/get_server_info")
    if info is None or "version" not in info:
        return None
    names = ("tp_size", "dtype", "quantization", "chunked_prefill_size", "max_running_requests", "disable_radix_cache")
    return ServerIdentity(
        "sglang",
        str(info["version"]),
        server.model,
        settings={name: info[name] for name in names if info.get(name) is not None},
        sources={"engine": "/get_server_info", "version": "/get_server_info", "settings": "/get_server_info"},
    )


def _by_version(server: _Server) -> ServerIdentity | None:
    """vLLM's ``/version``; other servers have one too, so the model list must say vllm as well."""
    version = server.get(f"{server.root}/version")
    if version is None or "version" not in version or _owner(server) != "vllm":
        return None
    return ServerIdentity(
        "vllm", str(version["version"]), server.model, sources={"engine": "/v1/models", "version": "/version"}
    )


def _by_models(server: _Server) -> ServerIdentity | None:
    """The owner that the model list names, where it is an engine's name."""
    known = {"vllm": "vllm", "sglang": "sglang", "llamacpp": "llama.cpp", "phasegate-simulator": "phasegate-simulator"}
    engine = known.get(_owner(server) or "")
    return None if engine is None else ServerIdentity(engine, UNKNOWN, server.model, sources={"engine": "/v1/models"})


def _by_header(server: _Server) -> ServerIdentity | None:
    """The ``Server`` header: llama.cpp sends it even where ``/props`` is closed; others name their web library."""
    if server_header(f"{server.base_url}/models", api_key=server.api_key).lower() != "llama.cpp":
        return None
    return ServerIdentity("llama.cpp", UNKNOWN, server.model, sources={"engine": "the Server header"})


def _owner(server: _Server) -> str | None:
    listed = server.get(f"{server.base_url}/models")
    entries = listed.get("data") if listed is not None else None
    if not isinstance(entries, list):
        return None
    owners = [entry.get("owned_by") for entry in entries if isinstance(entry, dict) and entry.get("id") == server.model]
    return str(owners[0]) if owners and owners[0] else None
