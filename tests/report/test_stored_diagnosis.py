"""A report is explained as its run explained itself, and silence of the rules is never taken for health."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from phasegate.cli import main
from phasegate.diagnose import Diagnosis, diagnose
from phasegate.report.diagnosis_lines import diagnosis_record
from phasegate.report.document.codec import plain, to_json
from phasegate.report.document.model import Document, Validity
from phasegate.report.stored_diagnosis import stored_diagnosis
from phasegate.store.session_file import session_text
from tests.gate.test_diagnose import PLANTED
from tests.report.documents import document, full_document
from tests.sessions import measurement, session

ALONE = "nothing earlier was given to compare with"


def kept(told: Diagnosis) -> tuple[dict[str, Any], ...]:
    """A diagnosis as a run writes it into its report."""
    record = diagnosis_record(told)
    share = {"symptom": "the longest request", "cause": record["share"], "phase": record["phase"]}
    return tuple(plain(one) for one in (*record["findings"], share))


SLOWER = kept(diagnose(*PLANTED["decode-slower"]))


def explained(
    made: Document, folder: Path, capsys: pytest.CaptureFixture[str], *words: str
) -> tuple[str, dict[str, Any]]:
    """What ``phasegate explain`` prints of a report, as text and as JSON; both end with 0."""
    path = folder / "report.json"
    path.write_text(to_json(made), encoding="utf-8")
    assert main(["explain", str(path), *words]) == 0
    text = capsys.readouterr().out
    assert main(["explain", str(path), *words, "--json"]) == 0
    return " ".join(text.split()), json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", PLANTED)
def test_a_diagnosis_comes_back_from_a_report_as_it_was_said(name: str) -> None:
    """Every rule's finding with its figures, its levers and its confidence."""
    told = diagnose(*PLANTED[name])
    back = stored_diagnosis(replace(document(), diagnosis=kept(told)))
    assert back is not None
    # Which part of a request a finding claims matters only while the rules look.
    assert back.found == tuple(replace(one, part="") for one in told.found)
    assert (back.share, back.phase) == (told.share, told.phase)


def test_a_report_without_a_diagnosis_has_none_to_give_back() -> None:
    """And one with bare findings loses nothing but what it lacks."""
    assert stored_diagnosis(document()) is None
    back = stored_diagnosis(full_document())
    assert back is not None
    assert (back.found[0].rule, back.found[0].evidence) == ("prefill", ("TTFT 280 ms",))


def test_explain_tells_the_verdict_and_what_the_run_itself_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A proven regression is not called healthy because the report's medians alone look well."""
    text, told = explained(replace(document(tpot=1.4), diagnosis=SLOWER), tmp_path, capsys)
    assert text.startswith("REGRESSION Decode got slower: TPOT +40")
    assert "slower to stream than before: each token takes longer" in text
    assert "nothing that was measured is slow" not in text
    assert ALONE not in text
    assert told["verdict"] == "REGRESSION"
    assert [one["rule"] for one in told["findings"]] == ["decode-slower"]


def test_a_regression_that_the_report_does_not_explain_is_said_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Older reports keep no diagnosis: the rules are asked anew, and their silence is not health."""
    text, told = explained(document(tpot=1.4), tmp_path, capsys)
    assert "explained by no rule: Decode got slower: TPOT +40" in text
    assert "nothing that was measured is slow" not in text
    assert told["unexplained"]
    assert told["findings"] == []


def test_other_limits_are_applied_and_keep_what_the_gate_proved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With --slo the rules look again; the stored change stays, since its rows cannot be asked again."""
    made = replace(document(tpot=1.4), diagnosis=SLOWER)
    _, told = explained(made, tmp_path, capsys, "--slo", "tpot:p95:1ms")
    assert [one["rule"] for one in told["findings"]] == ["decode-slower", "slow-stream"]


def test_a_report_is_compared_with_what_is_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Against itself nothing got slower, whatever its own run was compared with."""
    made = replace(document(tpot=1.4), diagnosis=SLOWER)
    (tmp_path / "earlier.json").write_text(to_json(made), encoding="utf-8")
    text, told = explained(made, tmp_path, capsys, "--before", str(tmp_path / "earlier.json"))
    assert told["findings"] == []
    assert "nothing got slower by 10 % or more" in text
    assert told["verdict"] == "REGRESSION"


def test_an_invalid_run_is_not_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its numbers prove nothing, so nothing is made of them."""
    made = document(invalid=["small: 3 of 4 requests failed"])
    assert made.validity != Validity()
    text, told = explained(made, tmp_path, capsys)
    assert text.startswith("INVALID_RUN")
    assert "the numbers of this run prove nothing" in text
    assert "is slow" not in text
    assert (told["verdict"], told["findings"]) == ("INVALID_RUN", [])


def test_figures_without_a_comparison_say_that_there_was_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of sessions, and of a report without a gate; not where an earlier result is given."""
    path = tmp_path / "one.json"
    path.write_text(session_text(session(1, measurement("chat[in=64,out=16]", "ttft", [0.01]))), encoding="utf-8")
    assert main(["explain", str(path)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert f"{ALONE}; --before RESULT" in text
    assert main(["explain", str(path), "--before", str(path)]) == 0
    assert ALONE not in " ".join(capsys.readouterr().out.split())
    lonely = document(result=None, baseline=(), candidate=())
    assert ALONE in explained(lonely, tmp_path, capsys)[0]
    assert ALONE not in explained(document(), tmp_path, capsys)[0]
