"""What a run sends, counted where it is sent, and what ends it: the time and the tokens that the user gave.

Everything that a run opens shares one `Traffic`: the server under test, a reference, a sentinel. A request that would
pass a limit is not sent, and what was measured until then is kept. What a run may add to its plan, such as more
requests for an undecided law, must leave room for what is planned.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from time import monotonic

from phasegate.core.budget import OVERHEAD, Answered, RequestCost, request_cost
from phasegate.core.request import Request
from phasegate.core.timeline import Timeline
from phasegate.core.token_budget import NOTHING, LimitReachedError, Spending, guessed_tokens
from phasegate.core.units import format_seconds

REMEMBERED = 400
"""Answers whose times are remembered: the newest tell what the next ones will take."""

RESERVE = 0.05
"""Share of a budget of time that is kept for ending the run: stopping engines, judging, writing reports."""


@dataclass
class Traffic:
    """The requests of one run.

    Attributes:
        most_tokens: tokens of both kinds that may be asked for, or None.
        budget: seconds that the run may take, or None.
        started: moment at which the run began.
        sent: what was asked for so far.
        failed: requests that did not end well.
        unfit: answers that may not enter a latency sample.
        refused: why something was not sent or not added to the plan, the first time; None where nothing was.
        planned: what the run intends to ask for in all; grows with what is added to it.
        clock: tells the time.
    """

    most_tokens: int | None = None
    budget: float | None = None
    started: float = field(default_factory=monotonic)
    sent: Spending = NOTHING
    failed: int = 0
    unfit: int = 0
    refused: str | None = None
    planned: Spending = NOTHING
    clock: Callable[[], float] = field(default=monotonic, repr=False)
    _answered: deque[Answered] = field(default_factory=lambda: deque(maxlen=REMEMBERED), repr=False)

    @property
    def elapsed(self) -> float:
        """Seconds since the run began."""
        return self.clock() - self.started

    @property
    def time_left(self) -> float | None:
        """Seconds until nothing more is sent, never below 0; None without a budget."""
        return None if self.budget is None else max(0.0, self.budget * (1.0 - RESERVE) - self.elapsed)

    def out_of_time(self) -> bool:
        """Whether the budget of time is used up."""
        return self.time_left == 0.0

    def why_not(self, asked: Spending = NOTHING) -> str | None:
        """Why so much may not be sent now, in one line with the remedy; None where it may."""
        return self._noted(self._used_up(asked))

    def _noted(self, reason: str | None) -> str | None:
        self.refused = self.refused or reason
        return reason

    def _used_up(self, asked: Spending) -> str | None:
        if self.budget is not None and self.out_of_time():
            return (
                f"--perf-budget {format_seconds(self.budget)} is used up; allow more, or measure less "
                "(--perf-requests, --perf-workloads)"
            )
        if self.most_tokens is not None and self.sent.tokens + asked.tokens > self.most_tokens:
            return (
                f"--perf-max-tokens-spent {self.most_tokens} is used up: {self.sent.tokens} tokens were asked for and "
                f"what comes next may cost {asked.tokens}; allow more, or measure less (--perf-requests, "
                "--perf-workloads; --perf-dry-run shows what a run asks for)"
            )
        return None

    def must_allow(self, requests: Iterable[Request]) -> None:
        """Refuse requests that belong together where not all of them may be sent.

        Raises:
            LimitReachedError: they may not.
        """
        reason = self.why_not(sum(map(asked_by, requests), NOTHING))
        if reason is not None:
            raise LimitReachedError(reason)

    def allowed(self, requests: Sequence[Request]) -> tuple[int, str | None]:
        """How many of these may be sent, in their order, and why no more; None where all may."""
        before = NOTHING
        for place, request in enumerate(requests):
            one = asked_by(request)
            reason = self.why_not(before + one)
            if reason is not None:
                return place, reason
            before += one
        return len(requests), None

    def why_not_more(self, more: Spending) -> str | None:
        """Why the plan may not grow by so much, in one line; where None, it has grown.

        Time and tokens that are planned for other things are not given away.
        """
        limit = self._no_room(self._ahead + more)
        if limit is not None:
            return self._noted(f"{limit} for more")
        self.planned += more
        return None

    def why_no_room(self, asked: Spending, of: Spending) -> str | None:
        """Which limit leaves no room for so much of a part of the plan, ``of``, beside its other parts; or None."""
        return self._no_room(self._ahead.less(of) + asked)

    def leave_out(self, part: Spending, reason: str) -> None:
        """Take a part out of the plan."""
        self._noted(reason)
        self.planned = self.planned.less(part)

    @property
    def _ahead(self) -> Spending:
        """What is planned and not sent yet."""
        return self.planned.less(self.sent)

    def _no_room(self, ahead: Spending) -> str | None:
        """Which limit does not allow so much from now on."""
        if self.most_tokens is not None and self.sent.tokens + ahead.tokens > self.most_tokens:
            return f"--perf-max-tokens-spent {self.most_tokens} leaves no tokens"
        left, cost = self.time_left, self.cost
        if left is not None and (left == 0.0 or (cost is not None and OVERHEAD * cost.of(ahead) > left)):
            assert self.budget is not None
            return f"--perf-budget {format_seconds(self.budget)} leaves no time"
        return None

    @property
    def seconds_ahead(self) -> float | None:
        """Seconds that the rest of the plan takes; None where nothing is planned or known of the pace."""
        cost = self.cost
        return None if self.planned == NOTHING or cost is None else OVERHEAD * cost.of(self._ahead)

    @property
    def cost(self) -> RequestCost | None:
        """What a request costs on an idle server, as far as the answers so far show it."""
        return request_cost(self._answered)

    def count(self, lines: Sequence[Timeline], *, alone: bool = False) -> None:
        """Count requests that were sent; ``alone`` where they went one after the other, so that their times tell."""
        self.sent += sum(map(_asked_by_line, lines), NOTHING)
        self.failed += sum(line.status != "ok" for line in lines)
        self.unfit += sum(line.status == "ok" and not line.sample_valid for line in lines)
        if alone:
            self._answered += [one for line in lines if (one := _answered(line)) is not None]


def asked_by(request: Request) -> Spending:
    """What a request asks for; its prompt's length is guessed high where nobody has counted it."""
    known = request.expected.prompt_tokens
    return Spending(1, guessed_tokens(_text(request)) if known is None else known, request.expected.max_tokens or 0)


def _text(request: Request) -> str:
    messages = request.body.get("messages")
    if not isinstance(messages, list):
        return str(request.body.get("prompt", ""))
    contents = [one.get("content", "") for one in messages]
    return "".join(
        one if isinstance(one, str) else "".join(str(part.get("text", "")) for part in one) for one in contents
    )


def _asked_by_line(line: Timeline) -> Spending:
    known = line.expected.prompt_tokens
    return Spending(1, (line.prompt_tokens or 0) if known is None else known, line.expected.max_tokens or 0)


def _answered(line: Timeline) -> Answered | None:
    """What an answer shows of the server's pace; None for a failed one and for a prompt out of a cache."""
    prompt = line.prompt_tokens or line.expected.prompt_tokens
    cached = (line.cached_tokens or 0) > line.expected.tolerated_cached_tokens
    if line.status != "ok" or not line.tokens or line.sent is None or prompt is None or cached:
        return None
    output = line.output_tokens or len(line.tokens)
    return Answered(prompt, output, line.tokens[0].at - line.sent, line.tokens[-1].at - line.sent)
