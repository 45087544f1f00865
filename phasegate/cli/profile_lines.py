"""How the server was talked to, and from what that was known."""

from __future__ import annotations

from phasegate.core.identity import UNKNOWN, ServerIdentity
from phasegate.engines.profile import EngineProfile


def profile_words(
    profile: EngineProfile, server: ServerIdentity, endpoint: str = "chat", *, mark_prefix: bool = False
) -> str:
    """The profile in use, what gave the engine away, and whether answers at the endpoint are of full length."""
    source = server.sources.get("engine")
    if profile.name == UNKNOWN:
        known = "nothing told what this server is" if server.engine == UNKNOWN else f"no profile fits {server.engine}"
        return f"{profile.name}: {known}, so only what every server understands is sent"
    told = f"known from {source}" if source else "known beforehand"
    version = server.sources.get("version")
    if version and version != source:
        told += f", its version from {version}"
    marked = "; shared beginnings are marked for caching" if mark_prefix else ""
    return f"{profile.name}: {told}; {_length_words(profile, endpoint)}{marked}"


def _length_words(profile: EngineProfile, endpoint: str) -> str:
    if not profile.forces_length(endpoint):
        return "it cannot be made to answer at full length, so answers may end early and real counts are used"
    return f"full answers are forced with {', '.join(profile.force)}"
