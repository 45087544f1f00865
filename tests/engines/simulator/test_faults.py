"""Every fault does on the wire what its sentence says, and the truth log tells which request it hit."""

from __future__ import annotations

import pytest

from phasegate.engines.simulator.config import SimulatorConfig
from phasegate.engines.simulator.faults import Fault, FaultRule
from phasegate.engines.simulator.process import SimulatorProcess
from phasegate.engines.simulator.truth import Truth, read_log
from tests.engines.simulator.client import RawAnswer, chat, send

ORDER = list(Fault)
TOKENS = 8
AFTER = 3
BODY_GAP = 0.0002


@pytest.fixture(scope="module")
def seen() -> tuple[dict[Fault, RawAnswer], dict[Fault, Truth]]:
    """What each fault looked like: request k of one simulator is hit by fault k."""
    rules = tuple(
        FaultRule(fault, at=(number,), after_tokens=AFTER, seconds=BODY_GAP if fault is Fault.SLOW_BODY else 0.001)
        for number, fault in enumerate(ORDER, start=1)
    )
    process = SimulatorProcess(SimulatorConfig(speed=20, faults=rules))
    try:
        answers = {
            fault: send(
                process.address,
                chat(max_tokens=TOKENS),
                rate_limit=0.5 if fault in (Fault.SILENT_STALL, Fault.NO_ANSWER) else 8,
            )
            for fault in ORDER
        }
        truths = read_log(process.ask("/log"))
    finally:
        process.stop()
    return answers, dict(zip(ORDER, truths, strict=True))


@pytest.fixture
def answers(seen: tuple[dict[Fault, RawAnswer], dict[Fault, Truth]]) -> dict[Fault, RawAnswer]:
    """The answers by fault."""
    return seen[0]


@pytest.mark.parametrize(("fault", "status"), [(Fault.HTTP_429, 429), (Fault.HTTP_500, 500), (Fault.HTTP_503, 503)])
def test_error_statuses(answers: dict[Fault, RawAnswer], fault: Fault, status: int) -> None:
    """With an error object, and Retry-After where it belongs."""
    answer = answers[fault]
    assert (answer.status, answer.ending) == (status, "whole")
    assert b'"error"' in answer.body
    assert ("Retry-After: 0.001" in answer.head) is (status == 429)


def test_reset_before_headers(answers: dict[Fault, RawAnswer]) -> None:
    """Not a byte."""
    assert answers[Fault.RESET_BEFORE_HEADERS] == RawAnswer(b"", "reset")


@pytest.mark.parametrize(
    ("fault", "ending"),
    [(Fault.RESET_MID_STREAM, "reset"), (Fault.HALF_CLOSE, "closed"), (Fault.SILENT_STALL, "silence")],
)
def test_connections_that_end_inside_the_answer(answers: dict[Fault, RawAnswer], fault: Fault, ending: str) -> None:
    """After three tokens, without a finish reason or a last chunk."""
    answer = answers[fault]
    assert answer.ending == ending
    assert answer.finish_reason is None
    # A reset may throw away what the kernel has not handed over yet.
    assert len(answer.texts) == AFTER if fault is not Fault.RESET_MID_STREAM else len(answer.texts) <= AFTER


def test_no_answer(answers: dict[Fault, RawAnswer]) -> None:
    """Not a byte, and no end."""
    assert answers[Fault.NO_ANSWER] == RawAnswer(b"", "silence")


def test_cut_chunk(answers: dict[Fault, RawAnswer]) -> None:
    """Three tokens, and then less than was announced."""
    answer = answers[Fault.CUT_CHUNK]
    assert answer.ending == "closed"
    assert answer.finish_reason is None
    announced, _, rest = answer.raw.rpartition(b"\r\n")
    assert len(rest) < int(announced.rpartition(b"\r\n")[2], 16)


def test_early_done(answers: dict[Fault, RawAnswer]) -> None:
    """The mark of the end, and then the rest of the answer."""
    answer = answers[Fault.EARLY_DONE]
    assert answer.payloads.index("[DONE]") < len(answer.payloads) - 1
    assert (len(answer.texts), answer.finish_reason, answer.ending) == (TOKENS, "length", "whole")


def test_garbage(answers: dict[Fault, RawAnswer]) -> None:
    """In good order as far as HTTP goes."""
    answer = answers[Fault.GARBAGE]
    assert answer.ending == "whole"
    assert b"\x00\xff\xfe" in answer.body
    assert b"[DONE]" not in answer.body


def test_slow_body(answers: dict[Fault, RawAnswer], seen: tuple[object, dict[Fault, Truth]]) -> None:
    """Whole in the end, each byte at least a gap after the one before, and the log tells when tokens really left."""
    answer = answers[Fault.SLOW_BODY]
    assert (len(answer.texts), answer.finish_reason, answer.payloads[-1]) == (TOKENS, "length", "[DONE]")
    truth = seen[1][Fault.SLOW_BODY]
    left = [chunk.actual for chunk in truth.chunks]
    assert None not in left
    assert left[-1] - left[0] > BODY_GAP * (TOKENS - 1) * 20  # type: ignore[operator]
    assert truth.ended is not None
    assert truth.ended >= left[-1]  # type: ignore[operator]


def test_truncated(answers: dict[Fault, RawAnswer]) -> None:
    """In good order, [DONE] and all, and yet not finished."""
    answer = answers[Fault.TRUNCATED]
    assert (len(answer.texts), answer.finish_reason, answer.usage) == (AFTER, None, None)
    assert (answer.payloads[-1], answer.ending) == ("[DONE]", "whole")


def test_slow_loris(answers: dict[Fault, RawAnswer], seen: tuple[object, dict[Fault, Truth]]) -> None:
    """Whole in the end, and no token left before the head was complete."""
    answer = answers[Fault.SLOW_LORIS]
    assert (len(answer.texts), answer.finish_reason, answer.payloads[-1]) == (TOKENS, "length", "[DONE]")
    truth = seen[1][Fault.SLOW_LORIS]
    assert len({chunk.actual for chunk in truth.chunks}) < TOKENS
    assert truth.chunks[0].actual is not None
    assert truth.chunks[0].actual - truth.arrived > 0.1


def test_error_in_stream(answers: dict[Fault, RawAnswer]) -> None:
    """After three tokens, status 200 long gone."""
    answer = answers[Fault.ERROR_IN_STREAM]
    assert (answer.status, len(answer.texts)) == (200, AFTER)
    assert "error" in answer.chunks[-1]


def test_not_http(answers: dict[Fault, RawAnswer]) -> None:
    """Nothing a client can read."""
    answer = answers[Fault.NOT_HTTP]
    assert answer.ending in ("closed", "reset")
    assert not answer.raw.startswith(b"HTTP")


def test_malformed_event(answers: dict[Fault, RawAnswer]) -> None:
    """One event is cut off; everything else is there."""
    answer = answers[Fault.MALFORMED_EVENT]
    assert (len(answer.texts), answer.finish_reason) == (TOKENS, "length")
    broken = [payload for payload in answer.payloads if payload.startswith("{") and not payload.endswith("}")]
    assert len(broken) == 1


def test_empty_answer(answers: dict[Fault, RawAnswer]) -> None:
    """Finished without a token, and honest about it."""
    answer = answers[Fault.EMPTY_ANSWER]
    assert (answer.texts, answer.finish_reason) == ([], "stop")
    assert answer.usage["completion_tokens"] == 0


def test_missing_usage(answers: dict[Fault, RawAnswer]) -> None:
    """Asked for, not given."""
    answer = answers[Fault.MISSING_USAGE]
    assert (len(answer.texts), answer.usage, answer.payloads[-1]) == (TOKENS, None, "[DONE]")


def test_wrong_usage(answers: dict[Fault, RawAnswer]) -> None:
    """Half as many again."""
    assert len(answers[Fault.WRONG_USAGE].texts) == TOKENS
    assert answers[Fault.WRONG_USAGE].usage["completion_tokens"] == TOKENS * 3 // 2


def test_buffered(answers: dict[Fault, RawAnswer], seen: tuple[object, dict[Fault, Truth]]) -> None:
    """Whole, and every token left at one moment, that of the last."""
    assert len(answers[Fault.BUFFERED].texts) == TOKENS
    truth = seen[1][Fault.BUFFERED]
    assert len({chunk.actual for chunk in truth.chunks}) == 1
    assert truth.chunks[0].actual is not None
    assert truth.chunks[0].actual >= truth.chunks[-1].planned


def test_early_eos(answers: dict[Fault, RawAnswer]) -> None:
    """Shorter than asked, and says so."""
    answer = answers[Fault.EARLY_EOS]
    assert (len(answer.texts), answer.finish_reason, answer.usage["completion_tokens"]) == (AFTER, "stop", AFTER)


def test_role_early(answers: dict[Fault, RawAnswer]) -> None:
    """The role comes first, once, and is no token."""
    answer = answers[Fault.ROLE_EARLY]
    roles = [chunk for chunk in answer.chunks if chunk["choices"] and "role" in chunk["choices"][0]["delta"]]
    assert roles == [answer.chunks[0]]
    assert len(answer.texts) == TOKENS


def test_no_done(answers: dict[Fault, RawAnswer]) -> None:
    """Everything but the last event."""
    answer = answers[Fault.NO_DONE]
    assert (answer.finish_reason, answer.usage["completion_tokens"], answer.ending) == ("length", TOKENS, "whole")
    assert "[DONE]" not in answer.payloads


def test_not_streamed(answers: dict[Fault, RawAnswer]) -> None:
    """One JSON object."""
    answer = answers[Fault.NOT_STREAMED]
    assert "application/json" in answer.head
    assert b'"chat.completion"' in answer.body


def test_the_truth_log_names_every_fault(seen: tuple[object, dict[Fault, Truth]]) -> None:
    """And how each request ended."""
    truths = seen[1]
    assert all(truth.fault == fault.value for fault, truth in truths.items())
    assert truths[Fault.HTTP_500].outcome == "refused"
    assert truths[Fault.RESET_MID_STREAM].outcome == "broken"
    assert truths[Fault.NO_DONE].outcome == "finished"
