"""Summary of finished requests: what was fast, what failed, and whether the run may be believed.

Undefined values stay out of every sample; failed requests neither slow a sample down nor speed it up, and have a rate
of their own. A record that cannot be true (a first token before the request, or after its end) makes the run invalid
and enters no sample.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from phasegate.stats.percentile import interpolated, nearest_rank

MAX_ERROR_RATE = 0.05
"""More failed requests than this make a run invalid: what survives is no longer a fair sample."""

OK = "ok"


@dataclass(frozen=True, slots=True)
class Record:
    """One finished request.

    Attributes:
        request_id: its name or number, for messages.
        status: ``"ok"``, or the way it failed.
        ttft, e2e: seconds; None where not measured.
        output_tokens: proven count; None where unknown.
    """

    request_id: int | str
    status: str
    ttft: float | None = None
    e2e: float | None = None
    output_tokens: int | None = None

    @property
    def tpot(self) -> float | None:
        """Seconds per output token after the first; None below 2 tokens or where anything is unknown."""
        if self.ttft is None or self.e2e is None or self.output_tokens is None or self.output_tokens < 2:
            return None
        return (self.e2e - self.ttft) / (self.output_tokens - 1)

    def violations(self) -> tuple[str, ...]:
        """Codes of what cannot be true about a successful record."""
        if self.status != OK:
            return ()
        found = []
        if self.ttft is not None and not (math.isfinite(self.ttft) and self.ttft > 0):
            found.append("ttft_not_positive")
        if self.e2e is not None and not (math.isfinite(self.e2e) and self.e2e > 0):
            found.append("e2e_not_positive")
        if self.ttft is not None and self.e2e is not None and self.ttft > self.e2e:
            found.append("ttft_after_end")
        if self.output_tokens is not None and self.output_tokens < 0:
            found.append("output_tokens_negative")
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Sample:
    """The values of one metric of the successful requests that have it, and the number of failed requests beside."""

    values: tuple[float, ...]
    failed: int = 0

    @property
    def n(self) -> int:
        """Number of values."""
        return len(self.values)

    @property
    def mean(self) -> float | None:
        """Arithmetic mean; None without a value."""
        return statistics.fmean(self.values) if self.values else None

    @property
    def median(self) -> float | None:
        """Median; None without a value."""
        return statistics.median(self.values) if self.values else None

    @property
    def sd(self) -> float | None:
        """Standard deviation with n - 1; None below 2 values: one value is not perfectly stable, it is one value."""
        return statistics.stdev(self.values) if self.n > 1 else None

    @property
    def largest(self) -> float | None:
        """Maximum; None without a value."""
        return max(self.values) if self.values else None

    def percentile_ok_only(self, percent: float) -> float | None:
        """Interpolated percentile of the successful requests alone, for show; None without a value."""
        return interpolated(self.values, percent) if self.values else None

    def percentile(self, percent: float) -> float | None:
        """Nearest-rank percentile with every failed request as infinity; None without any request."""
        return nearest_rank(self.values, percent, failed=self.failed) if self.values or self.failed else None


@dataclass(frozen=True, slots=True)
class Summary:
    """What a run came to.

    Attributes:
        n_ok, n_failed: requests by status, warm-up excluded.
        violations: (request, code) of records that cannot be true.
        ttft, tpot, e2e: one sample per metric, in seconds.
    """

    n_ok: int
    n_failed: int
    violations: tuple[tuple[int | str, str], ...]
    ttft: Sample
    tpot: Sample
    e2e: Sample

    @property
    def error_rate(self) -> float:
        """Failed requests over all requests; 0.0 when there was none."""
        total = self.n_ok + self.n_failed
        return self.n_failed / total if total else 0.0

    def problems(self) -> tuple[str, ...]:
        """Why the run must not be judged, one line each; empty for a valid run."""
        lines = [f"request {request}: {code}" for request, code in self.violations]
        if self.n_ok + self.n_failed == 0:
            lines.append("nothing was measured")
        if self.error_rate > MAX_ERROR_RATE:
            lines.append(f"{self.error_rate:.0%} of the requests failed; at most {MAX_ERROR_RATE:.0%} may")
        return tuple(lines)

    @property
    def run_valid(self) -> bool:
        """Whether latency may be judged at all."""
        return not self.problems()


def summarise(records: Sequence[Record], *, drop_first: int = 0) -> Summary:
    """Summary of the records in order of sending; the first ``drop_first`` are warm-up and count nowhere.

    Raises:
        ValueError: ``drop_first`` is negative.
    """
    if drop_first < 0:
        raise ValueError(f"drop_first is {drop_first}; it counts requests and cannot be negative")
    measured = list(records[drop_first:])
    good = [record for record in measured if record.status == OK]
    failed = len(measured) - len(good)
    possible = [record for record in good if not record.violations()]

    def sample(values: Sequence[float | None]) -> Sample:
        return Sample(tuple(value for value in values if value is not None), failed)

    return Summary(
        n_ok=len(good),
        n_failed=failed,
        violations=tuple((record.request_id, code) for record in good for code in record.violations()),
        ttft=sample([record.ttft for record in possible]),
        tpot=sample([record.tpot for record in possible]),
        e2e=sample([record.e2e for record in possible]),
    )
