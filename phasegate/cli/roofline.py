"""``phasegate roofline``: a model on some hardware, how fast its two phases could be, and what was reached of that."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from phasegate.core.showing import shown
from phasegate.core.units import format_seconds, parse_duration

if TYPE_CHECKING:
    from phasegate.diagnose.roofline import HardwareFacts
    from phasegate.diagnose.roofline_words import Measured

MEASURE = "measure"
"""Name of the hardware that is this machine's processor, measured."""


def add_parser(subparsers: Any) -> None:
    """Declare the command and its options."""
    parser = subparsers.add_parser("roofline", help="a model's two phases against the hardware's limits")
    parser.add_argument("--model", metavar="FILE", help="a .gguf file, a config.json, or a YAML file with the facts")
    parser.add_argument(
        "--hardware",
        metavar="NAME",
        help="of the table (also 'H200 x8'), a YAML file with flops and bandwidth, or 'measure' (this CPU)",
    )
    parser.add_argument("--devices", type=_count, metavar="N", help="that share the model (default 1)")
    parser.add_argument("--threads", type=_count, metavar="N", help="of 'measure' (default 1)")
    parser.add_argument("--prompt", type=_count, default=512, metavar="N", help="tokens of the prompt (default 512)")
    parser.add_argument("--output", type=_count, default=128, metavar="N", help="tokens of the answer (default 128)")
    parser.add_argument(
        "--batch", type=_count, default=1, metavar="N", help="requests that decode together (default 1)"
    )
    parser.add_argument("--kv-format", metavar="F", help="number format of the KV cache (default 16 bits)")
    parser.add_argument("--tpot", metavar="TIME", help="measured time per output token, such as 20ms")
    parser.add_argument("--ttft", metavar="TIME", help="measured time to first token of the prompt")
    parser.add_argument("--short-prompt", type=_count, metavar="N", help="a second, shorter prompt, and with")
    parser.add_argument("--short-ttft", metavar="TIME", help="its TTFT: what is fixed in a TTFT falls out")
    parser.add_argument("--list-hardware", action="store_true", help="print the table and end")


def _count(given: str) -> int:
    try:
        number = int(given)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{given!r} is not a whole number of at least 1")
    return number


def run(args: argparse.Namespace) -> int:
    """Print the arithmetic and the line. Exit status 2 for wrong usage or facts that cannot be."""
    from phasegate.diagnose.roofline_words import Measured, arithmetic, roofline, verdict_line
    from phasegate.engines.base import EngineError
    from phasegate.engines.model_facts import read_model

    if args.list_hardware:
        return _list_hardware()
    try:
        if args.model is None or args.hardware is None:
            raise ValueError("--model and --hardware are needed; --list-hardware shows the table")
        measured = Measured(
            prompt=args.prompt,
            output=args.output,
            batch=args.batch,
            tpot=_time(args.tpot, "--tpot"),
            ttft=_time(args.ttft, "--ttft"),
            short=args.short_prompt,
            short_ttft=_time(args.short_ttft, "--short-ttft"),
        )
        _check_slope(measured)
        model = read_model(Path(args.model), args.kv_format)
        one = roofline(model, _hardware(args, model.format), measured)
    except OverflowError:
        print("phasegate roofline: a number is too large to reckon with", file=sys.stderr)
        return 2
    except (ValueError, EngineError) as error:
        print(shown(f"phasegate roofline: {error}"), file=sys.stderr)
        return 2
    for line in arithmetic(one):
        print(shown(line))
    print(shown(verdict_line(one)))
    refused = [share.problem for share in (one.mfu, one.mbu) if share.value is not None and share.problem]
    return 2 if refused else 0


def _time(given: str | None, option: str) -> float | None:
    return None if given is None else parse_duration(given, source=option)


def _check_slope(measured: Measured) -> None:
    """Refuse two prompts that no slope can be taken from.

    Raises:
        ValueError: one line naming the option.
    """
    if (measured.short is None) != (measured.short_ttft is None):
        raise ValueError("--short-prompt and --short-ttft belong together")
    if measured.short is None or measured.short_ttft is None:
        return
    if measured.ttft is None:
        raise ValueError("--short-ttft needs --ttft, the time of the longer prompt")
    if measured.short >= measured.prompt:
        raise ValueError(f"--short-prompt is {measured.short}; it must be shorter than --prompt, {measured.prompt}")
    if measured.short_ttft >= measured.ttft:
        given, longer = format_seconds(measured.short_ttft), format_seconds(measured.ttft)
        raise ValueError(f"--short-ttft is {given}; it must be shorter than --ttft, {longer}")


def _hardware(args: argparse.Namespace, number_format: str) -> HardwareFacts:
    """The hardware that was asked for, in the number given by its name or by ``--devices``.

    Raises:
        ValueError, EngineError: one line.
    """
    from phasegate.engines.hardware import devices_of, measure_device

    if args.hardware == MEASURE:
        return measure_device(args.threads or 1).facts(number_format, args.devices or 1)
    if args.threads is not None:
        raise ValueError(f"--threads is for --hardware {MEASURE}; {args.hardware!r} is not measured")
    device, count = devices_of(args.hardware)
    if None not in (count, args.devices) and count != args.devices:
        raise ValueError(f"--hardware {args.hardware!r} and --devices {args.devices} differ; give one of them")
    return device.facts(number_format, count or args.devices or 1)


def _list_hardware() -> int:
    from phasegate.engines.hardware import devices

    for device in devices():
        peaks = ", ".join(f"{name} {rate / 1e12:,.0f}" for name, rate in device.flops.items())
        band = "unknown" if device.bandwidth is None else f"{device.bandwidth / 1e9:,.0f} GB/s"
        print(shown(f"{device.name:<16} {band:>11}   TFLOP/s: {peaks}   {device.source}"))
    return 0
