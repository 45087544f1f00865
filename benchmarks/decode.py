"""How fast recorded streams are decoded: our event parser against the openai package's own, in the same run.

The streams are the recorded ones of real engines, each read as the socket delivered it. Both parsers get the
same reads, in turns, and the best of the rounds counts; `decode` is the whole way to a `Timeline`, JSON
included. Run: ``python -m benchmarks.decode``.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from time import perf_counter

from openai._streaming import SSEDecoder

from phasegate.core.timeline import Ending, Recording
from phasegate.load.answer import unframe
from phasegate.wire.openai_stream import decode
from phasegate.wire.sse import EventParser

STREAMS = Path(__file__).parents[1] / "fixtures" / "streams"


def recorded_streams() -> list[Recording]:
    """Every recorded exchange that carries events."""
    found = []
    for wire in sorted(STREAMS.rglob("*.wire")):
        times = wire.with_suffix(".times.jsonl")
        if times.exists():
            recording = _recording(wire, [json.loads(line) for line in times.read_text().splitlines()])
            if recording.reads and recording.reads[0].data.startswith(b"data:"):
                found.append(recording)
    return found


def _recording(wire: Path, times: list[dict[str, float]]) -> Recording:
    data, pieces, start = wire.read_bytes(), [], 0
    for entry in times:
        pieces.append(data[start : start + int(entry["bytes"])])
        start += int(entry["bytes"])
    answer = unframe([entry["ms"] / 1e3 for entry in times], pieces)
    end = times[-1]["ms"] / 1e3
    return Recording(wire.stem, 0.0, 0.0, 0.0, answer.status, answer.headers, 0.0, answer.reads, Ending.EOF, end)


def _bytes(recording: Recording) -> Iterator[bytes]:
    return (read.data for read in recording.reads)


def ours(recordings: list[Recording]) -> int:
    """Events found by our parser, without JSON."""
    found = 0
    for recording in recordings:
        parser = EventParser()
        found += sum(len(parser.feed(read.data, read.at)) for read in recording.reads)
    return found


def openais(recordings: list[Recording]) -> int:
    """Events found by the openai package's decoder, without JSON."""
    return sum(sum(1 for _ in SSEDecoder().iter_bytes(_bytes(recording))) for recording in recordings)


def openais_with_json(recordings: list[Recording]) -> int:
    """The same with each payload read as JSON, which is less than its stream classes do."""
    found = 0
    for recording in recordings:
        for event in SSEDecoder().iter_bytes(_bytes(recording)):
            found += 1
            if event.data != "[DONE]":
                json.loads(event.data)
    return found


def whole(recordings: list[Recording]) -> int:
    """Timelines made of all recordings; counts their token events, so that the work is not skipped."""
    return sum(len(decode(recording).tokens) for recording in recordings)


def best_of(
    work: Mapping[str, Callable[[list[Recording]], int]], recordings: list[Recording], rounds: int
) -> dict[str, float]:
    """Least seconds of each kind of work over the rounds; the kinds take turns within a round."""
    best = dict.fromkeys(work, float("inf"))
    for _ in range(rounds):
        for name, act in work.items():
            start = perf_counter()
            act(recordings)
            best[name] = min(best[name], perf_counter() - start)
    return best


def main() -> None:
    """Print events per second and the ratios."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rounds", type=int, default=30)
    arguments.add_argument("--copies", type=int, default=10, help="times each recorded stream is decoded in a round")
    options = arguments.parse_args()
    recordings = recorded_streams() * options.copies
    events = ours(recordings)
    if events != openais(recordings):
        raise SystemExit("the two parsers find different events; no ratio means anything")
    work = {
        "events, ours": ours,
        "events, openai": openais,
        "events + JSON, openai": openais_with_json,
        "timeline, ours": whole,
    }
    best = best_of(work, recordings, options.rounds)
    print(f"{len(recordings)} streams, {events} events, best of {options.rounds} rounds")
    for name, seconds in best.items():
        print(f"  {name:<22} {events / seconds:>12,.0f} events/s")
    print(f"  parser: ours / openai             {best['events, openai'] / best['events, ours']:.2f} x as fast")
    print(f"  timeline / openai events + JSON   {best['events + JSON, openai'] / best['timeline, ours']:.2f} x as fast")


if __name__ == "__main__":
    main()
