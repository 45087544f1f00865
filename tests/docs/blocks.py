"""Code blocks and links of the Markdown files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

FENCE = re.compile(r"^(?P<indent> *)```(?P<language>[\w-]*).*$")
LINK = re.compile(r"(?<!!)\[[^\]\n]*\]\((?P<target>[^)\s]+)\)|!\[[^\]\n]*\]\((?P<image>[^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} +(.*)$")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: where it begins, its language and its text."""

    path: Path
    line: int
    language: str
    text: str

    @property
    def where(self) -> str:
        """``README.md:12``."""
        return f"{self.path.relative_to(ROOT)}:{self.line}"


def documents() -> list[Path]:
    """Every page a user may read."""
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(language: str | None = None) -> list[Block]:
    """The blocks of all pages, or those of one language."""
    found = [block for path in documents() for block in _blocks(path)]
    return [block for block in found if language is None or block.language == language]


def _blocks(path: Path) -> Iterator[Block]:
    begun: tuple[int, str, str] | None = None
    held: list[str] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        fence = FENCE.match(line)
        if begun is None and fence:
            begun, held = (number, fence["language"], fence["indent"]), []
        elif begun is not None and line.strip() == "```":
            yield Block(path, begun[0], begun[1], "\n".join(held) + "\n")
            begun = None
        elif begun is not None:
            held.append(line.removeprefix(begun[2]))
    assert begun is None, f"{path}:{begun}: a block that never ends"


def commands(block: Block) -> Iterator[str]:
    """The commands of a shell block, comments and continuation lines resolved; of a console block those after ``$``."""
    joined = block.text.replace("\\\n", " ")
    for line in joined.splitlines():
        if block.language == "console":
            if line.startswith("$ "):
                yield line[2:].strip()
        elif line.strip() and not line.lstrip().startswith("#"):
            yield line.strip()


def prose(path: Path) -> list[tuple[int, str]]:
    """Lines outside of blocks, numbered."""
    inside = False
    lines = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if FENCE.match(line):
            inside = not inside
        elif not inside:
            lines.append((number, line))
    return lines


def links(path: Path) -> Iterator[tuple[int, str]]:
    """Targets of links and images, with their lines."""
    for number, line in prose(path):
        for match in LINK.finditer(re.sub(r"`[^`]*`", "", line)):
            yield number, match["target"] or match["image"]


def anchors(path: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and the site make them."""
    found = (HEADING.match(line) for _, line in prose(path))
    return {_anchor(match[1]) for match in found if match}


def _anchor(heading: str) -> str:
    plain = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
