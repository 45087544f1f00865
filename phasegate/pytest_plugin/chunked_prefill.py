"""The same collision on an engine that reads prompts in small pieces, so that the summary shows what that is worth.

Only an engine that the suite starts can be had a second time with another setting. It is started for this alone, beside
the one that the run measures, which has nothing to do meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from phasegate.core.workload import Workload
from phasegate.engines.embedded_config import parse_config
from phasegate.measure.connect import EngineOptions, connect
from phasegate.measure.load_runner import LoadRunner
from phasegate.pytest_plugin.outcomes import NotJudged
from phasegate.stats.level_run import ChunkedPrefill

PIECE = 64
"""Tokens of a piece: an eighth of the long prompt, and few steps' worth of arithmetic on one core."""


def why_not(engine_options: EngineOptions) -> str | None:
    """Why this run cannot show it, or None."""
    if engine_options.base_url is not None or engine_options.engine != "embedded":
        return "needs the embedded engine, which can be started again with another batch size"
    usual = parse_config(engine_options.engine_config, source="--perf-engine-config").n_batch
    return f"the engine reads prompts in pieces of {usual} tokens anyway" if usual <= PIECE else None


def collide_chunked(
    engine_options: EngineOptions, streams: Workload, long_prompt: Workload, say: Callable[[str], None] | None
) -> ChunkedPrefill:
    """Collisions on the embedded engine with pieces of `PIECE` tokens.

    Ends the item as an advisory where the engine is not started by the suite, or reads no larger pieces anyway.

    Raises:
        EngineError, CalibrationError, MeasurementError: as for the engine of the run.
    """
    reason = why_not(engine_options)
    if reason is not None:
        raise NotJudged("ADVISORY", reason)
    setting = f"n_batch={PIECE}"
    with connect(
        replace(engine_options, engine_config=f"{engine_options.engine_config} {setting}".strip()), say
    ) as runner:
        collisions = LoadRunner(runner, say).collide(streams, long_prompt)
    return ChunkedPrefill(setting, tuple(collisions))
