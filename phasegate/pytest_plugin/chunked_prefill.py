"""The same collision on an engine that reads prompts in small pieces, so that the summary shows what that is worth.

Only an engine that the suite starts can be had a second time with another setting. It is started for this alone, beside
the one that the run measures, which has nothing to do meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from phasegate.core.workload import Workload
from phasegate.engines.embedded_config import parse_config
from phasegate.measure.connect import Opening, open_lab
from phasegate.measure.load_runner import LoadLab
from phasegate.pytest_plugin.outcomes import NotJudged
from phasegate.stats.level_run import Pieces

PIECE = 64
"""Tokens of a piece: an eighth of the long prompt, and few steps' worth of arithmetic on one core."""


def why_not(opening: Opening) -> str | None:
    """Why this run cannot show it, or None."""
    if opening.base_url is not None or opening.engine != "embedded":
        return "needs the embedded engine, which can be started again with another batch size"
    usual = parse_config(opening.engine_config, source="--perf-engine-config").n_batch
    return f"the engine reads prompts in pieces of {usual} tokens anyway" if usual <= PIECE else None


def collide_in_pieces(
    opening: Opening, streams: Workload, long_prompt: Workload, say: Callable[[str], None] | None
) -> Pieces:
    """Collisions on the embedded engine with pieces of `PIECE` tokens.

    Ends the item as an advisory where the engine is not started by the suite, or reads no larger pieces anyway.

    Raises:
        EngineError, CalibrationError, MeasurementError: as for the engine of the run.
    """
    reason = why_not(opening)
    if reason is not None:
        raise NotJudged("ADVISORY", reason)
    setting = f"n_batch={PIECE}"
    with open_lab(replace(opening, engine_config=f"{opening.engine_config} {setting}".strip()), say) as lab:
        collisions = LoadLab(lab, say).collide(streams, long_prompt)
    return Pieces(setting, tuple(collisions))
