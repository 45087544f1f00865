"""What is known of a managed engine's model and processor from how it was started, and what is not guessed."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from phasegate.core.identity import ServerIdentity, client_identity
from phasegate.core.settings_file import SettingsError
from phasegate.core.target import Target
from phasegate.diagnose.roofline import ModelFacts
from phasegate.engines.hardware import Device
from phasegate.engines.managed import facts, torch_probe
from phasegate.engines.managed.engine import ManagedEngine, ManagedSettings
from phasegate.engines.managed.facts import model_facts, processor
from phasegate.engines.managed.kind import Launch
from phasegate.engines.managed.kinds import KINDS
from phasegate.engines.managed.numbers import Numbers
from phasegate.engines.managed.places import Place
from phasegate.engines.model_config import stored_dtype
from phasegate.engines.profile import profile_named
from phasegate.measure.hardware_limits import hardware_of, model_of
from phasegate.measure.session_runner import SessionRunner
from tests.engines.managed.conftest import MakeEngine

CONFIG = {
    "model_type": "llama", "torch_dtype": "bfloat16", "hidden_size": 64, "intermediate_size": 256, "vocab_size": 1000,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
}  # fmt: skip


def written(folder: Path, **changes: Any) -> Path:
    """A model's folder with that ``config.json``."""
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps({**CONFIG, **changes}), encoding="utf-8")
    return folder


def lab_on(engine: ManagedEngine) -> SessionRunner:
    """A lab that measured on an engine which has been stopped since, as when the summary is written."""
    server = ServerIdentity("transformers", "1", "m", hardware="H200 x1")
    target = Target(base_url="http://127.0.0.1:9/v1", model="m")
    return SessionRunner(engine, server, client_identity(), profile_named("transformers"), target, seed=1)


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[int, tuple[int, ...]]]]:
    """Threads and cores that were measured, in place of measuring."""
    asked: list[tuple[int, tuple[int, ...]]] = []

    def device(threads: int, cores: tuple[int, ...]) -> Device:
        asked.append((threads, cores))
        return Device("box", {"f32": 100e9}, 40e9, "measured")

    monkeypatch.setattr(facts, "measure_device", device)
    facts._measured.cache_clear()
    yield asked
    facts._measured.cache_clear()


def started(make: MakeEngine, tmp_path: Path, args: str = "", **changes: Any) -> ManagedEngine:
    """An engine with a launch on such a model and no GPU, as if it had been started and stopped."""
    written(tmp_path / "weights", **changes)
    engine = make(args=args)
    set_launch(engine)
    return engine


def set_launch(engine: ManagedEngine, **changes: Any) -> Launch:
    """Its last launch, with changes, in place of a start."""
    place = Place(Path(sys.executable), "1")
    engine.last_launch = launch = replace(engine._new_launch(place), **{"on_gpu": False, **changes})
    launch.folder.rmdir()
    return launch


def test_the_suite_tells_the_engine_its_format_so_the_weights_have_that(make: MakeEngine, tmp_path: Path) -> None:
    """bfloat16 on disk, computed in float32 on a processor: 4 bytes each, in weights and KV cache."""
    written(tmp_path / "weights")
    with make() as engine:
        assert engine.last_launch is not None
    # Known also when it is stopped; this machine may have a GPU, which is told nothing.
    engine.last_launch = replace(engine.last_launch, on_gpu=False)
    found = model_of(lab_on(engine), None)
    assert isinstance(found, ModelFacts)
    assert (found.weight_bytes, found.kv_bytes, found.format, found.name) == (4.0, 4.0, "f32", "weights")
    assert found.source == "the shape in config.json, held in float32"
    assert found.active == 2 * (64 * 16 * 12 + 3 * 64 * 256) + 64 * 1000


def test_the_users_argument_counts_and_a_given_file_more(make: MakeEngine, tmp_path: Path) -> None:
    """The last word on the command line; `--perf-model-facts` before all."""
    engine = started(make, tmp_path, args="--dtype auto")
    found = model_facts(engine)
    assert found is not None
    assert (found.weight_bytes, found.kv_bytes, found.format) == (2.0, 2.0, "bf16")
    assert found.source == "the shape in config.json"
    given = tmp_path / "given.yaml"
    given.write_text("name: mine\nweights: 1000\nlayers: 1\nheads: 1\nhead_size: 8\nweight_bytes: 1\n")
    told = model_of(lab_on(engine), str(given))
    assert told is not None
    assert told.name == "mine"


def test_of_what_is_not_known_nothing_is_said(make: MakeEngine, tmp_path: Path) -> None:
    """An engine that never started; a folder without a description; weights that are quantized."""
    weights = tmp_path / "weights"
    engine = make()
    assert model_facts(engine) is None
    assert processor(engine, "f32") is None
    set_launch(engine)
    assert model_facts(engine) is None
    written(weights, quantization_config={"quant_method": "fp8"})
    assert model_facts(engine) is None
    written(weights)
    assert model_facts(engine) is not None
    written(weights, model_type="another")
    with pytest.raises(SettingsError, match="'another' are not known here"):
        model_facts(engine)


@pytest.mark.parametrize(
    ("name", "args", "stored", "found"),
    [
        ("vllm", "", "bfloat16", Numbers("bfloat16", 2.0)),
        ("vllm", "", "float32", Numbers("bfloat16", 2.0)),
        ("vllm", "--dtype float32", "bfloat16", Numbers("float32", 4.0)),
        ("vllm", "--dtype=half --dtype float --kv_cache_dtype fp8_e5m2", "bfloat16", Numbers("float32", 1.0)),
        ("vllm", "--quantization fp8", "bfloat16", None),
        ("vllm", "--speculative-config {}", "bfloat16", None),
        ("vllm", "--config more.yaml", "bfloat16", None),
        ("vllm", "--dty float32", "bfloat16", None),
        ("vllm", "--dtype", "bfloat16", None),
        ("vllm", "--dtype int8", "bfloat16", None),
        ("vllm", "--kv-cache-dtype turbo", "bfloat16", None),
        ("vllm", "", None, None),
        ("vllm", "--dtype float32", None, Numbers("float32", 4.0)),
        ("sglang", "--dtype float32", "bfloat16", Numbers("float32", 4.0)),
        ("sglang", "", "float32", None),
        ("sglang", "--tp 2", "bfloat16", None),
        ("transformers", "--dtype auto", "float32", Numbers("float32", 4.0)),
        ("transformers", "--quantization bnb-4bit", "float32", None),
        ("llama.cpp", "--threads 2", None, Numbers(None, 2.0)),
        ("llama.cpp", "-ctk q8_0 --cache-type-v f32", None, Numbers(None, (34 / 32 + 4) / 2)),
        ("llama.cpp", "-ctk q5_1", None, None),
        ("llama.cpp", "-md draft.gguf", None, None),
        ("llama.cpp", "--lora adapter.gguf", None, None),
        ("llama.cpp", "-ctk", None, None),
    ],
)
def test_formats_follow_from_arguments_or_are_unknown(
    name: str, args: str, stored: str | None, found: Numbers | None
) -> None:
    """The last one counts; abbreviations, quantizations, second models and files of arguments make it unknown."""
    assert KINDS[name].numbers(args.split(), stored) == found


def test_variables_that_stand_for_arguments_make_it_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """llama-server reads them, and they are not on the command line."""
    assert KINDS["llama.cpp"].numbers([], None) is not None
    monkeypatch.setenv("LLAMA_ARG_CACHE_TYPE_K", "q8_0")
    assert KINDS["llama.cpp"].numbers([], None) is None


@pytest.mark.parametrize(
    ("config", "found"),
    [
        ({"dtype": "float16"}, "float16"),
        ({"torch_dtype": "float32"}, "float32"),
        ({"text_config": {"dtype": "bfloat16"}}, "bfloat16"),
        ({"torch_dtype": "int8"}, None),
        ({}, None),
        ({"torch_dtype": "float16", "text_config": {"quantization_config": {"bits": 4}}}, None),
        ([], None),
    ],
)
def test_the_stored_format_is_read_or_unknown(tmp_path: Path, config: Any, found: str | None) -> None:
    """Wherever a description has it; quantized weights have none."""
    assert stored_dtype(tmp_path) is None
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert stored_dtype(tmp_path) == found


Asked = list[tuple[int, tuple[int, ...]]]


def test_the_processor_is_measured_as_the_engine_uses_it(
    make: MakeEngine, tmp_path: Path, measured: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On its cores with a thread on each, once for a run, with its own library, which may be faster in 16 bits."""
    engine = started(make, tmp_path)
    launch = set_launch(engine)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(facts, "_torch_flops", lambda *_: 400e9)
    runner = lab_on(engine)
    for _ in range(2):
        found = hardware_of(runner, None, "bf16")
        assert found is not None
        assert (found.name, found.flops, found.bandwidth) == ("box", 400e9, 40e9)
    assert measured == [(len(launch.cores), launch.cores if engine.pinned else ())]
    given = hardware_of(runner, "A100", "bf16")
    assert given is not None
    assert given.name == "A100-80GB"
    # Slower than 32 bits is no limit of the processor: the same numbers can be computed in 32 bits.
    facts._measured.cache_clear()
    monkeypatch.setattr(facts, "_torch_flops", lambda *_: 28e9)
    slow = hardware_of(runner, None, "f16")
    assert slow is not None
    assert slow.flops == 100e9


def test_where_it_computes_on_something_else_the_label_counts(
    make: MakeEngine, tmp_path: Path, measured: Asked
) -> None:
    """A GPU beside it, or hardware that the user named."""
    engine = started(make, tmp_path)
    set_launch(engine, on_gpu=True)
    found = hardware_of(lab_on(engine), None, "bf16")
    assert found is not None
    assert found.name == "H200"
    set_launch(engine)
    engine.settings = replace(engine.settings, hardware="H200 x1")
    assert processor(engine, "bf16") is None
    assert measured == []


def test_without_pytorch_there_the_peak_is_unknown(
    make: MakeEngine, tmp_path: Path, measured: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And is not taken from 32 bits; reading is known all the same."""
    engine = started(make, tmp_path)
    set_launch(engine, program=Path("/bin/false"))
    monkeypatch.setattr(sys, "platform", "linux")
    found = hardware_of(lab_on(engine), None, "bf16")
    assert found is not None
    assert (found.flops, found.bandwidth) == (None, 40e9)
    assert measured


@pytest.mark.parametrize(("args", "threads"), [("", 1), ("-t 3", 3), ("--threads 2 -tb 4", 4), ("-t -1", None)])
def test_llama_server_is_measured_with_the_threads_it_is_told(
    args: str, threads: int | None, measured: Asked, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its 8-bit arithmetic is at most four times that of 32 bits where there are instructions for it, else twice."""
    info = tmp_path / "cpuinfo"
    monkeypatch.setattr(facts, "CPU_INFO", info)
    monkeypatch.setattr(sys, "platform", "linux")
    engine = ManagedEngine("llama.cpp", ManagedSettings(args=args))
    weights = tmp_path / "m.gguf"
    weights.touch()
    engine.settings = replace(engine.settings, model=str(weights))
    set_launch(engine, cores=(0,))
    for flags, factor in (("avx2 avx512_vnni", 4), ("avx2", 2)):
        info.write_text(f"flags : {flags}\n")
        facts._measured.cache_clear()
        device = processor(engine, "q8_0")
        if threads is None:
            assert device is None
        else:
            assert device is not None
            assert device.facts("q8_0").flops == factor * 100e9
            assert measured[-1][0] == threads


class Torch:
    """As much of PyTorch as the probe uses."""

    float32 = "float32"

    def __init__(self) -> None:
        self.threads = 0
        self.products = 0
        self.nn = SimpleNamespace(functional=SimpleNamespace(linear=self._linear))

    def set_num_threads(self, threads: int) -> None:
        self.threads = threads

    def inference_mode(self) -> Any:
        from contextlib import nullcontext

        return nullcontext()

    def rand(self, *_: int) -> Any:
        return SimpleNamespace(to=lambda dtype: dtype)

    def _linear(self, inputs: str, weights: str) -> None:
        assert inputs == weights == "float32"
        self.products += 1


def test_the_probe_prints_operations_a_second(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With that many threads, in that format; a clock that steps a tenth of a second makes it 21.5 GFLOP/s."""
    torch, ticks = Torch(), iter(range(1000))
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(torch_probe, "perf_counter", lambda: next(ticks) / 10)
    assert torch_probe.main(["", "3", "float32"]) == 0
    assert json.loads(capsys.readouterr().out)["flops"] == pytest.approx(2 * 1024**3 / 0.1)
    assert torch.threads == 3
    assert torch.products >= 2
