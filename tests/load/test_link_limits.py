"""Connections that this process has no room for."""

from __future__ import annotations

import asyncio
import errno
import os
import socket

import pytest

from phasegate.load.link import ConnectFailedError, Dialer


def test_no_room_for_another_socket_is_not_the_servers_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """The line names the limit of this process; what the server did is unknown."""

    def full(*_: object) -> socket.socket:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    async def connect() -> None:
        # The event loop has its own sockets by now.
        monkeypatch.setattr("phasegate.load.link.socket.socket", full)
        await Dialer("127.0.0.1", 9, None, None).open(1.0)  # type: ignore[arg-type]

    with pytest.raises(
        ConnectFailedError, match=r"^too many open files \(this process may have \d+\); raise the limit"
    ):
        asyncio.run(connect())
