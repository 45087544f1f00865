"""Markdown, CSV and rows: the same findings in few lines, safe where they are pasted."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import pytest

from phasegate.report.as_csv import render_csv
from phasegate.report.as_markdown import LONGEST, render_markdown
from phasegate.report.document.model import Failure
from phasegate.report.document.rows import FINDING_COLUMNS, finding_rows, measured_values
from tests.report.documents import ANSWER, LONG, document, full_document


def test_markdown_answers_first_and_shows_the_gated_rows() -> None:
    text = render_markdown(full_document())
    first, *_ = text.splitlines()
    assert first.startswith("## ❌ REGRESSION: Prefill got slower: TTFT +40")
    for said in ("**Phase** | prefill", "**How sure** | 95 % interval", f"`{LONG}`", "Repeat with `pytest"):
        assert said in text
    assert len(text) < 8_000


def test_markdown_says_what_takes_the_time_and_what_helps_first() -> None:
    """Symptom, cause, phase and two levers of each finding, then where the longest request spends its time."""
    lines = render_markdown(full_document()).splitlines()
    begin = lines.index("**Where the time goes, and what helps**")
    assert lines[begin + 2 : begin + 4] == [
        "- slow to start: prefill (prefill)<br>helps: chunked prefill; a|b",
        "- prefill takes 80 % of it",
    ]
    assert "Where the time goes" not in render_markdown(document())


def test_markdown_has_the_servers_clock_and_counts_as_tables() -> None:
    """Every row of a table has the cells of its head."""
    text = render_markdown(full_document())
    folded = text.split("<details><summary>The server's own clock beside the client's</summary>")[1].split(
        "</details>"
    )[0]
    clock, counts, resets = folded.strip().split("\n\n")
    assert f"| {LONG} | 280 ms | 250 ms | -1.00 ms |" in clock
    assert counts.splitlines()[0] == (
        "| workload or level | queue | hand-off | moved | running | waiting | streams in a step | from the cache "
        "| drafts accepted | preemptions |"
    )
    assert counts.splitlines()[-1].endswith("| 80.0 ms | 12.5 MB | 12.0 | 3.0 | 9.5 | 25 % | 25 % | 7 |")
    assert {line.count("|") for line in counts.splitlines()} == {11}
    assert resets == "- 16 at a time: counters were reset meanwhile and are not used: prompt_tokens"
    assert "own clock" not in render_markdown(document(runner=None))


@pytest.mark.parametrize(("made", "mark"), [({}, "✅ PASS"), ({"invalid": ["broken"]}, "⚠️ INVALID_RUN")])
def test_the_mark_follows_the_word(made: dict[str, list[str]], mark: str) -> None:
    assert render_markdown(document(**made)).startswith(f"## {mark}")  # type: ignore[arg-type]


def test_words_from_elsewhere_neither_end_a_cell_nor_open_a_tag() -> None:
    text = render_markdown(document(invalid=["a | b <img src=x>\n# heading"]))
    assert "a \\| b &lt;img src=x&gt; #&#8203; heading" in text
    assert "\n# heading" not in text


def test_a_huge_run_still_fits_a_comment() -> None:
    many = [Failure(f"t{number}", "FAIL", "x" * 3_000) for number in range(400)]
    text = render_markdown(document(failures=many, result=None, invalid=["y" * 9_000] * 10))
    assert len(text) <= LONGEST + 100


def test_csv_has_one_row_for_each_finding_in_si_units() -> None:
    whole = full_document()
    head, *rows = csv.reader(io.StringIO(render_csv(whole)))
    assert tuple(head) == FINDING_COLUMNS
    assert whole.gate is not None
    assert whole.load is not None
    assert len(rows) == len(whole.gate.rows) + len(whole.laws) + len(whole.load.objectives)
    first = dict(zip(head, rows[0], strict=True))
    assert (first["workload"], first["metric"], first["verdict"]) == (LONG, "ttft", "REGRESSION")
    assert float(first["baseline"]) == pytest.approx(0.2, rel=0.01)
    assert float(first["ratio"]) == pytest.approx(1.4, rel=0.01)


def test_a_formula_in_a_name_is_not_run_by_a_spreadsheet() -> None:
    whole = document()
    assert whole.gate is not None
    evil = replace(whole.gate, rows=(replace(whole.gate.rows[0], workload="=cmd()", reason="-1 is no formula"),))
    _, row = csv.reader(io.StringIO(render_csv(replace(whole, gate=evil, laws=()))))
    assert row[1] == "'=cmd()"
    assert not any(cell.startswith(("=", "@")) for cell in row)


def test_every_finding_has_every_column() -> None:
    assert {len(row) for row in finding_rows(full_document())} == {len(FINDING_COLUMNS)}


def test_measured_values_take_the_sessions_where_there_are_some() -> None:
    values = {(one.workload, one.metric): one for one in measured_values(document())}
    gated = values[ANSWER, "tpot"]
    assert gated.value == pytest.approx(0.008, rel=0.01)
    assert gated.unit == "s/token"
    assert gated.n == 3
    assert gated.low is not None
    assert gated.high is not None
    assert gated.low <= gated.value <= gated.high
    runner = values["output-length[in=64,out=16]", "e2el"]
    assert (runner.phase, runner.unit, runner.n) == ("both", "s", 6)
