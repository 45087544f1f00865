"""Reads many plain sockets with one callback of the event loop.

asyncio spends more on a read than the read itself costs: a handle, a context switch into it, a 256 KiB
buffer, two calls into the protocol. With hundreds of streams that is most of a core, and a late client
stamps late. So all sockets sit in one epoll set of their own, which the event loop watches as a single
file; when it wakes, one tight loop receives everything that has come.

The moment of a read is the kernel's own receive stamp where it gives one (Linux, SO_TIMESTAMPNS): the
moment the last byte of the read reached this host, whether or not this process was busy just then. How
late the process was to fetch it is kept too, as `ReadLag`. Elsewhere the stamp is taken after the receive.
"""

from __future__ import annotations

import asyncio
import select
import socket
import struct
import sys
from time import clock_gettime_ns, monotonic, monotonic_ns

from phasegate.load.exchange import Exchange

READ_SIZE = 32768
"""Bytes asked of one receive. Larger buffers cost more to allocate than they save: at 256 KiB a receive of
one chunk took 16 us, at 32 KiB 3 us."""

ROUNDS = 8
"""Rounds of receiving before the event loop has its turn again. A round costs less than a turn of the loop; the bound
keeps sends and deadlines from waiting for a flood to end."""

SO_TIMESTAMPNS = 35
"""Linux's socket option and control-message type (asm-generic/socket.h); Python has no name for it."""

_ANCILLARY_SIZE = socket.CMSG_SPACE(16)
_CLOCK_REALTIME = 0
_NS = 1e-9
_unpack = struct.Struct("@qq").unpack


class ReadLag:
    """How long read bytes had been waiting in the socket, over all reads of a run."""

    __slots__ = ("longest", "reads", "total")

    def __init__(self) -> None:
        self.reads = 0
        self.total = 0.0
        self.longest = 0.0


class Reactor:
    """The set of plain sockets being read. Bound to the running event loop; close it when done."""

    def __init__(self) -> None:
        self.lag = ReadLag()
        self._loop = asyncio.get_running_loop()
        self._sinks: dict[int, tuple[socket.socket, Exchange]] = {}
        self._epoll = select.epoll() if sys.platform == "linux" else None
        # The kernel stamps only while some socket wants stamps, and takes a moment to begin. This one, never
        # connected, keeps it stamping, so that the first answer of a run has its stamp too.
        self._stamping = socket.socket()
        self.kernel_stamps = self._epoll is not None and _wants_stamps(self._stamping)
        """Whether moments come from the kernel."""
        if self._epoll is not None:
            self._loop.add_reader(self._epoll.fileno(), self.drain)

    def __len__(self) -> int:
        return len(self._sinks)

    def add(self, sock: socket.socket, sink: Exchange) -> None:
        """Read this non-blocking socket into that exchange from now on."""
        descriptor = sock.fileno()
        self._sinks[descriptor] = (sock, sink)
        if self._epoll is None:
            self._loop.add_reader(descriptor, self._read_one, descriptor)
            return
        if self.kernel_stamps:
            _wants_stamps(sock)
        self._epoll.register(descriptor, select.EPOLLIN)

    def remove(self, sock: socket.socket) -> None:
        """Stop reading it; call before closing it."""
        descriptor = sock.fileno()
        if self._sinks.pop(descriptor, None) is None:
            return
        if self._epoll is None:
            self._loop.remove_reader(descriptor)
        else:
            self._epoll.unregister(descriptor)

    def close(self) -> None:
        """Let the event loop forget the set."""
        if self._epoll is not None:
            self._loop.remove_reader(self._epoll.fileno())
            self._epoll.close()
            self._epoll = None
        self._stamping.close()

    def drain(self) -> None:
        """Receive from every socket that has something, and again while more keeps coming, up to a bound."""
        if self._epoll is None:
            return
        # Realtime minus monotonic: the kernel stamps in realtime. Taken anew each time, because realtime is
        # slewed while a long run goes on.
        offset = clock_gettime_ns(_CLOCK_REALTIME) - monotonic_ns()
        sinks = self._sinks
        for _ in range(ROUNDS):
            ready = self._epoll.poll(0)
            for descriptor, _ in ready:
                entry = sinks.get(descriptor)
                if entry is not None:  # else ended by an earlier read of this same round
                    self._receive(entry[0], entry[1], offset)
            if not ready:
                return

    def _receive(self, sock: socket.socket, sink: Exchange, offset: int) -> None:
        try:
            data, notes, _, _ = sock.recvmsg(READ_SIZE, _ANCILLARY_SIZE)
        except BlockingIOError:
            return
        except OSError as error:
            sink.lost(monotonic(), error)
            return
        now = monotonic()
        if not data:
            sink.closed(now)
            return
        at = now
        if notes:
            seconds, nanoseconds = _unpack(notes[0][2])
            at = (seconds * 1_000_000_000 + nanoseconds - offset) * _NS
            # A stepped realtime clock may put a stamp anywhere; order is never given up for it.
            if not sink.last <= at <= now:
                at = sink.last if at < sink.last else now
            lag = self.lag
            lag.reads += 1
            waited = now - at
            lag.total += waited
            if waited > lag.longest:
                lag.longest = waited
        sink.received(at, data)

    def _read_one(self, descriptor: int) -> None:
        sock, sink = self._sinks[descriptor]
        try:
            data = sock.recv(READ_SIZE)
        except BlockingIOError:
            return
        except OSError as error:
            sink.lost(monotonic(), error)
            return
        if data:
            sink.received(monotonic(), data)
        else:
            sink.closed(monotonic())


def _wants_stamps(sock: socket.socket) -> bool:
    """Ask for receive stamps; False where the kernel has none to give."""
    try:
        sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    except OSError:
        return False
    return True
