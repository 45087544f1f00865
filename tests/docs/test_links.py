"""Every link leads somewhere: files exist, anchors exist."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.blocks import ROOT, anchors, documents, links


@pytest.mark.parametrize("path", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_inside_the_project_leads_somewhere(path: Path) -> None:
    """Links to other sites are left to their owners; these tests talk to nobody."""
    broken = []
    for line, target in links(path):
        if target.startswith(("http://", "https://", "mailto:")):
            continue
        name, _, anchor = target.partition("#")
        other = (path.parent / name).resolve() if name else path
        if not other.exists() or (anchor and other.suffix == ".md" and anchor not in anchors(other)):
            broken.append(f"{path.relative_to(ROOT)}:{line}: {target}")
    assert broken == []
