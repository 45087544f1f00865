"""Reading a policy file: every key checked, every mistake one line with file, line, allowed values and nearest match.

A misspelt tolerance that is silently ignored is a gate that is silently open, so nothing unknown passes at any depth.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import yaml

from phasegate.gate.facts import PHASES, MetricFacts, facts_of, known_metrics
from phasegate.gate.policy import Policy, Rule
from phasegate.gate.slo import Objective, parse_objective, parse_percentile
from phasegate.metric import Better
from phasegate.strict_yaml import Located, SettingsError, list_of, load_mapping, one_of, text, whole_number
from phasegate.units import parse_duration

T = TypeVar("T")

GATES = ("binding", "always", "never")
INCONCLUSIVE = ("fail", "pass-with-warning")
FINGERPRINT_KEYS = ("engine", "model", "hardware", "settings")

_TOP_KEYS = (
    "alpha", "tolerance", "floor", "percentiles", "gate", "sessions", "inconclusive", "max_error_rate",
    "max_unfit_rate", "suspect_ratio", "sentinel", "compare_across", "slos", "metrics", "rules",
)  # fmt: skip
_SESSION_KEYS = {
    "baseline_minimum": "baseline_minimum",
    "candidate_minimum": "candidate_minimum",
    "first": "first_sessions",
    "budget": "session_budget",
    "window": "window",
}
_RULE_KEYS = ("workload", "metric", "phase", "tolerance", "floor", "percentiles", "gate")
_SHARE = "a fraction above 0 and below 1, such as 0.05 for 5 %"
_SPAN = "a duration with its unit, such as 500us or 2ms"


def parse_policy(source_text: str, source: str) -> Policy:
    """The policy in a YAML text.

    Raises:
        SettingsError: one line for the user.
    """
    given = load_mapping(source_text, source)
    _refuse_unknown(given, _TOP_KEYS)
    values: dict[str, Any] = {}
    sources = {key: given.where(key) for key in given.values}
    _take_top(given, values)
    nodes = _children(source_text)
    for key, read in (("tolerance", _tolerance), ("floor", _duration)):
        if key in given.values:
            part = _mapping(given, key, nodes)
            values[key] = {**getattr(Policy(), key), **_phases(part, read, sources, key)}
    if "sessions" in given.values:
        _take_sessions(_mapping(given, "sessions", nodes), values, sources)
    if "metrics" in given.values:
        values["metrics"] = dict(_metrics(_mapping(given, "metrics", nodes), nodes))
    declared = values.get("metrics", {})
    values["slos"] = tuple(_slos(given, nodes))
    values["rules"] = tuple(_rules(given, nodes, declared))
    policy = Policy(sources=sources, **values)
    if policy.session_budget < policy.first_sessions:
        raise SettingsError(
            f"{sources.get('sessions.budget', source)}: sessions.budget is {policy.session_budget}; "
            f"it must be at least sessions.first, which is {policy.first_sessions}"
        )
    return policy


def _take_top(given: Located, values: dict[str, Any]) -> None:
    """The values that are not mappings or lists of mappings."""
    readers: Mapping[str, tuple[Callable[[Any], Any], str]] = {
        "alpha": (_share, _SHARE),
        "percentiles": (list_of(_percentile), "a percentile such as p50, or a list of different ones"),
        "gate": (one_of(*GATES[:2]), f"one of {', '.join(GATES[:2])}"),
        "inconclusive": (one_of(*INCONCLUSIVE), f"one of {', '.join(INCONCLUSIVE)}"),
        "max_error_rate": (_fraction, "a fraction from 0 to below 1, such as 0.05 for 5 %"),
        "max_unfit_rate": (_fraction, "a fraction from 0 to below 1, such as 0.5 for 50 %"),
        "suspect_ratio": (_fraction, "a fraction from 0 (never suspect) to below 1, such as 0.2"),
        "sentinel": (text, "a text: the name of a workload, or a pattern"),
        "compare_across": (_list_or_empty(_fingerprint_key), f"a list of keys from {', '.join(FINGERPRINT_KEYS)}"),
    }
    for key, (read, wanted) in readers.items():
        if key in given.values:
            values[key] = given.take(key, read, None, wanted=wanted)


def _take_sessions(part: Located, values: dict[str, Any], sources: dict[str, str]) -> None:
    _refuse_unknown(part, _SESSION_KEYS)
    for key, name in _SESSION_KEYS.items():
        if key in part.values:
            values[name] = part.take(key, whole_number(1), 0, wanted="a whole number of at least 1")
            sources[f"sessions.{key}"] = part.where(key)


def _phases(part: Located, read: Callable[[Any], float], sources: dict[str, str], key: str) -> dict[str, float]:
    _refuse_unknown(part, PHASES)
    wanted = _SPAN if key == "floor" else _SHARE
    for phase in part.values:
        sources[f"{key}.{phase}"] = part.where(phase)
    return {phase: part.take(phase, read, 0.0, wanted=wanted) for phase in part.values}


def _metrics(part: Located, nodes: Mapping[str, yaml.Node]) -> Iterator[tuple[str, MetricFacts]]:
    for name in part.values:
        if facts_of(name) is not None:
            raise SettingsError(f"{part.where(name)}: the metric {name!r} is built in; give yours another name")
        row = _located(_child(nodes["metrics"], name), part.where(name), part.source, f"metrics.{name}")
        _refuse_unknown(row, ("unit", "phase", "better"))
        yield (
            name,
            MetricFacts(
                name,
                row.take("unit", text, "s", wanted="a text, such as tokens/s"),
                row.take("phase", one_of(*PHASES), "both", wanted=f"one of {', '.join(PHASES)}"),
                Better(row.take("better", one_of("lower", "higher"), "lower", wanted="lower or higher")),
            ),
        )


def _slos(given: Located, nodes: Mapping[str, yaml.Node]) -> Iterator[Objective]:
    for where, node, value in _items(given, "slos", nodes):
        if isinstance(value, str):
            yield _objective(value, where, "*")
            continue
        row = _located(node, where, given.source, "an item of slos")
        _refuse_unknown(row, ("workload", "objective"))
        if "objective" not in row.values:
            raise SettingsError(f"{where}: the key 'objective' is missing; write objective: ttft:p95:500ms")
        wanted = "METRIC:PERCENTILE:LIMIT, such as ttft:p95:500ms"
        workload = row.take("workload", text, "*", wanted="a text: a workload or a pattern")
        yield _objective(row.take("objective", text, "", wanted=wanted), row.where("objective"), workload)


def _objective(words: str, where: str, workload: str) -> Objective:
    try:
        return parse_objective(words, source=where, workload=workload)
    except ValueError as error:
        raise SettingsError(str(error)) from None


def _rules(given: Located, nodes: Mapping[str, yaml.Node], declared: Mapping[str, MetricFacts]) -> Iterator[Rule]:
    for where, node, _ in _items(given, "rules", nodes):
        row = _located(node, where, given.source, "an item of rules")
        _refuse_unknown(row, _RULE_KEYS)
        metric = row.take("metric", _metric(declared), None, wanted=f"one of {', '.join(known_metrics(declared))}")
        yield Rule(
            workload=row.take("workload", text, "*", wanted="a text: a workload or a pattern"),
            metric=metric,
            phase=row.take("phase", one_of(*PHASES), None, wanted=f"one of {', '.join(PHASES)}"),
            tolerance=row.take("tolerance", _tolerance, None, wanted=_SHARE),
            floor=row.take("floor", _duration, None, wanted=_SPAN),
            percentiles=row.take(
                "percentiles", list_of(_percentile), None, wanted="a list of percentiles, as in [p50]"
            ),
            gate=row.take("gate", one_of(*GATES), None, wanted=f"one of {', '.join(GATES)}"),
            lines={key: row.where(key) for key in row.values},
        )


# --- nested mappings with the lines of their keys ---------------------------------------------------------------


def _children(source_text: str) -> dict[str, yaml.Node]:
    """Top-level key -> its YAML node; the text was already read once, so it is a mapping."""
    node = yaml.compose(source_text, Loader=yaml.SafeLoader)
    assert isinstance(node, yaml.MappingNode)
    return {key.value: value for key, value in node.value}


def _child(node: yaml.Node, name: str) -> yaml.Node:
    assert isinstance(node, yaml.MappingNode)
    children: dict[str, yaml.Node] = {str(key.value): value for key, value in node.value}
    return children[str(name)]


def _mapping(given: Located, key: str, nodes: Mapping[str, yaml.Node]) -> Located:
    return _located(nodes[key], given.where(key), given.source, key)


def _located(node: yaml.Node, where: str, source: str, what: str) -> Located:
    """A nested mapping with the lines of its keys."""
    if not isinstance(node, yaml.MappingNode):
        raise SettingsError(f"{where}: {what} must be a mapping of keys to values")
    lines: dict[str, int] = {}
    for key, _ in node.value:
        line = key.start_mark.line + 1
        if key.value in lines:
            raise SettingsError(
                f"{source}:{line}: the key {key.value!r} stands twice (first on line {lines[key.value]})"
            )
        lines[key.value] = line
    return Located({str(key): value for key, value in _plain(node).items()}, lines, source)


def _plain(node: yaml.Node) -> Any:
    """The Python value of a node."""
    return yaml.safe_load(yaml.serialize(node))


def _items(given: Located, key: str, nodes: Mapping[str, yaml.Node]) -> Iterator[tuple[str, yaml.Node, Any]]:
    """Items of a list as (``file:line``, node, value); nothing where the key is absent."""
    if key not in given.values:
        return
    node = nodes[key]
    if not isinstance(node, yaml.SequenceNode):
        raise SettingsError(f"{given.where(key)}: {key} is {given.values[key]!r}; it must be a list")
    for item in node.value:
        yield f"{given.source}:{item.start_mark.line + 1}", item, _plain(item)


def _refuse_unknown(given: Located, allowed: Iterable[str]) -> None:
    known = list(allowed)
    for key in given.values:
        if key not in known:
            near = difflib.get_close_matches(str(key), known, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise SettingsError(f"{given.where(key)}: unknown key {key!r}; {hint}allowed: {', '.join(known)}")


# --- converters --------------------------------------------------------------------------------------------------


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError
    return float(value)


def _share(value: Any) -> float:
    number = _number(value)
    if not 0 < number < 1:
        raise ValueError
    return number


def _fraction(value: Any) -> float:
    number = _number(value)
    if not 0 <= number < 1:
        raise ValueError
    return number


def _tolerance(value: Any) -> float:
    """A tolerance; 1 and more is refused because it is almost surely meant in per cent."""
    return _share(value)


def _duration(value: Any) -> float:
    if value == 0 and not isinstance(value, bool):
        return 0.0
    # 200 * 1e-6 is not the float nearest to 0.0002; a picosecond is far below any clock.
    return round(parse_duration(text(value), source=""), 12)


def _percentile(value: Any) -> float:
    return parse_percentile(text(value), source="")


def _fingerprint_key(value: Any) -> str:
    name = text(value)
    if name.split(".")[0] not in FINGERPRINT_KEYS:
        raise ValueError
    return name


def _metric(declared: Mapping[str, MetricFacts]) -> Callable[[Any], str]:
    def convert(value: Any) -> str:
        facts = facts_of(text(value), declared)
        if facts is None:
            raise ValueError
        return facts.name

    return convert


def _list_or_empty(convert: Callable[[Any], T]) -> Callable[[Any], tuple[T, ...]]:
    def convert_all(value: Any) -> tuple[T, ...]:
        return () if value == [] else list_of(convert)(value)

    return convert_all
