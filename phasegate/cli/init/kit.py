"""The starter kit: which files a repository gets, and their text.

The suite and its workloads are the project's own, so that what a newcomer gets is what is tested here: a wheel carries
them beside this module, a clone has them at its top.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
CARRIED = HERE / "carried"
"""Where a wheel carries what a clone has at its top; see ``force-include`` in pyproject.toml."""

CLONE = HERE.parents[2]

OWN = HERE / "own"
"""Files written for newcomers only."""

TREES = (
    "perf_tests/*.py",
    "fixtures/workloads/*.yaml",
    "fixtures/workloads/examples/*.yaml",
    "fixtures/load/*.yaml",
    "fixtures/policy.yaml",
)
WORKFLOW = ".github/workflows/perf-gate.yml"


class KitError(Exception):
    """The kit is not complete; one line."""


@dataclass(frozen=True, slots=True)
class KitFile:
    """One file of the kit.

    Attributes:
        path: where it goes, relative to the repository.
        text: what it holds.
    """

    path: Path
    text: str


def kit(*, workflow: bool = True) -> tuple[KitFile, ...]:
    """All files, in the order of their paths.

    Raises:
        KitError: this installation lacks them.
    """
    source = CARRIED if (CARRIED / "perf_tests").is_dir() else CLONE
    files = [*_taken(source), *_own(workflow=workflow)]
    if not any(one.path.parts[0] == "perf_tests" for one in files):
        raise KitError(f"this installation of phasegate carries no suite (looked in {source}); install it again")
    return tuple(sorted(files, key=lambda one: one.path))


def _taken(source: Path) -> Iterator[KitFile]:
    for pattern in TREES:
        for path in sorted(source.glob(pattern)):
            yield KitFile(path.relative_to(source), path.read_text(encoding="utf-8"))


def _own(*, workflow: bool) -> Iterator[KitFile]:
    places = {"baselines.md": "baselines/README.md"}
    if workflow:
        places["perf-gate.yml"] = WORKFLOW
    for name, place in places.items():
        yield KitFile(Path(place), (OWN / name).read_text(encoding="utf-8"))
