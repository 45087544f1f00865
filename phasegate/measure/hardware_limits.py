"""A lab's phases against the limits of the hardware its engine runs on: which facts are known, and what was measured.

Facts are given in files, or known by themselves: the weights of an engine that the suite started, the processor under
it (measured), or a device that the server's hardware label names. Where either is missing nothing is said.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from phasegate.core.workload import Cell
from phasegate.diagnose.roofline import HardwareFacts, ModelFacts
from phasegate.diagnose.roofline_words import Measured, Roofline, roofline
from phasegate.engines.cores import engine_cores
from phasegate.engines.embedded import EmbeddedEngine
from phasegate.engines.hardware import device_in, devices_of, measure_device
from phasegate.engines.managed.engine import ManagedEngine
from phasegate.engines.managed.facts import model_facts, processor
from phasegate.engines.model_facts import KV_BYTES, read_model
from phasegate.measure.session_runner import SessionRunner
from phasegate.stats.level_run import LevelRun
from phasegate.stats.workload_run import WorkloadRun

MEASURE = "measure"
"""Names the hardware that is this machine's processor."""


def runner_roofline(
    runner: SessionRunner, model_file: str | None = None, hardware: str | None = None
) -> Roofline | None:
    """The phases of a lab's runs against the hardware; None where facts or measurements are missing.

    Measuring the processor takes about a second and wants it free: call this when nothing is measured any more.

    Args:
        model_file: file with the model's facts; None for what is known of itself.
        hardware: name in the table, a YAML file, or ``"measure"``; None for what is known of itself.

    Raises:
        SettingsError, EngineError: a file or a name that cannot be used, or a failed measurement; one line.
    """
    measured = measured_of(list(runner.runs.values()))
    if measured is None:
        return None
    model = model_of(runner, model_file)
    facts = None if model is None else hardware_of(runner, hardware, model.format)
    return None if model is None or facts is None else roofline(model, facts, measured)


def missing_facts(runner: SessionRunner, model_file: str | None, hardware: str | None) -> str:
    """Why `runner_roofline` says nothing, in one line with the remedy.

    Raises:
        SettingsError, EngineError: as there.
    """
    if measured_of(list(runner.runs.values())) is None:
        return "no workload with a prefix of its own for each request was measured"
    if model_of(runner, model_file) is None:
        return f"what the model of {hardware} computes; give its shape with --perf-model-facts"
    return "what the server's hardware can do; name it with --perf-hardware-facts"


def measured_of(runs: list[WorkloadRun]) -> Measured | None:
    """Medians of the cold workload with the most prompt lengths: its longest prompt, and its shortest for the slope."""
    cold = [run for run in runs if run.workload.prefix == "unique"]
    for run in sorted(cold, key=lambda one: len(one.workload.input_tokens), reverse=True):
        cells = sorted(run.workload.cells, key=lambda cell: (cell.input_tokens, cell.output_tokens))
        long, short = cells[-1], cells[0]
        ttft = _median(run, "ttft", long)
        if ttft is None:
            continue
        shorter = short.input_tokens < long.input_tokens
        return Measured(
            prompt=_prompt_tokens(run, long),
            output=long.output_tokens,
            tpot=_median(run, "tpot", long),
            ttft=ttft,
            short=_prompt_tokens(run, short) if shorter else None,
            short_ttft=_median(run, "ttft", short) if shorter else None,
        )
    return None


def level_measured(run: LevelRun) -> Measured | None:
    """One level of load: how many requests decoded together by Little's law, tokens a second times seconds a token.

    TPOT has the stalls of other requests' prompts in it, as users feel it. None where no answer defines it.
    """
    tpot = run.median("tpot")
    lines = [line for line in run.timelines if line.status == "ok" and line.prompt_tokens and line.output_tokens]
    if tpot is None or not lines or run.token_rate <= 0:
        return None
    prompt = int(np.median([line.prompt_tokens or 0 for line in lines]))
    output = int(np.median([line.output_tokens or 0 for line in lines]))
    return Measured(prompt, output, batch=max(run.token_rate * tpot, 1.0), tpot=tpot)


def _median(run: WorkloadRun, metric: str, cell: Cell) -> float | None:
    values = list(run.values(metric, cell).values())
    return float(np.median(values)) if values else None


def _prompt_tokens(run: WorkloadRun, cell: Cell) -> int:
    """As the server counted them."""
    told = [line.prompt_tokens for line in run.timelines(cell) if line.prompt_tokens]
    return int(np.median(told)) if told else cell.input_tokens


def model_of(runner: SessionRunner, model_file: str | None) -> ModelFacts | None:
    """The facts in a file, or of the weights of an engine that the suite started; None for what nobody described."""
    if model_file is not None:
        return read_model(Path(model_file))
    engine = runner.engine
    if isinstance(engine, ManagedEngine):
        return model_facts(engine)
    if not isinstance(engine, EmbeddedEngine):
        return None
    # Keys and values may have different formats; what a token takes is their sum.
    both = (KV_BYTES[engine.config.cache_type_k] + KV_BYTES[engine.config.cache_type_v]) / 2
    return replace(read_model(engine.weights()), kv_bytes=both)


def hardware_of(runner: SessionRunner, hardware: str | None, number_format: str) -> HardwareFacts | None:
    """The hardware in a file or of a name, under a started engine, or in the server's label; None if unknown."""
    if hardware is not None and hardware != MEASURE:
        device, count = devices_of(hardware)
        return device.facts(number_format, count or 1)
    engine = runner.engine
    if isinstance(engine, EmbeddedEngine):
        threads = max(engine.config.threads, engine.config.threads_batch or 1)
        return measure_device(threads, engine_cores(threads) if engine.config.pinned else ()).facts(number_format)
    own = processor(engine, number_format) if isinstance(engine, ManagedEngine) else None
    if own is not None:
        return own.facts(number_format)
    if hardware == MEASURE:
        return measure_device().facts(number_format)
    found = device_in(runner.server.hardware)
    return None if found is None else found[0].facts(number_format, found[1])
