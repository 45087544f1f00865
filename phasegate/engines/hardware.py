"""What hardware can do at best: from the table of common accelerators, from a file, or measured on this machine.

The table (``hardware.yaml``) holds dense peaks from the vendors' data sheets. Measuring is for engines that run on this
machine's processor: a matrix product and a long read, in a process of its own on the engine's cores with as many
threads as the engine has.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from phasegate.core.identity import cpu_name
from phasegate.core.settings_file import Located, SettingsError, list_of, load_mapping, text
from phasegate.diagnose.roofline import HardwareFacts
from phasegate.engines.base import EngineError
from phasegate.engines.formats import BLOCK_FORMATS, KNOWN

MEASURE_SECONDS = 60.0
"""Longest wait for the measurement; it takes about a second."""

SIXTEEN = ("bf16", "f16", "fp16")
"""Formats with the same peak on every device of the table."""

INTEGER_FACTOR = 2.0
"""8-bit arithmetic of a processor against its measured 32-bit arithmetic, at most.

A 256-bit register holds 32 numbers of 8 bits or 8 of 32. Multiplying and adding 32 pairs takes two multiply
instructions in 8 bits (``vpmaddubsw`` widens to 16 bits, ``vpmaddwd`` to 32), and four in 32 bits (``vfmadd``). It is a
bound and not a measurement; a build that uses VNNI may go to twice of it."""


@dataclass(frozen=True, slots=True)
class Device:
    """One entry of the table, or of a file of that form.

    Attributes:
        name: of the device.
        also: other names it goes by.
        flops: number format -> peak of dense operations a second.
        bandwidth: bytes a second; None where unknown.
        source: where the figures are from.
    """

    name: str
    flops: Mapping[str, float]
    bandwidth: float | None
    source: str
    also: tuple[str, ...] = ()

    def facts(self, number_format: str = "", count: int = 1) -> HardwareFacts:
        """The facts for arithmetic in a format; its peak is None where the device has no figure for that."""
        wanted = "bf16" if number_format in SIXTEEN or not number_format else number_format
        flops = self.flops.get(number_format, self.flops.get(wanted))
        source = self.source
        if flops is None and wanted in BLOCK_FORMATS:
            flops, told = self._block_peak()
            source += f"; {wanted} {told}" if told else ""
        return HardwareFacts(
            name=self.name,
            flops=flops,
            bandwidth=self.bandwidth,
            format=number_format or wanted,
            count=count,
            source=source,
        )

    def _block_peak(self) -> tuple[float | None, str]:
        """Operations a second on weights in blocks of few bits, and how that was come by."""
        if "f32" in self.flops:
            return INTEGER_FACTOR * self.flops["f32"], f"at most {INTEGER_FACTOR:g} x f32"
        return self.flops.get("bf16"), "unpacked to bf16" if "bf16" in self.flops else ""


def device_named(name: str) -> Device:
    """The device of the table with that name; case, spaces, dashes and a vendor's name in front do not matter.

    Raises:
        SettingsError: there is none; the message lists those there are.
    """
    wanted = _plain(name)
    for device in devices():
        if wanted in map(_plain, (device.name, *device.also)):
            return device
    known = ", ".join(device.name for device in devices())
    raise SettingsError(
        f"no hardware {name!r} in the table; it has {known}; or give a file with flops and bandwidth, or 'measure'"
    )


def device_of(name: str) -> Device:
    """The device in a YAML file, or of a name in the table.

    Raises:
        SettingsError: neither can be had; one line.
    """
    return read_device(Path(name)) if Path(name).suffix in (".yaml", ".yml") else device_named(name)


def devices_of(name: str) -> tuple[Device, int | None]:
    """The device in a YAML file or of a name in the table, and how many of it ``H200 x8`` says; None where it does not.

    Raises:
        SettingsError: neither can be had, or the number is 0; one line.
    """
    bare, count = _counted(name)
    if count == 0:
        raise SettingsError(f"hardware {name!r}: a model needs one device at least")
    return (device_of(name), None) if count is None else (device_named(bare), count)


def device_in(label: str) -> tuple[Device, int] | None:
    """The device that a label such as ``H200 x1`` or ``8x NVIDIA A100-SXM4-80GB`` names, and how many; else None."""
    bare, count = _counted(label)
    try:
        return device_named(bare), max(count or 1, 1)
    except SettingsError:
        return None


def _counted(label: str) -> tuple[str, int | None]:
    """A label without the number of devices in it, and that number; None where there is none."""
    count = re.search(r"(?:^|\s)(?:x\s*(\d+)|(\d+)\s*x)(?:\s|$)", label, re.IGNORECASE)
    if count is None:
        return label, None
    return f"{label[: count.start()]} {label[count.end() :]}".strip(), int(count.group(1) or count.group(2))


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", re.sub(r"^\s*(nvidia|amd|geforce|instinct|\s)+", "", name.lower()))


@cache
def devices() -> tuple[Device, ...]:
    """All devices of the table."""
    source_text = (resources.files("phasegate.engines") / "hardware.yaml").read_text(encoding="utf-8")
    table = load_mapping(source_text, "hardware.yaml")
    return tuple(
        _device(name, Located(entry, {}, f"{table.where(name)} ({name})")) for name, entry in table.values.items()
    )


def read_device(path: Path) -> Device:
    """The device in a YAML file with ``flops`` and ``bandwidth``.

    Raises:
        SettingsError: one line naming the value, the place and the remedy.
    """
    try:
        source_text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error})") from None
    given = load_mapping(source_text, str(path))
    return _device(given.take("name", text, path.stem, wanted="a text"), given)


def _device(name: str, given: Located) -> Device:
    given.refuse_unknown(("name", "also", "flops", "bandwidth", "source"))
    flops: dict[str, float] = given.take(
        "flops", _rates, {}, wanted="a mapping of number formats to operations a second"
    )
    unknown = next((one for one in flops if one not in KNOWN), None)
    if unknown is not None:
        raise SettingsError(
            f"{given.where('flops')}: flops has the number format {unknown!r}; known: {', '.join(KNOWN)}"
        )
    return Device(
        name=name,
        flops=flops,
        bandwidth=given.take("bandwidth", _rate, None, wanted="bytes a second, such as 3350.0e9"),
        source=given.take("source", text, given.source, wanted="a text"),
        also=given.take("also", list_of(text), (), wanted="one or more names"),
    )


def _rate(value: Any) -> float:
    if isinstance(value, bool):
        raise TypeError
    # YAML reads 1e12 without a point or a sign as a text.
    number = float(value)
    if not 0 < number < float("inf"):
        raise ValueError
    return number


def _rates(value: Any) -> dict[str, float]:
    if not isinstance(value, dict) or not value:
        raise TypeError
    return {str(name): _rate(rate) for name, rate in value.items()}


def measure_device(threads: int = 1, cores: Sequence[int] = ()) -> Device:
    """This machine's processor, measured with that many threads on these cores (about a second).

    Raises:
        EngineError: the measurement failed; one line.
    """
    # BLAS reads the number of its threads once, when it is loaded: hence a process of its own.
    limits = {
        f"{library}_NUM_THREADS": str(threads) for library in ("OPENBLAS", "OMP", "MKL", "BLIS", "VECLIB_MAXIMUM")
    }
    command = [sys.executable, "-m", "phasegate.engines.hardware_probe", ",".join(map(str, cores))]
    try:
        done = subprocess.run(
            command, env={**os.environ, **limits}, capture_output=True, text=True, timeout=MEASURE_SECONDS, check=True
        )
        measured = json.loads(done.stdout)
        flops, bandwidth = float(measured["f32"]), float(measured["read"])
    except (subprocess.SubprocessError, OSError, ValueError, KeyError) as error:
        raise EngineError(f"this machine's peak could not be measured ({type(error).__name__})") from None
    each = "1 thread" if threads == 1 else f"{threads} threads"
    return Device(
        name=f"{cpu_name()}, {each}",
        flops={"f32": flops},
        bandwidth=bandwidth,
        source="measured: float32 matrix product, streaming read",
    )
