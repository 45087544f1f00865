"""Two servers in one sitting: blocks that hold both, compared block by block.

Every block visits both sides in the order ABBA or BAAB, so that a steady drift inside the block falls on both alike,
and what the host does to a whole block cancels. Per block d = log(candidate) - log(reference); then a moderated
one-sample t with far blocks pulled in, which no single block can decide.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from phasegate.stats.autocorrelation import shared_correlation
from phasegate.stats.common_shift import common_shift
from phasegate.stats.compare_evidence import weigh
from phasegate.stats.compare_noise import ASSUMED_DEVIATION, ASSUMED_DF, DEVIATION_FLOOR, Noise, own_variance
from phasegate.stats.compare_row import Weighed, in_groups, judged_rows
from phasegate.stats.compare_types import (
    ComparedRow,
    CompareSettings,
    Decision,
    StoredComparison,
    check_values,
)
from phasegate.stats.compare_words import percent
from phasegate.stats.moderated import NOTHING_KNOWN, Prior, fit_prior, moderate
from phasegate.stats.paired_checks import flip_p, signed_rank_p
from phasegate.stats.power import upper_tail
from phasegate.stats.resolution import deviation_of_rounding, grid_step, rounding_error, rounding_of_difference
from phasegate.stats.winsor import winsorised

Logs = NDArray[np.float64]

ORDERS = ("ABBA", "BAAB")
"""The orders of a block; A is the reference, B the candidate."""

ORDER_ALPHA = 0.01
"""p below which an order effect is spoken of."""

DISAGREES = 0.1
"""p of a second opinion above which it disagrees with a rejection."""


@dataclass(frozen=True, slots=True)
class PairedComparison:
    """One metric of one workload on two servers, block by block.

    Attributes:
        name, group, tolerance, floor, higher_is_better, gated, fail_from, weight: as of a `StoredComparison`.
        reference, candidate: one positive value per block, such as the median over the block's requests; of one length.
        step: as of a `StoredComparison`.
        orders: ``ABBA`` or ``BAAB`` for each block; empty where unknown, and then no order effect can be told.
    """

    name: str
    group: str
    reference: Sequence[float]
    candidate: Sequence[float]
    tolerance: float
    floor: float = 0.0
    higher_is_better: bool = False
    gated: bool = True
    orders: Sequence[str] = ()
    fail_from: float | None = None
    weight: float = 1.0
    step: float | None = None

    @property
    def found_step(self) -> float:
        """The resolution of its values, in the metric's unit; 0 for none."""
        return grid_step(self.reference, self.candidate) if self.step is None else self.step

    @property
    def fineness(self) -> float:
        """Standard deviation of a block's difference that rounding alone gives."""
        if not self.reference:
            return 0.0
        return math.sqrt(2.0) * deviation_of_rounding(self.found_step, float(np.median(self.reference)))


@dataclass(frozen=True, slots=True)
class PairedRow:
    """One paired comparison, judged.

    Attributes:
        row: the judgement; its counts are blocks.
        order_effect: how much worse the candidate looks in BAAB blocks than in ABBA blocks, as a log ratio; None
            where an order has fewer than two blocks.
        order_p: its two-sided p; None with ``order_effect``.
        p_wilcoxon, p_sign_flip: one-sided second opinions on "worse"; None without blocks.
    """

    row: ComparedRow
    order_effect: float | None
    order_p: float | None
    p_wilcoxon: float | None
    p_sign_flip: float | None


@dataclass(frozen=True, slots=True)
class PairedResult:
    """All paired comparisons of a build, in the order they were given; fields as of a `StoredResult`."""

    rows: tuple[PairedRow, ...]
    alpha: float
    gated: int
    common_shift: str | None = None


def block_orders(blocks: int, rng: np.random.Generator) -> tuple[str, ...]:
    """The order of each block: as many ABBA as BAAB (one more of either if odd), shuffled by ``rng``."""
    first = int(rng.integers(2))
    orders = [ORDERS[(first + index) % 2] for index in range(blocks)]
    return tuple(str(one) for one in rng.permutation(orders))


def compare_paired(comparisons: Sequence[PairedComparison], settings: CompareSettings | None = None) -> PairedResult:
    """Judge all paired comparisons of a build together.

    Raises:
        ValueError: a value is not a positive, finite number, the sides differ in length, or an order is unknown.
    """
    settings = settings or CompareSettings()
    for one in comparisons:
        _check(one)
    rows = judged_rows(in_groups(comparisons, lambda members: _weigh_group(members, settings)), settings)
    seconded = tuple(_seconded(row, one) for row, one in zip(rows, comparisons, strict=True))
    moved = common_shift(rows, [one.group for one in comparisons])
    return PairedResult(seconded, settings.alpha, sum(one.gated for one in comparisons), moved)


def _check(one: PairedComparison) -> None:
    check_values(one.name, "reference", one.reference)
    check_values(one.name, "candidate", one.candidate)
    if len(one.reference) != len(one.candidate):
        raise ValueError(
            f"{one.name}: {len(one.reference)} blocks of the reference but {len(one.candidate)} of the candidate; "
            "a block counts only where both were measured"
        )
    if one.orders and len(one.orders) != len(one.reference):
        raise ValueError(f"{one.name}: {len(one.orders)} orders for {len(one.reference)} blocks")
    unknown = set(one.orders) - set(ORDERS)
    if unknown:
        raise ValueError(f"{one.name}: the order {sorted(unknown)[0]!r} is neither ABBA nor BAAB")


def _weigh_group(members: Sequence[PairedComparison], settings: CompareSettings) -> list[Weighed]:
    differences = [_differences(one) for one in members]
    correlation = shared_correlation([winsorised(one)[0] for one in differences], least=0.0)
    own = [own_variance(d, correlation, one.fineness) for one, d in zip(members, differences, strict=True)]
    known = [(variance, df) for variance, df in own if df > 0.0]
    prior = fit_prior([variance for variance, _ in known], [df for _, df in known])
    return [
        _weigh_one(one, d, _noise(variance, df, prior, correlation, one.fineness), settings)
        for one, d, (variance, df) in zip(members, differences, own, strict=True)
    ]


def _differences(one: PairedComparison) -> Logs:
    """Log ratios, one per block, positive for worse."""
    ratio = np.asarray(one.candidate, dtype=np.float64) / np.asarray(one.reference, dtype=np.float64)
    return np.asarray(np.log(ratio) * (-1.0 if one.higher_is_better else 1.0), dtype=np.float64)


def _noise(variance: float, df: float, prior: Prior, correlation: float, fineness: float) -> Noise:
    if df == 0.0 and prior == NOTHING_KNOWN:
        return Noise(ASSUMED_DEVIATION, ASSUMED_DF, correlation, assumed=True, rounding=fineness)
    steadied, total = moderate(variance, df, prior)
    return Noise(max(math.sqrt(steadied), DEVIATION_FLOOR, fineness), total, correlation, rounding=fineness)


def _rounding(one: PairedComparison) -> tuple[float, float]:
    """What rounding may make up of a worsening and of an improvement, as logs."""
    off = rounding_error(one.reference, one.found_step)
    rise, fall = rounding_of_difference(one.reference, one.candidate, off)
    return (fall, rise) if one.higher_is_better else (rise, fall)


def _weigh_one(one: PairedComparison, differences: Logs, noise: Noise, settings: CompareSettings) -> Weighed:
    plain = StoredComparison(
        one.name, one.group, one.reference, one.candidate, one.tolerance, one.floor, one.higher_is_better, one.gated,
        fail_from=one.fail_from, weight=one.weight,
    )  # fmt: skip
    if differences.size == 0:
        return Weighed(plain, noise, None, paired=True)
    evidence = weigh(
        np.array([]), differences, noise, leverage=0.0, confidence=settings.confidence, rounding=_rounding(one)
    )
    return Weighed(plain, noise, evidence, paired=True, step=one.found_step)


def _seconded(row: ComparedRow, one: PairedComparison) -> PairedRow:
    """The row with its second opinions and what they have to say."""
    differences = _differences(one)
    if differences.size == 0:
        return PairedRow(row, None, None, None, None)
    effect, order_p = _order_effect(differences, one.orders)
    ranks, flips = signed_rank_p(differences), flip_p(differences)
    warnings = list(row.warnings)
    if effect is not None and order_p is not None and order_p < ORDER_ALPHA:
        warnings.append(
            f"the order matters: BAAB and ABBA blocks differ by {percent(abs(math.expm1(effect)))} "
            f"(p = {order_p:.2g}); let the servers rest between visits, or use longer blocks"
        )
    if row.decision is Decision.REGRESSED and max(ranks, flips) > DISAGREES:
        warnings.append(f"signed ranks (p = {ranks:.2g}) and sign flips (p = {flips:.2g}) disagree; add blocks")
    return PairedRow(replace(row, warnings=tuple(warnings)), effect, order_p, ranks, flips)


def _order_effect(differences: Logs, orders: Sequence[str]) -> tuple[float | None, float | None]:
    first = np.array([order == ORDERS[0] for order in orders], dtype=bool)
    if min(int(first.sum()), int((~first).sum())) < 2:
        return None, None
    sides = [winsorised(differences[~first])[0], winsorised(differences[first])[0]]
    effect = float(sides[0].mean() - sides[1].mean())
    # The noise within each order; between them it would hold the very effect that is looked for.
    df = differences.size - 2
    variance = sum(float(((side - side.mean()) ** 2).sum()) for side in sides) / df
    error = max(math.sqrt(variance), DEVIATION_FLOOR) * math.sqrt(sum(1.0 / side.size for side in sides))
    return effect, 2.0 * upper_tail(abs(effect) / error, df)
