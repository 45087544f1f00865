"""Quick pytest runs for these tests too."""

from tests.edges.conftest import quick

__all__ = ["quick"]
