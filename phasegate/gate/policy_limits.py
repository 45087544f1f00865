"""What fails is never larger than what must be found: ``fail-from`` held against the tolerance that it goes with."""

from __future__ import annotations

from collections.abc import Iterator

from phasegate.core.settings_file import SettingsError
from phasegate.core.units import format_percent
from phasegate.gate.policy import Policy, Rule


def refuse_above_tolerance(policy: Policy) -> None:
    """Demand that no ``fail-from`` lies above every tolerance that it can meet.

    A rule that sets it without a tolerance meets that of its phase, or of an earlier rule. Where one of those is
    smaller, what fails is cut to it when the rule is applied.

    Raises:
        SettingsError: one does; one line.
    """
    for phase, size in policy.fail_from.items():
        most = policy.tolerance[phase]
        if size > most:
            _refuse(policy.source(f"fail-from.{phase}"), f"fail-from.{phase}", size, f"tolerance.{phase}", most)
    for number, rule in enumerate(policy.rules):
        if rule.fail_from is not None:
            most = max(_tolerances(rule, policy, policy.rules[:number]))
            if rule.fail_from > most:
                _refuse(rule.lines.get("fail-from", "the policy"), "fail-from", rule.fail_from, "the tolerance", most)


def _tolerances(rule: Rule, policy: Policy, earlier: tuple[Rule, ...]) -> Iterator[float]:
    """Every tolerance that may apply where a rule does."""
    if rule.tolerance is not None:
        yield rule.tolerance
        return
    facts = policy.facts(rule.metric) if rule.metric is not None else None
    phase = rule.phase or (facts.phase if facts is not None else None)
    if phase is None:
        yield from policy.tolerance.values()
    else:
        yield policy.tolerance.get(phase, policy.tolerance["both"])
    for one in earlier:
        alike = None in (one.metric, rule.metric) or one.metric == rule.metric
        if one.tolerance is not None and alike and (None in (one.phase, phase) or one.phase == phase):
            yield one.tolerance


def _refuse(where: str, name: str, size: float, limit: str, most: float) -> None:
    raise SettingsError(
        f"{where}: {name} is {format_percent(size)}; it must be at most {limit}, which is {format_percent(most)}: what "
        "fails must be something that is found"
    )
