"""Standard output and error that never end a program: whoever reads went away, the disk is full, a sign has no code.

What cannot be encoded is written as an escape (``\\u2026``). What nobody takes any more is dropped, and the program
goes on to its own exit status.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

CLOSED = "it is closed"


class Outlet:
    """A text stream whose writing never fails. Everything else is the stream's own.

    Attributes:
        problem: why what was written is lost, such as a full disk; None where it is not, or where a reader went away
            who had read enough.
    """

    def __init__(self, stream: TextIO, problem: str | None = None) -> None:
        self._stream = stream
        self._lost = problem is not None
        self.problem = problem

    def write(self, text: str) -> int:
        """Write, or drop what cannot be written."""
        if not self._lost:
            try:
                self._stream.write(text)
            except UnicodeEncodeError:
                coding = self._stream.encoding or "ascii"
                self.write(text.encode(coding, "backslashreplace").decode(coding))
            except (OSError, ValueError) as error:
                self._lose(error)
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Write each."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Pass on what is held back."""
        if not self._lost:
            try:
                self._stream.flush()
            except (OSError, ValueError) as error:
                self._lose(error)

    def _lose(self, error: OSError | ValueError) -> None:
        self._lost = True
        if not isinstance(error, BrokenPipeError):
            self.problem = (error.strerror if isinstance(error, OSError) else None) or CLOSED
        # The stream still holds what it could not pass on, and would try again when the interpreter ends.
        with contextlib.suppress(OSError, ValueError), open(os.devnull, "wb") as nowhere:  # noqa: PTH123
            os.dup2(nowhere.fileno(), self._stream.fileno())
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def outlets() -> Iterator[Outlet]:
    """Standard output and error as outlets while the context lasts; gives that of the output."""
    closed = sys.stdout is None
    open_closed()
    before = sys.stdout, sys.stderr
    found = Outlet(sys.stdout, CLOSED if closed else None), Outlet(sys.stderr)
    sys.stdout, sys.stderr = found
    try:
        yield found[0]
    finally:
        for one in found:
            one.flush()
        sys.stdout, sys.stderr = before


def open_closed() -> None:
    """Open standard streams that were closed before the program began on nothing.

    Else the next file or socket would take their numbers, and get what is printed.
    """
    if None not in (sys.stdin, sys.stdout, sys.stderr):
        return
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number, which is this one
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115
