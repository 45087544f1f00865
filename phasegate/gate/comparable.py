"""Whether two sessions speak of the same thing: the facts that key a server, the keys that differ, and the host rule.

The server's hardware, engine, model and serving settings make sessions comparable. The engine's version does not: it
is what is under test. The client's software does not either. The host is looked at apart from the fingerprint, since
two hosts of one kind share a baseline only where their spread is known.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from phasegate.core.session import Session

KEYS = ("engine", "hardware", "model", "settings")
"""Facts of a server that key its baselines; the rest is recorded and reported."""

DIFFERENCES_SAID = 4
"""Differences that one sentence holds before a reader is lost in it."""

OTHER_HOST = "measure on that host, record baselines on a second one, or compare both servers in one run"
"""What to do where the candidate's host is one that the baseline never saw."""


def keyed_facts(server: Mapping[str, Any]) -> dict[str, str | None]:
    """The facts that key a server, settings one by one as ``settings.NAME``; None for what is unknown."""
    facts: dict[str, str | None] = {key: _word(server.get(key)) for key in KEYS if key != "settings"}
    settings = server.get("settings") or {}
    if isinstance(settings, Mapping):
        facts.update({f"settings.{name}": _word(value) for name, value in sorted(settings.items())})
    else:
        facts["settings"] = _word(settings)
    return facts


def _word(value: Any) -> str | None:
    if value is None or value == "":
        return None
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def differing_keys(
    old: Mapping[str, Any], new: Mapping[str, Any], *, ignore: Sequence[str] = ()
) -> dict[str, tuple[str | None, str | None]]:
    """Key -> (old, new) for every keyed fact that differs.

    Args:
        old, new: facts of the two servers.
        ignore: keys that may differ; ``settings`` stands for all settings.
    """
    left, right = keyed_facts(old), keyed_facts(new)
    return {
        key: (left.get(key), right.get(key))
        for key in sorted({*left, *right})
        if left.get(key) != right.get(key) and key not in ignore and key.split(".")[0] not in ignore
    }


def say_differences(differences: Mapping[str, tuple[str | None, str | None]]) -> str:
    """The differing keys for a reader: ``hardware: A100 -> H200; settings.ubatch: unknown -> 64``.

    What both sides tell comes first; of a long list only the beginning is said, and how many there are besides.
    """
    ordered = sorted(differences.items(), key=lambda item: None in item[1])
    said = [f"{key}: {old or 'unknown'} -> {new or 'unknown'}" for key, (old, new) in ordered]
    more = len(said) - DIFFERENCES_SAID
    return "; ".join(said) if more <= 0 else f"{'; '.join(said[:DIFFERENCES_SAID])} and {more} more"


def tells_nothing(server: Mapping[str, Any]) -> bool:
    """Whether none of the facts that key a server is known, as in a table."""
    return not any(keyed_facts(server).values())


def host_problem(baseline: Sequence[Session], candidate: Sequence[Session]) -> str | None:
    """Why the candidate's host cannot be judged by this baseline, in one sentence, or None.

    A host that the baseline never saw adds its own variance. Where the baseline spans several hosts, that variance is
    part of it; where it comes from one host, nobody knows it. Unknown hosts are not refused here: nothing is known.
    """
    known = sorted({session.host for session in baseline if session.host})
    new = sorted({session.host for session in candidate if session.host} - set(known))
    if not new or not known or len(known) >= 2:
        return None
    return (
        f"the candidate ran on host {new[0]}, the baseline comes from {known[0]} alone, so the spread between hosts "
        "is unknown"
    )


def host_warning(baseline: Sequence[Session], candidate: Sequence[Session]) -> str | None:
    """A remark where hosts or hardware are unknown although something is known of the server; else None."""
    told = [session for session in (*baseline, *candidate) if session.server]
    if told and any(not _word(session.server.get("hardware")) for session in told):
        return "the server's hardware is unknown, so a change of it would not be noticed; set --perf-hardware LABEL"
    if told and any(session.host is None for session in told):
        return "the server's host is unknown, so a change of host would not be noticed"
    return None
