"""The planted server is an ordinary one where nothing is planted."""

from __future__ import annotations

from tests.edges.quick_pytest import QuickPytest
from tests.situations.planted import planted


def test_an_ordinary_server_is_probed(quick: QuickPytest) -> None:
    with planted() as server:
        done = quick.phasegate("probe", "--base-url", server.base_url, "--model", "m", "--input-tokens", "32")
    assert done.status == 0, done.output
    assert "TTFT" in done.output
