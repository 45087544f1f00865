"""A long prompt sent into running streams: it leaves once every stream has been heard several times.

The moment is taken from the streams themselves and not from a clock, so that it fits any server's speed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic

from phasegate.core.request import Request
from phasegate.core.target import Target
from phasegate.core.timeline import Recording
from phasegate.load.client import Client, Finished

HEARD = 5
"""Reads of a stream after which it is surely being decoded: head, first token, and some gaps to compare with."""

LOOK = 0.001
"""Seconds between two looks at the streams."""


@dataclass(frozen=True, slots=True)
class CollisionRecordings:
    """What came of it: the long prompt's recording, and those of the streams in the order given."""

    intruder: Recording
    streams: tuple[Recording, ...]


class _Listener(Client):
    """A client that tells how much of its running requests has come."""

    def fewest_reads(self) -> int:
        """Reads of the request in flight that has had the fewest; 0 where none is in flight."""
        return min((len(exchange.arrivals) for exchange in self._running), default=0)


def run_collision(target: Target, streams: Sequence[Request], intruder: Request) -> CollisionRecordings:
    """Send the streams together, and the intruder once each has been heard `HEARD` times.

    Where a stream ends, or fails, before all are heard, the intruder goes out all the same; the timelines tell.

    Raises:
        ValueError: the target is behind a proxy, where reads cannot be watched.
        RuntimeError: called from inside a running event loop.
    """
    return asyncio.run(_collide(target, streams, intruder))


async def _collide(target: Target, streams: Sequence[Request], intruder: Request) -> CollisionRecordings:
    client = _Listener(target, len(streams) + 1)
    async with client:
        if client.proxied:
            raise ValueError("collisions need the client's own socket; unset the proxy for this server")
        prepared = [await client.prepare(request) for request in (*streams, intruder)]
        opened = [await client.open(outgoing) for outgoing in prepared]
        running = [
            asyncio.ensure_future(client.exchange(outgoing, link))
            for outgoing, link in zip(prepared[:-1], opened[:-1], strict=True)
        ]
        longest = monotonic() + (target.timeout or float("inf"))
        while not any(one.done() for one in running) and client.fewest_reads() < HEARD and monotonic() < longest:
            await asyncio.sleep(LOOK)
        late = await client.exchange(prepared[-1], opened[-1])
        ended = await asyncio.gather(*running)
    return CollisionRecordings(_read(late), tuple(_read(one) for one in ended))


def _read(outcome: Recording | Finished) -> Recording:
    return outcome.recording() if isinstance(outcome, Finished) else outcome
