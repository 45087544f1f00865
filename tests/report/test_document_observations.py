"""A report's JSON can be explained as the run itself was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from phasegate.cli import main
from phasegate.diagnose import diagnose
from phasegate.report.document.codec import to_json
from phasegate.report.document.model import (
    SCHEMA,
    CellRow,
    Document,
    Estimate,
    Headline,
    LevelRow,
    Load,
    WorkloadTable,
)
from phasegate.report.document_observations import observations_of_document


def seconds(value: float) -> Estimate:
    """A median without an interval."""
    return Estimate(value, None, None, 5)


def cell(tokens: int, ttft: float, role: str = "cold") -> CellRow:
    """A cell with answers of 32 tokens at 10 ms."""
    label = f"prompt[in={tokens},out=32{'' if role == 'cold' else ',' + role}]"
    return CellRow(label, tokens, 32, role, 5, seconds(ttft), seconds(0.01), seconds(ttft + 0.31))


def level(users: int, ttft: float, rate: float) -> LevelRow:
    """A level at which nothing failed."""
    percentiles = {
        "ttft": {"p50": seconds(ttft)},
        "tpot": {"p50": seconds(0.01)},
        "e2el": {"p50": seconds(ttft + 0.31)},
    }
    return LevelRow(users, f"{users} at a time", False, 20, {}, percentiles, rate, 1.0)


DOCUMENT = Document(
    SCHEMA,
    "0",
    "2026-01-01T00:00:00+00:00",
    Headline("PASS", "fine"),
    workloads=(
        WorkloadTable(
            "prompt", "prompt", "prompt", "repeated", (cell(500, 0.35), cell(2000, 1.25), cell(2000, 1.24, "cached"))
        ),
    ),
    load=Load((level(1, 0.05, 90.0), level(8, 2.6, 92.0))),
)


def test_a_document_holds_what_the_rules_need() -> None:
    """Two prompt lengths, a second call that saves nothing, and users who wait for each other."""
    now = observations_of_document(DOCUMENT)
    assert [ask.prompt_tokens for ask in now.asks] == [500, 2000]
    assert [one.rule for one in diagnose(now).found] == ["no-batching", "uncached-prefix"]


def test_explain_reads_the_report_of_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As it reads sessions."""
    path = tmp_path / "report.json"
    path.write_text(to_json(DOCUMENT), encoding="utf-8")
    assert main(["explain", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["findings"][0]["rule"] == "no-batching"


def test_a_report_of_another_version_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In one line, not guessed at."""
    path = tmp_path / "report.json"
    path.write_text(to_json(DOCUMENT).replace(SCHEMA, "phasegate-report/99"), encoding="utf-8")
    assert main(["explain", str(path)]) == 2
    error = capsys.readouterr().err.strip()
    assert error.startswith("phasegate explain: ")
    assert "\n" not in error
