"""A test with the marker ``alone`` runs while no other worker runs one."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from itertools import combinations
from pathlib import Path

import pytest

from tests.alone import turn

ROOT = Path(__file__).resolve().parents[2]

Span = tuple[float, float]

NOTES = """
import json, time
from pathlib import Path
import pytest

def note(name, began):
    Path(__file__).with_name(name + ".json").write_text(json.dumps([began, time.monotonic()]))
"""

ALONE = f"""{NOTES}
@pytest.fixture(scope="module")
def began():
    return time.monotonic()

{{marker}}
def test_alone(began):
    time.sleep(0.6)
    note("alone", began)
"""

OTHERS = f"""{NOTES}
@pytest.mark.parametrize("number", range(15))
def test_other(number):
    began = time.monotonic()
    time.sleep(0.1)
    note(f"other{{number}}", began)
"""


def overlap(one: Span, other: Span) -> bool:
    return max(one[0], other[0]) < min(one[1], other[1])


def spans(folder: Path, marker: str) -> tuple[Span, list[Span]]:
    """When the one test and the others ran in two workers; the one with its module's fixture."""
    (folder / "test_one.py").write_text(ALONE.format(marker=marker), encoding="utf-8")
    (folder / "test_others.py").write_text(OTHERS, encoding="utf-8")
    words = "-q -n 2 --dist loadfile -p tests.conftest -p no:phasegate.plugin -p no:benchmark -p no:cacheprovider"
    command = [sys.executable, "-m", "pytest", str(folder), *words.split()]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout
    assert "16 passed" in done.stdout
    one = json.loads((folder / "alone.json").read_text())
    return one, [json.loads(path.read_text()) for path in folder.glob("other*.json")]


@pytest.mark.parametrize(("marker", "apart"), [("@pytest.mark.alone", True), ("", False)], ids=["marked", "unmarked"])
def test_what_is_marked_runs_while_no_other_worker_runs_a_test(tmp_path: Path, marker: str, apart: bool) -> None:
    """Its fixtures included; without the marker the same two files overlap."""
    one, others = spans(tmp_path, marker)
    assert len(others) == 15
    assert any(overlap(one, other) for other in others) != apart


def ran(folder: Path, *alone: bool) -> list[Span]:
    """When turns ran that were asked for at the same moment."""
    found: list[Span] = []
    start = threading.Barrier(len(alone))

    def run(alone: bool) -> None:
        start.wait()
        with turn(folder, alone=alone):
            began = time.monotonic()
            time.sleep(0.2)
            found.append((began, time.monotonic()))

    threads = [threading.Thread(target=run, args=(each,)) for each in alone]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_turns_alone_follow_each_other_and_ordinary_ones_do_not_wait(tmp_path: Path) -> None:
    """Four of each."""
    assert not any(overlap(*pair) for pair in combinations(ran(tmp_path, *[True] * 4), 2))
    assert any(overlap(*pair) for pair in combinations(ran(tmp_path, *[False] * 4), 2))


def test_who_waits_to_be_alone_is_not_overtaken_again_and_again(tmp_path: Path) -> None:
    """Three others take turn after turn without a pause, so that the room is hardly ever empty by itself."""
    over, limit = threading.Event(), time.monotonic() + 20.0
    taken: list[float] = []

    def again_and_again(pause: float) -> None:
        time.sleep(pause)
        while not over.is_set() and time.monotonic() < limit:
            with turn(tmp_path, alone=False):
                taken.append(time.monotonic())
                time.sleep(0.03)

    others = [threading.Thread(target=again_and_again, args=(pause,)) for pause in (0.0, 0.01, 0.02)]
    for other in others:
        other.start()
    time.sleep(0.1)
    asked = len(taken)
    with turn(tmp_path, alone=True):
        overtook = len(taken) - asked
        over.set()
    for other in others:
        other.join()
    assert overtook < 20


def test_an_error_gives_the_turn_back(tmp_path: Path) -> None:
    """The next one does not wait."""
    with pytest.raises(KeyboardInterrupt), turn(tmp_path, alone=True):
        raise KeyboardInterrupt
    with turn(tmp_path, alone=True):
        pass
