"""The laws of the two phases: what must hold within one session of any healthy engine, with no baseline.

Each law is a function from plain arrays to a `LawResult`. None knows where its numbers came from.
"""

from phasegate.stats.laws.cache import cached_faster
from phasegate.stats.laws.common import held_back
from phasegate.stats.laws.first_chunk import flat_decode
from phasegate.stats.laws.lengths import bounded_slope, flat, rises
from phasegate.stats.laws.line import linear
from phasegate.stats.laws.load import amortises, stall_bounded
from phasegate.stats.laws.margins import (
    ALPHA,
    AMORTISE_MIN,
    CACHE_CONTROL_MARGIN,
    CACHE_SAVING_MIN,
    LINEAR_INTERCEPT_MARGIN,
    LINEAR_STEP_MARGIN,
    STALL_FACTOR,
    STALL_FLOOR,
    STALLED_REFUSED,
    STALLED_TOLERATED,
    TPOT_FLAT_MARGIN,
    TPOT_SLOPE_MARGIN,
    TTFT_FLAT_MARGIN,
    TTFT_RISE_MIN,
)
from phasegate.stats.laws.stalls import no_stalls

__all__ = [
    "ALPHA",
    "AMORTISE_MIN",
    "CACHE_CONTROL_MARGIN",
    "CACHE_SAVING_MIN",
    "LINEAR_INTERCEPT_MARGIN",
    "LINEAR_STEP_MARGIN",
    "STALLED_REFUSED",
    "STALLED_TOLERATED",
    "STALL_FACTOR",
    "STALL_FLOOR",
    "TPOT_FLAT_MARGIN",
    "TPOT_SLOPE_MARGIN",
    "TTFT_FLAT_MARGIN",
    "TTFT_RISE_MIN",
    "amortises",
    "bounded_slope",
    "cached_faster",
    "flat",
    "flat_decode",
    "held_back",
    "linear",
    "no_stalls",
    "rises",
    "stall_bounded",
]
