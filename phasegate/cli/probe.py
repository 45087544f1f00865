"""``phasegate probe``: send one or a few requests, print what came back phase by phase.

With ``--prompt`` and ``--model`` nothing but the requests themselves is sent, in the plainest dialect, so that what is
measured is what was asked. Without an address the embedded engine is started for the occasion.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from phasegate.core.showing import shown
from phasegate.core.units import parse_duration

if TYPE_CHECKING:
    from phasegate.core.request import Request
    from phasegate.core.target import Target
    from phasegate.core.timeline import Timeline
    from phasegate.load.shapes import Shape
    from phasegate.measure.connect import EngineOptions
    from phasegate.measure.session_runner import SessionRunner

PREFIX = "--"
"""How this command's options of load begin."""

DEFAULT_PROMPT = "In one sentence: what sets the time to the first token?"


def add_parser(subparsers: Any) -> None:
    """Declare the command and its options."""
    parser = subparsers.add_parser("probe", help="measure one or a few requests and draw their two phases")
    parser.add_argument("--base-url", metavar="URL", help="server to measure; default: OPENAI_BASE_URL, else embedded")
    parser.add_argument("--model", metavar="NAME", help="model to ask for; default: the only one the server has")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--prompt", metavar="TEXT", help="prompt, sent as it stands")
    what.add_argument("--input-tokens", type=_count, metavar="N", help="a new prompt of exactly N tokens each time")
    what.add_argument("--trace", metavar="FILE", help="replay this trace's moments and lengths (JSONL or CSV)")
    parser.add_argument("--max-tokens", type=_count, default=32, metavar="N", help="output limit (default 32)")
    parser.add_argument("--requests", type=_count, metavar="N", help="how many (default 1; of a trace: all of it)")
    parser.add_argument("--max-concurrency", type=_count, metavar="C", help="at once (default 1; by rate: no cap)")
    parser.add_argument("--request-rate", metavar="RATE", help="arrivals a second: 4, inf, or a ramp 1:10:60s")
    parser.add_argument("--burstiness", metavar="X", help="of those arrivals: 1 Poisson (default), inf equal gaps")
    parser.add_argument("--trace-scale", metavar="X", help="times of the trace x this (default 1)")
    parser.add_argument("--endpoint", choices=("chat", "completions", "messages", "ollama"), default="chat")
    parser.add_argument("--idle-timeout", type=_seconds, default=60.0, metavar="S", help="longest silence (60)")
    parser.add_argument("--timeout", type=_seconds, default=300.0, metavar="S", help="longest request (300)")
    parser.add_argument("--json", action="store_true", help="print the record as one JSON object")
    parser.add_argument("--svg", metavar="FILE", help="draw the two phases of the first measured request here (.svg)")


def _count(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return number


def _seconds(text: str) -> float:
    """Seconds: a bare number, as the help says, or a number with its unit."""
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = parse_duration(text, source="option")
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error).removeprefix("option: ")) from None
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive time in seconds")
    return seconds


def run(args: argparse.Namespace) -> int:
    """Measure and print. Exit status 0: every request measured; 5: one failed; 2: wrong usage; 130: Ctrl-C."""
    import numpy as np

    from phasegate.core.faults import STOPPED
    from phasegate.core.hiding import hide_in
    from phasegate.core.prompt import CalibrationError
    from phasegate.engines.base import EngineError
    from phasegate.gate.exit_status import NOT_MEASURED, USAGE
    from phasegate.load.load_check import load_line, load_problem, load_record
    from phasegate.load.shapes_run import run_shape
    from phasegate.measure.session_runner import MeasurementError
    from phasegate.wire.decoding import decode

    try:
        _check_svg(args.svg)
        shape = _shape(args)
        with _requests(args, shape) as (target, requests):
            result = run_shape(target, requests, shape, np.random.default_rng())
    except (EngineError, MeasurementError, CalibrationError) as error:
        print(shown(f"phasegate probe: {error}"), file=sys.stderr)
        return NOT_MEASURED
    except ValueError as error:
        print(shown(f"phasegate probe: {error}"), file=sys.stderr)
        return USAGE
    lines = [decode(recording, target.api_key) for recording in result.recordings]
    problem = load_problem(result, shape, prefix=PREFIX) if shape.is_open else None
    if args.json:
        load = load_record(result, shape, prefix=PREFIX)
        told = {"requests": [record(line) for line in lines], "load": load}
        print(json.dumps(hide_in(told, target.api_key), indent=2, allow_nan=False))
    else:
        _print_timelines(lines)
        if shape.is_open:
            print(shown(load_line(result, shape)))
    drawn = args.svg is None or _draw(lines, args.svg)
    for warning in result.health.warnings():
        print(shown(f"warning: {warning}"), file=sys.stderr)
    if problem is not None:
        print(shown(f"INVALID_RUN: {problem}"), file=sys.stderr)
    if result.interrupted:
        print("stopped", file=sys.stderr)
        return STOPPED
    good = lines and all(line.status == "ok" for line in lines) and not result.partial and problem is None and drawn
    return 0 if good else NOT_MEASURED


def _check_svg(path: str | None) -> None:
    """Refuse a picture that could not be written, before anything is measured.

    Raises:
        ValueError: one line for the user.
        UnwritableError: the folder takes no files.
    """
    from pathlib import Path

    from phasegate.core.atomic_write import check_writable

    if path is not None and (Path(path).suffix.lower() != ".svg" or not Path(path).absolute().parent.is_dir()):
        raise ValueError(f"--svg {path}: name a file that ends in .svg, in a folder that exists")
    if path is not None:
        check_writable(Path(path).parent, f"--svg {Path(path).name}: the folder")


def _draw(lines: Sequence[Timeline], path: str) -> bool:
    """Draw the first request that has both phases; says so and returns False where none has, or the disk refuses."""
    from pathlib import Path

    from phasegate.report.charts.standalone import standalone
    from phasegate.report.charts.timeline import timeline_chart
    from phasegate.report.document.from_runner import request_line
    from phasegate.report.files import ReportPathError, write_text

    found = (request_line(line) for line in lines if line.status == "ok")
    request = next((one for one in found if one is not None and one.total > 0), None)
    try:
        if request is None:
            raise ReportPathError(f"--svg {path}: no request ended well, so there is nothing to draw")
        write_text(Path(path), standalone(timeline_chart(request)))
    except ReportPathError as error:
        print(shown(f"phasegate probe: {error}"), file=sys.stderr)
        return False
    return True


def _shape(args: argparse.Namespace) -> Shape:
    """The load that the options describe.

    Raises:
        ValueError: one line naming the option.
    """
    from phasegate.load.shapes import shape_from_options

    return shape_from_options(
        request_rate=args.request_rate,
        max_concurrency=args.max_concurrency,
        burstiness=args.burstiness,
        num_prompts=args.requests,
        trace=args.trace,
        trace_scale=args.trace_scale,
        prefix=PREFIX,
    )


def record(line: Timeline) -> dict[str, Any]:
    """One request as ``--json`` prints it: times in seconds from the send, None for what is undefined."""
    from phasegate.core.metric import METRICS, Undefined, inter_chunk_latencies

    times: dict[str, float | None] = {}
    for metric in METRICS:
        value = metric.measure(line)
        times[metric.name] = None if isinstance(value, Undefined) else value
    failed = line.status != "ok"
    return {
        "request_id": line.request_id,
        "status": "error" if failed else "ok",
        "error_kind": (line.error_kind or line.status) if failed else None,
        "error_message": line.error_message,
        **times,
        "inter_chunk_latencies": inter_chunk_latencies(line),
        "output_tokens": line.output_tokens,
        "output_tokens_estimate": line.output_tokens_estimate,
        "token_source": line.token_source or "none",
        "prompt_tokens": line.prompt_tokens,
        "reasoning_tokens": line.reasoning_tokens,
        "cached_tokens": line.cached_tokens,
        "finish_reason": line.finish_reason,
        "flags": list(line.flags),
        "sample_valid": line.sample_valid,
        "malformed_events": line.malformed_events,
        "model": line.model,
        "server_timings": None if line.server_timings is None else dict(line.server_timings),
        "text": line.text,
        "reasoning_text": line.reasoning_text,
        "tool_text": line.tool_text,
        "unnamed_text": line.unnamed_text,
        "unnamed_fields": list(line.unnamed_fields),
    }


def _print_timelines(lines: Sequence[Timeline]) -> None:
    from phasegate.report.phase_timeline import draw_phases

    plain = not (sys.stdout.encoding or "").lower().startswith("utf")
    for line in lines:
        print("\n".join(map(shown, draw_phases(line, plain=plain))))


@contextmanager
def _requests(args: argparse.Namespace, shape: Shape) -> Iterator[tuple[Target, list[Request]]]:
    """The target and the requests; an engine that was started for them lives as long as the context."""
    base_url = args.base_url or os.environ.get("OPENAI_BASE_URL")
    from phasegate.engines.base import EngineError
    from phasegate.load.route import RouteError
    from phasegate.measure.connect import address_for, connect, options_for_probe

    engine_options = options_for_probe(args, base_url, seed=secrets.randbits(32))
    if base_url:
        try:
            address_for(engine_options)
        except RouteError:
            raise
        except EngineError as error:
            raise ValueError(str(error)) from None
    if base_url and args.model and args.input_tokens is None and shape.trace is None:
        target, extras = _plain_target(engine_options, args.max_tokens)
        yield target, _as_they_stand(args, extras)
        return
    with connect(engine_options) as runner:
        for warning in runner.warnings:
            print(shown(f"warning: {warning}"), file=sys.stderr)
        target = replace(runner.target, idle_timeout=args.idle_timeout, timeout=args.timeout)
        yield target, _requests_of(runner, args, shape, own_engine=not base_url)


def _requests_of(runner: SessionRunner, args: argparse.Namespace, shape: Shape, *, own_engine: bool) -> list[Request]:
    """The trace's requests, new prompts of the wanted length, or the user's prompt in the engine's dialect."""
    from phasegate.load.trace_prompts import trace_requests

    if shape.trace is not None:
        known, forced = runner.calibration(args.endpoint), runner.profile.forces_length(args.endpoint)
        return trace_requests(
            shape.trace, known, runner.prompt_seed, runner.request, endpoint=args.endpoint, length_is_forced=forced
        )
    if args.input_tokens is not None:
        fresh = runner.fresh_requests(args.endpoint, args.input_tokens, args.max_tokens, args.requests or 1)
        # Counted from 1 for the user; the lab's own numbers include the requests that counted tokens.
        return [replace(request, request_id=f"request {number}") for number, request in enumerate(fresh, 1)]
    extras = runner.profile.request_extras(args.endpoint, args.max_tokens)
    unasked = () if own_engine else tuple(runner.profile.force)
    return _as_they_stand(args, {key: value for key, value in extras.items() if key not in unasked})


def _plain_target(engine_options: EngineOptions, max_tokens: int) -> tuple[Target, dict[str, Any]]:
    """Where to send, and the output limit: as plain as the address allows. Nothing is asked."""
    from phasegate.engines.address import target_at
    from phasegate.engines.profile import profile_named
    from phasegate.measure.connect import address_for

    at = address_for(engine_options)
    profile = at.told or profile_named("unknown", at.known)
    assert engine_options.model
    target = target_at(
        at.base_url,
        profile,
        engine_options.model,
        os.environ.get(at.key_name),
        timeout=engine_options.timeout,
        idle_timeout=engine_options.idle_timeout,
        azure=at.azure,
    )
    return target, profile.request_extras(engine_options.endpoint, max_tokens)


def _as_they_stand(args: argparse.Namespace, extras: dict[str, Any]) -> list[Request]:
    """The user's prompt, unchanged, as often as asked."""
    from phasegate.core.request import Request
    from phasegate.core.timeline import Expected

    prompt = DEFAULT_PROMPT if args.prompt is None else args.prompt
    chat = {"messages": [{"role": "user", "content": prompt}]}
    body = {**({"prompt": prompt} if args.endpoint == "completions" else chat), **extras}
    expected = Expected(endpoint=args.endpoint, max_tokens=args.max_tokens, cold_prompt=False)
    return [Request(f"request {n + 1}", args.endpoint, body, expected) for n in range(args.requests or 1)]
