"""Are real regressions caught, and in the right phase? ``make planted`` (``python -m benchmarks.planted``)

Settings and weights of the embedded engine are changed one at a time, each change is measured and judged as a build
would be, and unchanged runs between them must raise no alarm. The page is written at the end, in one step; stopping
before writes nothing. Exit status: 0; 1 where a change was missed or named wrongly or an unchanged run raised an alarm;
2 where nothing could be measured.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from benchmarks._page import host_line, now_line, write_page
from benchmarks._planted_bench import Bench, TooNoisyError
from benchmarks._planted_matrix import MatrixError, load_matrix
from benchmarks._planted_words import Facts, alarms, page, rows_of
from phasegate import __version__
from phasegate.core.settings_file import SettingsError
from phasegate.core.workload import load_workload
from phasegate.engines.base import EngineError
from phasegate.gate.policy import Policy
from phasegate.gate.policy_file import parse_policy
from phasegate.measure.session_runner import MeasurementError

ROOT = Path(__file__).parents[1]
DATA = ROOT / "fixtures" / "planted"
PAGE = ROOT / "docs" / "planted-regressions.md"
WORKLOADS = ("prompt", "cache")


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.planted", description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA, help="folder with matrix.yaml, policy.yaml and workloads")
    parser.add_argument("--page", type=Path, default=PAGE, help="where the page is written")
    parser.add_argument(
        "--keep", type=Path, help="folder that keeps every session; what it holds already is not measured again"
    )
    parser.add_argument("--engine", choices=("embedded", "simulator"), default="embedded")
    parser.add_argument("--baseline-sessions", type=int, default=12)
    parser.add_argument("--unchanged-runs", type=int, default=20)
    parser.add_argument("--minutes", type=float, help="begin no further run after so many minutes")
    parser.add_argument("--seed", type=int, default=20_000)
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    """Measure, write the page, and say how it went."""
    args = arguments(words)
    try:
        return _measure(args, words)
    except (MatrixError, SettingsError, EngineError, MeasurementError, TooNoisyError) as error:
        print(f"planted: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("planted: stopped; nothing was written", file=sys.stderr)
        return 130


def _measure(args: argparse.Namespace, words: Sequence[str] | None) -> int:
    matrix = load_matrix(args.data / "matrix.yaml")
    rules = args.data / "policy.yaml"
    source = str(rules.relative_to(ROOT)) if rules.is_relative_to(ROOT) else str(rules)
    policy = parse_policy(rules.read_text(encoding="utf-8"), source) if rules.is_file() else Policy()
    workloads = [load_workload(args.data / f"{name}.yaml") for name in WORKLOADS]
    with ExitStack() as stack:
        root = args.keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="phasegate-planted-")))
        bench = Bench(
            matrix=matrix,
            workloads=workloads,
            policy=policy,
            folder=root,
            engine=args.engine,
            seed=args.seed,
            say=_Clock(),
            limit=args.minutes * 60 if args.minutes is not None else None,
        )
        bench.prepare()
        measured = bench.measure(args.baseline_sessions, args.unchanged_runs)
    server = measured.baseline[0].server
    facts = Facts(
        command=_command(sys.argv[1:] if words is None else words),
        when=now_line(),
        version=__version__,
        engine=f"{server['engine']} ({server['engine_version']}), model {server['model']}",
        host=host_line(),
        seed=args.seed,
    )
    write_page(args.page, page(measured, matrix, facts))
    print(f"wrote {args.page}")
    rows, wrong = rows_of(measured), alarms(measured)
    for row in rows:
        print(f"{row.run.name}: {row.outcome.value}")
    print(f"alarms in unchanged runs: {len(wrong)}")
    return 1 if wrong or any(row.outcome.bad for row in rows) else 0


class _Clock:
    """Prints a line with the time since the start."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def __call__(self, line: str) -> None:
        seconds = int(time.monotonic() - self._began)
        print(f"[{seconds // 60:2d}:{seconds % 60:02d}] {line}", flush=True)


def _command(words: Sequence[str]) -> str:
    return "make planted" if not words else f"python -m benchmarks.planted {shlex.join(words)}"


if __name__ == "__main__":
    sys.exit(main())
