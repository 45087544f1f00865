"""``phasegate ci``: the suite in a pipeline. Settings come from the environment, results go to a folder.

``ci gate`` judges, ``ci update`` records baselines. Both end with pytest's exit status.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, Any

from phasegate.cli.ci.settings import OPTIONS, PipelineError, Settings, read_settings
from phasegate.core.showing import shown

if TYPE_CHECKING:
    from phasegate.cli.ci.measure import Measured

UNWRITTEN = 15
"""Status where a run ended but its results could not be written, as where pytest itself cannot write them."""


def add_parser(subparsers: Any) -> None:
    """The words of the command line."""
    names = ", ".join(f"{name} ({option})" for name, option in OPTIONS.items())
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "ci",
        help="run the suite in a pipeline, with settings from the environment",
        epilog=f"Environment: {names}; PERF_SUITE (what pytest is given; default perf_tests), PERF_ARGS (further "
        "options), PERF_OUT (folder of results; default perf-results), OPENAI_API_KEY.",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    actions.add_parser("gate", help="measure and judge")
    actions.add_parser("update", help="measure, store the sessions as baselines, and write the table of changes")


def run(args: argparse.Namespace) -> int:
    """Do it and return pytest's exit status; 2 for a setting that cannot be used.

    Raises:
        UnwritableError: the results have no place.
    """
    try:
        settings = read_settings(os.environ)
        for note in settings.notes:
            print(shown(f"phasegate ci: {note}"), file=sys.stderr)
        return _update(settings) if args.action == "update" else _gate(settings)
    except PipelineError as error:
        print(shown(f"phasegate ci: {error}"), file=sys.stderr)
        return 2


def _gate(settings: Settings) -> int:
    from phasegate.cli.ci.measure import measure
    from phasegate.cli.ci.tell import text_of

    # A gate without a baseline has shown nothing, whether or not this machine calls itself CI.
    measured = measure(settings, ["--missing-baseline=fail"])
    return _told(measured, text_of(measured))


def _update(settings: Settings) -> int:
    from phasegate.cli.ci.measure import measure
    from phasegate.cli.ci.tell import text_of
    from phasegate.cli.ci.update import before_and_after, stored

    known = stored(settings.baselines)
    measured = measure(settings, ["--update-baselines"])
    table = before_and_after(settings.baselines, known, measured.sessions)
    return _told(measured, table or f"## Baselines not updated\n\n{text_of(measured)}")


def _told(measured: Measured, text: str) -> int:
    """Write what people and trackers read; pytest's exit status, or 15 where that could not be written."""
    from phasegate.cli.ci.tell import tell

    try:
        tell(measured, text, os.environ)
    except OSError as error:
        where = error.filename or measured.out
        print(shown(f"phasegate ci: {where}: cannot be written: {error.strerror or error}"), file=sys.stderr)
        return UNWRITTEN
    return measured.status
