"""The documented streams as recordings: block n (an event or a comment) arrives n x 50 ms after the send."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from phasegate.core.timeline import Ending, Expected, Read, Recording

FOLDER = Path(__file__).parent

STEP = 0.05
"""Seconds between the blocks of a stream."""

_ENTRY = {"profile", "endpoint", "source", "how", "expect"}
_EXPECT = {
    "first", "answer", "last", "tokens", "streamed", "events", "counted_by", "prompt", "cached", "reasoning_tokens",
    "finish", "text", "reasoning", "tool", "flags", "tpot", "error", "says",
}  # fmt: skip


@dataclass(frozen=True)
class Documented:
    """One stream: its bytes, who streams so, where that stands, and what must be read out of it."""

    name: str
    profile: str
    endpoint: str
    source: str
    how: str
    body: bytes
    expect: dict[str, Any]

    @property
    def blocks(self) -> list[bytes]:
        """The body, cut behind every event, or behind every line where it has none."""
        end = b"\n" if self.endpoint == "ollama" else b"\n\n"
        return [part + end for part in self.body.split(end) if part]

    @property
    def content_type(self) -> str:
        """As the engine sends it."""
        return "application/x-ndjson" if self.endpoint == "ollama" else "text/event-stream"

    def recording(self) -> Recording:
        """As the client would have recorded it."""
        reads = tuple(Read(number * STEP, block) for number, block in enumerate(self.blocks, 1))
        return Recording(
            request_id=self.name,
            due=0.0,
            sent=0.0,
            connect_time=0.0,
            http_status=200,
            headers=(("content-type", self.content_type),),
            headers_at=STEP,
            reads=reads,
            ending=Ending.EOF,
            ended_at=reads[-1].at,
            expected=Expected(endpoint=self.endpoint),
        )


def _documented(name: str, entry: dict[str, Any]) -> Documented:
    assert set(entry) <= _ENTRY, f"{name}: fields this test does not know"
    assert set(entry["expect"]) <= _EXPECT, f"{name}: expectations this test does not know"
    endpoint = entry.get("endpoint", "chat")
    ending = "ndjson" if endpoint == "ollama" else "sse"
    body = (FOLDER / "streams" / f"{name}.{ending}").read_bytes()
    return Documented(name, entry["profile"], endpoint, entry["source"], entry["how"], body, entry["expect"])


def load_documented() -> dict[str, Documented]:
    """Every stream, by name."""
    entries = yaml.safe_load((FOLDER / "streams.yaml").read_text(encoding="utf-8"))
    return {name: _documented(name, entry) for name, entry in entries.items()}


DOCUMENTED = load_documented()
