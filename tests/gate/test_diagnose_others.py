"""Somebody else uses the server while one request after another is measured: the wait for them is no slow phase."""

from __future__ import annotations

import json
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from phasegate.core.target import Target
from phasegate.diagnose import Observations, diagnose
from phasegate.diagnose.from_runs import observations_of
from tests.gate.observations import WANTED
from tests.load_runs import load_lab_on, small

OTHERS = 3


@contextmanager
def other_traffic(target: Target, users: int) -> Iterator[None]:
    """So many other users, each of whom asks again as soon as an answer has come."""
    stop = threading.Event()
    threads = [threading.Thread(target=_ask_on, args=(target, stop, user), daemon=True) for user in range(users)]
    for thread in threads:
        thread.start()
    yield
    stop.set()
    for thread in threads:
        thread.join()


def _ask_on(target: Target, stop: threading.Event, user: int) -> None:
    said = {"role": "user", "content": f"another word of user {user}"}
    body = json.dumps({"model": target.model, "messages": [said], "max_tokens": 60}).encode()
    while not stop.is_set():
        asked = urllib.request.Request(
            f"{target.base_url}/chat/completions", body, {"content-type": "application/json"}
        )
        with urllib.request.urlopen(asked, timeout=30) as answer:
            answer.read()


def lone_requests(users: int) -> Observations:
    """One request after another on a server of one slot that has so many other users."""
    with load_lab_on(max_sequences=1, prefill_tokens_per_second=16_000.0) as load:
        load.runner.measure(small("before", 32, 4))
        with other_traffic(load.runner.target, users):
            run = load.runner.measure(small("alone", 256, 8, requests=6))
        # Other work on the machine that tests may delay the client; the wait is what is asked for.
        return replace(observations_of([run], objectives=WANTED), client=())


@pytest.mark.slow
def test_a_wait_behind_others_is_named_and_neither_prefill_nor_the_way_beside_it() -> None:
    """By the means on the server's page, which has nothing in its answers, and by its count of requests."""
    quiet, busy = lone_requests(0), lone_requests(OTHERS)
    assert diagnose(quiet).found == ()
    assert [one.rule for one in diagnose(busy).found] == ["server-queue"]
    told = diagnose(busy, quiet).found
    assert [one.rule for one in told] == ["queue-longer", "server-queue"]
    assert "requests more than were sent" in " ".join(told[0].evidence)
