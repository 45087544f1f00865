"""Does the simulator, fitted to a real engine, predict it elsewhere? ``python -m benchmarks.simulator_fit``

The embedded engine is measured at a few prompt lengths and batch sizes, the simulator's costs are fitted to that
(`phasegate.engines.simulator.fit`), and then both are measured at lengths, contexts and concurrencies that the fit has
not seen, by the same client. The error of a prediction is predicted / measured - 1. The page is written at the end in
one step. Needs an otherwise idle machine; about three minutes (``--quick``: one).
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

from benchmarks._fit_cells import FITTED, HELD_OUT, Cell, CellRun, measure
from benchmarks._fit_page import Facts, page, predictions, summary_lines
from benchmarks._page import host_line, now_line, write_page
from phasegate import __version__
from phasegate.core.prompt import CalibrationError
from phasegate.engines.base import EngineError
from phasegate.engines.embedded_config import EmbeddedConfig, parse_config
from phasegate.engines.simulator.config import CacheMode, SimulatorConfig
from phasegate.engines.simulator.fit import FirstToken, PerToken, fit
from phasegate.measure.connect import EngineOptions, connect
from phasegate.measure.session_runner import MeasurementError

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "explanation" / "simulator-fit.md"
ROUNDS, QUICK_ROUNDS = 3, 1
GATHER = 0.002
"""Seconds: in most waves of requests sent 0.1 ms apart, all first tokens came together."""


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.simulator_fit", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_ROUNDS} round instead of {ROUNDS}")
    parser.add_argument("--engine-config", default="", metavar="KEY=VALUE...", help="settings of the embedded engine")
    parser.add_argument("--page", type=Path, default=PAGE, help="where the page is written")
    parser.add_argument("--no-page", action="store_true", help="print the table and write nothing")
    parser.add_argument("--noisy", action="store_true", help="go on where other processes are busy; the page says so")
    parser.add_argument("--seed", type=int, default=4_000)
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    """Measure, fit, predict, print, write the page. Exit status 2 where nothing could be measured."""
    args = arguments(words)
    try:
        return _run(args, sys.argv[1:] if words is None else words)
    except (EngineError, MeasurementError, CalibrationError) as error:
        print(f"simulator_fit: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("simulator_fit: stopped; nothing was written", file=sys.stderr)
        return 130


def _run(args: argparse.Namespace, words: Sequence[str]) -> int:
    rounds = QUICK_ROUNDS if args.quick else ROUNDS
    settings = parse_config(args.engine_config, source="--engine-config")
    engine_options = EngineOptions(base_url=None, engine_config=args.engine_config, seed=args.seed)
    with connect(engine_options, _say) as runner:
        engine = measure(runner, (*FITTED, *HELD_OUT), rounds, _say, noisy=args.noisy)
        server, template = runner.server, runner.calibration("chat").overhead
    fitted = fit_to(engine, base_for(settings, template))
    simulator = EngineOptions(base_url=None, engine="simulator", engine_config=_words(fitted), seed=args.seed)
    with connect(simulator, _say) as runner:
        predicted = measure(runner, HELD_OUT, rounds, _say, noisy=args.noisy)
    rows = predictions(HELD_OUT, engine, predicted, settings.n_parallel)
    for line in summary_lines(rows):
        print(line)
    facts = Facts(
        command=" ".join(["python -m benchmarks.simulator_fit", shlex.join(words)]).strip(),
        when=now_line(),
        version=__version__,
        engine=f"{server.engine} ({server.version}), model {server.model}, {settings.n_parallel} slots",
        host=host_line(),
        rounds=rounds,
        disturbed=sum(run.disturbed for runs in (engine, predicted) for run in runs.values()),
    )
    if not args.no_page:
        write_page(args.page, page(rows, fitted, facts))
        print(f"wrote {args.page}")
    return 0


def base_for(settings: EmbeddedConfig, template: int) -> SimulatorConfig:
    """What an operator chose, in the simulator's words; the costs are still its defaults.

    llama.cpp's loop puts the next token of every decoding request into a batch and fills it up with prompts, oldest
    first, to ``n_batch`` tokens: that is the simulator's step. Each slot keeps its share of the KV memory, so nobody
    is thrown out. Every prompt is new, so no cache is needed. The threads that take up requests share the one core with
    the loop, so requests that come within `GATHER` of each other are mostly read in one step.
    """
    share = settings.context // settings.n_parallel
    return SimulatorConfig(
        context_limit=share,
        kv_capacity_tokens=settings.context,
        max_sequences=settings.n_parallel,
        step_token_budget=settings.n_batch,
        template_tokens=template,
        cache=CacheMode.OFF,
        gather_seconds=GATHER,
    )


def fit_to(engine: dict[Cell, CellRun], base: SimulatorConfig) -> SimulatorConfig:
    """The simulator's costs from the fitted cells alone."""
    ttft = [FirstToken(cell.prompt, engine[cell].median("ttft")) for cell in FITTED if cell.alone]
    tpot = []
    for cell in FITTED:
        joint = None if cell.alone else engine[cell].joint_first_token()
        if joint is not None:
            ttft.append(FirstToken(cell.prompt, joint, cell.streams))
    for cell in FITTED:
        seconds, context = engine[cell].step()
        tpot.append(PerToken(cell.streams, context, seconds))
    return fit(base, ttft, tpot)


def _words(config: SimulatorConfig) -> str:
    """Every setting that differs from the default, as words that `SimulatorConfig.from_words` reads back."""
    default = SimulatorConfig()
    changed = [
        (one.name, getattr(config, one.name))
        for one in fields(config)
        if getattr(config, one.name) != getattr(default, one.name)
    ]
    return " ".join(f"{name}={getattr(value, 'value', value)}" for name, value in changed)


def _say(line: str) -> None:
    print(f"  {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
