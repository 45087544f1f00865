"""Tests on installed engines run only where they are asked for by their marker: ``-m real_engine``."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave them out of every other run; they take minutes each and gigabytes of packages."""
    if "real_engine" in str(config.option.markexpr):
        return
    left_out = [item for item in items if item.get_closest_marker("real_engine") is not None]
    if left_out:
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=left_out)
