"""Names and words of servers and files are shown and never obeyed: by a terminal, Markdown, HTML or a spreadsheet."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from phasegate.cli import main
from phasegate.core.showing import in_csv, in_markdown, in_markdown_cell, in_markdown_code, shown
from phasegate.load.traffic import Traffic
from phasegate.report.as_csv import render_csv
from phasegate.report.as_markdown import render_markdown
from phasegate.report.document import UnreadableReportError, from_json
from phasegate.report.document.codec import to_json
from phasegate.report.html.page import render_html
from phasegate.report.progress import LiveLine, LogLines
from phasegate.report.screen import Drawn, Terminal
from phasegate.store import BaselineStore
from tests.edges.quick_pytest import QuickPytest
from tests.report.documents import full_document
from tests.sessions import SERVER, measurement, session
from tests.situations.planted import Oddities, planted

ANSI = "\x1b[31mRED\x1b[0m\x1b]0;title\x07\x1b[2J\x9b31m"
RICH = "[red]x[/red] [/nope] [link=https://evil.example]y[/link] :smile:"
BIDI = "abc\u202egnp.exe\u2066\u200b\ufeff"
ODD = (ANSI, RICH, BIDI, "a\nb\r\nc\td", "\ud800x\udfff", "a\0b\x7f", "[/]", "\\[/x]", "[[x]")

STEERS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
"""What a terminal obeys, or a reader does not see."""


@pytest.mark.parametrize("text", ODD)
def test_shown_text_steers_nothing(text: str) -> None:
    for said in (shown(text), shown(text, lines=True)):
        assert not STEERS.search(said)
        assert said.encode("utf-8")
    assert "\n" not in shown(text)


@pytest.mark.parametrize("text", ["TTFT 34 ms -> 40 ms, +17 %", "  两个  Größe µs", "chat[in=64,out=8]"])
def test_shown_text_without_such_marks_is_unchanged(text: str) -> None:
    assert shown(text) == text


@pytest.mark.parametrize("text", ODD)
def test_every_action_of_baselines_shows_odd_names_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    """A name with markup used to end in a traceback; one with an escape coloured the terminal."""
    server = {**SERVER, "engine_version": text, "model": text, "settings": {text: text}}
    kept = [
        session(number, measurement(f"chat{text}", "tpot", [0.02, 0.03]), server=server, host=text,
                fingerprint="[bold]x[nope]-1234")
        for number in range(3)
    ]  # fmt: skip
    monkeypatch.chdir(tmp_path)
    BaselineStore(tmp_path / "baselines").add(kept)
    BaselineStore(tmp_path / "baselines").add(kept, pinned="[red]v1[x]")
    name = kept[0].fingerprint
    for action in (["list"], ["show", name], ["diff", name, f"pinned/[red]v1[x]/{name}"], ["check"],
                   ["prune", name, "--keep", "1"], ["show", f"no{text}".replace("\0", "")]):  # fmt: skip
        status = main(["baselines", *action])
        out = capsys.readouterr()
        assert status == (2 if action[1:] and action[1].startswith("no") else 0), out
        assert not STEERS.search(out.out + out.err), action
        if action[0] in ("list", "diff"):
            assert "[red]v1[x]" in out.out or action[0] == "diff"


@pytest.mark.parametrize("text", [ANSI, RICH, BIDI])
def test_compare_shows_odd_names_as_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    for side, level in (("a", 0.02), ("b", 0.03)):
        BaselineStore(tmp_path / side).add(
            [session(n, measurement(f"w{text}", "tpot", [level + n / 1e5] * 5), fingerprint="f") for n in range(6)]
        )
    for more in ([], ["--json"]):
        main(["compare", str(tmp_path / "a" / "f"), str(tmp_path / "b" / "f"), *more])
        out = capsys.readouterr()
        assert not STEERS.search(out.out + out.err)
        assert "REGRESSION" in out.out
    main(["compare", str(tmp_path / f"a{text}"), str(tmp_path / "b" / "f")])
    assert not STEERS.search("".join(capsys.readouterr()))


def test_a_probe_shows_what_a_server_calls_itself_as_it_is(quick: QuickPytest) -> None:
    text = ANSI + RICH + BIDI
    for oddities in (Oddities(models=(f"m{text}", "n")), Oddities(usage={"completion_tokens": text})):
        with planted(oddities) as server:
            done = quick.phasegate("probe", "--base-url", server.base_url, "--input-tokens", "32")
        assert not STEERS.search(done.output), repr(done.output)
        assert "Traceback" not in done.output


@pytest.mark.slow
@pytest.mark.parametrize("text", [ANSI, RICH, BIDI])
def test_a_run_shows_what_a_server_calls_itself_as_it_is(
    quick: QuickPytest, one_workload: Callable[..., Path], text: str
) -> None:
    folder = one_workload()
    reports = [f"--perf-report=r{suffix}" for suffix in (".md", ".html", ".json", ".csv")]
    with planted(Oddities(models=(f"m{text}",))) as server:
        done = quick.run("perf_tests", "-q", "-k", "regression or prefill", "--perf-base-url", server.base_url,
                         "--perf-requests", "3", "--junitxml=j.xml", *reports, cwd=folder)  # fmt: skip
    assert not STEERS.search(done.output), repr(done.output)
    assert "INTERNALERROR" not in done.output
    for name in ("r.md", "r.html", "r.csv"):
        assert not STEERS.search((folder / name).read_text(encoding="utf-8")), name


class Written:
    """A terminal that keeps what was written."""

    def __init__(self) -> None:
        self.text = ""
        self.hasmarkup = True

    def write(self, text: str, **_: bool) -> None:
        self.text += text

    def write_line(self, line: str, **_: bool) -> None:
        self.text += f"{line}\n"


def test_pytests_terminal_and_the_live_line_get_shown_text() -> None:
    """Only what was drawn here keeps its colours."""
    kept = Written()
    terminal = Terminal(kept)
    terminal.write(ANSI)
    terminal.write_line(f"  {RICH}{BIDI}\nsecond")
    assert not STEERS.search(kept.text)
    assert kept.text.count("\n") == 1
    assert f"  {RICH}" in kept.text
    terminal.write_line(Drawn("\x1b[1mhead\x1b[0m"))
    assert "\x1b[1mhead" in kept.text
    assert terminal.hasmarkup
    lines: list[str] = []
    LiveLine(lines.append, lambda: 3, 80, Traffic()).say(f"measuring {ANSI}")
    assert lines[0].count("\x1b") == 3
    log: list[str] = []
    LogLines(log.append, Traffic(), lambda: None, every=0.0).say(f"measuring {ANSI}")
    assert log
    assert not STEERS.search(log[0])


ATTACK = (
    "\"'><xss onx=1>`[l](https://evil.example)![i](https://evil.example/i) @octocat #1 www.evil.example "
    "\x1b[31m\u202e|x"
)


def texts(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where a document of JSON holds a text; of lists the first three."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield from texts(one, (*place, key))
    elif isinstance(value, list):
        for number, one in enumerate(value[:3]):
            yield from texts(one, (*place, number))
    elif isinstance(value, str):
        yield place


def attacked(source: str, places: Iterable[tuple[Any, ...]]) -> str:
    """A document of JSON with an attack in place of these texts."""
    whole = json.loads(source)
    for place in places:
        parent = whole
        for key in place[:-1]:
            parent = parent[key]
        parent[place[-1]] = ATTACK
    return json.dumps(whole)


def is_readable(text: str) -> bool:
    try:
        from_json(text, "r")
    except UnreadableReportError:
        return False
    return True


def test_no_text_of_a_report_is_live_in_any_format() -> None:
    """Every text that a report may hold is an attack at once; a report may come from anywhere."""
    source = to_json(full_document())
    places = [place for place in texts(json.loads(source)) if is_readable(attacked(source, [place]))]
    assert len(places) > 100
    document = from_json(attacked(source, places), "r")
    markdown, page = render_markdown(document), render_html(document)
    assert "octocat" in markdown
    assert "octocat" in page
    assert "<xss" not in page
    assert not STEERS.search(render_csv(document))
    prose = without_code(markdown)
    for live in ("<xss", "](https", "@octocat", "https://evil", "www.evil", "#1 "):
        assert live not in prose, live
    for line in markdown.splitlines():
        assert not line.startswith(("#", "-")) or line.startswith(("## ", "- "))


def without_code(markdown: str) -> str:
    """Markdown without its code, which ends where as many backticks as began it stand alone."""
    return re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "", markdown)


@pytest.mark.parametrize(
    "text",
    ["a``` b ` c\n```\n@all", "`", "``", "x`", "`@a`", "\\`@a", "a | b", "a \\| b `@c", "\n# h", ""],
)
def test_code_ends_where_it_shall(text: str) -> None:
    for cell in (False, True):
        said = in_markdown_code(text, cell=cell)
        assert "@" not in without_code(said).replace("@&#8203;", "")
        assert "\n" not in said
        if cell:
            assert not re.search(r"(?<!\\)(\\\\)*\|", said)


@pytest.mark.parametrize(
    ("text", "live"),
    [
        ("# Heading", r"^#\s"),
        ("- [x] done", r"^-\s"),
        ("+ x", r"^\+\s"),
        ("1. x", r"^1\.\s"),
        ("[x]: https://evil.example", r"\]:"),
        ("mailto:a@b.example", r"mailto:|@b"),
        ("HTTPS://evil.example WWW.evil.example", r"(?i)://|www\."),
        ("owner/name#12", r"#1"),
        ("--> </details></summary></table><svg onload=1>", r"<"),
        ("&lt;script&gt; &#64;octocat", r"&lt;|&#64;o"),
        ("$\\href{x}{y}$ **b** ~~c~~ `d`", r"\$\\|\*|~|`"),
        ("a&#8203;b", r"a&#8203;"),
    ],
)
def test_markdown_says_it_and_does_nothing(text: str, live: str) -> None:
    for said in (in_markdown(text), in_markdown_cell(text)):
        assert not re.search(live, said), said


def test_sentences_of_our_own_read_as_before() -> None:
    for text in ("chat[in=64,out=8]: TTFT 34.1 ms, +17 % (10 % to 24 %)", "need 6 sessions, have 4; see gate"):
        assert in_markdown(text) == text
        assert in_csv(text) == text


@pytest.mark.parametrize(
    "cell",
    [
        "=1+1", "+1+1", "-1+1", "@SUM(1)", "\t=1+1", "\r=1+1", " =1+1", "\n=1+1", "\ufeff=1+1", "\u200b=1+1", "＝1+1",
        "\uff0b1", "\uff20x", "+inf", "-nan", ";=1+1", "a;@x", "=cmd|' /C calc'!A0", "\x00=1",
    ],
)  # fmt: skip
def test_no_cell_is_a_formula(cell: str) -> None:
    said = in_csv(cell)
    for part in said.split(";"):
        assert not re.match(r"[\s\ufffd\ufeff\u200b]*[=+\-@＝＋－＠]", part), said


@pytest.mark.parametrize("cell", ["-1", "+3.5", "-1e-05", "0.25", ".5", "1.", "a=b", "x-1", "'x", "5 %"])
def test_numbers_and_words_stay(cell: str) -> None:
    assert in_csv(cell) == cell
    assert next(csv.reader(io.StringIO(f"{in_csv(cell)}\n"))) == [cell]


def test_a_document_from_a_run_has_no_such_text_in_it_at_all() -> None:
    from phasegate.report.document.scrub import scrubbed

    whole = full_document()
    server = {**whole.environment.server, "model": f"m{ANSI}{BIDI}"}
    odd = replace(whole, environment=replace(whole.environment, server=server))
    assert not STEERS.search(json.dumps(json.loads(to_json(scrubbed(odd))), ensure_ascii=False).replace("\n", ""))
