"""A session as text and back: pytest-benchmark's JSON with our facts beside it.

``pytest-benchmark compare`` finds in it what it needs (top-level machine_info, commit_info, datetime, version and
benchmarks; in each the group, name, params and summary fields, as written by pytest-benchmark 5). We read only
``stats.data``, the raw samples, and ``extra_info``; summaries are for other readers and never trusted.

The text is made for review: keys sorted, samples on one line, values rounded to a microsecond or to four significant
digits where that is finer (a fast decoder's time per token is less than a millisecond).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, NoReturn

from phasegate.core.session import Measurement, Session
from phasegate.gate.facts import facts_of
from phasegate.store.baseline_summary import summary_fields

SCHEMA = 1
"""Version of this layout; a file of another version is refused, not guessed at."""

BENCHMARK_VERSION = "5.1.0"
"""The version of pytest-benchmark whose layout the file follows."""

LARGEST = 1e15
"""No span, and no rate, is larger; what is, is no measurement."""

_OWN_FIELDS = ("workload", "metric", "phase", "workload_digest", "token_source", "requests", "failed", "invalid")


class InvalidBaselineError(ValueError):
    """A stored session that cannot be used. The message is one line that names the file and the place."""


def session_text(session: Session, *, commit: Mapping[str, Any] | None = None) -> str:
    """The file of a session.

    Args:
        session: every sample finite and above 0.
        commit: facts about the code under test, for ``commit_info``; None for none.

    Raises:
        ValueError: a sample that is not a positive finite number, or a fact that JSON cannot hold.
    """
    measured = [one for one in session.measurements if one.samples]
    document = {
        "benchmarks": [_benchmark(one) for one in measured],
        "commit_info": dict(commit or {}),
        "datetime": session.recorded_at,
        "machine_info": {
            "client": dict(session.client),
            "fingerprint": session.fingerprint,
            "host": session.host,
            "server": dict(session.server),
        },
        "phasegate": {
            "disturbed": session.disturbed,
            "schema": SCHEMA,
            "session_id": session.session_id,
            # pytest-benchmark cannot show a benchmark without samples, so these stay apart.
            "unmeasured": [_extra_info(one) for one in session.measurements if not one.samples],
        },
        "version": BENCHMARK_VERSION,
    }
    return _pretty(document, "") + "\n"


def _benchmark(one: Measurement) -> dict[str, Any]:
    samples = [_rounded(value, one) for value in one.samples]
    name = f"{one.workload} {one.metric}"
    return {
        "extra_info": _extra_info(one),
        "fullname": name,
        "group": name,
        "name": name,
        "options": {},
        "param": None,
        "params": None,
        "stats": {**summary_fields(samples, _rounded_summary), "data": samples, "iterations": 1},
    }


def _extra_info(one: Measurement) -> dict[str, Any]:
    info = {field: getattr(one, field) for field in _OWN_FIELDS}
    return {**info, "flags": sorted(one.flags), "unit": unit_of(one.metric)}


def unit_of(metric: str) -> str | None:
    """The unit in which files hold a metric; None for a metric that only a policy knows."""
    facts = facts_of(metric)
    return facts.unit if facts is not None else None


def _rounded(value: float, one: Measurement) -> float:
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"{one.workload} {one.metric}: a sample is {value!r}; only positive finite values are stored")
    return _rounded_summary(value)


def _rounded_summary(value: float) -> float:
    """To a microsecond, or to four significant digits where that is finer."""
    if value == 0 or not math.isfinite(value):
        return value
    return round(value, max(6, 3 - math.floor(math.log10(abs(value)))))


def _pretty(value: Any, indent: str) -> str:
    """JSON with sorted keys, one key a line, and lists of plain values on one line."""
    deeper = indent + " "
    if isinstance(value, Mapping) and value:
        rows = [f"{deeper}{json.dumps(str(key))}: {_pretty(value[key], deeper)}" for key in sorted(value, key=str)]
        return "{\n" + ",\n".join(rows) + f"\n{indent}}}"
    if isinstance(value, (list, tuple)) and any(isinstance(item, (Mapping, list, tuple)) for item in value):
        return "[\n" + ",\n".join(deeper + _pretty(item, deeper) for item in value) + f"\n{indent}]"
    return json.dumps(value, sort_keys=True, allow_nan=False)


# --- reading -------------------------------------------------------------------------------------------------------


def parse_session(text: str, source: str) -> Session:
    """The session in a text.

    Args:
        text: what the file holds.
        source: the file, for messages.

    Raises:
        InvalidBaselineError: truncated, not finite, not positive, other unit, other version, or not a session at all.
    """
    document = load_json(text, source)
    own = document.get("phasegate") if isinstance(document, dict) else None
    if not isinstance(document, dict) or not isinstance(own, dict):
        raise InvalidBaselineError(f"{source}: not a session file of phasegate (the key 'phasegate' is missing)")
    if own.get("schema") != SCHEMA:
        raise InvalidBaselineError(
            f"{source}: schema version {own.get('schema')!r}, this phasegate reads {SCHEMA}; "
            "record it again, or use the version of phasegate that wrote it"
        )
    reader = _Reader(source)
    machine = reader.mapping(document, "machine_info")
    measurements = [reader.benchmark(item) for item in reader.rows(document, "benchmarks")]
    measurements += [reader.measurement(item, ()) for item in reader.rows(own, "unmeasured")]
    reader.refuse_repeats(measurements)
    return Session(
        session_id=reader.text(own, "session_id"),
        recorded_at=reader.text(document, "datetime"),
        measurements=tuple(measurements),
        server=reader.mapping(machine, "server"),
        client=reader.mapping(machine, "client"),
        fingerprint=reader.text(machine, "fingerprint"),
        host=reader.optional_text(machine, "host"),
        disturbed=reader.optional_text(own, "disturbed"),
    )


def load_json(text: str, source: str, *, allow_constants: bool = False) -> Any:
    """JSON in a text.

    Args:
        text: what the file holds.
        source: the file, for messages.
        allow_constants: take NaN and Infinity, which other tools write for settings such as an unlimited rate; the
            caller then checks what it uses.

    Raises:
        InvalidBaselineError: one line naming the file and the position.
    """

    def refuse(word: str) -> NoReturn:
        where = text.find(word)
        line, column = text.count("\n", 0, where) + 1, where - text.rfind("\n", 0, where)
        raise InvalidBaselineError(
            f"{source}: line {line} column {column}: {word} is not a measurement; record it again"
        )

    try:
        return json.loads(text, parse_constant=None if allow_constants else refuse)
    except json.JSONDecodeError as error:
        cut = "the file ends too early" if error.pos >= len(text.rstrip()) - 1 else "not readable as JSON"
        raise InvalidBaselineError(
            f"{source}: line {error.lineno} column {error.colno} (character {error.pos}): {cut}: {error.msg}; "
            "restore the file or record it again"
        ) from None
    except RecursionError:
        raise InvalidBaselineError(f"{source}: nested too deeply to be a session") from None
    except ValueError as error:
        if isinstance(error, InvalidBaselineError):
            raise
        # A whole number of more digits than Python reads.
        raise InvalidBaselineError(f"{source}: a number in it has thousands of digits; record it again") from None


class _Reader:
    """Takes typed values out of a document; every complaint names the file and the key."""

    def __init__(self, source: str) -> None:
        self.source = source

    def fail(self, what: str) -> NoReturn:
        raise InvalidBaselineError(f"{self.source}: {what}")

    def mapping(self, parent: Mapping[str, Any], key: str) -> dict[str, Any]:
        value = parent.get(key)
        return value if isinstance(value, dict) else self.fail(f"{key} is missing or not a mapping")

    def rows(self, parent: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
        value = parent.get(key)
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            self.fail(f"{key} is missing or not a list of mappings")
        return value

    def text(self, parent: Mapping[str, Any], key: str) -> str:
        value = parent.get(key)
        return value if isinstance(value, str) else self.fail(f"{key} is {value!r}; it must be a text")

    def optional_text(self, parent: Mapping[str, Any], key: str) -> str | None:
        return None if parent.get(key) is None else self.text(parent, key)

    def count(self, parent: Mapping[str, Any], key: str, where: str) -> int:
        value = parent.get(key)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            self.fail(f"{where}: {key} is {value!r}; it must be a whole number of at least 0")
        return value

    def benchmark(self, item: Mapping[str, Any]) -> Measurement:
        info, stats = self.mapping(item, "extra_info"), self.mapping(item, "stats")
        where = f"{info.get('workload')} {info.get('metric')}"
        data = stats.get("data")
        if not isinstance(data, list) or not data:
            self.fail(f"{where}: stats.data holds no samples")
        return self.measurement(info, tuple(self.sample(value, index, where) for index, value in enumerate(data)))

    def sample(self, value: Any, index: int, where: str) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            self.fail(f"{where}: sample {index + 1} is {value!r}; it must be a number")
        # Compared rather than converted: a whole number may be too large to be a float at all.
        if not 0 < value < LARGEST:
            self.fail(f"{where}: sample {index + 1} is {value!r}; a measurement is finite and above 0")
        return float(value)

    def measurement(self, info: Mapping[str, Any], samples: tuple[float, ...]) -> Measurement:
        workload, metric = self.text(info, "workload"), self.text(info, "metric")
        where = f"{workload} {metric}"
        expected, unit = unit_of(metric), info.get("unit")
        if unit != expected:
            self.fail(
                f"{where}: the unit is {unit!r}, expected {expected!r}; values of other units are never converted"
            )
        flags = info.get("flags", [])
        if not isinstance(flags, list) or not all(isinstance(flag, str) for flag in flags):
            self.fail(f"{where}: flags is {flags!r}; it must be a list of texts")
        return Measurement(
            workload=workload,
            metric=metric,
            samples=samples,
            phase=self.text(info, "phase"),
            workload_digest=self.text(info, "workload_digest"),
            token_source=self.optional_text(info, "token_source"),
            requests=self.count(info, "requests", where),
            failed=self.count(info, "failed", where),
            invalid=self.count(info, "invalid", where),
            flags=tuple(flags),
        )

    def refuse_repeats(self, measurements: list[Measurement]) -> None:
        seen: set[tuple[str, str]] = set()
        for one in measurements:
            if (one.workload, one.metric) in seen:
                self.fail(f"{one.workload} {one.metric} stands twice")
            seen.add((one.workload, one.metric))
