"""Who was measured and by whom: facts about the server, each with its source, apart from facts about the client."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import metadata
from pathlib import Path
from typing import Any

from phasegate import __version__
from phasegate.core.hiding import hide, hide_key
from phasegate.core.showing import shown

UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class ServerIdentity:
    """What is known of the server.

    Attributes:
        engine: name of the engine, or "unknown".
        version: its version, or "unknown".
        model: the model that answers.
        settings: settings that bear on serving, as far as the server tells them.
        hardware: what it runs on, or "unknown": no guess is made.
        host: identifier of the host the server runs on; None where unknown.
        sources: fact -> where it was learnt.
    """

    engine: str
    version: str
    model: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    hardware: str = UNKNOWN
    host: str | None = None
    sources: Mapping[str, str] = field(default_factory=dict)

    def describe(self) -> str:
        """One line for people."""
        return shown(f"{self.engine} {self.version}, model {self.model}, hardware {self.hardware}")

    def without_key(self, api_key: str | None) -> ServerIdentity:
        """The same facts for the case that the server repeats the key it was shown, or any other.

        A model's name loses only that key: by what is left of it models are told apart.
        """

        def scrubbed(value: Any) -> Any:
            if isinstance(value, str):
                return hide(value, api_key)
            if isinstance(value, Mapping):
                return {hide_key(str(name), api_key): scrubbed(one) for name, one in value.items()}
            return [scrubbed(one) for one in value] if isinstance(value, (list, tuple)) else value

        return replace(
            self,
            engine=scrubbed(self.engine),
            version=scrubbed(self.version),
            model=hide_key(self.model, api_key),
            settings=scrubbed(self.settings),
        )


@dataclass(frozen=True, slots=True)
class ClientIdentity:
    """The machine and software that measured."""

    phasegate: str
    python: str
    openai: str
    system: str
    cpu: str
    cores: int
    affinity: tuple[int, ...]

    def describe(self) -> str:
        """One line for people."""
        cores = ",".join(map(str, self.affinity)) or "any"
        return f"phasegate {self.phasegate}, Python {self.python}, {self.cpu}, {self.cores} cores (using {cores})"


def client_identity() -> ClientIdentity:
    """This machine and this process, now."""
    affinity = tuple(sorted(os.sched_getaffinity(0))) if hasattr(os, "sched_getaffinity") else ()
    return ClientIdentity(
        phasegate=__version__,
        python=platform.python_version(),
        openai=metadata.version("openai"),
        system=f"{platform.system()} {platform.release()}",
        cpu=cpu_name(),
        cores=os.cpu_count() or 1,
        affinity=affinity,
    )


def cpu_name() -> str:
    """The processor's own name where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or UNKNOWN
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine() or UNKNOWN


def this_host() -> str:
    """An identifier of this machine that tells hosts apart without naming one: a digest of its machine id."""
    import hashlib

    for path in ("/etc/machine-id", "/var/lib/dbus/machine-id"):
        try:
            text = Path(path).read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError):
            continue
        if text:
            return hashlib.sha256(f"phasegate:{text}".encode()).hexdigest()[:12]
    return hashlib.sha256(f"phasegate:{platform.node()}".encode()).hexdigest()[:12]


def this_hardware() -> str:
    """Processor and cores of this machine, for engines that run here."""
    return f"{cpu_name()} x{os.cpu_count() or 1}"
