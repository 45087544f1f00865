"""The embedded engine against the limits of the processor under it, for weights of three formats.

``python -m benchmarks.hardware_limit`` measures the processor (one thread: float32 matrix product, streaming read),
then TTFT at two prompt lengths and TPOT at the longer one for weights in q8_0, f16 and f32, in rounds in which the
formats take turns. It prints one row for each format and the arithmetic of the first; ``--figure FILE`` draws the
roofline as SVG.
"""

from __future__ import annotations

import argparse
import secrets
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks._roofline_figure import Point, draw
from phasegate.core.identity import this_hardware
from phasegate.core.metric import Undefined, time_per_output_token, time_to_first_token
from phasegate.core.units import format_percent, format_seconds
from phasegate.diagnose.roofline import HardwareFacts, slope_work
from phasegate.diagnose.roofline_words import Measured, Roofline, arithmetic, roofline, verdict_line
from phasegate.engines.cores import engine_cores
from phasegate.engines.hardware import Device, measure_device
from phasegate.engines.host_probe import HostWatch
from phasegate.load.closed import run_closed
from phasegate.measure.connect import EngineOptions, connect
from phasegate.measure.hardware_limits import model_of
from phasegate.measure.session_runner import SessionRunner
from phasegate.wire.openai_stream import decode

FORMATS = ("q8_0", "f16", "f32")
SHORT, LONG, OUTPUT = 64, 1024, 32


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=4, help="requests of each length in a round")
    parser.add_argument("--figure", type=Path, help="draw the roofline into this SVG file")
    given = parser.parse_args(argv)
    device = measure_device(1, engine_cores())
    times: dict[str, dict[str, list[float]]] = {name: {"short": [], "long": [], "tpot": []} for name in FORMATS}
    found: dict[str, Roofline] = {}
    foreign: list[float] = []
    for _ in range(given.rounds):
        for weights in FORMATS:
            config = f"weights={weights}"
            with connect(EngineOptions(base_url=None, engine_config=config, seed=secrets.randbits(32))) as runner:
                watch = HostWatch(engine_cores())
                measure(runner, given.repeats, times[weights])
                foreign.append(watch.report().foreign)
                found[weights] = against(runner, device, times[weights])
        device = better(device, measure_device(1, engine_cores()))
    found = {name: roofline(one.model, facts_for(device, name), one.measured) for name, one in found.items()}
    print_rows(found)
    print(f"\nMachine: {this_hardware()}; other processes used {np.mean(foreign):.2f} cores meanwhile.\n")
    for line in [*arithmetic(found[FORMATS[0]]), verdict_line(found[FORMATS[0]])]:
        print(line)
    if given.figure is not None:
        draw(given.figure, [found["q8_0"].hardware, found["f32"].hardware], points(found))
        print(f"\n{given.figure}")


def measure(runner: SessionRunner, repeats: int, times: dict[str, list[float]]) -> None:
    """Add TTFT at both lengths and TPOT at the longer one."""
    for name, length in (("short", SHORT), ("long", LONG)):
        requests = runner.fresh_requests("completions", length, OUTPUT, repeats, name=f"limit-{length}")
        for recording in run_closed(runner.target, requests, max_concurrency=1).recordings:
            line = decode(recording)
            ttft, tpot = time_to_first_token(line), time_per_output_token(line)
            if isinstance(ttft, Undefined) or isinstance(tpot, Undefined):
                raise SystemExit(f"a request failed: {line.error_message}")
            times[name].append(ttft)
            if name == "long":
                times["tpot"].append(tpot)


def against(runner: SessionRunner, device: Device, times: dict[str, list[float]]) -> Roofline:
    """The medians so far against the processor."""
    model = model_of(runner, None)
    assert model is not None
    short, long, tpot = (float(np.median(times[name])) for name in ("short", "long", "tpot"))
    measured = Measured(LONG, OUTPUT, tpot=tpot, ttft=long, short=SHORT, short_ttft=short)
    return roofline(model, facts_for(device, model.format), measured)


def facts_for(device: Device, number_format: str) -> HardwareFacts:
    """The processor for weights of a format; what is not computed in 8 bits is computed in float32."""
    return device.facts("f32" if number_format == "f16" else number_format)


def better(one: Device, other: Device) -> Device:
    """The higher of two measurements: a neighbour can only lower one."""
    assert one.bandwidth is not None
    assert other.bandwidth is not None
    return Device(
        one.name,
        {"f32": max(one.flops["f32"], other.flops["f32"])},
        max(one.bandwidth, other.bandwidth),
        one.source,
    )


def print_rows(found: dict[str, Roofline]) -> None:
    """One row for each format."""
    print("| weights | read a token | TPOT | MBU | FLOP/B of decode | prefill rate | peak | MFU |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for name, one in found.items():
        assert one.hardware.peak is not None
        cells = (
            name,
            f"{one.decode.bytes / 1e6:.0f} MB",
            format_seconds(one.measured.tpot),
            format_percent(one.mbu.value, digits=0),
            f"{one.decode.intensity:.2f}",
            f"{prefill_rate(one) / 1e9:.0f} GFLOP/s",
            f"{one.hardware.peak / 1e9:.0f} GFLOP/s {one.hardware.format}",
            format_percent(one.mfu.value, digits=0),
        )
        print(f"| {' | '.join(cells)} |")


def prefill_rate(one: Roofline) -> float:
    """Operations a second of prefill, from the slope between both lengths."""
    measured = one.measured
    assert measured.slope is not None
    assert measured.short is not None
    return slope_work(one.model, measured.short, measured.prompt) / measured.slope


def points(found: dict[str, Roofline]) -> Sequence[Point]:
    """Decode and prefill of every format."""
    drawn = []
    for name, one in found.items():
        assert one.measured.tpot is not None
        drawn.append(Point(f"decode {name}", one.decode.intensity, one.decode.flops / one.measured.tpot))
        drawn.append(Point(f"prefill {name}", one.prefill.intensity, prefill_rate(one)))
    return drawn


if __name__ == "__main__":
    main()
