"""Reading a policy file: every key checked, every mistake one line with file, line, allowed values and nearest match.

A misspelt tolerance that is silently ignored is a gate that is silently open, so nothing unknown passes at any depth.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import yaml

from phasegate.core.metric import Better
from phasegate.core.settings_file import Located, SettingsError, list_of, load_mapping, one_of, text, whole_number
from phasegate.gate import policy_values as convert
from phasegate.gate.facts import PHASES, MetricFacts, facts_of, known_metrics
from phasegate.gate.policy import Policy, Rule
from phasegate.gate.policy_limits import refuse_above_tolerance
from phasegate.gate.slo import Objective, parse_objective

GATES = ("binding", "always", "never")
INCONCLUSIVE = ("fail", "pass-with-warning")

_TOP_KEYS = (
    "alpha", "tolerance", "fail-from", "other-phase", "floor", "percentiles", "gate", "sessions", "inconclusive",
    "max_error_rate", "max_unfit_rate", "suspect_ratio", "sentinel", "compare_across", "slos", "metrics", "rules",
)  # fmt: skip
_SESSION_KEYS = {
    "baseline_minimum": "baseline_minimum",
    "candidate_minimum": "candidate_minimum",
    "first": "first_sessions",
    "budget": "session_budget",
    "window": "window",
}
_RULE_KEYS = ("workload", "metric", "phase", "tolerance", "fail-from", "floor", "percentiles", "gate")
_BY_PHASE: Mapping[str, tuple[str, Callable[[Any], float], str]] = {
    "tolerance": ("tolerance", convert.tolerance, convert.SLOWDOWN),
    "fail-from": ("fail_from", convert.slowdown, convert.SLOWDOWN),
    "floor": ("floor", convert.duration, convert.SPAN),
}
"""Key -> (name in the policy, converter, what it takes) of what is given for each phase."""


def parse_policy(source_text: str, source: str) -> Policy:
    """The policy in a YAML text.

    Raises:
        SettingsError: one line for the user.
    """
    given = _known(load_mapping(source_text, source), _TOP_KEYS)
    values: dict[str, Any] = {}
    sources = {key: given.where(key) for key in given.values}
    _take_top(given, values)
    nodes = _children(source_text)
    for key, (name, read, wanted) in _BY_PHASE.items():
        if key in given.values:
            example = "200us" if key == "floor" else "5%"
            part = _located(nodes[key], given.where(key), given.source, key, f", such as {{decode: {example}}}")
            values[name] = {**getattr(Policy(), name), **_phases(part, read, sources, key, wanted)}
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
    refuse_above_tolerance(policy)
    return policy


def _take_top(given: Located, values: dict[str, Any]) -> None:
    """The values that are not mappings or lists of mappings."""
    readers: Mapping[str, tuple[Callable[[Any], Any], str]] = {
        "alpha": (convert.share, convert.SHARE),
        "other-phase": (convert.times_or_off, convert.TIMES),
        "percentiles": (list_of(convert.percentile), "a percentile such as p50, or a list of different ones"),
        "gate": (one_of(*GATES[:2]), f"one of {', '.join(GATES[:2])}"),
        "inconclusive": (one_of(*INCONCLUSIVE), f"one of {', '.join(INCONCLUSIVE)}"),
        "max_error_rate": (convert.fraction, "a fraction from 0 to below 1, such as 0.05 for 5 %"),
        "max_unfit_rate": (convert.fraction, "a fraction from 0 to below 1, such as 0.5 for 50 %"),
        "suspect_ratio": (convert.fraction, "a fraction from 0 (never suspect) to below 1, such as 0.2"),
        "sentinel": (text, "a text: the name of a workload, or a pattern"),
        "compare_across": (
            convert.list_or_empty(convert.fingerprint_key),
            f"a list of keys from {', '.join(convert.FINGERPRINT_KEYS)}",
        ),
    }
    for key, (read, wanted) in readers.items():
        if key in given.values:
            values[key.replace("-", "_")] = given.take(key, read, None, wanted=wanted)


def _take_sessions(part: Located, values: dict[str, Any], sources: dict[str, str]) -> None:
    part = _known(part, _SESSION_KEYS)
    for key, name in _SESSION_KEYS.items():
        if key in part.values:
            values[name] = part.take(key, whole_number(1), 0, wanted="a whole number of at least 1")
            sources[f"sessions.{key}"] = part.where(key)


def _phases(
    part: Located, read: Callable[[Any], float], sources: dict[str, str], key: str, wanted: str
) -> dict[str, float]:
    _known(part, PHASES)
    for phase in part.values:
        sources[f"{key}.{phase}"] = part.where(phase)
    return {phase: part.take(phase, read, 0.0, wanted=wanted) for phase in part.values}


def _metrics(part: Located, nodes: Mapping[str, yaml.Node]) -> Iterator[tuple[str, MetricFacts]]:
    for name in part.values:
        if facts_of(name) is not None:
            raise SettingsError(f"{part.where(name)}: the metric {name!r} is built in; give yours another name")
        row = _located(_child(nodes["metrics"], name), part.where(name), part.source, f"metrics.{name}")
        _known(row, ("unit", "phase", "better"))
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
        _known(row, ("workload", "objective"))
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
        row = _known(_located(node, where, given.source, "an item of rules"), _RULE_KEYS)
        metric = row.take(
            "metric", convert.metric(declared), None, wanted=f"one of {', '.join(known_metrics(declared))}"
        )
        yield Rule(
            workload=row.take("workload", text, "*", wanted="a text: a workload or a pattern"),
            metric=metric,
            phase=row.take("phase", one_of(*PHASES), None, wanted=f"one of {', '.join(PHASES)}"),
            tolerance=row.take("tolerance", convert.tolerance, None, wanted=convert.SLOWDOWN),
            fail_from=row.take("fail-from", convert.slowdown, None, wanted=convert.SLOWDOWN),
            floor=row.take("floor", convert.duration, None, wanted=convert.SPAN),
            percentiles=row.take(
                "percentiles", list_of(convert.percentile), None, wanted="a list of percentiles, as in [p50]"
            ),
            gate=row.take("gate", one_of(*GATES), None, wanted=f"one of {', '.join(GATES)}"),
            lines={key: row.where(key) for key in row.values},
        )


# --- nested mappings with the lines of their keys ---------------------------------------------------------------


def _children(source_text: str) -> dict[str, yaml.Node]:
    """Top-level key -> its YAML node; the text was already read once, so it is a mapping."""
    node = yaml.compose(source_text, Loader=yaml.SafeLoader)
    assert isinstance(node, yaml.MappingNode)
    return {_spelt(key.value, _TOP_KEYS): value for key, value in node.value}


def _child(node: yaml.Node, name: str) -> yaml.Node:
    assert isinstance(node, yaml.MappingNode)
    children: dict[str, yaml.Node] = {str(key.value): value for key, value in node.value}
    return children[str(name)]


def _mapping(given: Located, key: str, nodes: Mapping[str, yaml.Node]) -> Located:
    return _located(nodes[key], given.where(key), given.source, key)


def _located(node: yaml.Node, where: str, source: str, what: str, example: str = "") -> Located:
    """A nested mapping with the lines of its keys."""
    if not isinstance(node, yaml.MappingNode):
        raise SettingsError(f"{where}: {what} must be a mapping of keys to values{example}")
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


def _known(given: Located, allowed: Iterable[str]) -> Located:
    """The mapping under the documented names of its keys, all of which are known.

    Raises:
        SettingsError: a key is unknown, or stands twice in two spellings.
    """
    known = list(allowed)
    names: dict[str, str] = {}
    for key in given.values:
        name = _spelt(key, known)
        if name not in known:
            near = difflib.get_close_matches(str(key), known, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise SettingsError(f"{given.where(key)}: unknown key {key!r}; {hint}allowed: {', '.join(known)}")
        if name in names.values():
            raise SettingsError(f"{given.where(key)}: the key {name!r} stands twice; write it once")
        names[key] = name
    return Located(
        {names[key]: value for key, value in given.values.items()},
        {names.get(key, key): line for key, line in given.lines.items()},
        given.source,
    )


def _spelt(key: Any, known: Iterable[str]) -> Any:
    """The known key that it is, a hyphen and an underscore being the same; itself where there is none."""
    plain = str(key).replace("-", "_")
    return next((one for one in known if one.replace("-", "_") == plain), key)
