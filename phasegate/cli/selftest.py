"""``phasegate selftest``: proves on this machine that the gate finds what it must and leaves alone what it must.

Exit status: 0 everything held, 1 something did not, 2 wrong usage or a stored session that cannot be read.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from phasegate.core.showing import shown

if TYPE_CHECKING:
    from rich.text import Text

    from phasegate.measure.selftest.proof import Proof
    from phasegate.measure.selftest.rescaled import Rescaled
    from phasegate.report.screen import Screen

FAILED, USAGE = 1, 2


def add_parser(subparsers: Any) -> None:
    """Declare the command and its options."""
    parser = subparsers.add_parser(
        "selftest",
        help="prove that the gate finds planted slowdowns and leaves unchanged servers alone",
        description=(
            "Plants slowdowns into a simulator of known timing and into stored sessions, requires each to be found in "
            "its phase, and counts the alarms of builds in which nothing changed. Needs no server and no network."
        ),
    )
    parser.add_argument("--builds", type=_at_least(1), default=300, metavar="N", help="unchanged builds (default 300)")
    parser.add_argument("--seed", type=_at_least(0), default=1, metavar="N", help="of everything drawn (default 1)")
    parser.add_argument("--baselines", default="baselines", metavar="DIR", help="stored sessions (default baselines)")
    parser.add_argument("--policy", metavar="FILE", help="policy in YAML; default: built-in values")
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object")


def _at_least(least: int) -> Callable[[str], int]:
    def whole(word: str) -> int:
        if not word.isdigit() or int(word) < least:
            raise argparse.ArgumentTypeError(f"{word!r} is not a whole number of at least {least}")
        return int(word)

    return whole


def run(args: argparse.Namespace) -> int:
    """Prove, print, and return the exit status."""

    from rich.text import Text

    from phasegate.core.settings_file import SettingsError
    from phasegate.measure.selftest.proof import prove
    from phasegate.report.screen import Screen
    from phasegate.store.policy_source import read_policy
    from phasegate.store.session_file import InvalidBaselineError

    try:
        folder = _folder(args.baselines)
        policy = read_policy(args.policy)
        # What is going on is told apart from the result, and only to somebody who watches.
        with Screen(stderr=True).status("starting") as status:

            def say(line: str) -> None:
                status.update(Text(shown(line)))

            proof = prove(policy, builds=args.builds, seed=args.seed, baselines=folder, say=say)
    except (SettingsError, InvalidBaselineError, NotADirectoryError) as error:
        print(shown(f"phasegate selftest: {error}"), file=sys.stderr)
        return USAGE
    if args.json:
        print(json.dumps(proof.as_json(), allow_nan=False))
    else:
        # A pipe has no width; rows must not be folded for it.
        print_proof(proof, Screen(width=None if sys.stdout.isatty() else 200))
    return 0 if proof.holds else FAILED


def _folder(word: str) -> Path:
    """The folder of stored sessions; the default one need not exist.

    Raises:
        NotADirectoryError: one was named that does not exist.
    """
    folder = Path(word)
    if word != "baselines" and not folder.is_dir():
        raise NotADirectoryError(f"--baselines: {word} is no folder")
    return folder


def print_proof(proof: Proof, console: Screen) -> None:
    """One row for each check, then what was drawn from where, then PASS or FAIL with a sentence."""
    from rich.table import Table
    from rich.text import Text

    failed = Text("FAILED", "bold red")
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("part", "candidate", "must say", "said", ""):
        table.add_column(name)
    for check in proof.checks:
        word = Text("ok", "green") if check.holds else failed
        table.add_row(check.part, check.name, check.wanted, check.got, word)
    console.print(table)
    for one in proof.rescaled:
        _print_detections(one, console)
    for check in proof.checks:
        if check.remedy:
            said = f" {check.part}, {check.name}: {check.remedy}"
            _line(console, said, Text("note", "yellow") if check.holds else failed)
    for builds in proof.unchanged:
        undecided = f"{builds.undecided} of {builds.alarms.n} builds undecided, which is no alarm"
        _line(console, f"A/A model of {builds.source}, {builds.baseline_sessions} baseline sessions: {builds.model}")
        _line(console, f"  {undecided}")
    _line(console, f"false alarms in all: {proof.alarms or 'no builds'}; {proof.claim()}")
    for remark in proof.remarks:
        _line(console, remark)
    _line(console, f"seed {proof.seed}")
    _line(console, f": {proof.sentence()}", Text("PASS", "green") if proof.holds else Text("FAIL", "bold red"))


def _print_detections(one: Rescaled, console: Screen) -> None:
    """What was found of each metric, in the sessions of one source."""
    from rich.table import Table

    from phasegate.core.units import format_percent

    table = Table(box=None, pad_edge=False, header_style="bold", title_justify="left")
    for name in (f"slowed, {one.source}", "phase"):
        table.add_column(name)
    for name in ("by", "MDE", "promised", "found", "of"):
        table.add_column(name, justify="right")
    for row in one.detections:
        cells = [f"{row.workload} {row.metric}", row.phase, format_percent(row.tolerance, signed=True)]
        counts = [str(row.promised), str(row.found), str(row.tried)]
        table.add_row(*cells, format_percent(row.mde), *counts)
    console.print()
    console.print(table)
    console.print()


def _line(console: Screen, text: str, word: Text | None = None) -> None:
    """One line, after a word of our own where there is one."""
    if word is not None:
        console.print(word, end="")
    console.print(text, soft_wrap=True)
