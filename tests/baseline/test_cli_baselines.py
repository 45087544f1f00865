"""``phasegate baselines``: look, compare, check, and delete only what was asked for."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from phasegate.cli import main
from phasegate.core.session import Session
from phasegate.store import BaselineStore, fingerprint_of
from tests.gate.test_judge import BASELINE, build
from tests.sessions import SERVER

NAME = fingerprint_of(SERVER)


def named(made: list[Session], fingerprint: str = NAME) -> list[Session]:
    return [replace(one, fingerprint=fingerprint) for one in made]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A rolling baseline of 6 sessions and a pinned one that was 10 % faster in decode."""
    store = BaselineStore(tmp_path / "baselines")
    store.add(named(BASELINE[:6]))
    store.add(named(build(4, 6, {("chat", "tpot"): 0.9}, start=50)), pinned="v1")
    return store.root


def run(root: Path, *args: str) -> int:
    return main(["baselines", "--root", str(root), *args])


def test_list_names_every_baseline(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(root, "list") == 0
    shown = capsys.readouterr().out
    assert f"\n{NAME} " in shown
    assert f"pinned/v1/{NAME}" in shown


def test_list_is_friendly_where_nothing_was_recorded_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["baselines", "list"]) == 0
    assert "no baseline under baselines; record one with" in capsys.readouterr().out
    (tmp_path / "my own").mkdir()
    assert main(["baselines", "list", "--root", "my own"]) == 0
    assert "--update-baselines --perf-baselines 'my own'" in " ".join(capsys.readouterr().out.split())
    for words in (["check"], ["show", "x"], ["prune", "x", "--keep", "1"], ["diff", "x", "y"]):
        assert main(["baselines", *words]) == 2
        assert capsys.readouterr().err.count("\n") == 1


ACTIONS = (["list"], ["check"], ["show", "x"], ["prune", "x", "--keep", "1"], ["diff", "x", "y"])


@pytest.mark.parametrize("action", ACTIONS, ids=lambda words: words[0])
@pytest.mark.parametrize(("given", "said"), [("none", "no such folder"), ("file", "not a folder"), ("", "is empty")])
def test_a_root_that_is_not_there_is_wrong_usage(
    given: str, said: str, action: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    root = str(tmp_path / given) if given else ""
    assert main(["baselines", "--root", root, *action]) == 2
    found = capsys.readouterr()
    (line,) = found.err.splitlines()
    assert line.startswith("phasegate baselines: --root")
    assert said in line
    assert found.out == ""


@pytest.mark.parametrize(
    "action", [["list"], ["check"], ["show", NAME], ["prune", NAME, "--keep", "9"], ["diff", NAME, NAME]],
    ids=lambda words: words[0],
)  # fmt: skip
def test_the_root_may_stand_before_or_after_the_action(
    action: list[str], root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(root, *action) == 0
    before = capsys.readouterr().out
    assert main(["baselines", *action, "--root", str(root)]) == 0
    assert capsys.readouterr().out == before
    with pytest.raises(SystemExit) as ended:
        main(["baselines", action[0], "--help"])
    assert ended.value.code == 0
    assert "[--root DIR]" in capsys.readouterr().out


def test_a_name_is_looked_for_below_the_root_before_the_working_directory(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = NAME.split("_")[0]
    code = root.parent / engine
    code.mkdir()
    monkeypatch.chdir(root.parent)
    assert main(["baselines", "show", engine]) == 0
    assert "hardware: cpu-4" in capsys.readouterr().out
    assert main(["baselines", "show", f"./{engine}"]) == 2
    assert "no session in it" in capsys.readouterr().err


def test_a_bare_word_is_a_path_only_where_it_holds_sessions(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(root.parent)
    (root.parent / "saved").mkdir()
    assert main(["baselines", "show", "saved"]) == 2
    assert f"no baseline 'saved' under baselines; there are: {NAME}" in capsys.readouterr().err
    for path in (root / NAME).iterdir():
        (root.parent / "saved" / path.name).write_bytes(path.read_bytes())
    assert main(["baselines", "show", "saved"]) == 0
    assert "hardware: cpu-4" in capsys.readouterr().out


def test_an_empty_name_is_wrong_usage(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(root, "show", "") == 2
    assert "an empty name: is a variable unset?" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [("prune", "--keep", "1", "--yes"), ("check",), ("show",)], ids=lambda words: words[0]
)
def test_a_folder_without_sessions_is_refused(
    words: tuple[str, ...], root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = root.parent / "notes"
    folder.mkdir()
    (folder / "todo.txt").write_text("x", encoding="utf-8")
    assert run(root, words[0], str(folder), *words[1:]) == 2
    assert f"{folder}: no session in it" in capsys.readouterr().err
    assert (folder / "todo.txt").exists()


def test_check_looks_only_at_contents_outside_the_root(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    elsewhere = root.parent / "saved"
    (root / NAME).rename(elsewhere)
    assert run(root, "check", str(elsewhere)) == 0
    assert "6 sessions can be used, 0 cannot" in capsys.readouterr().out
    sorted(elsewhere.iterdir())[0].write_text("{", encoding="utf-8")
    assert run(root, "check", str(elsewhere)) == 5
    assert "5 sessions can be used, 1 cannot" in capsys.readouterr().out


def test_show_prints_facts_and_medians(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(root, "show", NAME[:12]) == 0
    shown = capsys.readouterr().out
    assert "hardware: cpu-4" in shown
    assert "settings.ubatch: 512" in shown
    assert "ms/token" in shown


def test_diff_prints_medians_and_intervals(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(root, "diff", f"pinned/v1/{NAME}", NAME) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    (changed,) = [line for line in lines if line.startswith("chat[in=64,out=32] tpot: ")]
    found = re.search(r"-> .* ms/token, \+(.*) %, 95 % interval \+(.*) % to \+(.*) %$", changed)
    assert found is not None
    ratio, low, high = map(float, found.groups())
    assert low < ratio < high
    assert low < 11.1 < high


def test_prune_lists_first_and_deletes_on_yes(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted((root / NAME).iterdir())
    assert run(root, "prune", NAME, "--keep", "4") == 0
    shown = capsys.readouterr().out
    assert shown.count("would delete") == 2
    assert "add --yes" in shown
    assert sorted((root / NAME).iterdir()) == before
    assert run(root, "prune", NAME, "--keep", "4", "--yes") == 0
    assert sorted((root / NAME).iterdir()) == before[2:]
    assert run(root, "prune", NAME, "--keep", "4", "--yes") == 0
    assert sorted((root / NAME).iterdir()) == before[2:]


def test_prune_never_drops_a_whole_baseline(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(root, "prune", NAME, "--keep", "0", "--yes") == 2
    assert "--keep is 0; it must be at least 1" in capsys.readouterr().err
    assert len(list((root / NAME).iterdir())) == 6


def test_check_reads_everything_and_names_what_cannot_be_used(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(root, "check") == 0
    assert "12 sessions can be used, 0 cannot" in capsys.readouterr().out
    path = sorted((root / NAME).iterdir())[0]
    path.write_text("{", encoding="utf-8")
    assert run(root, "check") == 5
    shown = capsys.readouterr().out
    assert f"INVALID_BASELINE: {path}" in shown
    assert "11 sessions can be used, 1 cannot" in shown
    assert run(root, "list") == 5
    assert str(path) in capsys.readouterr().err


def test_check_finds_a_session_under_another_servers_name(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / NAME).rename(root / "other-00000000")
    assert run(root, "check") == 5
    assert f"belongs to {NAME}, not here" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["nothing", "pinned/v9"])
def test_an_unknown_name_is_wrong_usage_and_lists_what_there_is(
    name: str, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(root, "show", name) == 2
    line = capsys.readouterr().err
    assert NAME in line
    assert "pinned/v1" in line
