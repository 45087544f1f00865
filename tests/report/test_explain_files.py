"""What ``phasegate explain`` makes of files that have nothing in common, or figures that nothing measured."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from phasegate.cli import main
from phasegate.diagnose import Ask, Observations, Repeats, diagnose
from phasegate.diagnose.codec import to_json as situation_json
from phasegate.report.document.codec import to_json
from tests.gate.test_diagnose import PLANTED
from tests.report.test_document_observations import DOCUMENT
from tests.report.test_stored_diagnosis import kept

BOT = Observations((Ask("bot[in=3100,out=40]", 3100, 40.0, 1.6, tpot=0.005, total=1.8),))
WRITER = Observations((Ask("writer[in=300,out=600]", 300, 600.0, 0.2, tpot=0.005, total=3.2),))
WARM, COLD = Repeats(3000, 3100, 1.6, 0.08, 0.0, 0.96), Repeats(900, 1000, 1.6, 1.6, 0.0, 0.0)


def write(folder: Path, name: str, text: str) -> str:
    """A file of that name."""
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def test_results_without_a_kind_of_request_in_common_are_not_taken_for_an_unchanged_server(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Explained alone, said in words, and with the status of what is not comparable; no traffic is compared either."""
    now = write(tmp_path, "bot.json", situation_json(replace(BOT, repeats=COLD)))
    old = write(tmp_path, "writer.json", situation_json(replace(WRITER, repeats=WARM)))
    assert [one.rule for one in diagnose(replace(BOT, repeats=COLD), replace(BOT, repeats=WARM)).found if one.change]
    assert main(["explain", now, "--before", old]) == 4
    # Without any space, since a long path is broken wherever the line ends.
    text = "".join(capsys.readouterr().out.split())
    assert "".join(f"nothing was compared with {old}, so what got slower since then is unknown".split()) in text
    assert "".join(f"it has writer[in=300,out=600], {now} has bot[in=3100,out=40]".split()) in text
    assert "slowtostart" in text
    assert main(["explain", now, "--before", old, "--json"]) == 4
    told = json.loads(capsys.readouterr().out)
    assert told["notes"][0].startswith("nothing was compared with")
    assert not [one for one in told["findings"] if one["change"]]


def test_one_kind_of_request_in_common_is_enough(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Then the change is explained and no note stands below it."""
    both = replace(BOT, asks=(*BOT.asks, *WRITER.asks))
    now, old = write(tmp_path, "both.json", situation_json(both)), write(tmp_path, "bot.json", situation_json(BOT))
    assert main(["explain", now, "--before", old]) == 0
    assert "nothing was compared" not in capsys.readouterr().out


def test_a_report_of_strangers_keeps_its_own_word(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its verdict and what its run found."""
    path = write(tmp_path, "report.json", to_json(replace(DOCUMENT, diagnosis=kept(diagnose(BOT)))))
    old = write(tmp_path, "writer.json", situation_json(WRITER))
    assert main(["explain", path, "--before", old]) == 4
    text = capsys.readouterr().out
    assert text.startswith("PASS")
    assert "nothing was compared with" in text
    assert "nothing earlier was given" not in text


def cell(document: dict[str, Any]) -> dict[str, Any]:
    """The first cell of a report."""
    found: dict[str, Any] = document["workloads"][0]["cells"][0]
    return found


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda one: cell(one)["ttft"].update(value=-1.0), "workloads[0].cells[0].ttft.value: -1.0 is not a figure"),
        (lambda one: cell(one)["e2el"].update(value=1e308), "workloads[0].cells[0].e2el.value: 1e+308 is not a figure"),
        (lambda one: cell(one).update(input_tokens=-5), "workloads[0].cells[0].input_tokens: -5 is not a figure"),
        (lambda one: one["load"]["levels"][0].update(level=0), "load.levels[0].level: 0 is not a figure above 0"),
        (
            lambda one: one["load"]["levels"][1]["percentiles"]["ttft"]["p50"].update(value=-2.0),
            "load.levels[1].percentiles.ttft.p50.value: -2.0 is not a figure",
        ),
        (lambda one: one["load"]["levels"][1].update(token_rate=1e300), "load.levels[1].token_rate: 1e+300 is not"),
    ],
)
def test_a_report_with_a_figure_that_nothing_measured_is_one_line(
    damage: Callable[[dict[str, Any]], None], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the file and the key, whichever side it is on."""
    plain = json.loads(to_json(replace(DOCUMENT, diagnosis=kept(diagnose(BOT)))))
    damage(plain)
    path = write(tmp_path, "report.json", json.dumps(plain))
    good = write(tmp_path, "good.json", to_json(DOCUMENT))
    for words in ([path], [good, "--before", path]):
        assert main(["explain", *words]) == 2
        error = capsys.readouterr().err
        assert error.startswith(f"phasegate explain: {path}.{said}")
        assert len(error.splitlines()) == 1


@pytest.mark.parametrize("seconds", [-1.0, 1e308])
def test_a_kept_finding_with_impossible_seconds_is_one_line(
    seconds: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Though findings are free mappings, in which anything may be missing."""
    found = kept(diagnose(*PLANTED["decode-slower"]))
    changed = ({**found[0], "seconds": seconds}, *found[1:])
    path = write(tmp_path, "report.json", to_json(replace(DOCUMENT, diagnosis=changed)))
    assert main(["explain", path]) == 2
    assert f"{path}.diagnosis[0].seconds: {seconds!r} is not a figure" in capsys.readouterr().err
