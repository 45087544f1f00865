"""The rooms of the library in their order, and what breaks it; ``python -m tests.project.rooms`` prints both.

A room may import from the rooms before it, and from nothing after it; imports inside functions and for types count.
`cli` and `pytest_plugin`, the two edges, do not import each other.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

ROOMS: Mapping[str, str] = {
    "core": "the words that everything speaks in: units, timeline, session, metrics, workloads, prompts, files",
    "wire": "bytes and the moments they came -> a timeline; no I/O",
    "stats": "numbers: laws, comparisons, sets of requests",
    "gate": "sessions and objectives -> verdict: policy, binding phase, coverage",
    "diagnose": "why, which lever, what the hardware allows",
    "report": "what a run found -> document -> terminal, Markdown, HTML, CSV; never a socket",
    "store": "sessions and other tools' files on disk",
    "load": "send on a schedule and record: client, shapes, workers",
    "engines": "address, start, identify, ask; the simulator",
    "measure": "one session, levels of load, comparisons, calibration, selftest",
    "cli": "one file a command; `ci` and `init` with their templates",
    "pytest_plugin": "options, fixtures, summary, exit status, in the order of a run",
}
"""Room -> what lives there; lowest first."""

EDGES = ("cli", "pytest_plugin")
"""The last two, which know nothing of each other."""

FLAT: Mapping[str, str] = {
    "__init__": "the package",
    "__main__": "python -m phasegate",
    "plugin": "the name by which pytest and conftest files load the plugin",
}
"""Modules that belong to no room, and why."""

PURE = ("core", "wire", "stats", "gate", "diagnose", "report")
"""Rooms that get time, chance and bytes as arguments."""

IMPURE_MODULES = {"time", "socket", "random", "secrets", "asyncio", "subprocess", "threading", "datetime"}

Imports = Mapping[str, frozenset[str]]
"""Module -> the modules that it imports anywhere: ours by full name, others by their first word."""


def room_of(module: str) -> str | None:
    """The room of ``phasegate.<room>...``; None for a module that lies flat."""
    part = module.split(".")[1] if "." in module else "__init__"
    return part if part in ROOMS else None


def imports_of(root: Path) -> Imports:
    """What every module of the package imports."""
    paths = {_name(path, root): path for path in sorted((root / "phasegate").rglob("*.py"))}
    return {name: frozenset(_imports(path, paths)) for name, path in paths.items()}


def _name(path: Path, root: Path) -> str:
    return ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")


def _imports(path: Path, known: Mapping[str, Path]) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [one if one in known else node.module for one in inner]
        else:
            continue
        for name in names:
            yield name if name.split(".")[0] == "phasegate" else name.split(".")[0]


def flat_modules(imports: Imports) -> list[str]:
    """Modules that lie in no room and have no reason to."""
    flat = {name.split(".")[1] for name in imports if "." in name} - set(ROOMS)
    return sorted(flat - set(FLAT))


def breaches(imports: Imports) -> list[str]:
    """One line for every import up the order or between the edges, and of time or chance where none may be."""
    return sorted(line for module in imports for line in _breaches(module, imports[module]))


def _breaches(module: str, imported: frozenset[str]) -> Iterator[str]:
    room = room_of(module)
    if room is None:
        return
    order = list(ROOMS)
    for one in imported:
        other = room_of(one) if one.startswith("phasegate.") else None
        if other is None:
            if one in IMPURE_MODULES and room in PURE:
                yield f"{module} imports {one}: time, chance and the outside are arguments here"
        elif other != room and (order.index(other) > order.index(room) or {other, room} == set(EDGES)):
            yield f"{module} imports {one}"


def circles(imports: Imports) -> list[tuple[str, ...]]:
    """Modules that import each other, directly or round about; imports for types and inside functions count."""
    ours = {module: [one for one in found if one in imports and one != module] for module, found in imports.items()}
    return [tuple(sorted(one)) for one in _components(ours) if len(one) > 1]


def _components(edges: Mapping[str, list[str]]) -> Iterator[list[str]]:
    """Strongly connected components (Tarjan 1972), without recursion."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    open_: list[str] = []
    for start in edges:
        work = [(start, iter(edges[start]))] if start not in number else []
        while work:
            node, rest = work[-1]
            if node not in number:
                number[node] = lowest[node] = len(number)
                open_.append(node)
            for following in rest:
                if following not in number:
                    work.append((following, iter(edges[following])))
                    break
                if following in open_:
                    lowest[node] = min(lowest[node], number[following])
            else:
                work.pop()
                if work:
                    lowest[work[-1][0]] = min(lowest[work[-1][0]], lowest[node])
                if lowest[node] == number[node]:
                    place = open_.index(node)
                    yield open_[place:]
                    del open_[place:]


def main() -> None:
    """Print the rooms with their sizes, and everything that breaks their order."""
    imports = imports_of(ROOT)
    for room, what in ROOMS.items():
        files = [module for module in imports if room_of(module) == room]
        print(f"{room:<14} {len(files):>4} files   {what}")
    flat, up, round_ = flat_modules(imports), breaches(imports), circles(imports)
    print(f"{len(ROOMS)} rooms, {len(flat)} flat modules without a reason, {len(up)} breaches, {len(round_)} circles")
    for line in (*flat, *up, *(" <-> ".join(one) for one in round_)):
        print(f"  {line}")


if __name__ == "__main__":
    main()
