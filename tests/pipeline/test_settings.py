"""Settings from the environment become pytest options, each as one word, whatever stands in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from phasegate.cli import main
from phasegate.cli.ci.settings import OPTIONS, PipelineError, read_settings
from phasegate.core.pipeline import in_pipeline
from phasegate.pytest_plugin.options import OPTIONS as PYTEST_OPTIONS


def test_nothing_given_means_the_defaults() -> None:
    settings = read_settings(dict.fromkeys(OPTIONS, ""))
    assert settings.options == ()
    assert (settings.suite, str(settings.out), str(settings.baselines)) == ("perf_tests", "perf-results", "baselines")


def test_every_variable_stands_for_an_option_that_exists() -> None:
    known = {name for names, _, _ in PYTEST_OPTIONS for name in names}
    assert set(OPTIONS.values()) <= known


def test_a_value_stays_one_word_whatever_is_in_it() -> None:
    settings = read_settings({"PERF_MODEL": "a b; touch /x $(id)", "PERF_ARGS": "--perf-slo 'ttft:p95:1s'"})
    assert settings.options == ("--perf-model=a b; touch /x $(id)", "--perf-slo", "ttft:p95:1s")


def test_an_open_quote_is_said_in_one_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERF_ARGS", "--perf-slo 'ttft")
    assert main(["ci", "gate"]) == 2
    said = capsys.readouterr().err
    assert "PERF_ARGS" in said
    assert said.count("\n") == 1


def test_results_may_not_lie_in_the_suite(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="the suite itself"):
        read_settings({"PERF_OUT": str(tmp_path), "PERF_SUITE": str(tmp_path)})


def test_former_names_still_work_and_say_what_they_are_called_now() -> None:
    """A URL was called an endpoint, and `--perf-endpoint` is the API's dialect (A18)."""
    settings = read_settings({"PERF_ENDPOINT": "http://a:1/v1", "PERF_REFERENCE_ENDPOINT": "http://b:1/v1"})
    assert settings.options == ("--perf-base-url=http://a:1/v1", "--perf-reference-url=http://b:1/v1")
    assert [note.split()[0] for note in settings.notes] == ["PERF_ENDPOINT", "PERF_REFERENCE_ENDPOINT"]
    assert "PERF_BASE_URL" in settings.notes[0]


def test_a_name_and_its_former_one_may_not_contradict_each_other() -> None:
    same = read_settings({"PERF_ENDPOINT": "http://a:1/v1", "PERF_BASE_URL": "http://a:1/v1"})
    assert same.options == ("--perf-base-url=http://a:1/v1",)
    with pytest.raises(PipelineError, match="give PERF_BASE_URL alone") as caught:
        read_settings({"PERF_ENDPOINT": "http://u:pass-word@a:1/v1", "PERF_BASE_URL": "http://b:1/v1"})
    assert "pass-word" not in str(caught.value)


@pytest.mark.parametrize("value", ["", " ", "0", "false", "False", "FALSE", "no", "No", "off"])
def test_a_ci_that_says_no_is_no_pipeline(value: str) -> None:
    """C023: tools that only look whether CI is set take "false" for a pipeline."""
    assert not in_pipeline({"CI": value})
    assert not in_pipeline({})


@pytest.mark.parametrize("value", ["true", "1", "yes", "woodpecker", "TRUE"])
def test_any_other_ci_is_one(value: str) -> None:
    assert in_pipeline({"CI": value})


@pytest.mark.parametrize(
    "given",
    [
        {"PERF_OUT": "baselines"},
        {"PERF_OUT": "baselines/results"},
        {"PERF_OUT": "./x/../baselines"},
        {"PERF_OUT": "kept", "PERF_BASELINES": "kept"},
        {"PERF_OUT": "fixtures/workloads"},
        {"PERF_OUT": "w/out", "PERF_WORKLOADS": "w"},
    ],
)
def test_results_may_not_lie_where_they_are_read_as_something_else(given: dict[str, str]) -> None:
    """C040: reports among baselines made every later run an INVALID_BASELINE."""
    with pytest.raises(PipelineError, match="name another folder for results"):
        read_settings(given)


def test_a_folder_around_the_baselines_may_hold_results() -> None:
    assert read_settings({"PERF_OUT": "."}).out == Path()


def test_an_open_quote_shows_nothing_of_the_options() -> None:
    """A key of an engine may be among them."""
    with pytest.raises(PipelineError, match="PERF_ARGS: No closing quotation") as caught:
        read_settings({"PERF_ARGS": "--perf-engine-args '--api-key plain-words"})
    assert "plain-words" not in str(caught.value)
