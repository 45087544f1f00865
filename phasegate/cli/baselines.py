"""``phasegate baselines``: look at what is stored, compare it, check it, and delete the oldest on request.

Nothing here writes a session; that is the work of ``pytest perf_tests --update-baselines``.
"""

from __future__ import annotations

import argparse
import glob
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from phasegate.core.showing import shown

if TYPE_CHECKING:
    from phasegate.core.session import Session
    from phasegate.report.screen import Screen
    from phasegate.store.baseline_folder import BaselineStore

USAGE, INVALID = 2, 5

DEFAULT_ROOT = "baselines"


class UsageError(ValueError):
    """Wrong usage; the message is one line."""


def add_parser(subparsers: Any) -> None:
    """Declare the command, its actions and their options."""
    parser = subparsers.add_parser("baselines", help="list, show, compare, prune and check stored baselines")
    root_help = f"folder of baselines (default: {DEFAULT_ROOT})"
    parser.add_argument("--root", metavar="DIR", help=root_help)
    # Every action takes it too; one that was not given there must leave alone what stood before the action.
    root = argparse.ArgumentParser(add_help=False)
    root.add_argument("--root", metavar="DIR", default=argparse.SUPPRESS, help=root_help)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    def action(name: str, help_text: str) -> argparse.ArgumentParser:
        added: argparse.ArgumentParser = actions.add_parser(name, help=help_text, parents=[root])
        return added

    action("list", "every server that has a baseline, and pinned ones")
    show = action("show", "what one baseline holds")
    show.add_argument("name", metavar="NAME", help="fingerprint or its beginning, pinned/LABEL/..., or a path")
    diff = action("diff", "medians of two baselines and the change between them with its interval")
    diff.add_argument("old", metavar="OLD", help="as for show")
    diff.add_argument("new", metavar="NEW", help="as for show")
    prune = action("prune", "delete the oldest sessions of one baseline")
    prune.add_argument("name", metavar="NAME", help="as for show")
    prune.add_argument("--keep", metavar="N", required=True, type=int, help="sessions to keep, the newest ones")
    prune.add_argument("--yes", action="store_true", help="delete; without it the files are only listed")
    check = action("check", "read every stored session and say what cannot be used")
    check.add_argument("name", metavar="NAME", nargs="?", help="as for show; default: all of them")


def run(args: argparse.Namespace) -> int:
    """Do one action and return the exit status: 0, 2 for wrong usage, 5 for a baseline that cannot be used."""
    from phasegate.report.screen import Screen
    from phasegate.store.baseline_folder import BaselineStore
    from phasegate.store.session_file import InvalidBaselineError

    console = Screen(width=None if sys.stdout.isatty() else 200)
    try:
        return _ACTIONS[args.action](args, BaselineStore(_root(args)), console)
    except UsageError as error:
        print(shown(f"phasegate baselines: {error}"), file=sys.stderr)
        return USAGE
    except InvalidBaselineError as error:
        print(shown(f"INVALID_BASELINE: {error}"), file=sys.stderr)
        return INVALID


def _root(args: argparse.Namespace) -> Path:
    """The folder of baselines; one that was named has to be there.

    Nobody has recorded a baseline yet where the default one is missing: that is for the actions to say, since some of
    them were given a path and need no root.
    """
    if args.root is None:
        return Path(DEFAULT_ROOT)
    if not args.root:
        raise UsageError("--root is empty: is a variable unset?")
    root = Path(args.root)
    if not root.is_dir():
        raise UsageError(f"--root {root}: {'not a folder' if root.exists() else 'no such folder'}")
    return root


def folder_named(name: str, store: BaselineStore) -> Path:
    """The folder meant by a fingerprint under the root, the beginning of one, or a path.

    The root comes first. A bare word is a path only where that folder holds sessions: a folder of source code may
    happen to be called like an engine. What begins with a dot or a slash is a path and nothing else.

    Raises:
        UsageError: there is none, or several begin like that.
    """
    from phasegate.store.baseline_folder import session_paths

    if not name:
        raise UsageError("an empty name: is a variable unset?")
    path = Path(name)
    found = [] if path.is_absolute() or name.startswith(".") else _below_root(name, store)
    if len(found) > 1:
        raise UsageError(f"{name!r} means several: {', '.join(one.name for one in found)}")
    if found:
        return found[0]
    if path.is_dir() and (len(path.parts) > 1 or name.startswith((".", "/")) or session_paths(path)):
        return path
    known = ", ".join([*store.fingerprints(), *(f"pinned/{label}" for label in store.pins())]) or "none"
    raise UsageError(f"no baseline {name!r} under {store.root}; there are: {known}")


def _below_root(name: str, store: BaselineStore) -> list[Path]:
    """The folder of that name below the root, else those that begin like that; without sessions only the former."""
    from phasegate.store.baseline_folder import session_paths

    exact = store.root / name
    if session_paths(exact):
        return [exact]
    found = sorted(path for path in exact.parent.glob(f"{glob.escape(exact.name)}*") if session_paths(path))
    return found or ([exact] if exact.is_dir() else [])


def _list(_args: argparse.Namespace, store: BaselineStore, console: Screen) -> int:
    from rich.table import Table

    from phasegate.store.baseline_folder import read_folder

    table = Table("baseline", "sessions", "hosts", "newest", "engine versions", box=None, pad_edge=False)
    count = 0
    for label in [None, *store.pins()]:
        for fingerprint in store.fingerprints(label):
            sessions = read_folder(store.folder(fingerprint, label))
            name = f"pinned/{label}/{fingerprint}" if label else fingerprint
            table.add_row(name, str(len(sessions)), _words(one.host for one in sessions), sessions[-1].recorded_at,
                          _words(one.server.get("engine_version") for one in sessions))  # fmt: skip
            count += 1
    if count:
        console.print(table)
    else:
        where = "" if str(store.root) == DEFAULT_ROOT else f" --perf-baselines {shlex.quote(str(store.root))}"
        console.print(f"no baseline under {store.root}; record one with: pytest perf_tests --update-baselines{where}")
    return 0


def _words(values: Any) -> str:
    return ", ".join(sorted({str(value) if value else "unknown" for value in values}))


def _sessions_of(name: str, store: BaselineStore) -> list[Session]:
    from phasegate.store.baseline_folder import read_folder

    folder = folder_named(name, store)
    sessions = read_folder(folder)
    if not sessions:
        raise UsageError(f"{folder}: no session in it")
    return sessions


def _show(args: argparse.Namespace, store: BaselineStore, console: Screen) -> int:
    from rich.table import Table

    from phasegate.gate.comparable import keyed_facts
    from phasegate.gate.facts import facts_of
    from phasegate.gate.levels import Side
    from phasegate.gate.validity import say

    sessions = _sessions_of(args.name, store)
    for key, value in keyed_facts(sessions[-1].server).items():
        console.print(f"{key}: {value or 'unknown'}")
    console.print(f"sessions: {len(sessions)}, {sessions[0].recorded_at} to {sessions[-1].recorded_at}")
    side = Side.of(sessions)
    table = Table("workload", "metric", "median", "lowest", "highest", "sessions", box=None, pad_edge=False)
    for (workload, metric), _ in side.by_key.items():
        facts, levels = facts_of(metric), side.levels((workload, metric)).values()
        if facts is None or not levels:
            continue
        ends = [say(value, facts) for value in (side.level((workload, metric)), min(levels), max(levels))]
        table.add_row(workload, metric, *ends, str(len(levels)))
    console.print(table)
    return 0


def _diff(args: argparse.Namespace, store: BaselineStore, console: Screen) -> int:
    from phasegate.gate.changes import changes
    from phasegate.report.change_lines import change_line

    for change in changes(_sessions_of(args.old, store), _sessions_of(args.new, store)):
        console.print(change_line(change), soft_wrap=True)
    return 0


def _prune(args: argparse.Namespace, store: BaselineStore, console: Screen) -> int:
    from phasegate.store.baseline_folder import prune, session_paths
    from phasegate.store.lock import FolderBusyError
    from phasegate.store.session_file import InvalidBaselineError

    if args.keep < 1:
        raise UsageError(f"--keep is {args.keep}; it must be at least 1 (delete the folder by hand to drop a baseline)")
    folder = folder_named(args.name, store)
    if not session_paths(folder):
        raise UsageError(f"{folder}: no session in it")
    try:
        paths = prune(folder, args.keep, delete=args.yes)
    except (FolderBusyError, OSError) as error:
        raise InvalidBaselineError(f"nothing more was deleted: {error}") from None
    for path in paths:
        console.print(f"{'deleted' if args.yes else 'would delete'} {path}", soft_wrap=True)
    if not paths:
        console.print(f"nothing to delete: no more than {args.keep} sessions are stored")
    elif not args.yes:
        console.print("nothing was deleted; add --yes to delete these files")
    return 0


def _check(args: argparse.Namespace, store: BaselineStore, console: Screen) -> int:
    from phasegate.store.baseline_folder import leftovers

    good, bad = 0, 0
    for folder in _to_check(args.name, store):
        faults, count = _faults(folder, stored=folder.resolve().is_relative_to(store.root.resolve()))
        for line in faults:
            console.print(f"INVALID_BASELINE: {line}", soft_wrap=True)
        for path in leftovers(folder):
            console.print(f"left over from an update that was killed, safe to delete: {path}")
        good, bad = good + count - len(faults), bad + len(faults)
    console.print(f"{good} sessions can be used, {bad} cannot")
    return INVALID if bad else 0


def _to_check(name: str | None, store: BaselineStore) -> list[Path]:
    """The named folder, or all below the root."""
    from phasegate.store.baseline_folder import leftovers, session_paths

    if name is None and not store.root.is_dir():
        raise UsageError(f"no folder {store.root} here; name one with --root DIR")
    if name is None:
        return [store.folder(one, label) for label in [None, *store.pins()] for one in store.fingerprints(label)]
    folder = folder_named(name, store)
    if not session_paths(folder) and not leftovers(folder):
        raise UsageError(f"{folder}: no session in it")
    return [folder]


def _faults(folder: Path, *, stored: bool) -> tuple[list[str], int]:
    """One line for each session that cannot be used, and how many sessions there are.

    Args:
        folder: of sessions.
        stored: it lies below the root, so that its name says whose sessions it holds; elsewhere a folder may be called
            what its owner likes.
    """
    from phasegate.store.baseline_folder import read_session, session_paths
    from phasegate.store.session_file import InvalidBaselineError

    paths, faults = session_paths(folder), []
    for path in paths:
        try:
            session = read_session(path)
            if stored:
                _same_folder(session, folder)
        except InvalidBaselineError as error:
            faults.append(str(error))
    return faults, len(paths)


def _same_folder(session: Session, folder: Path) -> None:
    """Refuse a session that was moved under another server's name by hand."""
    from phasegate.store.session_file import InvalidBaselineError

    if session.fingerprint != folder.name:
        raise InvalidBaselineError(f"{folder / session.session_id}.json: belongs to {session.fingerprint}, not here")


_ACTIONS: dict[str, Callable[[argparse.Namespace, BaselineStore, Screen], int]] = {
    "list": _list,
    "show": _show,
    "diff": _diff,
    "prune": _prune,
    "check": _check,
}
