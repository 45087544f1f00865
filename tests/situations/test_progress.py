"""A run says how far it is: the plan and a line a minute in a log, on a terminal a line that leaves nothing (A8)."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from phasegate.core.budget import Answered
from phasegate.core.token_budget import Spending
from phasegate.load.traffic import Traffic
from phasegate.report.progress import LiveLine, LogLines, clock
from tests.edges.quick_pytest import ROOT, QuickPytest


class Screen:
    """A terminal that knows the few control sequences of the live line, with lines kept as they scroll."""

    def __init__(self) -> None:
        self.lines, self.row, self.column = [""], 0, 0

    def write(self, text: str) -> None:
        """Text and control sequences."""
        for part in re.findall(r"\x1b\[\d*[A-Za-z]|\r?\n|\r|.", text):
            if part in ("\n", "\r\n"):
                self.row, self.column = self.row + 1, 0
                self.lines += [""] * (self.row + 1 - len(self.lines))
            elif part == "\x1b[2K":
                self.lines[self.row] = ""
            elif part.endswith("A") and part.startswith("\x1b"):
                self.row -= 1
            elif part.endswith("G") and part.startswith("\x1b"):
                self.column = int(part[2:-1]) - 1
            elif part == "\r":
                self.column = 0
            elif not part.startswith("\x1b"):
                line = self.lines[self.row].ljust(self.column)
                self.lines[self.row] = line[: self.column] + part + line[self.column + 1 :]
                self.column += 1


def test_the_live_line_leaves_nothing_behind() -> None:
    """A8: ``perf_tests/test_slo.py th: request 20 of 20, TTFT p50 91.8 ms``."""
    screen = Screen()
    screen.write("perf_tests/test_rows.py ")
    live = LiveLine(screen.write, lambda: screen.column, 80, Traffic())
    live("output-length", 20, 20, 0.0918)
    assert "output-length: request 20 of 20" in screen.lines[1]
    live.clear()
    screen.write(".\nperf_tests/test_slo.py ")
    assert screen.lines == ["perf_tests/test_rows.py .", "perf_tests/test_slo.py "]


def test_a_long_live_line_is_cut_to_the_terminal() -> None:
    """A second line would stay when the first is taken away."""
    screen = Screen()
    live = LiveLine(screen.write, lambda: 0, 40, Traffic())
    live.say("measuring " + "x" * 200)
    assert max(map(len, screen.lines)) < 40


@pytest.mark.parametrize(("seconds", "said"), [(0.2, "0 s"), (59.4, "59 s"), (60, "1 min 0 s"), (1065, "17 min 45 s")])
def test_a_log_tells_times_in_minutes_and_seconds(seconds: float, said: str) -> None:
    assert clock(seconds) == said


def planned() -> Traffic:
    """A run of ten requests of a second each, none sent."""
    traffic = Traffic(planned=Spending(10, 100, 20))
    traffic._answered.append(Answered(10, 2, 0.5, 1.0))
    return traffic


def test_a_log_gets_the_plan_once_and_then_a_line_at_most_every_so_often() -> None:
    said: list[str] = []
    lines = LogLines(said.append, planned(), lambda: "plan: 3 items", every=3600.0)
    for number in range(50):
        lines("output-length", number, 50, None)
    lines.close()
    assert said == ["plan: 3 items"]


def test_a_log_says_what_is_measured_and_what_is_left() -> None:
    said: list[str] = []
    lines = LogLines(said.append, planned(), lambda: None, every=0.0)
    lines("output-length", 3, 50, None)
    lines.close()
    assert re.fullmatch(r"output-length: request 3 of 50; 0 s so far, about 12 s left", said[0]), said


def test_a_log_is_not_silent_while_one_request_takes_minutes() -> None:
    """Nothing ends, so nothing calls: the line comes all the same."""
    said: list[str] = []
    lines = LogLines(said.append, planned(), lambda: None, every=0.1)
    lines.say("block 1 of 5: candidate")
    ends = time.monotonic() + 10.0
    while len(said) < 3 and time.monotonic() < ends:
        time.sleep(0.02)
    lines.close()
    assert len(said) >= 3
    assert said[0].startswith("block 1 of 5: candidate; ")
    count = len(said)
    time.sleep(0.3)
    assert len(said) == count, "nothing after the end"


def test_a_log_that_cannot_be_written_ends_no_run() -> None:
    """The reader of a pipe may be gone."""
    from phasegate.report.progress import _past_capture

    reader, writer = os.pipe()
    with os.fdopen(writer, "w") as file:
        write, close = _past_capture(file)
        os.close(reader)
        write("x\n")
        close()


PLAN = r"plan: \d+ items?, [\d,]+ requests, [\d,]+ tokens, about "


@pytest.mark.parametrize("capture", ["fd", "sys", "no"])
def test_the_plan_reaches_a_log_in_spite_of_pytests_capture(quick: QuickPytest, small: Path, capture: str) -> None:
    """Silence for 16 minutes: the first line tells items, requests and time."""
    settings = ("--perf-engine", "simulator", "--perf-engine-config", "speed=1")
    done = quick.run("perf_tests/test_rows.py", *settings, "--perf-workloads", small, f"--capture={capture}")
    assert done.status == 0, done.output
    assert len(re.findall(PLAN, done.output)) == 1
    assert done.output.index("plan: ") < done.output.index("passed")


@pytest.mark.slow
def test_on_a_terminal_nothing_of_the_live_line_is_left(small: Path) -> None:
    """A8, in a real terminal."""
    screen = Screen()
    arguments = [
        sys.executable, "-m", "pytest", "perf_tests/test_rows.py", "-p", "no:cacheprovider",
        "--perf-engine", "simulator", "--perf-engine-config", "speed=1", "--perf-workloads", str(small),
    ]  # fmt: skip
    with_terminal(arguments, screen.write)
    text = "\n".join(screen.lines)
    assert "passed" in text
    assert "request 3 of 3" not in text
    assert re.search(r"^perf_tests/test_rows\.py \.\.? ", text, re.MULTILINE), text


def with_terminal(arguments: list[str], write: Callable[[str], None]) -> None:
    """Run a command in a terminal of its own and hand over what it writes."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen(arguments, cwd=ROOT, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        found: list[bytes] = []

        def read() -> None:
            while True:
                try:
                    found.append(os.read(ours, 4096))
                except OSError:
                    return

        reader = threading.Thread(target=read)
        reader.start()
        process.wait(timeout=120)
        reader.join(timeout=10)
    os.close(ours)
    write(re.sub(r"\x1b\[[0-9;]*m", "", b"".join(found).decode(errors="replace")))
