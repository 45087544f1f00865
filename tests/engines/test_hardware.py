"""What hardware can do: the table, labels, files, and this machine measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from phasegate.core.settings_file import SettingsError
from phasegate.engines.hardware import device_in, device_named, devices, devices_of, measure_device, read_device


def test_every_device_has_a_source_and_figures_of_a_possible_size() -> None:
    """16-bit peaks of 10 to 10,000 TFLOP/s, memories of 0.1 to 20 TB/s, and 8 bits never slower than 16."""
    for device in devices():
        assert device.source.startswith("https://www.") or device.source.startswith("https://images.")
        assert device.bandwidth is not None
        assert 0.1e12 < device.bandwidth < 20e12
        assert 10e12 < device.flops["bf16"] < 10e15
        assert all(rate >= device.flops["bf16"] for rate in device.flops.values())
    names = [name for device in devices() for name in (device.name, *device.also)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", ["H100", "h100-sxm", "NVIDIA H100 SXM", "nvidia h100 80GB HBM3"])
def test_a_device_is_found_however_it_is_written(name: str) -> None:
    """As vendors' tools and people write it."""
    facts = device_named(name).facts("bf16")
    assert (facts.flops, facts.bandwidth) == (989.4e12, 3350e9)


def test_the_peak_is_that_of_the_number_format() -> None:
    """fp8 where the device has it; half and bfloat are the same; a format without units is unknown."""
    assert device_named("H200").facts("fp8").flops == 1978.9e12
    assert device_named("A100").facts("f16").flops == 312e12
    assert device_named("A100").facts("fp8").flops is None


def test_a_label_gives_device_and_number() -> None:
    """As ``--perf-hardware`` takes it."""
    for label in ("H200 x8", "8x NVIDIA H200", "8 x H200"):
        found = device_in(label)
        assert found is not None
        assert (found[0].name, found[1]) == ("H200", 8)
    single = device_in("RTX 4090")
    assert single is not None
    assert single[1] == 1
    assert device_in("AMD EPYC Processor x2") is None


def test_a_name_may_say_how_many_there_are() -> None:
    """None where it does not, and none at all is refused."""
    for name, count in (("H200", None), ("H200 x8", 8), ("2X h200", 2)):
        device, told = devices_of(name)
        assert (device.name, told) == ("H200", count)
    with pytest.raises(SettingsError, match="hardware 'H200 x0': a model needs one device at least"):
        devices_of("H200 x0")
    with pytest.raises(SettingsError, match="no hardware 'H900' in the table"):
        devices_of("H900 x2")


def test_an_unknown_device_is_one_line_with_those_there_are() -> None:
    """And the other ways to say it."""
    with pytest.raises(SettingsError, match="no hardware 'H900' in the table; it has A10, L4"):
        device_named("H900")


def test_a_device_can_be_given_in_a_file(tmp_path: Path) -> None:
    """With or without a sign in its powers of ten."""
    path = tmp_path / "box.yaml"
    path.write_text("name: my box\nflops: {bf16: 1e14}\nbandwidth: 1.0e+12\n")
    device = read_device(path)
    assert (device.name, device.flops, device.bandwidth) == ("my box", {"bf16": 1e14}, 1e12)
    for text, message in (
        ("bandwidth: fast\n", "box.yaml:1: bandwidth is 'fast'"),
        ("bandwidth: -1\n", "bandwidth is -1"),
        ("flops: 1e12\n", "flops is"),
        ("memory: 1e12\n", "unknown key 'memory'"),
        ("flops: {fp99: 1e12}\n", "box.yaml:1: flops has the number format 'fp99'; known: f32, "),
    ):
        path.write_text(text)
        with pytest.raises(SettingsError, match=message):
            read_device(path)
    with pytest.raises(SettingsError, match="cannot be read"):
        read_device(tmp_path / "none.yaml")


@pytest.mark.slow
def test_this_machine_can_be_measured() -> None:
    """Figures of a possible size for one thread: 1 to 1,000 GFLOP/s, 0.5 to 200 GB/s; 8 bits twice as fast."""
    device = measure_device(1)
    facts = device.facts("q8_0")
    assert device.bandwidth is not None
    assert 1e9 < device.flops["f32"] < 1e12
    assert 0.5e9 < device.bandwidth < 200e9
    assert facts.flops == pytest.approx(2 * device.flops["f32"])
    assert "at most 2 x f32" in facts.source
