"""The page about planted regressions, written from one measurement: nothing in it is typed by hand but its frame."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks._planted_bench import Measured, Run, moment
from benchmarks._planted_effect import (
    Effect,
    Outcome,
    Truth,
    effect_of,
    fit,
    named_phases,
    outcome_of,
    truths,
)
from benchmarks._planted_matrix import Matrix
from phasegate.core.units import format_percent, format_seconds
from phasegate.gate.levels import Side
from phasegate.gate.verdict import GateResult, Verdict
from phasegate.stats.intervals import proportion_interval


@dataclass(frozen=True, slots=True)
class Facts:
    """What the page says of the circumstances: command, UTC time, version, engine, host, and the seed."""

    command: str
    when: str
    version: str
    engine: str
    host: str
    seed: int


@dataclass(frozen=True, slots=True)
class Row:
    """One planted change with all that is known of it."""

    run: Run
    truths: tuple[Truth, ...]
    outcome: Outcome

    def effect(self, workload: str, metric: str) -> Effect | None:
        """The true effect on one comparison; ``workload`` is its full name."""
        return next(
            (one.effect for one in self.truths if (one.finding.workload, one.finding.metric) == (workload, metric)),
            None,
        )


def rows_of(measured: Measured) -> list[Row]:
    """Every planted change of a measurement, in its order."""
    found = []
    for run in measured.runs:
        if run.plant is None:
            continue
        if run.result is None:
            found.append(Row(run, (), Outcome.NOT_JUDGED))
            continue
        truth = tuple(truths(run.result, measured.unchanged, [*run.judged, *run.extra]))
        found.append(Row(run, truth, outcome_of(run.result.verdict, truth)))
    return found


def alarms(measured: Measured) -> list[Run]:
    """Unchanged runs in which the gate reports a regression."""
    return [run for run in _unchanged(measured) if run.result and run.result.verdict is Verdict.REGRESSION]


def page(measured: Measured, matrix: Matrix, facts: Facts) -> str:
    """The whole page in Markdown."""
    rows = rows_of(measured)
    parts = [
        _head(measured, facts),
        _short(measured, rows),
        _plants(measured, rows),
        _reasons(rows),
        _unchanged_table(measured),
        _all_comparisons(rows),
        _left_out(measured, matrix),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _head(measured: Measured, facts: Facts) -> str:
    budget = max((len(run.judged) for run in measured.runs), default=0)
    moments = measured.moments
    return f"""# Planted regressions on a real engine

Written by `{facts.command}` on {facts.when}; do not edit. Phasegate {facts.version}, seed {facts.seed}.

- Engine: {facts.engine}
- Host: {facts.host}
- Sessions were measured from {moments[0]:%Y-%m-%d %H:%M} to {moments[-1]:%Y-%m-%d %H:%M} UTC; the baseline's until
  {max(map(moment, measured.baseline)):%H:%M}.
- Baseline: {len(measured.baseline)} sessions of the default settings, each on a freshly started engine. Every run
  follows the policy's sequence (at most {budget} sessions here) and is judged by the product's own code against the
  stored baseline, with `fixtures/planted/policy.yaml`. Workloads: `fixtures/planted/`; plants:
  `fixtures/planted/matrix.yaml`.

The *true effect* of a change is measured apart from the verdict: the geometric mean of its sessions' medians against
that of all sessions with unchanged settings in the whole run, with a 95 % interval (Welch, on logarithms). A change
*has to be caught* where the whole interval of a gated comparison lies above the tolerance, and then the gate has to
name the phase of that comparison. The gate may name a change from half the tolerance on."""


def _short(measured: Measured, rows: Sequence[Row]) -> str:
    counts = Counter(row.outcome for row in rows)
    due = counts[Outcome.CAUGHT] + counts[Outcome.MISSED] + counts[Outcome.WRONG_PHASE]
    unchanged, wrong = _unchanged(measured), alarms(measured)
    lines = ["## In short", ""]
    if measured.left:
        done = len(measured.runs)
        lines.append(
            f"- **Not complete**: {done} of {done + len(measured.left)} runs were measured; see the end of this page."
        )
    lines += [
        f"- {counts[Outcome.CAUGHT]} of {due} changes with a true effect above the tolerance were caught in the right "
        "phase.",
        f"- {len(wrong)} alarms in {len(unchanged)} unchanged runs{_rate(len(wrong), len(unchanged))}.",
    ]
    undecided = sum(1 for run in unchanged if run.result and run.result.verdict is Verdict.INCONCLUSIVE)
    if undecided:
        lines.append(
            f"- {undecided} unchanged runs ended undecided: no alarm, but no pass either.{_why_undecided(unchanged)}"
        )
    others = [outcome for outcome in Outcome if counts[outcome] and outcome is not Outcome.CAUGHT]
    lines += [f"- {outcome.value}: {_names(rows, outcome)}." for outcome in others]
    hidden = [row.run.name for row in rows if row.outcome is Outcome.CAUGHT and _default_misses(row)]
    if hidden:
        lines.append(
            f"- With the default policy (no rules) the phase would not have been named for: {', '.join(hidden)}."
        )
    return "\n".join(lines)


def _rate(alarms: int, runs: int) -> str:
    if not runs:
        return ""
    found = proportion_interval(alarms, runs, 0.025)
    return (
        f" ({format_percent(found.share)}; 95 % interval {format_percent(found.low)} to {format_percent(found.high)})"
    )


def _why_undecided(runs: Sequence[Run]) -> str:
    """Which comparisons kept unchanged runs from passing, and what they could have found."""
    found: dict[str, list[float]] = {}
    for run in runs:
        for one in run.result.findings if run.result else ():
            if one.gated and one.verdict is Verdict.INCONCLUSIVE and one.mde is not None:
                found.setdefault(f"{one.workload} {one.metric}", []).append(one.mde)
    said = [
        f"{name} in {len(mdes)} (a worsening of up to {format_percent(max(mdes))} could have hidden)"
        for name, mdes in found.items()
    ]
    return f" Undecided were: {'; '.join(said)}." if said else ""


def _names(rows: Sequence[Row], outcome: Outcome) -> str:
    return ", ".join(row.run.name for row in rows if row.outcome is outcome)


def _default_misses(row: Row) -> bool:
    due = {one.finding.phase for one in row.truths if one.finding.gated and one.above}
    return bool(due - _phases(row.run.by_default))


def _phases(result: GateResult | None) -> set[str]:
    if result is None:
        return set()
    return {one.phase for one in result.findings if one.gated and one.verdict is Verdict.REGRESSION}


def _plants(measured: Measured, rows: Sequence[Row]) -> str:
    columns = _columns(measured)
    heads = ["planted", "settings", "should slow", *(f"{workload} {metric}" for workload, metric in columns)]
    table = [
        [
            row.run.name,
            f"`{row.run.plant.settings}`" if row.run.plant else "",
            row.run.plant.slows if row.run.plant else "",
            *(say_effect(row.effect(workload, metric)) for workload, metric in columns),
            row.run.result.verdict.value if row.run.result else "-",
            " and ".join(sorted(named_phases(row.truths))) or "none",
            " and ".join(sorted(_phases(row.run.by_default))) or "none",
            str(len(row.run.judged)),
            f"**{row.outcome.value}**" if row.outcome.bad else row.outcome.value,
        ]
        for row in rows
    ]
    heads += ["verdict", "phase named", "named by the default policy", "sessions", "outcome"]
    return "## Planted changes\n\nEffects are true effects, with their intervals.\n\n" + _table(heads, table)


def _columns(measured: Measured) -> list[tuple[str, str]]:
    """The comparisons shown in the tables: those that gate in some run, in the order of the sessions."""
    gated = {
        (one.workload, one.metric)
        for run in measured.runs
        if run.result
        for one in run.result.findings
        if one.gated and one.metric in ("ttft", "tpot")
    }
    return [key for key in Side.of(measured.baseline).by_key if key in gated]


def _reasons(rows: Sequence[Row]) -> str:
    lines = ["## What the gate said", ""]
    for row in rows:
        said = row.run.result.reason if row.run.result else row.run.problem
        lines.append(f"- **{row.run.name}** ({row.run.plant.why if row.run.plant else ''}): {said}")
        if row.run.result and row.run.result.attributions:
            lines += [f"  - {line}" for line in row.run.result.attributions.values()]
    return "\n".join(lines)


def _unchanged_table(measured: Measured) -> str:
    """The unchanged runs in their order: alarms, and how the host drifted."""
    runs = _unchanged(measured)
    if not runs:
        return ""
    columns = _columns(measured)
    base = Side.of(fit(measured.baseline))
    table = []
    for number, run in enumerate(runs, 1):
        side = Side.of(fit(run.judged))
        effects = []
        for key in columns:
            before, after = list(base.levels(key).values()), list(side.levels(key).values())
            effects.append(say_effect(effect_of(before, after) if before and after else None))
        verdict = run.result.verdict.value if run.result else f"not judged: {run.problem}"
        table.append([str(number), f"{run.began:%H:%M}" if run.began else "-", *effects, str(len(run.judged)), verdict])
    heads = ["run", "UTC", *(f"{workload} {metric}" for workload, metric in columns), "sessions", "verdict"]
    spread = "\n".join(_spread_lines(measured, columns))
    return (
        "## Unchanged runs between them\n\nEach against the baseline; together they show how the host drifted while "
        f"the plants were measured.\n\n{_table(heads, table)}\n\n{spread}"
    )


def _spread_lines(measured: Measured, columns: Sequence[tuple[str, str]]) -> Iterator[str]:
    base, everything = Side.of(fit(measured.baseline)), Side.of(measured.unchanged)
    for workload, metric in columns:
        old, new = (list(side.levels((workload, metric)).values()) for side in (base, everything))
        yield (
            f"- {workload} {metric}: {format_seconds(base.level((workload, metric)))}; session medians vary by "
            f"{format_percent(_variation(old))} in the baseline and by {format_percent(_variation(new))} over all "
            f"{len(new)} unchanged sessions."
        )


def _variation(values: Sequence[float]) -> float:
    """Coefficient of variation, by the standard deviation of logarithms; NaN below two values."""
    if len(values) < 2:
        return math.nan
    logs = [math.log(value) for value in values]
    mean = sum(logs) / len(logs)
    return math.sqrt(sum((one - mean) ** 2 for one in logs) / (len(logs) - 1))


def _all_comparisons(rows: Sequence[Row]) -> str:
    table = [
        [
            row.run.name,
            f"{one.finding.workload} {one.finding.metric}",
            format_seconds(one.finding.baseline_value),
            say_effect(one.effect),
            str(one.effect.sessions),
            "-" if math.isinf(one.tolerance) else format_percent(one.tolerance, digits=0),
            one.finding.verdict.value,
        ]
        for row in rows
        for one in row.truths
        if one.finding.gated
    ]
    heads = ["planted", "comparison", "baseline", "true effect", "its sessions", "tolerance", "verdict"]
    return "## Every gated comparison\n\n" + _table(heads, table)


def _left_out(measured: Measured, matrix: Matrix) -> str:
    lines = [f"- `{name}`: {why}." for name, why in matrix.left_out]
    plants = [plant.name for plant in measured.left if plant is not None]
    if measured.left:
        said = f": {', '.join(plants)}" if plants else ""
        unchanged = len(measured.left) - len(plants)
        lines.append(f"- There was no time for {len(plants)} plants{said} and {unchanged} unchanged runs.")
    return "## Not measured\n\n" + "\n".join(lines) if lines else ""


def _unchanged(measured: Measured) -> list[Run]:
    return [run for run in measured.runs if run.plant is None]


def say_effect(effect: Effect | None) -> str:
    """An effect for a table: ``+42.7 % [+41.5, +43.9]``, as a factor from threefold on."""
    if effect is None:
        return "-"
    if effect.ratio >= 3:
        ends = "" if math.isinf(effect.high) else f" [{effect.low:.1f}, {effect.high:.1f}]"
        return f"x {effect.ratio:.1f}{ends}"
    ends = "" if math.isinf(effect.high) else f" [{(effect.low - 1) * 100:+.1f}, {(effect.high - 1) * 100:+.1f}]"
    return f"{format_percent(effect.ratio - 1, signed=True)}{ends}"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
