"""A situation survives its file, and a damaged file is refused in one line."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from phasegate.gate.diagnose import Limits, Machine, Situation, Steps
from phasegate.gate.diagnose.codec import SCHEMA, UnreadableSituationError, from_json, to_json
from tests.gate.test_diagnose import PLANTED, SHORT, WELL


@pytest.mark.parametrize("name", PLANTED)
def test_every_planted_situation_comes_back_as_it_went(name: str) -> None:
    """With every kind of figure in it."""
    now = replace(PLANTED[name][0], machine=Machine(0.7, None), limits=Limits(0.5, None, "ttft:p95:500ms"))
    now = replace(now, asks=(*now.asks, replace(SHORT, steps=Steps(2.0, 3.0, 40, 20, ((1, 2), (3, 4))))))
    assert from_json(to_json(now), "here") == now


def test_nothing_comes_back_as_nothing() -> None:
    """The empty situation too."""
    assert from_json(to_json(Situation()), "here") == Situation()


def damaged(**changes: Any) -> str:
    """The healthy situation with some fields replaced."""
    return json.dumps({**json.loads(to_json(WELL)), **changes})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not JSON"),
        ("[]", "its schema is None"),
        (damaged(schema="phasegate-situation/9"), "phasegate-situation/9"),
        (damaged(speed=3), "'speed' is not one of asks"),
        (damaged(asks=3), "asks: 3 is not a list"),
        (damaged(asks=[{"name": 3}]), "name: 3 is not a text"),
        (damaged(asks=[{"name": "a", "ttft": "fast"}]), "ttft: 'fast' is not a number"),
        (damaged(asks=[{}]), "name"),
        (damaged(stall={"stall": True}), "True is not a number"),
        ('{"schema": "' + SCHEMA + '", "levels": [{"users": 1e999}]}', "inf is not a number"),
    ],
)
def test_a_damaged_file_is_one_line_with_source_and_place(text: str, said: str) -> None:
    """Not a traceback, and not a guess."""
    with pytest.raises(UnreadableSituationError) as caught:
        from_json(text, "old.json")
    assert said in str(caught.value)
    assert str(caught.value).startswith("old.json")
    assert "\n" not in str(caught.value)
