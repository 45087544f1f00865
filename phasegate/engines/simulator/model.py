"""The simulator's model of time: given arrivals, when does every token leave? Pure; it never looks at a clock.

The engine is a loop of steps, as in continuous batching. A step computes the next token of every decoding request
and, beside or instead of that, a piece of some prompts; it costs what `costs` says and its tokens leave at its
end. Requests join and leave between steps only. The loop is a discrete-event machine: the caller tells it of
arrivals and asks what happened up to a moment, so the server (which asks as real time passes) and a test (which
asks once, at the end of time) get the same answer. All moments are simulated seconds from an origin of the
caller's choice.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from phasegate.engines.simulator import costs
from phasegate.engines.simulator.chance import RequestEffect, SessionEffect, request_effect, rng_for
from phasegate.engines.simulator.config import CacheMode, FullKv, SimulatorConfig, Speculation
from phasegate.engines.simulator.prefix_cache import PrefixCache

NEVER = math.inf
"""The moment of something that will not happen."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """One request reaching the engine.

    Attributes:
        number: counted from 1 in the order of arrival.
        at: when the request had been read.
        prompt_tokens: length of the prompt, template included, 1 or more.
        output_tokens: length of the answer, 1 or more.
        blocks: keys of the prompt's whole blocks, from `prefix_cache.block_keys`.
    """

    number: int
    at: float
    prompt_tokens: int
    output_tokens: int
    blocks: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Departure:
    """One chunk leaving the engine.

    Attributes:
        number: the request it belongs to.
        at: when it leaves.
        first: index of its first token in the answer, from 0.
        tokens: how many tokens it carries.
        last: whether the answer is complete with it.
    """

    number: int
    at: float
    first: int
    tokens: int
    last: bool


@dataclass(slots=True)
class Course:
    """What happened to one request inside the engine, filled in as it happens.

    Attributes:
        queued_at: when it joined the queue.
        prefill_start: when its prompt was first worked on; None before.
        prefill_end: when its prompt was first complete; None before.
        handed_over: when its KV cache had reached the pool that decodes; None before, and where there is one pool.
        cached_tokens: prompt tokens that the prefix cache held.
        preemptions: how often it was thrown out of the KV memory.
        drafted, accepted: tokens guessed ahead for it, and those that were right.
    """

    queued_at: float
    prefill_start: float | None = None
    prefill_end: float | None = None
    handed_over: float | None = None
    cached_tokens: int = 0
    preemptions: int = 0
    drafted: int = 0
    accepted: int = 0


@dataclass(slots=True, eq=False)
class Job:
    """A request while the engine works on it; it cannot begin before ``ready_at``."""

    arrival: Arrival
    course: Course
    effect: RequestEffect
    rng: Random
    ready_at: float
    prefilled: int = 0
    begun: bool = False
    written: int = 0
    recomputed: int = 0
    blocked_until: float = 0.0
    slower: float = 1.0
    last_left: float = 0.0

    @property
    def to_prefill(self) -> int:
        """Tokens that must be in the KV memory before the next one can be decoded.

        After a preemption that includes the answer so far.
        """
        return self.arrival.prompt_tokens + self.recomputed

    @property
    def decoding(self) -> bool:
        """Whether the prompt is complete."""
        return self.prefilled >= self.arrival.prompt_tokens + self.recomputed

    @property
    def context(self) -> int:
        """Tokens of this request in the KV memory."""
        return self.prefilled + (self.written - self.recomputed if self.decoding else 0)

    @property
    def done(self) -> bool:
        """Whether the answer is complete."""
        return self.written >= self.arrival.output_tokens

    def throw_out(self) -> None:
        """Lose the KV memory; everything up to here has to be computed again."""
        self.prefilled = 0
        self.begun = False
        self.recomputed = self.written
        self.course.preemptions += 1


@dataclass(slots=True)
class Step:
    """One turn of the loop.

    Attributes:
        end: when it ends.
        prefill: which prompts advance by how many tokens.
        decode: who gets a token.
    """

    end: float
    prefill: list[tuple[Job, int]]
    decode: list[Job]


class Scheduler:
    """The loop of steps over all requests."""

    def __init__(self, config: SimulatorConfig, cache: PrefixCache, session: SessionEffect) -> None:
        self._config = config
        self._cache = cache
        self._session = session
        self._waiting: deque[Job] = deque()
        self._running: list[Job] = []
        self._step: Step | None = None
        self._clock = 0.0
        self._steps = 0
        self._decode_steps = 0
        self._step_streams = 0

    @property
    def running(self) -> int:
        """Requests that hold a place in the batch."""
        return len(self._running)

    @property
    def waiting(self) -> int:
        """Requests that wait for one."""
        return len(self._waiting)

    @property
    def kv_tokens(self) -> int:
        """Tokens in the KV memory."""
        return sum(job.context for job in self._running)

    @property
    def decoded(self) -> tuple[int, int]:
        """See `timetable.Timetable`."""
        return self._decode_steps, self._step_streams

    def arrive(self, arrival: Arrival) -> Course:
        """See `timetable.Timetable`."""
        constant = self._config.ttft_constant_seconds
        overhead = self._config.request_overhead_seconds if constant is None else constant
        course = Course(queued_at=arrival.at + overhead)
        effect = request_effect(self._config, self._session, arrival.number)
        rng = rng_for(self._config, "draft", arrival.number)
        self._waiting.append(Job(arrival, course, effect, rng, course.queued_at))
        return course

    def abort(self, number: int, at: float) -> list[Departure]:
        """See `timetable.Timetable`. A step in progress still takes its time."""
        left = self.advance(at)
        self._waiting = deque(s for s in self._waiting if s.arrival.number != number)
        self._running = [s for s in self._running if s.arrival.number != number]
        if self._step is not None:
            self._step.prefill = [(s, n) for s, n in self._step.prefill if s.arrival.number != number]
            self._step.decode = [s for s in self._step.decode if s.arrival.number != number]
        return left

    def next_at(self) -> float:
        """See `timetable.Timetable`."""
        return self._step.end if self._step is not None else self._next_start()

    def advance(self, to: float) -> list[Departure]:
        """See `timetable.Timetable`."""
        left: list[Departure] = []
        while True:
            if self._step is None:
                start = self._next_start()
                if start > to:
                    return left
                self._step = self._plan(start)
            if self._step.end > to:
                return left
            step, self._step = self._step, None
            self._clock = step.end
            left.extend(self._finish(step))

    def _next_start(self) -> float:
        earliest = min((job.blocked_until for job in self._running), default=NEVER)
        if earliest <= self._clock:
            return self._clock
        if self._waiting and self._fits(self._waiting[0], self._held()):
            # Only an engine with nothing to do can wait for company; a running one takes up what is there.
            gather = 0.0 if self._running else self._config.gather_seconds
            earliest = min(earliest, self._waiting[0].ready_at + gather)
        return max(self._clock, earliest)

    def _plan(self, start: float) -> Step:
        self._admit(start)
        able = [s for s in self._running if s.blocked_until <= start]
        decode = [s for s in able if s.decoding]
        prompts = [s for s in able if not s.decoding]
        if prompts and not self._config.chunked_prefill:
            decode = []
        thrown_out = self._make_room(len(decode))
        if thrown_out:
            decode = [job for job in decode if job not in thrown_out]
            prompts = [job for job in prompts if job not in thrown_out]
        budget = self._config.step_token_budget - len(decode) * (1 + self._config.draft_tokens)
        prefill = self._share_out(prompts, budget)
        self._steps += 1
        seconds = costs.step_seconds(self._config, prefill, decode)
        return Step(start + seconds * costs.step_noise(self._config, self._steps), prefill, decode)

    def _admit(self, start: float) -> None:
        held = self._held()
        while self._waiting and self._waiting[0].ready_at <= start and self._fits(self._waiting[0], held):
            job = self._waiting.popleft()
            held += self._claim(job)
            self._running.append(job)
            self._look_up(job)
            if job.course.prefill_start is None:
                job.course.prefill_start = start

    def _fits(self, job: Job, held: int) -> bool:
        if len(self._running) >= self._config.max_sequences:
            return False
        return held + self._claim(job) <= self._config.kv_capacity_tokens

    def _held(self) -> int:
        """Tokens of KV memory that are kept for the running requests."""
        return sum(self._claim(job) for job in self._running)

    def _claim(self, job: Job) -> int:
        """Tokens of KV memory to keep for a request."""
        if self._config.full_kv is FullKv.QUEUE:
            return job.arrival.prompt_tokens + job.arrival.output_tokens
        return max(job.to_prefill + 1, job.context)

    def _look_up(self, job: Job) -> None:
        if self._config.cache is CacheMode.OFF:
            return
        arrival = job.arrival
        cached = self._cache.cached_tokens(arrival.blocks, arrival.prompt_tokens)
        if job.course.preemptions == 0:
            job.course.cached_tokens = cached
        if self._config.cache is CacheMode.ON:
            job.prefilled = cached
        elif cached:
            job.slower = self._config.cache_slower_factor

    def _make_room(self, decoding: int) -> set[Job]:
        """Throw out the youngest until the tokens about to be decoded fit into the KV memory."""
        thrown_out: set[Job] = set()
        if self._config.full_kv is FullKv.QUEUE:
            return thrown_out
        growth = (1 + self._config.draft_tokens) * decoding
        while len(self._running) > 1 and self._held() + growth > self._config.kv_capacity_tokens:
            youngest = self._running.pop()
            youngest.throw_out()
            self._waiting.appendleft(youngest)
            thrown_out.add(youngest)
        return thrown_out

    def _share_out(self, prompts: Sequence[Job], budget: int) -> list[tuple[Job, int]]:
        """Which prompts advance by how many tokens: oldest first, whole ones where chunking is off."""
        shares: list[tuple[Job, int]] = []
        for job in prompts:
            wanted = job.to_prefill - job.prefilled
            if self._config.chunked_prefill:
                wanted = min(wanted, budget)
            elif shares and wanted > budget:
                break
            if wanted <= 0:
                break
            shares.append((job, wanted))
            budget -= wanted
        return shares

    def _finish(self, step: Step) -> list[Departure]:
        left: list[Departure] = []
        self._decode_steps += bool(step.decode)
        self._step_streams += len(step.decode)
        for job, tokens in step.prefill:
            job.prefilled += tokens
            job.begun = True
            if job.decoding:
                self._complete_prompt(job, step.end)
                left += self._write(job, 1, step.end)
        for job in step.decode:
            left += self._write(job, 1 + self._accepted(job), step.end)
        if any(departure.last for departure in left):
            self._running = [job for job in self._running if not job.done]
        return left

    def _complete_prompt(self, job: Job, at: float) -> None:
        if job.course.prefill_end is None:
            job.course.prefill_end = at
        if self._config.cache is not CacheMode.OFF:
            self._cache.insert(job.arrival.blocks)

    def _accepted(self, job: Job) -> int:
        """How many guessed tokens of a step were right."""
        right = 0
        while right < self._config.draft_tokens and job.rng.random() < self._config.draft_acceptance:
            right += 1
        job.course.drafted += self._config.draft_tokens
        job.course.accepted += right
        return right

    def _write(self, job: Job, tokens: int, at: float) -> list[Departure]:
        number, first = job.arrival.number, job.written
        job.written = min(first + tokens, job.arrival.output_tokens)
        job.blocked_until = at + costs.pause_after(self._config, first, job.written)
        leaves = max(job.last_left, at + costs.network_delay(self._config, number, first))
        job.last_left = leaves
        if self._config.speculation is Speculation.CHUNK:
            return [Departure(number, leaves, first, job.written - first, job.done)]
        last = job.written - 1
        return [Departure(number, leaves, i, 1, job.done and i == last) for i in range(first, job.written)]
