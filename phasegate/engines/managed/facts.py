"""What is known of a managed engine for the roofline: its model from the files, and the processor it computes on.

Both follow from how it was started. Where that does not tell, the answer is None and nothing is said.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

from phasegate.diagnose.roofline import ModelFacts
from phasegate.engines.formats import BLOCK_FORMATS
from phasegate.engines.hardware import Device, measure_device
from phasegate.engines.managed import torch_probe
from phasegate.engines.managed.engine import ManagedEngine
from phasegate.engines.managed.kind import Launch
from phasegate.engines.managed.numbers import value_of
from phasegate.engines.model_config import FORMATS, stored_dtype
from phasegate.engines.model_facts import read_model

PROBE_SECONDS = 60.0
"""Longest wait for PyTorch to be loaded and measured; it takes some seconds."""

VNNI = ("avx512_vnni", "avx_vnni")
"""What Linux calls the instructions that multiply and add 8-bit numbers in one step."""

VNNI_FACTOR = 4.0
"""8-bit arithmetic of a processor with VNNI against its measured 32-bit one, at most: one ``vpdpbusd`` multiplies
and adds four times as many pairs as one ``vfmadd`` of the same width. A build for the machine may use it."""

CPU_INFO = Path("/proc/cpuinfo")


def model_facts(engine: ManagedEngine) -> ModelFacts | None:
    """The facts of the model it was last started on; None where they are not known.

    Raises:
        SettingsError: a model that is described, but not in a way that is understood here; one line.
    """
    launch = engine.last_launch
    if launch is None:
        return None
    path = Path(launch.model)
    is_gguf = engine.kind.form == "gguf"
    stored = None if is_gguf else stored_dtype(path)
    if not (path.is_file() if is_gguf else (path / "config.json").is_file()):
        return None
    numbers = None if not is_gguf and stored is None else engine.kind.numbers(engine.serving_words(launch), stored)
    if numbers is None:
        return None
    found = read_model(path, dtype=numbers.dtype)
    held = f", held in {numbers.dtype}" if numbers.dtype != stored else ""
    return replace(found, kv_bytes=numbers.kv_bytes, source=f"{found.source}{held}")


def processor(engine: ManagedEngine, number_format: str) -> Device | None:
    """The processor it computes on, measured; None where it computes on something else, or nobody can tell on what.

    Args:
        number_format: of the arithmetic, as in `ModelFacts.format`.

    Raises:
        EngineError: the measurement failed; one line.
    """
    launch = engine.last_launch
    # llama.cpp computes on the graphics part of Apple's processors unless it is told otherwise.
    if launch is None or launch.on_gpu or engine.settings.hardware or sys.platform == "darwin":
        return None
    threads = _threads(engine, launch)
    if threads is None:
        return None
    interpreter = None if engine.kind.is_binary else str(launch.program)
    return _measured(threads, launch.cores if engine.pinned else (), interpreter, number_format)


def _threads(engine: ManagedEngine, launch: Launch) -> int | None:
    """How many it computes with; one on each of its cores where it is not told."""
    words = engine.serving_words(launch)
    try:
        told = [value_of(words, *names) for names in engine.kind.thread_flags]
        counts = [int(one) for one in told if one is not None]
    except ValueError:  # also what is unclear
        return None
    return None if min(counts, default=1) < 1 else max(counts, default=len(launch.cores))


@cache
def _measured(threads: int, cores: tuple[int, ...], interpreter: str | None, number_format: str) -> Device:
    """Measured once for a run, so that its summary and its reports tell the same figures."""
    device = measure_device(threads, cores)
    plain = device.flops["f32"]
    if interpreter is None:
        if number_format in BLOCK_FORMATS and _has_vnni():
            peaks = {number_format: VNNI_FACTOR * plain}
            return _with(device, peaks, f"{number_format} at most {VNNI_FACTOR:g} x f32 (VNNI)")
        return device
    own = _torch_flops(threads, cores, interpreter, number_format)
    if own is None:
        return device
    # What has no arithmetic of its own is computed in 32 bits, so that is the least a peak can be.
    return _with(device, {number_format: max(own, plain)}, f"{number_format} product by the engine's own PyTorch")


def _with(device: Device, peaks: dict[str, float], source: str) -> Device:
    return replace(device, flops={**device.flops, **peaks}, source=f"{device.source}; {source}")


def _torch_flops(threads: int, cores: tuple[int, ...], interpreter: str, number_format: str) -> float | None:
    """Operations a second of the engine's library in that format; None where it cannot be had."""
    dtype = next((name for name, short in FORMATS.items() if short == number_format), None)
    if dtype is None:
        return None
    command = [
        interpreter, "-I", str(torch_probe.__file__), ",".join(map(str, cores)), str(threads), dtype,
    ]  # fmt: skip
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PROBE_SECONDS, check=True
        )
        return float(json.loads(done.stdout)["flops"])
    except (subprocess.SubprocessError, OSError, ValueError, KeyError, TypeError):
        return None


def _has_vnni() -> bool:
    """True as well where the system does not tell: the bound must not be too low."""
    try:
        text = CPU_INFO.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return True
    return any(name in text.split() for name in VNNI)
