"""The client's own error as a number beside every result, and when it is too large a share of what is judged.

Two sources. A calibration sends the same client at a server of known timing, at the tested concurrency, and compares
(`OwnError`). And the run itself watched its event loop (`Watched`): how late it was, how long reads had waited before
they were fetched, how much of a core it used. Both are figures of a typical request, as medians and means are: a single
hiccup of the machine moves neither.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from phasegate.core.units import format_percent, format_seconds

MATERIAL = 0.25
"""Share of a tolerance, or of the margin of an objective, that the client's own error may take: what is left judges the
server."""

REMEDY = "lower the concurrency, spread the load with --perf-workers, or give the client a core of its own"

FIRST_TOKEN = frozenset({"ttft", "ttfo", "ttft_from_due"})
WHOLE = frozenset({"e2el", "e2el_from_due"})
"""Latencies that a late client can only lengthen; TPOT it can move either way."""


@dataclass(frozen=True, slots=True)
class OwnError:
    """The error of this client on this machine, found at a server of known timing.

    Attributes:
        concurrency: requests in flight.
        requests: requests measured.
        lost: requests that did not come back whole.
        ttft_p50, ttft_p99: seconds by which TTFT came out too long.
        tpot_p50: absolute error of TPOT as a fraction, on the calibration's own answers.
        span_p50: absolute error in seconds of the time from the first to the last token; TPOT of a longer answer is
            off by a smaller fraction.
    """

    concurrency: int
    requests: int
    lost: int
    ttft_p50: float
    ttft_p99: float
    tpot_p50: float
    span_p50: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """Plain values, to be stored beside results; None for what lost requests made infinite."""
        plain = asdict(self)
        return {name: value if math.isfinite(value) else None for name, value in plain.items()}

    def problem(self, *, ttft_tolerance: float | None = None, tpot_tolerance: float | None = None) -> str | None:
        """Why this client cannot judge with these tolerances, in one line with the remedy; None where it can.

        Args:
            ttft_tolerance: seconds by which a TTFT may differ before it matters; None where none is judged.
            tpot_tolerance: fraction by which a TPOT may; None where none is judged.
        """
        share = format_percent(MATERIAL, digits=0)
        if self.lost:
            return f"{self.lost} of {self.requests} requests at a server of known timing were lost; {REMEDY}"
        if ttft_tolerance is not None and self.ttft_p50 > MATERIAL * ttft_tolerance:
            return (
                f"the client itself adds {format_seconds(self.ttft_p50)} to TTFT at {self.concurrency} at a time, "
                f"more than {share} of the tolerance {format_seconds(ttft_tolerance)}; {REMEDY}"
            )
        if tpot_tolerance is not None and self.tpot_p50 > MATERIAL * tpot_tolerance:
            return (
                f"the client itself moves TPOT by {format_percent(self.tpot_p50)} at {self.concurrency} at a time, "
                f"more than {share} of the tolerance {format_percent(tpot_tolerance)}; {REMEDY}"
            )
        return None


@dataclass(frozen=True, slots=True)
class Watched:
    """What the client saw of itself while it measured. Seconds, but for the share.

    Attributes:
        loop_lag_p99: how late the event loop was.
        read_wait: mean time that reads had waited when they were fetched; their moments are right, but a second token
            that comes meanwhile shares the read of the first.
        stamped: whether the kernel gave the moments of reads. Where not, they are late by the loop's lag.
        cpu_share: of one core.
    """

    loop_lag_p99: float
    read_wait: float
    stamped: bool
    cpu_share: float

    @property
    def late(self) -> float:
        """Seconds by which the moment of a read may be wrong."""
        return self.read_wait if self.stamped else self.loop_lag_p99

    def worse(self, other: Watched) -> Watched:
        """The worse of two rounds, figure by figure."""
        return Watched(
            max(self.loop_lag_p99, other.loop_lag_p99),
            max(self.read_wait, other.read_wait),
            self.stamped and other.stamped,
            max(self.cpu_share, other.cpu_share),
        )


@dataclass(frozen=True, slots=True)
class ClientError:
    """What is known of the client's own error at one level of load; None where it was not found out."""

    own: OwnError | None = None
    watched: Watched | None = None

    def figure(self, metric: str, tokens: float) -> tuple[float, str] | None:
        """The largest share of the client in one value of a metric, and the words for it; None where nothing is known.

        Args:
            metric: short name of a latency.
            tokens: output tokens of a usual answer, by which an error in the span of an answer is spread.

        Returns:
            Seconds; seconds a token for tpot.
        """
        found = [*self._calibrated(metric, tokens), *self._seen(metric, tokens)]
        return max(found, default=None)

    def _calibrated(self, metric: str, tokens: float) -> list[tuple[float, str]]:
        if self.own is None:
            return []
        own, where = self.own, f"at {self.own.concurrency} at a time, by its calibration"
        if metric in FIRST_TOKEN:
            return [(own.ttft_p50, f"the client itself adds {format_seconds(own.ttft_p50)} to {metric} {where}")]
        if metric in WHOLE:
            whole = own.ttft_p50 + own.span_p50
            return [(whole, f"the client itself adds {format_seconds(whole)} to {metric} {where}")]
        if metric == "tpot" and tokens > 1:
            each = own.span_p50 / (tokens - 1)
            return [(each, f"the client itself moves tpot by {format_seconds(each)} a token {where}")]
        return []

    def _seen(self, metric: str, tokens: float) -> list[tuple[float, str]]:
        if self.watched is None:
            return []
        late, how = self.watched.late, "reads waited {} for it on average"
        if not self.watched.stamped:
            how = "its event loop ran {} late (p99) and tokens were stamped by it"
        if metric == "tpot" and tokens > 1:
            late /= tokens - 1
            how += ", spread over the tokens of an answer"
        elif metric not in FIRST_TOKEN | WHOLE:
            return []
        return [(late, f"the client itself was late: {how.format(format_seconds(late))}")]

    def problem(self, metric: str, tokens: float, margin: float) -> str | None:
        """Why the client's error is too large a share of a margin, in one line with the remedy; None where it is not.

        Args:
            metric, tokens: as for `figure`.
            margin: seconds (a token, for tpot) by which a limit would have to move for another word.
        """
        if self.own is not None and self.own.lost:
            return self.own.problem()
        found = self.figure(metric, tokens)
        if found is None or found[0] <= MATERIAL * margin:
            return None
        return (
            f"{found[1]}, more than {format_percent(MATERIAL, digits=0)} of the margin of {format_seconds(margin)} "
            f"by which this was decided; {REMEDY}"
        )


def joined(before: ClientError | None, after: ClientError | None) -> ClientError | None:
    """What is known after a further round: the calibration as it is, the worse of what was watched."""
    if before is None or after is None:
        return before or after
    watched = before.watched.worse(after.watched) if before.watched and after.watched else None
    return ClientError(after.own or before.own, watched or before.watched or after.watched)
