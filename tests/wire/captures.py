"""The recorded streams of real engines as recordings: the socket's bytes cut where the socket cut them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from phasegate.core.timeline import Ending, Expected, Recording
from phasegate.load.answer import unframe
from tests.wire.cases import FIXTURES

STREAMS = FIXTURES / "streams"


@dataclass(frozen=True)
class Capture:
    """One recorded exchange. ``name`` is ``<engine folder>/<case>``."""

    name: str
    wire: bytes
    body: bytes
    sizes: tuple[int, ...]
    moments: tuple[float, ...]
    request: dict[str, Any]

    @property
    def pieces(self) -> list[bytes]:
        """The wire bytes, one piece a ``recv``."""
        ends = [sum(self.sizes[: place + 1]) for place in range(len(self.sizes))]
        return [self.wire[end - size : end] for end, size in zip(ends, self.sizes, strict=True)]

    def recording(self, ending: Ending = Ending.EOF) -> Recording:
        """As the client would have recorded it, in seconds since the send."""
        answer = unframe(self.moments, self.pieces)
        return Recording(
            request_id=self.name,
            due=0.0,
            sent=0.0,
            connect_time=0.0,
            http_status=answer.status,
            headers=answer.headers,
            headers_at=answer.headers_at,
            reads=answer.reads,
            ending=ending,
            ended_at=self.moments[-1],
            expected=Expected(
                endpoint="chat" if "chat" in self.request.get("path", "chat") else "completions",
                max_tokens=self.request.get("body", {}).get("max_tokens"),
                output_tokens=6 if self.request.get("body", {}).get("min_tokens") == 6 else None,
                cold_prompt="cached" not in self.name,
            ),
        )


def _capture(wire: Path) -> Capture:
    def beside(suffix: str) -> Path:
        return wire.with_name(wire.name.removesuffix(".wire") + suffix)

    times = [json.loads(line) for line in beside(".times.jsonl").read_text().splitlines()]
    return Capture(
        name=str(wire.relative_to(STREAMS)).removesuffix(".wire"),
        wire=wire.read_bytes(),
        body=beside(".sse").read_bytes(),
        sizes=tuple(entry["bytes"] for entry in times),
        moments=tuple(entry["ms"] / 1e3 for entry in times),
        request=json.loads(beside(".request.json").read_text()),
    )


def load_captures() -> dict[str, Capture]:
    """Every exchange with recorded moments, by name. Two are without: see `untimed`."""
    found = [_capture(wire) for wire in sorted(STREAMS.rglob("*.wire")) if wire.with_suffix(".sse").exists()]
    return {capture.name: capture for capture in found}


def untimed(name: str, ending: Ending) -> Recording:
    """An exchange of which only the socket's bytes were kept, as one read."""
    answer = unframe([0.0], [(STREAMS / f"{name}.wire").read_bytes()])
    return Recording(name, 0.0, 0.0, 0.0, answer.status, answer.headers, 0.0, answer.reads, ending, 0.0)


CAPTURES = load_captures()
