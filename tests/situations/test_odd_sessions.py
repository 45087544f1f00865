"""`phasegate compare` on sessions that are not of one level: two kinds of starts, coarse values, a level that changed.

Tables of sessions as they come from real servers: starts that are fast or slow (C045), a TPOT that was rounded to whole
milliseconds, a server that got faster two sessions ago.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from phasegate.cli import main

TTFT, TPOT = 0.2, 0.01

Rows = Sequence[tuple[float, float]]
"""Of each session, what its TTFT and its TPOT are multiplied by."""


def table(path: Path, rows: Rows, rng: random.Random, step: float = 0.0, requests: int = 12) -> str:
    """A CSV file of requests that vary by 2 % within sessions that vary by 0.5 %, rounded to a step of seconds."""
    lines = ["session,workload,metric,value"]
    for number, factors in enumerate(rows):
        session = rng.gauss(1, 0.005)
        for metric, level, factor in (("ttft", TTFT, factors[0]), ("tpot", TPOT, factors[1])):
            for _ in range(requests):
                value = level * factor * session * rng.gauss(1, 0.02)
                lines.append(f"{path.stem}{number},chat,{metric},{round(value / step) * step if step else value!r}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


Judge = Callable[..., tuple[str, dict[str, Any], str]]


@pytest.fixture
def judge(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Judge:
    """Compares two sides: (verdict, JSON, what people read)."""

    def run(baseline: Rows, candidate: Rows, *, seed: int = 1, step: float = 0.0) -> tuple[str, dict[str, Any], str]:
        rng = random.Random(seed)
        sides = table(tmp_path / "a.csv", baseline, rng, step), table(tmp_path / "b.csv", candidate, rng, step)
        status = main(["compare", *sides])
        read = capsys.readouterr().out
        assert main(["compare", *sides, "--json"]) == status
        result = json.loads(capsys.readouterr().out)
        return result["verdict"], result, read

    return run


def starts(rng: random.Random, count: int, share: float, gap: float, factor: float = 1.0) -> Rows:
    """Sessions of which a share is slow in all they measure."""
    found = [factor * (1 + gap * (rng.random() < share)) for _ in range(count)]
    return [(one, one) for one in found]


def same(count: int, ttft: float = 1.0, tpot: float = 1.0) -> Rows:
    return [(ttft, tpot)] * count


@pytest.mark.parametrize(
    ("sides", "share", "gap"),
    [((16, 8), 0.5, 0.15), ((16, 8), 0.2, 0.15), ((16, 8), 0.5, 0.30), ((8, 3), 0.3, 0.08), ((20, 5), 0.4, 0.5)],
)
def test_unchanged_starts_of_two_kinds_are_no_regression_and_forty_per_cent_are_found(
    judge: Judge, sides: tuple[int, int], share: float, gap: float
) -> None:
    """C045 and its siblings: a share of starts is slow. A dozen builds each; the simulation counts thousands."""
    words: Counter[str] = Counter()
    for seed in range(12):
        rng = random.Random(100 + seed)
        words[judge(starts(rng, sides[0], share, gap), starts(rng, sides[1], share, gap), seed=seed)[0]] += 1
    assert words["REGRESSION"] == 0, words
    assert set(words) <= {"PASS", "INCONCLUSIVE", "IMPROVED"}
    rng = random.Random(7)
    assert judge(starts(rng, sides[0], share, gap), starts(rng, sides[1], share, gap, 1.4))[0] == "REGRESSION"


def test_both_kinds_are_named_with_their_values(judge: Judge) -> None:
    """C045, its smallest build: 7 of 16 starts slow before, 5 of 8 now."""
    baseline = [(1 + 0.15 * int(kind),) * 2 for kind in "1101010011000001"]
    candidate = [(1 + 0.15 * int(kind),) * 2 for kind in "11011100"]
    verdict, result, read = judge(baseline, candidate)
    assert verdict == "INCONCLUSIVE"
    assert any("(9 and 7 of 16 baseline sessions)" in one for one in result["warnings"])
    assert any("(3 and 5 of 8 candidate sessions)" in one for one in result["warnings"])
    assert re.search(r"chat ttft: two kinds of sessions, (199|200|201) and (229|230|231) ms", read)
    assert re.search(r"INCONCLUSIVE: .* two kinds", read)
    assert "hold it fixed" in read
    assert "more candidate session" not in read, "no number of them decides it"


def test_a_candidate_wholly_of_the_slow_kind_is_undecided_and_one_beyond_it_is_not(judge: Judge) -> None:
    baseline = [(1 + 0.08 * int(kind),) * 2 for kind in "00100010010000100100"]
    verdict, _, read = judge(baseline, same(5, 1.08, 1.08))
    assert verdict == "INCONCLUSIVE"
    assert "two kinds of sessions" in read
    assert judge(baseline, same(5, 1.20, 1.20))[0] == "REGRESSION"
    assert judge(baseline, same(5))[0] == "PASS"


def test_a_candidate_of_two_kinds_before_a_baseline_of_one_is_named(judge: Judge) -> None:
    """8 starts as ever, then one as ever and two that are 8 % slower."""
    verdict, result, _ = judge(same(8), [(1.0, 1.0), (1.08, 1.08), (1.08, 1.08)])
    assert verdict == "INCONCLUSIVE"
    assert any("two kinds of sessions" in one and "1 and 2 of 3 candidate" in one for one in result["warnings"])


@pytest.mark.parametrize(
    ("step", "tpot"), [(0.001, 0.85), (0.001, 0.845), (0.0005, 0.825), (0.002, 1.1)], ids=["1", "1-near", "0.5", "2"]
)
def test_coarse_values_raise_no_alarm_and_name_their_step(judge: Judge, step: float, tpot: float) -> None:
    """A TPOT that lies between two steps: unchanged builds are rounded to either."""
    words: Counter[str] = Counter()
    for seed in range(12):
        verdict, result, _ = judge(same(8, 1.0, tpot), same(3, 1.0, tpot), seed=seed, step=step)
        words[verdict] += 1
        assert any("its values come in steps of" in one for one in result["warnings"]), result["warnings"]
    assert set(words) == {"INCONCLUSIVE"}


@pytest.mark.parametrize("step", [0.001, 0.0005])
def test_forty_per_cent_are_found_in_coarse_values(judge: Judge, step: float) -> None:
    for seed in range(4):
        assert judge(same(8, 1.0, 0.85), same(3, 1.0, 0.85 * 1.4), seed=seed, step=step)[0] == "REGRESSION"


@pytest.mark.parametrize(
    ("older", "newer", "slower", "word"),
    [
        (18, 2, 1.08, "INCONCLUSIVE"),
        (19, 1, 1.08, "INCONCLUSIVE"),
        (6, 2, 1.08, "INCONCLUSIVE"),
        (18, 2, 1.25, "INCONCLUSIVE"),  # back at the old level
        (18, 2, 1.50, "REGRESSION"),
        (16, 4, 1.12, "REGRESSION"),  # believed: the older sessions are left out
        (18, 2, 0.90, "IMPROVED"),
    ],
)
def test_a_speed_up_of_the_newest_sessions_hides_nothing(
    judge: Judge, older: int, newer: int, slower: float, word: str
) -> None:
    """20 % faster since a few sessions; the candidate is so much slower than those."""
    verdict, result, read = judge([*same(older), *same(newer, 0.8, 0.8)], same(5, 0.8 * slower, 0.8 * slower))
    assert verdict == word
    if newer < 3:
        stands = "session stands" if newer == 1 else f"{newer} baseline sessions stand"
        said = [one for one in result["warnings"] if stands in one and f"to the {older} before" in one]
        assert said
        assert "against the newest it is" in said[0]
        first = "\n".join(read.splitlines()[:8])
        assert "against the newest it is" in first, "what stands above all else"


def test_a_slow_down_that_was_accepted_two_sessions_ago_is_no_regression(judge: Judge) -> None:
    verdict, _, read = judge([*same(18), *same(2, 1.2, 1.2)], same(5, 1.2, 1.2))
    assert verdict == "INCONCLUSIVE"
    assert "1 more baseline session of the accepted server" in read
