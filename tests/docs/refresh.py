"""Runs the commands a page names and puts their output into it: ``python -m tests.docs.refresh docs/tutorial/lab.md``.

A page marks a block with a comment just above it::

    <!-- run: phasegate probe --input-tokens 64 -->
    ```console
    $ phasegate probe --input-tokens 64
    (the output)
    ```

A reader sees the command; the comment says which part of its output is kept.

``<!-- run: COMMAND | from REGEX | to REGEX -->`` keeps the lines between the first that matches the one and the next
that matches the other, both included. The page is written once, after the last command, in one step.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from phasegate.core.atomic_write import write_atomic
from tests.docs.blocks import ROOT

MARK = re.compile(r"^<!-- run: (?P<command>.*?)(?: \| from (?P<first>.*?))?(?: \| to (?P<last>.*?))? -->$")


@dataclass(frozen=True, slots=True)
class Run:
    """A marked block: the mark's line (0 for the first), its command, and what is kept of the output."""

    line: int
    command: str
    first: str | None
    last: str | None


def runs(text: str) -> list[Run]:
    """The marked blocks of a page."""
    found = ((number, MARK.match(line)) for number, line in enumerate(text.splitlines()))
    return [Run(number, match["command"], match["first"], match["last"]) for number, match in found if match]


def kept(output: str, run: Run) -> list[str]:
    """The lines of the output that the page shows.

    Raises:
        ValueError: a pattern matches no line.
    """
    lines = [line.rstrip() for line in output.strip("\n").splitlines()]
    begin = _place(lines, run.first, 0) if run.first else 0
    end = _place(lines, run.last, begin) if run.last else len(lines) - 1
    return lines[begin : end + 1]


def _place(lines: Sequence[str], pattern: str, start: int) -> int:
    for number in range(start, len(lines)):
        if re.search(pattern, lines[number]):
            return number
    raise ValueError(f"no line of the output matches {pattern!r}")


def replaced(text: str, outputs: dict[int, list[str]]) -> str:
    """The page with the blocks after these marks filled anew."""
    lines = text.splitlines()
    for line in sorted(outputs, reverse=True):
        end = next(number for number in range(line + 2, len(lines)) if lines[number].startswith("```"))
        assert lines[line + 1].startswith("```"), f"line {line + 2}: a block has to follow its mark"
        lines[line + 2 : end] = outputs[line]
    return "\n".join(lines) + "\n"


def _output(command: str) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "COLUMNS": "110", "NO_COLOR": "1"}
    done = subprocess.run(shlex.split(command), cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    print(f"{command}: exit status {done.returncode}", flush=True)
    return done.stdout or done.stderr


def main(words: Sequence[str] | None = None) -> None:
    """Refresh the named pages."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="+", type=Path)
    for path in parser.parse_args(words).pages:
        text = path.read_text(encoding="utf-8")
        fresh: dict[str, str] = {}
        outputs = {}
        for run in runs(text):
            if run.command not in fresh:
                fresh[run.command] = _output(run.command)
            outputs[run.line] = [f"$ {run.command}", *kept(fresh[run.command], run)]
        write_atomic(path, replaced(text, outputs))
        print(f"wrote {path}")


if __name__ == "__main__":
    main()
