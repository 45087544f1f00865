"""The claims of ``perf_tests``, put to a simulated server: the same functions, with small workloads at high speed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from perf_tests import test_decode, test_prefill, test_prefix_cache
from phasegate.core.identity import client_identity
from phasegate.core.target import Target
from phasegate.core.workload import parse_workload
from phasegate.engines.profile import profile_for
from phasegate.engines.simulator.config import SimulatorConfig
from phasegate.engines.simulator.engine import SimulatorEngine
from phasegate.measure.session_runner import SessionRunner
from phasegate.stats.outcome import LawResult, Outcome
from phasegate.stats.workload_run import WorkloadRun

SPEED = 10.0
"""Simulated seconds in one real second: a token takes 0.8 ms, a prompt of 1,024 tokens 64 ms."""

NOISE: Mapping[str, float] = {"prefill_cv": 0.01, "decode_cv": 0.01, "step_cv": 0.02}
"""What one finds on a quiet machine; the sockets of this one come on top."""

WORKLOADS: Mapping[str, str] = {
    "prompt-length": "input_tokens: [256, 512, 1024]\noutput_tokens: 32\n",
    "output-length": "input_tokens: 512\noutput_tokens: [16, 32, 64, 96]\n",
    "prefix-cache": "input_tokens: 512\noutput_tokens: 16\nprefix: repeated\n",
    "shared-prefix": "input_tokens: 512\nshared_tokens: 448\noutput_tokens: 16\nprefix: shared\n",
}
"""The workloads that the claims ask for by name, small enough for a test."""

ROUNDS = 3
"""Most rounds for one claim."""

Claim = Callable[..., None]

CLAIMS: Mapping[str, Claim] = {
    "TTFT rises with prompt length": test_prefill.test_ttft_rises_with_prompt_length,
    "TTFT is flat in output length": test_prefill.test_ttft_is_flat_in_output_length,
    "TPOT is flat in output length": test_decode.test_tpot_is_flat_in_output_length,
    "TPOT hardly grows with prompt length": test_decode.test_tpot_hardly_grows_with_prompt_length,
    "total is linear": test_decode.test_total_is_linear_in_output_length,
    "no stalls": test_decode.test_no_stalls_inside_a_stream,
    "same prompt again": lambda run, law: test_prefix_cache.test_a_cached_prefix_makes_the_next_call_faster(
        "prefix-cache", "cold", "cached", run, law
    ),
    "same prefix, new suffix": lambda run, law: test_prefix_cache.test_a_cached_prefix_makes_the_next_call_faster(
        "shared-prefix", "first", "next", run, law
    ),
}
"""Every claim about the phases by a short name."""


class Bench:
    """Rounds of measuring on one server. A round is measured when it is first asked for, and then remembered."""

    def __init__(self, runner: SessionRunner, blocks: int) -> None:
        self.blocks = blocks
        self._rounds = [runner]

    def measure(self, name: str, number: int = 0) -> WorkloadRun:
        """One of the small workloads in that round; each round has twice as many blocks as the one before."""
        while number >= len(self._rounds):
            self._rounds.append(self._rounds[-1].renewed(restart=False))
        text = f"{WORKLOADS[name]}requests: {self.blocks * 2**number}\nwarmups: 2\n"
        return self._rounds[number].measure(parse_workload(text, f"{name}.yaml"))

    def verdict(self, claim: str) -> LawResult:
        """How a claim ends. While it is inconclusive, a longer round follows: other work on this machine may hide
        an effect, and more requests are the remedy that the law itself names."""
        for number in range(ROUNDS):
            results: list[LawResult] = []
            CLAIMS[claim](partial(self.measure, number=number), results.append)
            (result,) = results
            if result.outcome is not Outcome.INCONCLUSIVE:
                break
        return result


@contextmanager
def bench_on(config: SimulatorConfig, blocks: int = 6) -> Iterator[Bench]:
    """A bench on a simulated server with those settings."""
    with SimulatorEngine(config) as engine:
        server = engine.identity()
        target = Target(base_url=engine.base_url, model=engine.model, timeout=30.0, idle_timeout=10.0)
        yield Bench(SessionRunner(engine, server, client_identity(), profile_for(server), target, seed=1), blocks)


def healthy() -> SimulatorConfig:
    """A server that keeps every law."""
    return SimulatorConfig(seed=7, speed=SPEED).changed(**NOISE)
