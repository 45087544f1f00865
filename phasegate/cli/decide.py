"""``phasegate decide``: measure a workload and write down which phase binds it and what each lever would save.

Exit status: 0 written, 5 nothing could be measured or written, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import os
import secrets
import shlex
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from phasegate.core.showing import shown

if TYPE_CHECKING:
    from phasegate.core.workload import Workload
    from phasegate.diagnose import Observations
    from phasegate.gate.slo import Objective
    from phasegate.measure.connect import EngineOptions
    from phasegate.measure.session_runner import SessionRunner

LEVELS = (1, 4)
"""Users at a time, where nobody says otherwise."""

SIMULATED = "simulated"
"""What the simulator says of its hardware."""

EXAMPLES = Path("fixtures") / "workloads" / "examples"


def add_parser(subparsers: Any) -> None:
    """Declare the command and its options."""
    parser = subparsers.add_parser(
        "decide",
        help="measure a workload and write down which phase binds it and what each lever would save",
        description=(
            "Measure each WORKLOAD (a YAML file, or the name of one in fixtures/workloads/examples: support-bot, "
            "report-writer, reasoner) on a server and write a decision record in Markdown: the phases as measured, the "
            "phase that binds, what each lever would save by arithmetic, and what will not help."
        ),
    )
    parser.add_argument("workloads", metavar="WORKLOAD", nargs="+", help="workload file, or name of an example")
    parser.add_argument("--base-url", metavar="URL", help="server to measure; default: OPENAI_BASE_URL, else --engine")
    parser.add_argument("--model", metavar="NAME", help="model to ask for; default: the only one the server has")
    parser.add_argument("--engine", choices=("embedded", "simulator"), default="embedded", help="what to start else")
    parser.add_argument("--engine-config", metavar="SETTINGS", default="", help="of that engine, as 'key=value ...'")
    parser.add_argument(
        "--endpoint",
        choices=("chat", "completions", "messages", "ollama"),
        default="chat",
        help="for workloads that name none (default chat; messages is Anthropic's own, ollama Ollama's own)",
    )
    parser.add_argument(
        "--mark-prefix",
        action="store_true",
        help="mark the beginnings that a workload shares, for APIs that cache only what a request marks",
    )
    parser.add_argument(
        "--metrics-url",
        metavar="URL",
        action="append",
        default=[],
        help="metrics page of a worker behind the server, to read instead of the server's own; repeatable",
    )
    parser.add_argument("--requests", type=int, metavar="N", help="repetitions; default: what the workload says")
    parser.add_argument(
        "--concurrency", metavar="N", nargs="*", type=int, default=list(LEVELS), help="users (default 1 4)"
    )
    parser.add_argument("--slo", metavar="SLO", nargs="+", default=(), help="objectives, such as ttft:p95:500ms")
    parser.add_argument("--seed", type=int, metavar="N", help="of orders and arrivals; default: a new one")
    parser.add_argument(
        "--out", metavar="DIR", help="folder for the records (NAME.md) and their figures (NAME.json); default: print"
    )
    parser.add_argument("--before", metavar="DIR", help="folder of an earlier --out, to explain what changed since")


def run(args: argparse.Namespace) -> int:
    """Measure, write or print, and return the exit status."""
    from phasegate.core.naming import path_name
    from phasegate.core.prompt import CalibrationError
    from phasegate.core.settings_file import SettingsError
    from phasegate.engines.base import EngineError
    from phasegate.gate.exit_status import NOT_MEASURED, USAGE
    from phasegate.measure.connect import check_engine, connect, refuse_unused
    from phasegate.measure.session_runner import MeasurementError

    try:
        workloads, objectives = [_workload(name) for name in args.workloads], _objectives(args)
        engine_options = _engine_options(args)
        refuse_unused(engine_options, "--")
        check_engine(engine_options)
        out = _folder(args.out)
        for one in workloads:
            path_name(one.name, "the name of the workload")
        before = {one.name: _before(args.before, one.name) for one in workloads}
    except (SettingsError, ValueError, OSError, EngineError) as error:
        print(shown(f"phasegate decide: {error}"), file=sys.stderr)
        return USAGE
    try:
        with connect(engine_options) as runner:
            for warning in runner.warnings:
                print(shown(f"warning: {warning}"), file=sys.stderr)
            for workload in workloads:
                _decide(runner, workload, objectives, args, out, before[workload.name])
    except (EngineError, MeasurementError, CalibrationError, ValueError, OSError) as error:
        print(shown(f"phasegate decide: {error}"), file=sys.stderr)
        return NOT_MEASURED
    return 0


def _decide(
    runner: SessionRunner,
    workload: Workload,
    objectives: list[Objective],
    args: argparse.Namespace,
    out: Path | None,
    before: Observations | None,
) -> None:
    from phasegate.diagnose.codec import to_json
    from phasegate.measure.measure_for_diagnosis import measure_for_diagnosis
    from phasegate.report.decision_record import Circumstances, decision_record
    from phasegate.report.files import write_text

    traffic = out is not None or before is not None
    levels = sorted(set(args.concurrency))
    measured_for_diagnosis = measure_for_diagnosis(
        runner, workload, levels=levels, objectives=objectives, traffic=traffic, say=_tell
    )
    circumstances = Circumstances(
        command=_command(args),
        when=f"{datetime.now(timezone.utc):%Y-%m-%d %H:%M} UTC",
        server=runner.server.describe(),
        client=runner.client.describe(),
        seed=runner.seed,
        simulated=runner.server.hardware == SIMULATED,
    )
    text = decision_record(measured_for_diagnosis, circumstances, before)
    if out is None:
        print(shown(text, lines=True))
        return
    path = out / f"{workload.name}.md"
    write_text(path, text)
    write_text(path.with_suffix(".json"), to_json(measured_for_diagnosis.observations))
    _tell(f"wrote {path}")


def _before(folder: str | None, name: str) -> Observations | None:
    """The situation that an earlier run stored.

    Raises:
        OSError, ValueError: it is not there, or cannot be used.
    """
    from phasegate.diagnose.codec import from_json

    if folder is None:
        return None
    path = Path(folder) / f"{name}.json"
    if not path.is_file():
        raise FileNotFoundError(f"--before: no {path}; give the folder of an earlier --out")
    return from_json(path.read_text(encoding="utf-8"), str(path))


def _tell(line: str) -> None:
    print(shown(line), file=sys.stderr, flush=True)


def _command(args: argparse.Namespace) -> str:
    """The command without what differs from run to run or belongs to one machine."""
    words = ["phasegate", "decide", *(Path(name).stem for name in args.workloads)]
    if args.base_url or os.environ.get("OPENAI_BASE_URL"):
        words.append("--base-url=URL")
    elif args.engine != "embedded":
        words.append(f"--engine={args.engine}")
    if args.engine_config:
        words.append(f"--engine-config={args.engine_config}")
    if args.endpoint != "chat":
        words.append(f"--endpoint={args.endpoint}")
    if args.mark_prefix:
        words.append("--mark-prefix")
    words += ["--metrics-url=URL"] * len(args.metrics_url)
    if args.requests is not None:
        words.append(f"--requests={args.requests}")
    if tuple(args.concurrency) != LEVELS:
        words += ["--concurrency", *map(str, args.concurrency)]
    if args.slo:
        words += ["--slo", *args.slo]
    return shlex.join(words)


def _workload(name: str) -> Workload:
    """The workload of a path, or of an example's name.

    Raises:
        SettingsError: neither is there, or it cannot be used.
    """
    from phasegate.core.settings_file import SettingsError
    from phasegate.core.workload import load_workload

    path = Path(name)
    if path.is_dir():
        raise SettingsError(f"the workload {name!r} is no file; give a YAML file, or the name of an example")
    if not path.suffix and not path.exists():
        path = EXAMPLES / f"{name}.yaml"
        if not path.exists():
            known = ", ".join(sorted(one.stem for one in EXAMPLES.glob("*.yaml"))) or "none here"
            raise SettingsError(f"no workload {name!r}; give a YAML file, or the name of an example ({known})")
    return load_workload(path)


def _objectives(args: argparse.Namespace) -> list[Objective]:
    from phasegate.gate.slo import parse_objective

    if any(level < 1 for level in args.concurrency):
        raise ValueError(f"--concurrency: {min(args.concurrency)} is not a number of users; give 1 or more")
    return [parse_objective(word, source="--slo") for word in " ".join(args.slo).split()]


def _engine_options(args: argparse.Namespace) -> EngineOptions:
    from phasegate.engines.metrics.page import page_url
    from phasegate.measure.connect import EngineOptions

    if args.requests is not None and args.requests < 1:
        raise ValueError(f"--requests is {args.requests}; it must be at least 1")
    return EngineOptions(
        base_url=args.base_url or os.environ.get("OPENAI_BASE_URL") or None,
        model=args.model,
        engine=args.engine,
        engine_config=args.engine_config,
        endpoint=args.endpoint,
        mark_prefix=args.mark_prefix,
        requests=args.requests,
        seed=secrets.randbits(32) if args.seed is None else args.seed,
        metrics_urls=tuple(page_url(one, "--metrics-url") for one in args.metrics_url),
    )


def _folder(word: str | None) -> Path | None:
    """The folder for records, made where it is missing.

    Raises:
        OSError: it is a file; one line.
        UnwritableError: it cannot be made, or takes no files.
    """
    from phasegate.core.atomic_write import UnwritableError, check_writable, os_words

    if word is None:
        return None
    folder = Path(word)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise OSError(f"--out {word}: is a file; give a folder for the records") from None
    except NotADirectoryError as error:
        raise OSError(f"--out {word}: the folder cannot be made ({error.strerror})") from None
    except OSError as error:
        raise UnwritableError(f"--out {word}: the folder cannot be made: {os_words(error)}") from None
    check_writable(folder, "--out")
    return folder
