"""A situation survives its file, and a damaged file is refused in one line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from phasegate.diagnose import (
    CacheCalls,
    Diagnosis,
    Limits,
    Machine,
    Observations,
    Repeats,
    Stall,
    Steps,
    diagnose,
)
from phasegate.diagnose.codec import SCHEMA, UnreadableObservationsError, from_json, to_json
from tests.gate.test_diagnose import PLANTED, SHORT, WELL


@pytest.mark.parametrize("name", PLANTED)
def test_every_planted_situation_comes_back_as_it_went(name: str) -> None:
    """With every kind of figure in it."""
    now = replace(PLANTED[name][0], machine=Machine(0.7, None), limits=Limits(0.5, None, "ttft:p95:500ms"))
    now = replace(now, asks=(*now.asks, replace(SHORT, steps=Steps(2.0, 3.0, 40, 20, ((1, 2), (3, 4))))))
    assert from_json(to_json(now), "here") == now


def test_nothing_comes_back_as_nothing() -> None:
    """The empty situation too."""
    assert from_json(to_json(Observations()), "here") == Observations()


CALLS = {"name": "a", "prompt_tokens": 100, "shared_tokens": 90, "first": 1.0, "again": 0.9}


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
        (damaged(caches=[CALLS, {**CALLS, "first": 0}]), "caches[1]: first: 0 is not a figure above 0"),
        (damaged(caches=[{**CALLS, "first": None}]), "caches[0]: first: None is not a value"),
        (damaged(caches=[{**CALLS, "again": None}]), "caches[0]: again: None is not a value"),
        (damaged(caches=[{**CALLS, "prompt_tokens": 0}]), "prompt_tokens: 0 is not a figure above 0"),
        (damaged(asks=[{"name": "a", "ttft": -1.5}]), "asks[0]: ttft: -1.5 is not a figure from 0 to 1e+12"),
        (damaged(levels=[{"users": 1, "total": 1e308}]), "levels[0]: total: 1e+308 is not a figure from 0"),
        (damaged(levels=[{"users": 10**400}]), "0 is not a figure from 0"),
        (damaged(asks=[{"name": "a", "steps": {"chunks": [[1, -2]]}}]), "chunks: -2 is not a figure from 0"),
        (damaged(machine=None), "machine: None is not a value"),
        (damaged(asks=[{"name": "a", "steps": {"drafted": 3}}]), "accepted: None is not an answer to drafted: 3"),
        (damaged(asks=[{"name": "a", "steps": {"drafted": 3, "accepted": 4}}]), "4 is not at most the 3 drafted"),
        ('{"schema": "' + SCHEMA + '", "levels": [{"users": 1e999}]}', "inf is not a number"),
    ],
)
def test_a_damaged_file_is_one_line_with_source_and_place(text: str, said: str) -> None:
    """Not a traceback, and not a guess."""
    with pytest.raises(UnreadableObservationsError) as caught:
        from_json(text, "old.json")
    assert said in str(caught.value)
    assert str(caught.value).startswith("old.json")
    assert "\n" not in str(caught.value)


FULL = replace(
    PLANTED["no-batching"][0],
    asks=(replace(SHORT, steps=Steps(2.0, 3.0, 40, 20, ((1, 2), (3, 4)), 0.5)), *WELL.asks),
    stall=Stall(1.0, 2.0, 0.01, 3000),
    caches=(CacheCalls("a", 100, 90, 1.0, 0.9, 1.0, 0.0, 0.0),),
    repeats=Repeats(90, 100, 1.0, 0.9, 0.0, 0.0),
    machine=Machine(0.7, 0.6, 0.5),
    limits=Limits(0.5, 0.02, "a policy"),
)


def leaves(plain: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The places of all figures."""
    if isinstance(plain, (dict, list)):
        for key, one in plain.items() if isinstance(plain, dict) else enumerate(plain):
            yield from leaves(one, (*path, key))
    elif not isinstance(plain, str):
        yield path


@pytest.mark.parametrize("odd", [0, None, -1.0, 1e308, 1e-300])
def test_a_file_with_an_odd_figure_is_refused_or_explained_wherever_it_stands(odd: float | None) -> None:
    """No figure of a situation takes the rules apart, alone or beside an earlier situation."""
    plain = json.loads(to_json(FULL))
    places, refused = list(leaves(plain)), 0
    for *way, last in places:
        changed = json.loads(json.dumps(plain))
        inner = changed
        for key in way:
            inner = inner[key]
        inner[last] = odd
        try:
            now = from_json(json.dumps(changed), "old.json")
        except UnreadableObservationsError:
            refused += 1
            continue
        for found in (diagnose(now), diagnose(now, FULL), diagnose(FULL, now)):
            assert isinstance(found, Diagnosis)
    assert refused == len(places) if odd in (-1.0, 1e308) else refused < len(places)
