"""The name of a server's baselines: words for people, and a short hash over everything that keys them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from phasegate.gate.comparable import keyed_facts

FINGERPRINT_VERSION = 1
"""Part of the hash: raise it when the meaning of a keyed fact changes, so that old baselines do not match."""

_READABLE_LENGTH = 60


def fingerprint_of(server: Mapping[str, Any]) -> str:
    """Folder name for a server's baselines: ``<engine>_<model>_<hardware>-<8 hex digits>``.

    The hash covers engine, hardware, model and every serving setting, and neither the engine's version nor anything
    of the client. Hardware that nobody told reads ``unknown-hardware``.

    Args:
        server: facts as in `Session.server`.
    """
    facts = keyed_facts(server)
    canonical = json.dumps({"version": FINGERPRINT_VERSION, **facts}, sort_keys=True)
    digest = hashlib.sha256(canonical.encode()).hexdigest()[:8]
    words = [facts.get("engine") or "unknown-engine", _model_word(facts.get("model")), _hardware_word(facts)]
    return f"{'_'.join(_slug(word) for word in words)[:_READABLE_LENGTH].rstrip('-_.')}-{digest}"


def _model_word(model: str | None) -> str:
    # A model may be a path or an owner/name; its last part is what people call it.
    return re.split(r"[/\\]", model.rstrip("/\\"))[-1] if model else "unknown-model"


def _hardware_word(facts: Mapping[str, str | None]) -> str:
    return facts.get("hardware") or "unknown-hardware"


def _slug(word: str) -> str:
    """Letters, digits, dots and dashes only; safe as part of a folder name on every system."""
    return re.sub(r"[^a-z0-9.]+", "-", word.lower()).strip("-.") or "unnamed"
