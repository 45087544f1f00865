"""What is planted into the simulator, what the gate must then say, and the small workloads that show it.

Each workload is short enough for one phase to bind it by default, so that the metric under test gates. The planted
slowdowns are fixed: a policy that accepts them is a gate that lets them through, and the self-test says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from phasegate.core.workload import Workload
from phasegate.engines.simulator.config import SimulatorConfig


@dataclass(frozen=True, slots=True)
class Plant:
    """A change of the simulated engine.

    Attributes:
        name: for the table.
        changes: the settings that plant it; empty for an unchanged candidate.
        metric: the gated metric that it must show in; None where nothing may regress.
        phase: the phase that must be named; None with ``metric``.
        only: the end of the names of the workloads that it slows; "" for no restriction.
    """

    name: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    metric: str | None = None
    phase: str | None = None
    only: str = ""


UNCHANGED = Plant("nothing")

FORGETFUL = Plant("the prefix cache forgets", {"cache_capacity_tokens": 16}, "ttft", "prefill", ",cached]")
"""A cache with room for one block: an operator's settings stay as they are, and nothing is ever found in it."""

PLANTS: tuple[Plant, ...] = (
    Plant("prefill costs 15 % more", {"prefill_factor": 1.15}, "ttft", "prefill"),
    Plant("decoding costs 10 % more", {"decode_factor": 1.10}, "tpot", "decode"),
    FORGETFUL,
)
"""A slowdown for each kind of gated metric: cold TTFT, TPOT, cached TTFT."""

MEASURED_PLANTS: tuple[Plant, ...] = (
    Plant("prefill costs 50 % more", {"prefill_factor": 1.50}, "ttft", "prefill"),
    Plant("decoding costs 40 % more", {"decode_factor": 1.40}, "tpot", "decode"),
    FORGETFUL,
)
"""The same for the pass over HTTP; larger, since few sessions on a busy machine cannot show a small one."""

NOISE = SimulatorConfig(
    prefill_cv=0.02,
    decode_cv=0.02,
    step_cv=0.02,
    session_prefill_cv=0.008,
    session_decode_cv=0.005,
    bad_session_probability=0.03,
    bad_session_factor=1.3,
)
"""The noise of the simulated sessions: requests and steps by 2 %, sessions by under 1 %, 3 in 100 are 30 % slower."""


def noise_line(config: SimulatorConfig) -> str:
    """The noise of a configuration in one sentence."""
    bad, slower = config.bad_session_probability, config.bad_session_factor - 1.0
    return (
        f"requests vary by {100 * config.prefill_cv:g} % (prefill) and {100 * config.decode_cv:g} % (decode), sessions "
        f"by {100 * config.session_prefill_cv:g} and {100 * config.session_decode_cv:g} %; "
        f"{100 * bad:g} % of sessions are {100 * slower:.0f} % slower"
    )


def workloads(requests: int, *, few: bool = False) -> tuple[Workload, ...]:
    """Prompts that prefill binds, answers that decode binds, and a cache that only TTFT shows.

    Args:
        requests: repetitions of each cell in a session.
        few: one length of each only, where every request costs real time.
    """
    inputs, outputs = ((192,), (24,)) if few else ((128, 256), (16, 32))
    return (
        _workload("selftest-prompt", inputs, (1,), requests, "unique"),
        _workload("selftest-answer", (32,), outputs, requests, "unique"),
        _workload("selftest-cache", inputs[-1:], (1,), requests, "repeated"),
    )


def _workload(name: str, inputs: tuple[int, ...], outputs: tuple[int, ...], requests: int, prefix: str) -> Workload:
    return Workload(name, "", inputs, outputs, requests, 1, prefix, 0, "chat")
