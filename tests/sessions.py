"""Sessions for tests: levels in, sessions out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from phasegate.core.session import Measurement, Session
from phasegate.gate.facts import facts_of

SERVER: Mapping[str, Any] = {
    "engine": "llama.cpp",
    "engine_version": "b1",
    "model": "tiny",
    "hardware": "cpu-4",
    "settings": {"slots": 1, "ubatch": 512},
}


def measurement(workload: str, metric: str, samples: Sequence[float], **changes: Any) -> Measurement:
    """A measurement without faults, unless the changes bring one."""
    facts = facts_of(metric)
    phase = facts.phase if facts is not None else "both"
    values: dict[str, Any] = {
        "workload": workload,
        "metric": metric,
        "samples": tuple(samples),
        "phase": phase,
        "workload_digest": "d1g3st00",
        "token_source": "usage" if metric == "tpot" else None,
        "requests": len(samples),
    }
    return Measurement(**{**values, **changes})


def session(number: int, *measurements: Measurement, **changes: Any) -> Session:
    """A session of a known server on a known host."""
    values: dict[str, Any] = {
        "session_id": f"2026010{1 + number // 60 // 24}T{number // 60 % 24:02d}{number % 60:02d}00Z",
        "recorded_at": f"2026-01-01T{number // 60:02d}:{number % 60:02d}:00Z",
        "measurements": measurements,
        "server": SERVER,
        "client": {"python": "3.11"},
        "fingerprint": "llama.cpp_tiny_cpu-4-12345678",
        "host": "host-a",
    }
    return Session(**{**values, **changes})


def sessions(levels: Mapping[tuple[str, str], Sequence[float]], **changes: Any) -> list[Session]:
    """One session for each position: (workload, metric) -> level by session, one request each."""
    count = max(len(values) for values in levels.values())
    return [
        session(
            index,
            *(measurement(w, m, [values[index]]) for (w, m), values in levels.items() if index < len(values)),
            **changes,
        )
        for index in range(count)
    ]
