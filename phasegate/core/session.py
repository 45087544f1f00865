"""A session: one sitting in which every workload was measured once. The unit of all statistics.

Requests of one session share a server start, a clock speed and a neighbour; they are not independent.
Requests make a session's value precise, sessions carry the proof.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MEDIANS_ONLY = "medians_only"
"""Flag of a measurement whose one sample is the median of its requests, because its file holds no single ones."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """One metric of one workload in one session.

    Attributes:
        workload: name of the workload, such as ``"prompt-length[input=256,output=32]"``.
        metric: short or long name from `metric.METRICS`.
        samples: one value per request that has the metric, in order of sending, in the metric's unit
            (seconds). Failed requests are not in here; they are counted in ``failed``.
        phase: ``"prefill"``, ``"decode"`` or ``"both"``.
        workload_digest: digest of everything that decides what was sent; other digest, other workload.
        token_source: where counts come from (``"usage"``, ``"logprobs"``); None when no count is needed.
        requests: requests sent, warm-up excluded.
        failed: requests that ended as an error or empty.
        invalid: requests answered but unfit for a latency sample (cached prompt, buffered, ...).
        flags: sorted flags seen on the requests.
    """

    workload: str
    metric: str
    samples: tuple[float, ...]
    phase: str
    workload_digest: str = ""
    token_source: str | None = None
    requests: int = 0
    failed: int = 0
    invalid: int = 0
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Session:
    """Everything one sitting measured, and on what.

    Attributes:
        session_id: unique; sorts by time.
        recorded_at: UTC time in ISO 8601.
        measurements: one per workload and metric.
        server: facts about the server: ``engine``, ``engine_version``, ``model``, ``hardware``, ``settings``.
        client: facts about the client's machine and software.
        fingerprint: what makes sessions comparable; see `baseline`.
        host: identifier of the host the *server* ran on, or None where unknown.
        disturbed: why the session must not be used silently (host probe), or None.
    """

    session_id: str
    recorded_at: str
    measurements: tuple[Measurement, ...]
    server: Mapping[str, Any] = field(default_factory=dict)
    client: Mapping[str, Any] = field(default_factory=dict)
    fingerprint: str = ""
    host: str | None = None
    disturbed: str | None = None
