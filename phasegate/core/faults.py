"""What is said of an error that nothing else handled: one line with the cause and the remedy, and never a traceback.

`guarded` is the net of the commands; that of pytest runs is `pytest_faults`. Causes that are known at their origin are
said there; this is for what is left.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from phasegate.core.atomic_write import UnwritableError, os_words
from phasegate.core.hiding import hide_key, secrets_of
from phasegate.core.output import CLOSED, outlets
from phasegate.engines.base import EngineError
from phasegate.gate.exit_status import NOT_MEASURED
from phasegate.wire.messages import clean

TRACEBACK = "PHASEGATE_TRACEBACK"
"""Environment variable that asks for the traceback too."""

STOPPED = 130
"""Exit status of a command that was stopped by Ctrl-C, as shells count it."""

PACKAGE = Path(__file__).parents[1]


def traceback_wanted() -> bool:
    """Whether the user asked to see where an error came from."""
    return bool(os.environ.get(TRACEBACK))


def fault_line(error: BaseException) -> str:
    """The error in one line: a known cause with its remedy, or the error itself and what to do about it."""
    known = _known(error)
    if known is not None:
        return _fit(known)
    said = f"{type(error).__name__}: {error}".strip().removesuffix(":")
    return f"unexpected: {_fit(said)}{_place(error.__traceback__)}; please report it with what {TRACEBACK}=1 shows"


def guarded(name: str, work: Callable[[], int], status: int = NOT_MEASURED) -> int:
    """The exit status of a program's work, or ``status`` where an error ended it, which is then said in one line.

    Args:
        name: of the program, for its line.
        work: what it does; may raise SystemExit.
        status: for errors, and for output that could not be written.
    """
    with outlets() as output:
        try:
            done = int(work())
            output.flush()
        except KeyboardInterrupt:
            print("stopped", file=sys.stderr)
            return STOPPED
        except Exception as error:
            if traceback_wanted():
                traceback.print_exc()
            print(f"{name}: {fault_line(error)}", file=sys.stderr)
            return status
        if output.problem is not None:
            print(f"{name}: standard output cannot be written: {output.problem}", file=sys.stderr)
        return done or (status if output.problem not in (None, CLOSED) else 0)


def _fit(text: str) -> str:
    """The text on one line, and without what may be secret."""
    return clean(hide_key(text, *secrets_of(os.environ)))


def _known(error: BaseException) -> str | None:
    """What is said of errors whose cause is the machine and not this program; None for all others."""
    if isinstance(error, (EngineError, UnwritableError)):
        return str(error)
    if isinstance(error, ModuleNotFoundError) and error.name and error.name.partition(".")[0] != "phasegate":
        return f"the package {error.name} is missing; install phasegate again, with what it depends on"
    if isinstance(error, MemoryError):
        return "there is not enough memory"
    if isinstance(error, OSError) and error.errno is not None:
        return os_words(error)
    return None


def _place(trace: TracebackType | None) -> str:
    """The last line of this package that an error came through."""
    places = [(frame.f_code.co_filename, number) for frame, number in traceback.walk_tb(trace)]
    own = [(Path(name), number) for name, number in places if Path(name).is_relative_to(PACKAGE)]
    return f" ({own[-1][0].relative_to(PACKAGE.parent)}:{own[-1][1]})" if own else ""
