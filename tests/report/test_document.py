"""The document: survives its file, fits its schema, refuses what does not, and tells no secret."""

from __future__ import annotations

import json
import math
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from phasegate.core.hiding import hide
from phasegate.report.as_csv import render_csv
from phasegate.report.as_markdown import render_markdown
from phasegate.report.document import UnreadableReportError, from_json, json_schema, to_json
from phasegate.report.document.model import SCHEMA, Document, Failure
from phasegate.report.html.page import render_html
from tests.report.documents import ANSWER, LONG, document, full_document, load_of

SCHEMA_FILE = Path(__file__).resolve().parents[2] / "phasegate" / "report" / "schema" / "report-1.json"


def test_a_document_reads_back_as_it_was_written() -> None:
    whole = full_document()
    assert from_json(to_json(whole)) == whole
    assert to_json(from_json(to_json(whole))) == to_json(whole)


def test_the_full_document_leaves_no_part_empty() -> None:
    """Otherwise the tests that take it would prove less than they say."""
    whole = full_document()
    assert [one.name for one in fields(whole) if not getattr(whole, one.name)] == []


def test_the_schema_in_the_repository_is_that_of_the_model() -> None:
    """Written by ``python -m phasegate.report.document``; a changed model needs a new version of the layout."""
    assert json.loads(SCHEMA_FILE.read_text(encoding="utf-8")) == json_schema()


@pytest.mark.parametrize("made", [full_document, document])
def test_a_document_fits_the_schema(made: Any) -> None:
    jsonschema.Draft202012Validator.check_schema(json_schema())
    jsonschema.validate(json.loads(to_json(made())), json_schema())


def test_the_schema_refuses_a_wrong_document() -> None:
    plain = json.loads(to_json(full_document()))
    plain["gate"]["rows"][0]["ratio"] = "a lot"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(plain, json_schema())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda plain: plain.update(schema="phasegate-report/9"),
            "r.json: made by another version (phasegate-report/9)",
        ),
        (lambda plain: plain.pop("schema"), "the key 'schema' is missing"),
        (lambda plain: plain["headline"].pop("title"), "r.json.headline: the key 'title' is missing"),
        (lambda plain: plain["gate"]["rows"][0].update(p="low"), "r.json.gate.rows[0].p: 'low' is not a number"),
        (lambda plain: plain["laws"][0].update(colour=1), "r.json.laws[0]: unknown key 'colour'"),
        (lambda plain: plain.update(trends={}), "r.json.trends: {} is not a list"),
        (lambda plain: plain["validity"].update(sessions=[1]), "r.json.validity.sessions: 1 values, expected 2"),
    ],
)
def test_a_damaged_file_is_refused_in_one_line_that_names_the_place(change: Any, said: str) -> None:
    plain = json.loads(to_json(full_document()))
    change(plain)
    with pytest.raises(UnreadableReportError) as caught:
        from_json(json.dumps(plain), "r.json")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_text_that_is_no_json_is_refused() -> None:
    with pytest.raises(UnreadableReportError, match=r"r\.json: not JSON"):
        from_json("{", "r.json")


def test_no_number_of_a_document_is_infinite() -> None:
    """A percentile that falls on a failed request has no value, and the failures stand beside it."""
    load = full_document().load
    assert load is not None
    highest = load.levels[-1]
    assert highest.failed == {"http_500": 2}
    assert highest.percentiles["ttft"]["p99"].value is None
    assert not list(_numbers(full_document(), lambda value: not math.isfinite(value)))


def _numbers(value: Any, wanted: Any) -> Any:
    if is_dataclass(value):
        for one in fields(value):
            yield from _numbers(getattr(value, one.name), wanted)
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _numbers(inner, wanted)
    elif isinstance(value, (tuple, list)):
        for inner in value:
            yield from _numbers(inner, wanted)
    elif isinstance(value, float) and wanted(value):
        yield value


def test_a_key_appears_in_no_report() -> None:
    secret = "very-private-value-1234"
    leaky: dict[str, Any] = {
        "commands": [f"pytest --perf-base-url http://me:{secret}@host/v1?api_key={secret}"],
        "failures": [Failure("t", "FAIL", f"Authorization: Bearer {secret} was refused"), Failure("t", "FAIL", secret)],
        "remarks": [f"key {secret}"],
    }
    made = document(secrets=[secret], **leaky)
    for render in (to_json, render_markdown, render_csv, render_html):
        assert secret not in render(made)
    assert secret in render_html(document(**{**leaky, "secrets": []})), "the check itself must be able to fail"


@pytest.mark.parametrize(
    "text",
    ["http://user:hunter22@host/v1", "https://h/v1?token=hunter22&x=1", "api_key=hunter22", "Bearer hunter22"],
)
def test_credentials_are_struck_out_wherever_they_stand(text: str) -> None:
    assert "hunter22" not in hide(text)
    assert hide("http://127.0.0.1:8000/v1") == "http://127.0.0.1:8000/v1"


def test_rows_carry_the_sessions_they_stand_on() -> None:
    gate = document(1.4).gate
    assert gate is not None
    row = next(one for one in gate.rows if (one.workload, one.metric) == (LONG, "ttft"))
    assert (len(row.baseline_levels), len(row.candidate_levels)) == (8, 3)
    assert row.unit == "s"
    assert row.ratio == pytest.approx(1.4, rel=0.02)


def test_trends_hold_both_sides_in_order() -> None:
    trend = next(one for one in document().trends if (one.workload, one.metric) == (ANSWER, "tpot"))
    assert [one.side for one in trend.points] == ["baseline"] * 8 + ["now"] * 3
    assert trend.gated


def test_lines_through_samples_find_the_planted_costs() -> None:
    """TTFT costs 0.1 ms a prompt token, the total 8 ms a further token."""
    tables = {table.name: table for table in document().workloads}
    (prefill,), (decode,) = tables["prompt-length"].fits, tables["output-length"].fits
    assert prefill.slope == pytest.approx(1e-4, rel=0.05)
    assert prefill.intercept == pytest.approx(0.01, rel=0.1)
    assert decode.slope == pytest.approx(0.008, rel=0.01)
    assert decode.over == "output tokens - 1"


def test_the_example_request_shows_both_phases() -> None:
    request = document().request
    assert request is not None
    assert request.output_tokens is not None
    assert request.tpot is not None
    assert request.ttft + request.tpot * (request.output_tokens - 1) == pytest.approx(request.total)
    assert len(request.token_at) == request.output_tokens


def test_a_run_without_anything_has_a_document() -> None:
    from phasegate.report.document.build import Finished, build

    empty = build(Finished("2026-01-01T00:00:00+00:00"))
    assert empty.schema == SCHEMA
    assert empty.headline.verdict == "NOT_MEASURED"
    assert from_json(to_json(empty)) == empty
    assert "Not in this report" in render_html(empty)


def test_values_are_frozen() -> None:
    whole: Document = document()
    with pytest.raises(AttributeError):
        whole.created = "now"  # type: ignore[misc]
    assert replace(whole, created="now").created == "now"


def test_load_is_left_out_where_nothing_was_measured_under_load() -> None:
    assert document().load is None
    assert document(**load_of(broken=False)).load is not None


def test_what_the_server_counted_is_kept_by_workload_and_level() -> None:
    """In the file, too: means, shares, and who ran and waited at a moment."""
    read = from_json(to_json(full_document()), "report.json")
    assert read.load is not None
    told = {level.level: level.server for level in read.load.levels}
    assert (told[1.0], told[4.0]) == (None, None)
    busy = told[16.0]
    assert busy is not None
    assert busy.running == pytest.approx(12)
    assert busy.waiting == pytest.approx(3)
    assert (busy.cache_hit_rate, busy.acceptance, busy.preemptions) == (0.25, 0.25, 7.0)
    assert (busy.streams_per_step, busy.handoff_bytes) == (9.5, 12.5e6)
    assert busy.seconds["handoff"] == pytest.approx(0.08)
    assert busy.reset == ("prompt_tokens",)
    cached = {table.name: table.server for table in read.workloads}
    assert cached["prompt-length"] is None
    shares = cached["prefix-cache"]
    assert shares is not None
    assert shares.cache_hit_rate == pytest.approx(1 / 3)
    assert (shares.running, shares.waiting, shares.acceptance) == (None, None, None)
