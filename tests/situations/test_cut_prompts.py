"""A server that answers other prompts than were sent: no sample, no law, and the lengths are said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.edges.quick_pytest import QuickPytest
from tests.situations.planted import Oddities, planted

INVALID = 15
RISES = "perf_tests/test_prefill.py::test_ttft_rises_with_prompt_length"
LENGTHS = "name: prompt-length\ninput_tokens: [32, 64, 128]\noutput_tokens: 4\nrequests: 5\nwarmups: 0\n"
CAUSE = "the server cuts longer prompts, most likely at its context window"


@pytest.fixture
def lengths(one_workload: Callable[[], Path]) -> Path:
    """A suite with one small workload of several lengths."""
    folder = one_workload() / "fixtures" / "workloads"
    (folder / "small.yaml").unlink()
    (folder / "prompt-length.yaml").write_text(LENGTHS)
    return folder.parents[1]


@pytest.mark.parametrize(
    ("cut_at", "told"),
    [
        (100, ["100 prompt tokens counted where 128 were sent"]),
        pytest.param(
            60,
            ["60 prompt tokens counted where 64 were sent", "60 prompt tokens counted where 128 were sent"],
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_law_is_not_judged_on_cut_prompts(quick: QuickPytest, lengths: Path, cut_at: int, told: list[str]) -> None:
    """C042: answered with 200, and a count of what is left; one length, or several with one count."""
    with planted(Oddities(cut_at=cut_at, per_prompt_token=0.0002)) as server:
        options = ("--perf-base-url", server.base_url, "--perf-model", "m")
        done = quick.run(RISES, *options, cwd=lengths)
    assert done.status == INVALID, done.output
    assert "1 invalid_run in" in done.output
    for words in [*told, CAUSE]:
        assert words in " ".join(done.output.split())
    assert "FAIL " not in done.output


def test_cut_prompts_are_not_stored(quick: QuickPytest, lengths: Path) -> None:
    """C042: nor compared."""
    with planted(Oddities(cut_at=100)) as server:
        options = (
            "--perf-base-url",
            server.base_url,
            "--perf-model",
            "m",
            "--update-baselines",
            "--perf-sessions",
            "2",
        )
        done = quick.run("perf_tests/test_regression.py", *options, cwd=lengths)
    assert done.status == INVALID, done.output
    assert "100 prompt tokens counted where 128 were sent" in " ".join(done.output.split())
    assert not list((lengths / "baselines").rglob("*.json"))


def test_a_server_that_cuts_nearly_everything_is_refused_at_the_first_counts(quick: QuickPytest, lengths: Path) -> None:
    """C042: no prompt of any length can be written; the likely cause is said."""
    with planted(Oddities(cut_at=20)) as server:
        options = ("--perf-base-url", server.base_url, "--perf-model", "m")
        done = quick.run(RISES, *options, cwd=lengths)
    assert done.status == INVALID, done.output
    assert "changed the server's count of a prompt from 6 to 20 tokens: it cuts prompts to so few (by a context" in (
        " ".join(done.output.split())
    )


def test_a_probe_says_both_lengths(quick: QuickPytest) -> None:
    """C042: beside the picture of the request."""
    with planted(Oddities(cut_at=200)) as server:
        options = ("--base-url", server.base_url, "--model", "m", "--input-tokens", "300", "--max-tokens", "4")
        done = quick.phasegate("probe", *options)
    assert "note: prompt_length_mismatch: " in done.output
    assert "(200 where 300 were sent)" in done.output


@pytest.mark.slow
def test_a_load_of_cut_prompts_is_not_judged(quick: QuickPytest, lengths: Path) -> None:
    """C042: also where no cell would show it."""
    concurrency = lengths / "fixtures" / "load" / "concurrency.yaml"
    concurrency.write_text("name: concurrency\ninput_tokens: 128\noutput_tokens: 8\nrequests: 4\nwarmups: 0\n")
    with planted(Oddities(cut_at=100)) as server:
        options = ("--perf-base-url", server.base_url, "--perf-model", "m", "--perf-concurrency", "1", "2")
        slo = ("--perf-slo", "ttft:p50:1s", "--perf-load-requests", "4")
        done = quick.run("perf_tests/test_slo.py", *options, *slo, cwd=lengths)
    assert done.status == INVALID, done.output
    assert "100 prompt tokens counted where 128 were sent" in " ".join(done.output.split())
