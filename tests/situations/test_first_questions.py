"""What is asked before anything is measured decides nothing that the first request decides better."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.edges.quick_pytest import Done, QuickPytest
from tests.loopback import Answer, Loopback, Served
from tests.situations.planted import Oddities, Planted, planted

ROWS = "perf_tests/test_rows.py"
UNUSABLE = 15


def probed(quick: QuickPytest, oddities: Oddities, *options: str) -> Done:
    """A probe with a prompt of an exact length, so that the server is asked before."""
    with planted(oddities) as server:
        return quick.phasegate("probe", "--base-url", server.base_url, "--input-tokens", "40", *options)


@pytest.mark.parametrize("least", [16, 20, 64])
def test_prompts_are_counted_with_a_limit_that_the_server_accepts(quick: QuickPytest, least: int) -> None:
    """C001: 400 to limits below 16; and other lowest limits."""
    done = probed(quick, Oddities(least_limit=least), "--model", "m", "--max-tokens", "64")
    assert done.status == 0, done.output
    assert "40 prompt tokens -> 64 output tokens" in done.output


def test_a_suite_is_measured_though_one_token_is_refused(quick: QuickPytest, one_workload: Callable[[], Path]) -> None:
    """C001: in the suite; the refused limit is tried once, not before every count."""
    folder = one_workload()
    with planted(Oddities(least_limit=16)) as server:
        done = quick.run(ROWS, "--perf-base-url", server.base_url, "--perf-model", "m", cwd=folder)
        refused = [served for served in server.log if served.body and served.body.get("max_tokens", 99) < 16]
    assert done.status == 0, done.output
    assert len(refused) == 1


def test_a_limit_that_no_try_meets_ends_with_the_first_refusal(quick: QuickPytest) -> None:
    """One line with the server's own words."""
    done = probed(quick, Oddities(least_limit=65), "--model", "m", "--max-tokens", "128")
    assert done.status == 5
    assert "a first request, to count its tokens, failed (http_400): Invalid 'max_tokens'" in done.output
    assert "but got 1 instead" in done.output


@pytest.mark.parametrize("listed", [("qwen3-8b", "*"), ("m-base",), ("M",)])
def test_a_model_that_is_not_listed_is_asked_for(quick: QuickPytest, listed: Sequence[str]) -> None:
    """C002: an alias, an unlisted model, a wildcard."""
    done = probed(quick, Oddities(models=listed), "--model", "m")
    assert done.status == 0, done.output
    assert "warning: model 'm' is not in the list of" in done.output
    assert f"which has {', '.join(listed)}" in done.output


def test_the_summary_warns_of_a_model_that_is_not_listed(quick: QuickPytest, one_workload: Callable[[], Path]) -> None:
    """C002: in the suite."""
    folder = one_workload()
    with planted(Oddities(models=["base"])) as server:
        done = quick.run(ROWS, "--perf-base-url", server.base_url, "--perf-model", "my-lora", cwd=folder)
    assert done.status == 0, done.output
    assert "warning  model 'my-lora' is not in the list of" in done.output


def test_a_wrong_name_ends_with_the_servers_own_404(quick: QuickPytest) -> None:
    """C002: with what it lists instead."""
    words = b'{"error": {"message": "The model `x` does not exist"}}'

    def answer(served: Served) -> Answer:
        if served.head.startswith("GET") and "/models" in served.head:
            return _json(b'{"data": [{"id": "a"}, {"id": "b"}]}', 200)
        return _json(words, 404)

    done = _probed_at(quick, answer)
    assert done.status == 5
    assert "failed (http_404): The model `x` does not exist" in done.output
    assert "is not in the list of" in done.output
    assert "which has a, b" in done.output


@pytest.mark.parametrize("status", [403, 500, 501])
def test_a_list_that_is_kept_back_decides_nothing(quick: QuickPytest, status: int) -> None:
    """C003: forbidden, missing or broken."""
    done = probed(quick, Oddities(models_status=status), "--model", "m")
    assert done.status == 0, done.output
    assert "warning" not in done.output


@pytest.mark.parametrize("status", [401, 403])
def test_a_wrong_key_is_told_by_its_own_refusal(quick: QuickPytest, status: int) -> None:
    """C003: the list is forbidden and so is the request; the variable is named, its content is not."""
    done = _probed_at(quick, lambda _: _json(b'{"error": {"message": "Incorrect API key provided"}}', status))
    assert done.status == 5
    assert f"failed (http_{status}): Incorrect API key provided" in done.output
    assert f"the key was refused (HTTP {status}); check OPENAI_API_KEY" in done.output
    assert "sk-of-a-test" not in done.output


@pytest.mark.parametrize("ending", ["reset", "refuse"])
def test_a_list_that_breaks_off_decides_nothing(quick: QuickPytest, ending: str) -> None:
    """C003: the connection ends where the list should come."""
    with Loopback(_listing(Answer(pieces=[(0.0, b"{")], framing="length", ending=ending))) as server:
        done = quick.phasegate("probe", "--base-url", server.base_url, "--model", "m", "--input-tokens", "40")
    assert done.status == 0, done.output


@pytest.mark.slow
@pytest.mark.parametrize("named", [True, False])
def test_a_list_that_hangs_decides_only_where_no_model_is_named(quick: QuickPytest, named: bool) -> None:
    """C003: connections are taken, and the list never comes."""
    with Loopback(_listing(Answer(pieces=[(60.0, b"{}")], framing="length"))) as server:
        options = ("--model", "m") if named else ()
        done = quick.phasegate("probe", "--base-url", server.base_url, *options, "--input-tokens", "40")
    assert done.status == (0 if named else 5), done.output
    if not named:
        assert "the list of models does not come (no answer within 10 s); name the model" in done.output
        assert "no server answers there" not in done.output


@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"data": [null, {"id": null}, {"id": 5}]}'])
def test_a_list_that_is_none_decides_nothing(quick: QuickPytest, body: bytes) -> None:
    """C003: and names nothing that is no name."""
    with Loopback(_listing(_json(body, 200))) as server:
        done = quick.phasegate("probe", "--base-url", server.base_url, "--model", "m", "--input-tokens", "40")
    assert done.status == 0, done.output
    assert "warning: model" not in done.output


@pytest.mark.parametrize(("status", "least"), [(400, 1), (422, 16)])
def test_prompts_are_counted_where_the_limit_has_its_newer_name_only(
    quick: QuickPytest, status: int, least: int
) -> None:
    """C001: ``max_tokens`` is refused, ``max_completion_tokens`` is not."""
    usual = Planted(Oddities(least_limit=least))

    def answer(served: Served) -> Answer:
        if served.body and "max_tokens" in served.body:
            return _json(b'{"error": {"message": "Unsupported parameter: max_tokens"}}', status)
        return usual(served)

    with Loopback(answer) as server:
        done = quick.phasegate("probe", "--base-url", server.base_url, "--model", "m", "--input-tokens", "40")
    assert done.status == 0, done.output
    assert "40 prompt tokens -> 32 output tokens" in done.output


def test_without_a_name_a_forbidden_list_asks_for_one(quick: QuickPytest) -> None:
    """Nothing else tells what to ask for."""
    done = probed(quick, Oddities(models_status=403))
    assert done.status == 5
    assert "the key was refused (HTTP 403); check OPENAI_API_KEY; or name the model (--perf-model" in done.output


def _json(body: bytes, status: int) -> Answer:
    return Answer(
        pieces=[(0.0, body)], status=status, headers=(("content-type", "application/json"),), framing="length"
    )


def _listing(listed: Answer) -> Callable[[Served], Answer]:
    """A server that is well but for its list of models."""
    usual = Planted(Oddities())
    return lambda served: listed if served.head.split()[1].endswith("/models") else usual(served)


def _probed_at(quick: QuickPytest, answer: Callable[[Served], Answer]) -> Done:
    with Loopback(answer) as server:
        options = ("--base-url", server.base_url, "--model", "x", "--input-tokens", "40")
        return quick.phasegate("probe", *options, OPENAI_API_KEY="sk-of-a-test")
