"""Disaggregated serving: one pool of servers reads prompts, another decodes, and the KV cache moves between them.

As in Splitwise (Patel and others 2024) and DistServe (Zhong and others 2024): the first token leaves when the prompt
has been read; the others leave from the second pool, once the hand-off is done and it has room. Each pool has the same
settings, so neither disturbs the other, and a long prompt stalls nobody.
"""

from __future__ import annotations

from phasegate.engines.simulator.chance import SessionEffect
from phasegate.engines.simulator.config import SimulatorConfig
from phasegate.engines.simulator.model import NEVER, Arrival, Course, Departure, Job, Scheduler, Step
from phasegate.engines.simulator.prefix_cache import PrefixCache


class _PrefillPool(Scheduler):
    """Reads prompts and lets go of them with their first token."""

    def __init__(self, config: SimulatorConfig, cache: PrefixCache, session: SessionEffect) -> None:
        super().__init__(config, cache, session)
        self.ready: list[tuple[float, Job]] = []

    def _finish(self, step: Step) -> list[Departure]:
        left = super()._finish(step)
        self.ready += [(step.end, job) for job in self._running if job.decoding]
        self._running = [job for job in self._running if not job.decoding]
        return left


class _DecodePool(Scheduler):
    """Decodes what was read elsewhere; reads a prompt itself only after it has thrown its KV memory away."""

    def take(self, job: Job, at: float) -> None:
        """A request whose KV cache has arrived at that moment; calls come in the order of moments."""
        job.ready_at = job.course.handed_over = at
        self._waiting.append(job)

    def _look_up(self, job: Job) -> None:
        if not job.decoding:
            super()._look_up(job)


class TwoPools:
    """See the module; a `timetable.Timetable`."""

    def __init__(self, config: SimulatorConfig, cache: PrefixCache, session: SessionEffect) -> None:
        self._handoff = config.handoff_seconds
        self._prefill = _PrefillPool(config, cache, session)
        self._decode = _DecodePool(config, cache, session)

    @property
    def running(self) -> int:
        """See `Timetable`."""
        return self._prefill.running + self._decode.running

    @property
    def waiting(self) -> int:
        """See `Timetable`: those on their way between the pools wait as well."""
        return self._prefill.waiting + self._decode.waiting

    @property
    def kv_tokens(self) -> int:
        """See `Timetable`."""
        return self._prefill.kv_tokens + self._decode.kv_tokens

    @property
    def decoded(self) -> tuple[int, int]:
        """See `Timetable`: the second pool's, and only they decode."""
        return self._decode.decoded

    def arrive(self, arrival: Arrival) -> Course:
        """See `Timetable`."""
        return self._prefill.arrive(arrival)

    def abort(self, number: int, at: float) -> list[Departure]:
        """See `Timetable`."""
        left = self.advance(at)
        return [*left, *self._prefill.abort(number, at), *self._decode.abort(number, at)]

    def next_at(self) -> float:
        """See `Timetable`."""
        return min(self._prefill.next_at(), self._decode.next_at())

    def advance(self, to: float) -> list[Departure]:
        """See `Timetable`."""
        left: list[Departure] = []
        while (at := self.next_at()) <= to and at < NEVER:
            left += self._prefill.advance(at)
            for ended, job in self._prefill.ready:
                self._decode.take(job, ended + self._handoff)
            self._prefill.ready.clear()
            left += self._decode.advance(at)
        return left
