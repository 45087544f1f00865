"""One request as its two phases: a bar for prefill, a bar for decode, a tick for every chunk of the answer."""

from __future__ import annotations

from phasegate.core.units import axis_unit, format_seconds
from phasegate.report.charts.scale import Scale, nice_ticks
from phasegate.report.charts.svg import WIDTH, Chart, element, hatched, line, picture, rect, text
from phasegate.report.document.model import RequestLine

LEFT, RIGHT, HEIGHT = 8.0, 8.0, 208.0
PREFILL_TOP, DECODE_TOP, BAR = 34.0, 92.0, 26.0
TICKS_TOP = 146.0
CHARACTER = 7.6
"""Pixels that a character of a label takes at most."""


def timeline_chart(request: RequestLine) -> Chart:
    """The request, labelled with TTFT and TPOT x N."""
    time = Scale(0.0, request.total, LEFT, WIDTH - RIGHT)
    end = time.at(request.ttft)
    words = decode_words(request)
    caption = f"{request_words(request)}: {format_seconds(request.ttft)} of prefill, then {words}."
    body = [
        text(LEFT, PREFILL_TOP - 8, f"prefill: TTFT {format_seconds(request.ttft)}{_cached(request)}", "label"),
        rect(LEFT, PREFILL_TOP, end - LEFT, BAR, "bar prefill"),
        *_label_decode(end, words),
        hatched(end, DECODE_TOP, WIDTH - RIGHT - end, BAR, "bar decode"),
        line(end, PREFILL_TOP - 2, end, TICKS_TOP + 14, "mark"),
        *(line(time.at(at), TICKS_TOP, time.at(at), TICKS_TOP + 12, "token") for at in request.token_at),
        text(LEFT, TICKS_TOP + 10, "chunks", "tick") if end > 60 else "",
        *_axis(time, request.total),
    ]
    svg = picture("The two phases of one request", caption, WIDTH, HEIGHT, element("g", *body))
    rows = (
        ("prefill (TTFT)", format_seconds(0.0), format_seconds(request.ttft), format_seconds(request.ttft)),
        ("decode", format_seconds(request.ttft), format_seconds(request.total),
         format_seconds(request.total - request.ttft)),
    )  # fmt: skip
    return Chart(svg, "Two phases of one request", caption, ("phase", "from", "to", "takes"), rows)


def request_words(request: RequestLine) -> str:
    """Its tokens in words."""
    asked = "?" if request.prompt_tokens is None else f"{request.prompt_tokens}"
    answered = f"{request.output_tokens} output tokens"
    if request.output_tokens is None:
        answered = f"at least {len(request.token_at)} output tokens"
    return f"{asked} prompt tokens, {answered}, {format_seconds(request.total)} in all"


def decode_words(request: RequestLine) -> str:
    """``TPOT 10 ms x 31 = 310 ms``; the span alone where TPOT is undefined."""
    span = format_seconds(request.total - request.ttft)
    if request.tpot is None or request.output_tokens is None:
        return f"{span} of decode (TPOT undefined)"
    return f"TPOT {format_seconds(request.tpot)} x {request.output_tokens - 1} = {span}"


def _cached(request: RequestLine) -> str:
    return f", {request.cached_tokens} tokens from the cache" if request.cached_tokens else ""


def _label_decode(start: float, words: str) -> list[str]:
    """Above its bar, from where it begins; up to the right edge where there is no room for all of it."""
    said = f"decode: {words}"
    if start + len(said) * CHARACTER <= WIDTH - RIGHT:
        return [text(start, DECODE_TOP - 8, said, "label")]
    return [text(WIDTH - RIGHT, DECODE_TOP - 8, said, "label", "end")]


def _axis(time: Scale, total: float) -> list[str]:
    factor, unit = axis_unit(total)
    y = TICKS_TOP + 22
    parts = [line(LEFT, y, WIDTH - RIGHT, y, "axis")]
    for tick in nice_ticks(0.0, total * factor):
        at = time.at(tick / factor)
        anchor = "start" if at < 20 else "end" if at > WIDTH - 24 else "middle"
        parts += [line(at, y, at, y + 4, "axis"), text(at, y + 17, f"{tick:g}", anchor=anchor)]
    return [*parts, text(WIDTH / 2, HEIGHT - 4, f"time since the request was sent ({unit})", "axis-name", "middle")]
