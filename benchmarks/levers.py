"""What does each lever do to each phase? ``python -m benchmarks.levers``

Before/after pairs on the embedded engine: weights, flash attention, prompt pieces, slots, prefix cache, draft model. It
takes about five minutes of a quiet machine and writes docs/levers-measured.md in one step at the end.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from benchmarks._levers_bench import LEVERS, Lever, measure
from benchmarks._levers_page import Facts, page
from benchmarks._page import host_line, load_line, now_line, write_page
from phasegate.engines.base import EngineError
from phasegate.engines.embedded_config import parse_config
from phasegate.engines.generated.store import ensure_model
from phasegate.measure.session_runner import MeasurementError

PAGE = Path(__file__).parents[1] / "docs" / "levers-measured.md"


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.levers", description=__doc__.splitlines()[0])
    parser.add_argument("--page", type=Path, default=PAGE, help="where the page is written")
    parser.add_argument("--only", metavar="TEXT", help="only levers whose name contains this")
    parser.add_argument("--blocks", type=int, metavar="N", help="blocks of each pair; default: each pair's own")
    parser.add_argument("--seed", type=int, default=31, help="of the prompts")
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    """Measure and write. Exit status 0; 2 where nothing could be measured."""
    args = arguments(words)
    chosen = [one for one in LEVERS if args.only is None or args.only in one.name]
    if not chosen or (args.blocks is not None and args.blocks < 1):
        print(f"levers: --only {args.only!r} or --blocks {args.blocks} leaves nothing to measure", file=sys.stderr)
        return 2
    try:
        prepare(chosen)
        began, load = time.monotonic(), load_line()
        measured = []
        for one in chosen:
            print(f"[{time.monotonic() - began:4.0f} s] {one.name}", flush=True)
            measured.append(measure(one, args.seed, args.blocks))
        seconds = time.monotonic() - began
    except (EngineError, MeasurementError) as error:
        print(f"levers: {error}", file=sys.stderr)
        return 2
    facts = Facts(
        command=_command(args),
        when=now_line(),
        engine=f"llama.cpp (xllamacpp {metadata.version('xllamacpp')}), generated model",
        host=host_line(),
        load=f"{load} before",
        seconds=seconds,
    )
    write_page(args.page, page(measured, facts))
    print(f"wrote {args.page}")
    return 0


def prepare(levers: Sequence[Lever]) -> None:
    """Generate every model beforehand, so that writing them disturbs nothing."""
    for lever in levers:
        for settings in (lever.before, lever.after):
            config = parse_config(settings, source=lever.name)
            ensure_model(config.spec())
            draft = config.draft_spec()
            if draft is not None:
                ensure_model(draft)


def _command(args: argparse.Namespace) -> str:
    extra = [f" --only {args.only!r}" if args.only else "", f" --blocks {args.blocks}" if args.blocks else ""]
    return f"python -m benchmarks.levers{''.join(extra)}"


if __name__ == "__main__":
    sys.exit(main())
