"""The command that plants regressions: its order, its arithmetic of truth and outcome, its page, and its honesty."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from scipy import stats

from benchmarks import _planted_bench, planted
from benchmarks._page import write_page
from benchmarks._planted_bench import Measured, Run, sessions_with
from benchmarks._planted_effect import Outcome, effect_of, outcome_of, truths
from benchmarks._planted_matrix import Matrix, MatrixError, Plant, load_matrix, run_order
from benchmarks._planted_words import Facts, alarms, page, rows_of, say_effect
from phasegate.core.session import Session
from phasegate.core.workload import load_workload
from phasegate.engines.embedded_config import parse_config
from phasegate.gate.judge import judge
from phasegate.gate.policy import Policy
from phasegate.gate.policy_file import parse_policy
from phasegate.gate.verdict import GateResult, Verdict
from tests.sessions import sessions

PLANT = Plant("slow thing", "n_ubatch=32", "prefill", "why not")
CELL = "prompt[in=512,out=48]"
FACTS = Facts("make planted", "2026-01-01 00:00 UTC", "0", "an engine", "a host", 1)


def measured_sessions(count: int, seed: int, ttft: float = 1.0, tpot: float = 1.0) -> list[Session]:
    """Sessions of one cell whose phases take half a request each, slowed by factors, with 0.5 % of noise."""
    rng = random.Random(seed)
    noise = [[1 + rng.gauss(0, 0.005) for _ in range(count)] for _ in range(2)]
    prefill, decode = [0.25 * ttft * one for one in noise[0]], [0.005 * tpot * one for one in noise[1]]
    return sessions(
        {
            (CELL, "ttft"): prefill,
            (CELL, "tpot"): decode,
            (CELL, "e2el"): [a + 47 * b for a, b in zip(prefill, decode, strict=True)],
        }
    )


BASELINE = measured_sessions(12, 1)


def judged(changed: Sequence[Session], policy: Policy | None = None) -> GateResult:
    """The gate's verdict on some sessions."""
    return judge(BASELINE, changed, policy or Policy())


def run_of(changed: Sequence[Session], plant: Plant | None = PLANT, result: GateResult | None = None) -> Run:
    """A run that measured these sessions."""
    verdict = result or judged(changed)
    return Run(plant, verdict, tuple(changed), (), verdict)


def measured_with(*runs: Run, left: tuple[Plant | None, ...] = ()) -> Measured:
    """A whole measurement of some runs."""
    return Measured(tuple(BASELINE), runs, left)


def outcome(changed: Sequence[Session], result: GateResult) -> Outcome:
    """How the gate did with a verdict on these sessions."""
    return outcome_of(result.verdict, list(truths(result, BASELINE, changed)))


# --- the matrix --------------------------------------------------------------------------------------------------


def test_the_matrix_in_the_repository_plants_settings_that_the_engine_knows() -> None:
    matrix = load_matrix(planted.DATA / "matrix.yaml")
    assert len(matrix.plants) >= 12
    configs = {parse_config(plant.settings, source=plant.name) for plant in matrix.plants}
    assert len(configs) == len(matrix.plants)
    assert parse_config("", source="the default") not in configs


def test_the_policy_of_the_matrix_judges_changed_settings_and_lets_every_phase_gate() -> None:
    text = (planted.DATA / "policy.yaml").read_text(encoding="utf-8")
    policy = parse_policy(text, "policy.yaml")
    assert set(policy.compare_across) == {"settings", "model"}
    cached = next(
        cell.label for cell in load_workload(planted.DATA / "cache.yaml").cells if cell.role == "cached"
    )  # fmt: skip
    assert policy.applied(cached, "ttft", "prefill").gate.value == "always"


def test_unchanged_runs_are_spread_evenly_between_the_plants() -> None:
    plants = [Plant(str(number), "", "none", "") for number in range(15)]
    order = run_order(plants, 20)
    assert [one for one in order if one] == plants
    assert order.count(None) == 20
    longest = max(len(part) for part in "".join("p" if one else "u" for one in order).split("u"))
    assert longest == 1, "two plants stand side by side"


GOOD = "{name: a, settings: b, slows: none, why: c}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("plants: []", "at least one plant"),
        ("plants: [{name: a, settings: b}]", "exactly the keys"),
        ("plants: [{name: a, settings: b, slows: time, why: c}]", "slows is 'time'"),
        (f"plants: [{GOOD}, {GOOD}]", "one name"),
        ("plants: [", "not YAML"),
    ],
)  # fmt: skip
def test_a_matrix_that_cannot_be_used_is_refused_in_one_line(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "matrix.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(MatrixError) as refusal:
        load_matrix(path)
    assert said in str(refusal.value)
    assert str(path) in str(refusal.value)
    assert "\n" not in str(refusal.value)


# --- truth -------------------------------------------------------------------------------------------------------


def test_an_effect_is_the_ratio_of_geometric_means_with_welchs_interval() -> None:
    found = effect_of([1.0, 1.0, 1.0, 1.02], [1.1, 1.12])
    logs = [math.log(1.1), math.log(1.12)], [0.0, 0.0, 0.0, math.log(1.02)]
    assert found.ratio == pytest.approx(math.exp(sum(logs[0]) / 2 - sum(logs[1]) / 4))
    reference = stats.ttest_ind(*logs, equal_var=False).confidence_interval(0.95)
    assert (math.log(found.low), math.log(found.high)) == pytest.approx((reference.low, reference.high))


def test_one_session_bounds_no_effect() -> None:
    found = effect_of([1.0, 1.0], [1.1])
    assert (found.low, found.high) == (0.0, math.inf)


def test_intervals_of_effects_hold_the_truth_as_often_as_they_say() -> None:
    rng = random.Random(3)
    held = 0
    for _ in range(400):
        old = [math.exp(rng.gauss(0, 0.01)) for _ in range(12)]
        new = [1.2 * math.exp(rng.gauss(0, 0.02)) for _ in range(5)]
        found = effect_of(old, new)
        held += found.low <= 1.2 <= found.high
    assert 365 <= held <= 394


# --- outcomes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ttft", "tpot", "wanted"),
    [
        (1.4, 1.0, Outcome.CAUGHT),
        (1.0, 1.3, Outcome.CAUGHT),
        (1.5, 1.5, Outcome.CAUGHT),
        (1.0, 1.0, Outcome.QUIET),
        (1.07, 1.0, Outcome.EARLY),
        (0.8, 0.9, Outcome.QUIET),
    ],
)
def test_the_gate_is_told_to_have_done_well_where_it_did(ttft: float, tpot: float, wanted: Outcome) -> None:
    changed = measured_sessions(5, 2, ttft, tpot)
    assert outcome(changed, judged(changed)) is wanted


def test_a_verdict_that_overlooks_a_change_is_a_miss() -> None:
    changed = measured_sessions(5, 2, ttft=1.4)
    assert outcome(changed, judged(measured_sessions(5, 4))) is Outcome.MISSED


def test_a_verdict_that_names_the_other_phase_is_wrong() -> None:
    changed = measured_sessions(5, 2, ttft=1.4)
    assert outcome(changed, judged(measured_sessions(5, 4, tpot=1.4))) is Outcome.WRONG_PHASE


def test_a_verdict_that_names_a_phase_of_an_unchanged_engine_is_a_false_alarm() -> None:
    changed = measured_sessions(5, 2)
    assert outcome(changed, judged(measured_sessions(5, 4, tpot=1.4))) is Outcome.FALSE_ALARM


def test_naming_one_of_two_slowed_phases_is_a_miss() -> None:
    changed = measured_sessions(5, 2, ttft=1.4, tpot=1.4)
    assert outcome(changed, judged(measured_sessions(5, 4, tpot=1.4))) is Outcome.MISSED


def test_a_refused_comparison_was_not_judged() -> None:
    changed = measured_sessions(5, 2, ttft=1.4)
    result = judge([], changed, Policy())
    assert result.verdict is Verdict.NO_BASELINE
    assert outcome(changed, result) is Outcome.NOT_JUDGED
    assert Outcome.NOT_JUDGED.bad


# --- the page ----------------------------------------------------------------------------------------------------


def test_the_page_counts_what_was_caught_and_what_was_missed() -> None:
    slow = measured_sessions(5, 2, ttft=1.4)
    missed = run_of(slow, Plant("overlooked", "x=1", "prefill", "y"), judged(measured_sessions(5, 4)))
    measured = measured_with(run_of(slow), run_of(measured_sessions(2, 5), None), missed)
    text = page(measured, Matrix("", (), (("threads_batch=2", "there is one core"),)), FACTS)
    assert "1 of 2 changes with a true effect above the tolerance were caught in the right phase." in text
    assert "MISSED: overlooked." in text
    assert "0 alarms in 1 unchanged runs" in text
    assert "`threads_batch=2`: there is one core." in text
    assert (
        "| slow thing | `n_ubatch=32` | prefill | +39" in text or "| slow thing | `n_ubatch=32` | prefill | +40" in text
    )


def test_a_page_of_a_part_of_the_matrix_says_so_at_its_head() -> None:
    measured = measured_with(run_of(measured_sessions(5, 2, ttft=1.4)), left=(PLANT, None, None))
    text = page(measured, Matrix("", (), ()), FACTS)
    assert "**Not complete**: 1 of 4 runs were measured" in text.split("## Planted changes")[0]
    assert "no time for 1 plants: slow thing and 2 unchanged runs" in text


def test_an_alarm_in_an_unchanged_run_is_counted() -> None:
    measured = measured_with(run_of(measured_sessions(5, 2, tpot=1.3), None))
    assert len(alarms(measured)) == 1
    assert "1 alarms in 1 unchanged runs" in page(measured, Matrix("", (), ()), FACTS)


def test_a_run_that_could_not_be_measured_is_neither_hidden_nor_good() -> None:
    measured = measured_with(Run(PLANT, problem="the server answers nothing"))
    assert [row.outcome for row in rows_of(measured)] == [Outcome.NOT_JUDGED]
    assert "the server answers nothing" in page(measured, Matrix("", (), ()), FACTS)


def test_effects_read_as_per_cent_and_large_ones_as_factors() -> None:
    assert say_effect(effect_of([1.0, 1.0], [1.25, 1.25])) == "+25.0 % [+25.0, +25.0]"
    assert say_effect(effect_of([1.0, 1.0], [20.0])) == "x 20.0"
    assert say_effect(None) == "-"


# --- the command -------------------------------------------------------------------------------------------------

TINY = "input_tokens: 64\noutput_tokens: {out}\nrequests: 2\nwarmups: 0\n{more}"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A matrix for the simulator that takes a few seconds, with limits that a busy machine keeps."""
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "matrix.yaml").write_text(
        "baseline: speed=5\nplants: [{name: slow, settings: prefill_factor=4 decode_factor=4, slows: both, why: w}]\n",
        encoding="utf-8",
    )
    (folder / "policy.yaml").write_text(
        "tolerance: {prefill: 0.9, decode: 0.9, both: 0.9}\ngate: always\nmax_unfit_rate: 0.99\n"
        "sessions: {first: 2, budget: 2}\n",
        encoding="utf-8",
    )
    (folder / "prompt.yaml").write_text(TINY.format(out=4, more=""), encoding="utf-8")
    (folder / "cache.yaml").write_text(TINY.format(out=8, more="prefix: repeated\n"), encoding="utf-8")
    return folder


def test_a_planted_slowdown_of_the_simulator_stands_on_the_page(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "page.md"
    words = ["--engine", "simulator", "--data", str(data), "--page", str(target), "--keep", str(tmp_path / "kept")]
    planted.main([*words, "--baseline-sessions", "2", "--unchanged-runs", "0"])
    said = capsys.readouterr()
    assert target.is_file(), said
    text = target.read_text(encoding="utf-8")
    assert "| slow | `prefill_factor=4 decode_factor=4` | both |" in text
    assert "run 1 of 1" in said.out
    again = tmp_path / "again.md"
    words = ["--engine", "simulator", "--data", str(data), "--page", str(again), "--keep", str(tmp_path / "kept")]
    planted.main([*words, "--baseline-sessions", "2", "--unchanged-runs", "0", "--minutes", "0"])
    # Stored samples are rounded to a microsecond, which may turn the last digit of a figure.
    short = [
        re.sub(r"\d+(\.\d+)?", "#", one.split("## In short")[1]) for one in (again.read_text(encoding="utf-8"), text)
    ]
    assert short[0] == short[1]
    assert len(list((tmp_path / "kept").rglob("*.json"))) >= 2 + 2


def test_stopping_leaves_the_former_page(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "page.md"
    target.write_text("former", encoding="utf-8")

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(_planted_bench, "connect", stop)
    assert planted.main(["--engine", "simulator", "--data", str(data), "--page", str(target)]) == 130
    assert target.read_text(encoding="utf-8") == "former"


def test_a_failure_while_writing_leaves_the_former_page_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "page.md"
    target.write_text("former", encoding="utf-8")

    def fail(*_: object) -> None:
        raise OSError("no room")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="no room"):
        write_page(target, "new")
    assert [path.name for path in tmp_path.iterdir()] == ["page.md"]
    assert target.read_text(encoding="utf-8") == "former"


def test_a_wrong_setting_is_refused_before_anything_is_measured(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    matrix = data / "matrix.yaml"
    matrix.write_text("plants: [{name: odd, settings: n_ubatsch=3, slows: none, why: w}]\n", encoding="utf-8")
    assert planted.main(["--data", str(data), "--page", str(tmp_path / "page.md")]) == 2
    said = capsys.readouterr().err
    assert "odd: 'n_ubatsch=3' is not a setting" in said
    assert said.count("\n") == 1


def test_sessions_are_counted_for_each_workload() -> None:
    workload = load_workload(planted.DATA / "prompt.yaml")
    assert sessions_with(workload, measured_sessions(3, 1)) == 3
    assert sessions_with(load_workload(planted.DATA / "cache.yaml"), measured_sessions(3, 1)) == 0
