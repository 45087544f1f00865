"""The benchmark of levers: ratios from blocks, words from intervals, and one small pair on the real engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import levers
from benchmarks._levers_bench import LEVERS, Effect, Measured, effects
from benchmarks._levers_page import Facts, page, verdict
from phasegate.engines.embedded_config import parse_config

FACTS = Facts("a command", "now", "an engine", "a host", "idle", 12.0)


def test_a_ratio_is_that_of_the_blocks() -> None:
    """Drift from block to block cancels: both sides double, the ratio stays."""
    before, after = [{"TTFT": 0.1}, {"TTFT": 0.2}, {"TTFT": 0.4}], [{"TTFT": 0.2}, {"TTFT": 0.4}, {"TTFT": 0.8}]
    (one,) = effects(before, after)
    assert (one.before, one.after) == (0.2, 0.4)
    assert one.ratio == pytest.approx(2.0)
    assert one.low == pytest.approx(2.0)
    assert one.high == pytest.approx(2.0)


def test_a_metric_that_one_side_lacks_is_left_out() -> None:
    """Tokens a step are known only where something was guessed."""
    told = effects([{"TPOT": 0.01}], [{"TPOT": 0.02, "tokens a step": 3.0}])
    assert [one.metric for one in told] == ["TPOT"]
    assert told[0].low is None


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (0.99, 1.01, "unchanged within 2 %"),
        (1.3, 1.5, "rises to x 1.40"),
        (0.4, 0.6, "falls to x 0.50"),
        (0.9, 1.2, "not told apart from no change (x 0.90 to 1.20)"),
    ],
)
def test_words_say_what_the_interval_allows(low: float, high: float, said: str) -> None:
    """And no more."""
    assert verdict(Effect("TTFT", 1.0, 1.0, (low + high) / 2, low, high)) == said


def test_the_page_has_a_row_and_a_sentence_for_every_lever() -> None:
    """In the metric's own unit, with its phase."""
    text = page([Measured(LEVERS[0], (Effect("TTFT", 0.2, 0.1, 0.5, 0.45, 0.55),))], FACTS)
    assert "| weights f32 -> f16 | TTFT | prefill | 200 ms | 100 ms | 0.500 | 0.450 to 0.550 |" in text
    assert "* **weights f32 -> f16** (`weights=f32` -> `weights=f16`): TTFT falls to x 0.50." in text


@pytest.mark.parametrize("lever", LEVERS, ids=lambda lever: lever.name)
def test_every_pair_is_two_settings_that_the_engine_takes(lever: object) -> None:
    """And they differ."""
    before, after = (parse_config(getattr(lever, side), source="here") for side in ("before", "after"))
    assert before != after


def test_a_choice_of_nothing_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Before any engine is started."""
    assert levers.main(["--only", "nonsense"]) == 2
    assert "'nonsense'" in capsys.readouterr().err


@pytest.mark.engine
@pytest.mark.slow
def test_a_pair_is_measured_on_the_real_engine(tmp_path: Path) -> None:
    """A second call is much faster with the cache, and a first one is not."""
    path = tmp_path / "page.md"
    assert levers.main(["--only", "prefix cache", "--blocks", "2", "--page", str(path)]) == 0
    text = path.read_text(encoding="utf-8")
    second = next(line for line in text.splitlines() if "TTFT, second call" in line)
    assert float(second.split("|")[6]) < 0.3
