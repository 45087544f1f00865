"""Where the suite can start the engine once more with a small batch size, and what it says where it cannot."""

from __future__ import annotations

import pytest

from phasegate.core.workload import Workload
from phasegate.measure.connect import EngineOptions
from phasegate.pytest_plugin.chunked_prefill import collide_chunked, why_not
from phasegate.pytest_plugin.outcomes import NotJudged

STREAMS = Workload("streams", "", (32,), (8,), 2, 0, "unique", 0, "chat")


@pytest.mark.parametrize(
    ("engine_options", "said"),
    [
        (EngineOptions("http://127.0.0.1:9/v1"), "needs the embedded engine"),
        (EngineOptions(None, engine="simulator"), "needs the embedded engine"),
        (EngineOptions(None, engine_config="n_batch=32"), "pieces of 32 tokens anyway"),
    ],
)
def test_an_engine_that_cannot_be_had_with_smaller_pieces_is_not_judged(
    engine_options: EngineOptions, said: str
) -> None:
    """An advisory with the reason; nothing is started."""
    assert said in (why_not(engine_options) or "")
    with pytest.raises(NotJudged, match="ADVISORY"):
        collide_chunked(engine_options, STREAMS, STREAMS, None)


def test_the_embedded_engine_can() -> None:
    assert why_not(EngineOptions(None, engine_config="threads=1")) is None
