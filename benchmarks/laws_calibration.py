"""How often do the phase laws say what they should? ``python -m benchmarks.laws_calibration``

Sessions are drawn from a model of an engine and of the noise measured on a pinned llama.cpp, and judged by the laws
with their default margins. For each law the table shows how often a healthy engine passes, how often a planted
violation fails, and how often an engine that sits exactly on the margin passes, which should happen in at most 5 %
of sessions (the size of the tests). The last lines give the share of sessions in which every law passes.

Noise: on a "quiet" machine a request's TTFT varies by 0.6 % and its TPOT by 2.3 %, with a lag-1 correlation of 0.2
from request to request, and gaps by 20 %: the median of ten sessions of the pinned engine. "Worst" is the worst of
the ten, 1.8 % and 3.4 %. "Disturbed" doubles the quiet figures and makes one phase in fifty 1.5 to 4 times slower.
A healthy engine is not perfectly flat: its TPOT is 4 % higher at 16 tokens of output than at many, and rises by 2 %
per 1,000 prompt tokens; its TTFT is 1 % higher at the longest output.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from phasegate.stats import laws
from phasegate.stats.outcome import LawResult, Outcome

Table = NDArray[np.float64]

OUTPUTS = np.array([16, 64, 128, 256], dtype=np.float64)
PROMPTS = np.array([64, 256, 512, 1024], dtype=np.float64)
PREFILL = 0.001
"""Seconds per prompt token of the model engine."""
OVERHEAD = 0.003
"""Seconds of TTFT that do not depend on the prompt."""
TPOT = 0.007
"""Seconds per output token of the model engine."""
PROMPT = 128.0
"""Prompt tokens where the output length varies."""
LAG = 0.2
"""Lag-1 correlation between neighbouring requests."""


@dataclass(frozen=True, slots=True)
class Noise:
    """How requests vary: coefficients of variation per phase and per gap, and disturbed requests."""

    name: str
    prefill: float
    decode: float
    gap: float = 0.2
    disturbed: float = 0.0


QUIET = Noise("quiet", prefill=0.006, decode=0.023)
WORST = Noise("worst", prefill=0.018, decode=0.034)
DISTURBED = Noise("disturbed", prefill=0.012, decode=0.046, gap=0.3, disturbed=0.02)


def factors(rng: np.random.Generator, blocks: int, levels: int, cv: float, noise: Noise) -> Table:
    """Factors of requests sent in blocks of random order, correlated from one to the next, some disturbed."""
    steps = rng.standard_normal(blocks * levels)
    for i in range(1, steps.size):
        steps[i] = LAG * steps[i - 1] + np.sqrt(1 - LAG**2) * steps[i]
    hit = rng.random(steps.size) < noise.disturbed
    drawn = np.exp(cv * steps) * np.where(hit, rng.uniform(1.5, 4.0, steps.size), 1.0)
    order = np.array([rng.permutation(levels) for _ in range(blocks)])
    table = np.empty((blocks, levels))
    np.put_along_axis(table, order, drawn.reshape(blocks, levels), axis=1)
    return table


@dataclass(frozen=True, slots=True)
class Draw:
    """Draws the data of one session: so many blocks with such noise."""

    rng: np.random.Generator
    blocks: int
    noise: Noise

    def ttft(self, shape: Table) -> Table:
        """TTFTs around a shape, one value per level."""
        return shape * factors(self.rng, self.blocks, shape.size, self.noise.prefill, self.noise)

    def tpot(self, shape: Table) -> Table:
        """TPOTs around a shape, one value per level."""
        return shape * factors(self.rng, self.blocks, shape.size, self.noise.decode, self.noise)

    def gaps(self, stalled: float, stall: float, lengths: Sequence[float] = tuple(OUTPUTS)) -> list[list[float]]:
        """Gaps of every request; a share of the requests has one stall at a random place."""
        streams = []
        for length in [length for length in lengths for _ in range(self.blocks)]:
            one = TPOT * np.exp(self.noise.gap * self.rng.standard_normal(int(length) - 1))
            if self.rng.random() < stalled:
                one[int(self.rng.integers(one.size))] += stall
            streams.append(one.tolist())
        return streams


def healthy_tpot(bend: float = 0.04) -> Table:
    """TPOT over the output lengths: ``bend`` higher at the shortest, falling towards the longest."""
    return np.asarray(TPOT * (1 + bend * OUTPUTS[0] / OUTPUTS), dtype=np.float64)


def _ttft_by_prompt(rise: float | None = None) -> Table:
    if rise is None:
        return np.asarray(OVERHEAD + PREFILL * PROMPTS, dtype=np.float64)
    return np.asarray(0.3 * (1 + rise * (PROMPTS - PROMPTS[0]) / (PROMPTS[-1] - PROMPTS[0])), dtype=np.float64)


def rises(rise: float | None) -> Callable[[Draw], LawResult]:
    """TTFT over prompts; ``rise`` is the whole rise as a fraction, None the model engine's own."""
    return lambda draw: laws.rises(PROMPTS.tolist(), draw.ttft(_ttft_by_prompt(rise)))


def ttft_flat(slant: float) -> Callable[[Draw], LawResult]:
    """TTFT over outputs, at the longest higher by a fraction."""
    shape = np.array([1.0, 1.0, 1.0, 1 + slant]) * (OVERHEAD + PREFILL * PROMPT)
    return lambda draw: laws.flat(OUTPUTS.tolist(), draw.ttft(shape), margin=laws.TTFT_FLAT_MARGIN)


def tpot_flat(shape: Table) -> Callable[[Draw], LawResult]:
    """TPOT over outputs with a shape."""
    return lambda draw: laws.flat(OUTPUTS.tolist(), draw.tpot(shape), margin=laws.TPOT_FLAT_MARGIN)


def tpot_slope(slope: float) -> Callable[[Draw], LawResult]:
    """TPOT over prompts; ``slope`` is a fraction of TPOT at the shortest per 1,000 tokens."""
    shape = TPOT * (1 + slope * (PROMPTS - PROMPTS[0]) / 1000)
    return lambda draw: laws.bounded_slope(PROMPTS.tolist(), draw.tpot(shape))


def line(added: Table, bend: float = 0.04) -> Callable[[Draw], LawResult]:
    """The total over outputs with seconds added per level."""

    def judge(draw: Draw) -> LawResult:
        ttft = draw.ttft(np.full(OUTPUTS.size, OVERHEAD + PREFILL * PROMPT))
        tpot = draw.tpot(healthy_tpot(bend)) + added / (OUTPUTS - 1)
        return laws.linear(OUTPUTS.tolist(), ttft + tpot * (OUTPUTS - 1), ttft=ttft, tpot=tpot)

    return judge


def step_at(place: int, size: float) -> Table:
    """Seconds added from the level at ``place`` on: a step that is a share of the total there."""
    totals = OVERHEAD + PREFILL * PROMPT + TPOT * (OUTPUTS - 1)
    return np.where(np.arange(OUTPUTS.size) >= place, size * totals[place], 0.0)


def step_on_margin(place: int) -> Table:
    """The step whose estimate is the margin of the total behind it, itself included."""
    share = laws.LINEAR_STEP_MARGIN
    return step_at(place, share / (1 - share))


def stalls(share: float, seconds: float = 0.5) -> Callable[[Draw], LawResult]:
    """Streams of which a share has one stall."""
    return lambda draw: laws.no_stalls(draw.gaps(share, seconds))


def cache(saving: float, reported: int | None = 500, control: float = 0.0) -> Callable[[Draw], LawResult]:
    """Cold, cached and control calls; savings are fractions of the cold TTFT."""

    def judge(draw: Draw) -> LawResult:
        shape = 0.5 * np.array([1.0, 1 - saving, 1 - control])
        cold, cached, fresh = draw.ttft(shape).T
        return laws.cached_faster(cold, cached, fresh, cached_tokens=[reported] * draw.blocks)

    return judge


@dataclass(frozen=True, slots=True)
class Row:
    """One kind of engine before one law, and the outcome that is asked of it."""

    law: str
    engine: str
    wanted: Outcome
    judge: Callable[[Draw], LawResult]


def healthy_rows() -> list[Row]:
    """Every law on a healthy engine: what a session of the suite judges."""
    flat = np.zeros(OUTPUTS.size)
    judges: list[tuple[str, Callable[[Draw], LawResult]]] = [
        ("rises: TTFT, prompt length", rises(None)),
        ("flat: TTFT, output length", ttft_flat(0.01)),
        ("flat: TPOT, output length", tpot_flat(healthy_tpot())),
        ("bounded slope: TPOT, prompt length", tpot_slope(0.02)),
        ("line: total, output length", line(flat)),
        ("no stalls", stalls(0.0)),
        ("cached: same prompt", cache(0.95)),
        ("cached: shared prefix", cache(0.80)),
    ]
    return [Row(law, "healthy", Outcome.PASS, judge) for law, judge in judges]


def planted_rows() -> list[Row]:
    """Every law on engines that break it."""
    growing = TPOT * (1 + OUTPUTS / 256)
    planted: list[tuple[str, str, Callable[[Draw], LawResult]]] = [
        ("rises", "TTFT constant", rises(0.0)),
        ("flat: TTFT", "TTFT +20 % at the longest", ttft_flat(0.20)),
        ("flat: TPOT", "TPOT +30 % at the longest", tpot_flat(TPOT * np.array([1, 1, 1, 1.3]))),
        ("bounded slope", "TPOT +30 % per 1,000 tokens", tpot_slope(0.30)),
        ("line", "TPOT grows by 1.9 over the lengths", line(growing * (OUTPUTS - 1) - TPOT * (OUTPUTS - 1))),
        *(("line", f"step of 25 % before N = {OUTPUTS[k]:g}", line(step_at(k, 0.25))) for k in range(1, OUTPUTS.size)),
        ("no stalls", "0.5 s in every second request", stalls(0.5)),
        ("cached", "cache off, not reported", cache(0.0, None)),
        ("cached", "cached call 1.5 x slower", cache(-0.5)),
        ("cached", "fresh prompt as fast as cached", cache(0.5, control=0.5)),
    ]
    return [Row(law, engine, Outcome.FAIL, judge) for law, engine, judge in planted]


def margin_rows() -> list[Row]:
    """Every law on engines exactly on its margin: a PASS is an error here."""
    on_flat = TPOT * np.array([1, 1, 1, 1 + laws.TPOT_FLAT_MARGIN])
    minimum = laws.CACHE_SAVING_MIN
    on: list[tuple[str, Callable[[Draw], LawResult]]] = [
        ("rises", rises(laws.TTFT_RISE_MIN)),
        ("flat: TTFT", ttft_flat(laws.TTFT_FLAT_MARGIN)),
        ("flat: TPOT", tpot_flat(on_flat)),
        ("bounded slope", tpot_slope(laws.TPOT_SLOPE_MARGIN)),
        *((f"line, step before N = {OUTPUTS[k]:g}", line(step_on_margin(k), 0.0)) for k in range(1, OUTPUTS.size)),
        ("no stalls", stalls(laws.STALLED_REFUSED)),
        ("cached", cache(minimum)),
        ("cached, control", cache(0.9, control=1 - 1 / (1 + laws.CACHE_CONTROL_MARGIN))),
    ]
    return [Row(law, "on the margin", Outcome.PASS, judge) for law, judge in on]


@dataclass(frozen=True, slots=True)
class Count:
    """How often each outcome came for one row."""

    row: Row
    blocks: int
    noise: str
    outcomes: Counter[Outcome]

    @property
    def share(self) -> float:
        """Share of sessions with the outcome that the row asks about."""
        return self.outcomes[self.row.wanted] / self.outcomes.total()


def count(row: Row, blocks: int, noise: Noise, sessions: int, seed: int) -> Count:
    """Judge a row on so many simulated sessions. Each row has random numbers of its own."""
    key = [seed, blocks, *f"{row.law}/{row.engine}/{noise.name}".encode()]
    draw = Draw(np.random.default_rng(key), blocks, noise)
    return Count(row, blocks, noise.name, Counter(row.judge(draw).outcome for _ in range(sessions)))


def whole_suite(blocks: int, noise: Noise, sessions: int, seed: int) -> float:
    """Share of sessions in which every law passes on a healthy engine."""
    draw = Draw(np.random.default_rng([seed, blocks, *noise.name.encode()]), blocks, noise)
    rows = healthy_rows()
    clean = sum(all(row.judge(draw).outcome is Outcome.PASS for row in rows) for _ in range(sessions))
    return clean / sessions


def _lines(title: str, rows: list[Row], sessions: int, seed: int, settings: list[tuple[int, Noise]]) -> Iterator[str]:
    yield ""
    yield f"{title:<52}" + "".join(f"{f'n={blocks} {noise.name}':>16}" for blocks, noise in settings)
    for row in rows:
        shares = [count(row, blocks, noise, sessions, seed).share for blocks, noise in settings]
        name = row.law if row.engine in ("healthy", "on the margin") else f"{row.law}: {row.engine}"
        yield f"{name:<52}" + "".join(f"{share:>16.2%}" for share in shares)


def table(sessions: int, seed: int, blocks: Sequence[int] = (5, 8, 12)) -> Iterator[str]:
    """The whole table, line by line."""
    settings = [(n, QUIET) for n in blocks] + [(8, WORST), (8, DISTURBED)]
    yield f"{sessions} simulated sessions a cell, seed {seed}, error probability of each bound {laws.ALPHA:g}"
    yield from _lines("PASS on a healthy engine", healthy_rows(), sessions, seed, settings)
    failed = [replace(row, wanted=Outcome.FAIL) for row in healthy_rows()]
    yield from _lines("FAIL on a healthy engine (an error)", failed, sessions, seed, settings)
    yield from _lines("FAIL under a planted violation", planted_rows(), sessions, seed, settings)
    yield from _lines("PASS on the margin (an error)", margin_rows(), sessions, seed, settings)
    yield ""
    for n, noise in settings:
        share = whole_suite(n, noise, sessions, seed)
        yield f"all {len(healthy_rows())} laws pass on a healthy engine, n={n} {noise.name}: {share:.2%}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sessions", type=int, default=2000, help="simulated sessions a cell")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="50 sessions a cell: seconds instead of minutes")
    options = parser.parse_args(arguments)
    for text in table(50 if options.quick else options.sessions, options.seed):
        print(text, flush=True)


if __name__ == "__main__":
    main()
