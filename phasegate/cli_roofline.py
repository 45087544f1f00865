"""``phasegate roofline``: a model on some hardware, how fast its two phases could be, and what was reached of that."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from phasegate.units import parse_duration

if TYPE_CHECKING:
    from phasegate.engines.hardware import Device

MEASURE = "measure"
"""Name of the hardware that is this machine's processor, measured."""


def add_parser(subparsers: Any) -> None:
    """Declare the command and its options."""
    parser = subparsers.add_parser("roofline", help="a model's two phases against the hardware's limits")
    parser.add_argument("--model", metavar="FILE", help="a .gguf file, a config.json, or a YAML file with the facts")
    parser.add_argument(
        "--hardware", metavar="NAME", help="of the table, a YAML file with flops and bandwidth, or 'measure' (this CPU)"
    )
    parser.add_argument("--devices", type=_count, default=1, metavar="N", help="that share the model (default 1)")
    parser.add_argument("--threads", type=_count, default=1, metavar="N", help="of 'measure' (default 1)")
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
    from phasegate.engines.base import EngineError
    from phasegate.engines.model_facts import read_model
    from phasegate.gate.roofline_words import Measured, arithmetic, roofline, verdict_line

    if args.list_hardware:
        return _list_hardware()
    try:
        if args.model is None or args.hardware is None:
            raise ValueError("--model and --hardware are needed; --list-hardware shows the table")
        if (args.short_prompt is None) != (args.short_ttft is None):
            raise ValueError("--short-prompt and --short-ttft belong together")
        model = read_model(Path(args.model), args.kv_format)
        hardware = _device(args.hardware, args.threads).facts(model.format, args.devices)
        measured = Measured(
            prompt=args.prompt,
            output=args.output,
            batch=args.batch,
            tpot=_time(args.tpot, "--tpot"),
            ttft=_time(args.ttft, "--ttft"),
            short=args.short_prompt,
            short_ttft=_time(args.short_ttft, "--short-ttft"),
        )
        one = roofline(model, hardware, measured)
    except (ValueError, EngineError) as error:
        print(f"phasegate roofline: {error}", file=sys.stderr)
        return 2
    for line in arithmetic(one):
        print(line)
    print(verdict_line(one))
    refused = [share.problem for share in (one.mfu, one.mbu) if share.value is not None and share.problem]
    return 2 if refused else 0


def _time(given: str | None, option: str) -> float | None:
    return None if given is None else parse_duration(given, source=option)


def _device(name: str, threads: int) -> Device:
    from phasegate.engines.hardware import device_of, measure_device

    return measure_device(threads) if name == MEASURE else device_of(name)


def _list_hardware() -> int:
    from phasegate.engines.hardware import devices

    for device in devices():
        peaks = ", ".join(f"{name} {rate / 1e12:,.0f}" for name, rate in device.flops.items())
        band = "unknown" if device.bandwidth is None else f"{device.bandwidth / 1e9:,.0f} GB/s"
        print(f"{device.name:<16} {band:>11}   TFLOP/s: {peaks}   {device.source}")
    return 0
