"""``phasegate roofline``: the arithmetic and the line on standard output, mistakes in one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from phasegate.cli import main

LLAMA_3_8B = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "torch_dtype": "bfloat16",
}


GEMMA_3_27B = {
    "model_type": "gemma3_text",
    "hidden_size": 5376,
    "intermediate_size": 21504,
    "num_hidden_layers": 62,
    "num_attention_heads": 32,
    "num_key_value_heads": 16,
    "head_dim": 128,
    "vocab_size": 262208,
    "sliding_window": 1024,
}


@pytest.fixture
def model(tmp_path: Path) -> str:
    """The shape of Llama-3-8B."""
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA_3_8B))
    return str(path)


def test_the_arithmetic_and_the_line_are_printed(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    """6.4 ms a token at 2,048 tokens of prompt on an H100."""
    asked = ["--hardware", "H100", "--prompt", "2048", "--output", "2", "--tpot", "6.424ms", "--ttft", "60ms"]
    assert main(["roofline", "--model", model, *asked]) == 0
    out = capsys.readouterr().out
    assert "7.505 G weights a token, 2 B each, KV cache 131.1 kB a token" in out
    assert "= 29.69 TFLOP, at least 30.0 ms" in out
    assert "in 60.0 ms = 494.8 TFLOP/s, of 989.4 TFLOP/s is MFU 50 %" in out
    assert "weights 15.01 GB + KV 268.6 MB = 15.28 GB, at least 4.56 ms" in out
    assert "is MBU 71 %" in out
    assert out.splitlines()[-1].startswith(
        "decode runs at 71 % of the memory-bandwidth limit: a faster-FLOPs GPU will not help"
    )


def test_without_a_measurement_the_floors_are_printed(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What the hardware could do is known without any."""
    assert main(["roofline", "--model", model, "--hardware", "A100", "--devices", "2"]) == 0
    out = capsys.readouterr().out
    assert "hardware A100-80GB x2" in out
    assert "at least" in out
    assert "unknown (no TPOT was measured)" in out


@pytest.mark.parametrize("asked", [["H200 x8"], ["8x H200", "--devices", "8"], ["H200", "--devices", "8"]])
def test_the_name_may_say_how_many_devices_share_the_model(
    model: str, asked: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """As the suite's own label does."""
    assert main(["roofline", "--model", model, "--hardware", *asked]) == 0
    assert "hardware H200 x8: 7.915 PFLOP/s bf16" in capsys.readouterr().out


def test_layers_with_a_window_leave_room_below_the_floor_of_full_attention(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Gemma 3 27B after 32,000 tokens: 19 ms a token can be, though all 62 layers' cache would take 21."""
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": "gemma3", "torch_dtype": "bfloat16", "text_config": GEMMA_3_27B}))
    assert main(["roofline", "--model", str(path), "--hardware", "H100", "--prompt", "32000", "--tpot", "19ms"]) == 0
    out = capsys.readouterr().out
    assert "KV cache 507.9 kB a token, in 52 of 62 layers of the last 1024 only" in out
    assert "weights 54.02 GB + KV 3.063 GB = 57.08 GB, at least 17.0 ms" in out
    assert "is MBU 90 %" in out


def test_facts_that_cannot_be_end_with_their_own_status(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A token in 1 ms would need 15 TB/s."""
    assert main(["roofline", "--model", model, "--hardware", "H100", "--tpot", "1ms"]) == 2
    assert "refused" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--model and --hardware are needed"),
        (["--hardware", "H900"], "no hardware 'H900' in the table"),
        (["--hardware", "H100", "--tpot", "20"], "--tpot: '20' is not a duration"),
        (["--hardware", "H100", "--short-prompt", "8"], "--short-prompt and --short-ttft belong together"),
        (["--hardware", "H100", "--kv-format", "int2"], "KV cache format 'int2' is unknown"),
        (["--hardware", "H100", "--short-prompt", "8", "--short-ttft", "1ms"], "--short-ttft needs --ttft"),
        (
            ["--hardware", "H100", "--ttft", "60ms", "--short-prompt", "512", "--short-ttft", "10ms"],
            "--short-prompt is 512; it must be shorter than --prompt, 512",
        ),
        (
            ["--hardware", "H100", "--ttft", "60ms", "--short-prompt", "64", "--short-ttft", "90ms"],
            "--short-ttft is 90.0 ms; it must be shorter than --ttft, 60.0 ms",
        ),
        (["--hardware", "H100", "--threads", "4"], "--threads is for --hardware measure; 'H100' is not measured"),
        (["--hardware", "H200 x8", "--devices", "4"], "--hardware 'H200 x8' and --devices 4 differ"),
        (["--hardware", "H200 x0"], "hardware 'H200 x0': a model needs one device at least"),
        (["--hardware", "H100", "--prompt", "9" * 400], "a number is too large to reckon with"),
    ],
)
def test_a_mistake_is_one_line(
    model: str, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With status 2 and nothing on standard output."""
    assert main(["roofline", "--model", model, *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err
    assert len(captured.err.strip().splitlines()) == 1


def test_the_table_can_be_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """With the source of every row."""
    assert main(["roofline", "--list-hardware"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) >= 12
    assert all("https://" in line for line in lines)
