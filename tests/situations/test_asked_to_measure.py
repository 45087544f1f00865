"""Plain `pytest` in a repository with other tests measures nothing; a path, a marker or an option asks for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.edges.quick_pytest import Done, QuickPytest

LINE = "tests that measure a server were left out of this run"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Ordinary tests beside a suite whose lab is only written down, so that nothing is started."""
    files = {
        "fixtures/workloads/small.yaml": "input_tokens: 64\noutput_tokens: 8\nrequests: 3\nwarmups: 0\n",
        "tests/test_own.py": "def test_own(): pass\n",
        "perf_tests/test_speed.py": "import pytest\npytestmark = pytest.mark.perf\n"
        "def test_cell(perf_cell, perf_run): pass\n",
        "perf_tests/deep/test_more.py": "def test_lab(perf_lab): pass\n",
        "perf_tests/conftest.py": "import pathlib, pytest\n\n@pytest.fixture(scope='session')\ndef perf_lab():\n"
        "    (pathlib.Path(__file__).parents[1] / 'measured').touch()\n",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


def measured(done: Done, repository: Path) -> bool:
    """Whether a test that measures ran."""
    found = (repository / "measured").exists()
    assert found is not (LINE in done.output), done.output
    return found


@pytest.mark.parametrize("words", [(), (".",), ("-m", "not slow"), ("-k", "speed or own"), ("tests", ".")], ids=str)
def test_a_run_that_names_no_measuring_test_leaves_them_out(
    repository: Path, quick: QuickPytest, words: tuple[str, ...]
) -> None:
    done = quick.run("-q", *words, cwd=repository)
    assert done.status == 0, done.output
    assert not measured(done, repository)
    assert done.output.count(LINE) == 1
    assert "pytest perf_tests" in done.output
    assert "1 passed, 2 deselected" in done.output
    assert "result" not in done.output


@pytest.mark.parametrize(
    "words",
    [
        ("perf_tests",),
        ("perf_tests/test_speed.py",),
        ("perf_tests/test_speed.py::test_cell",),
        ("tests", "perf_tests"),
        ("perf_tests/deep",),
        ("-m", "perf"),
        ("--perf-requests", "3"),
        ("--missing-baseline=skip", "."),
    ],
    ids=str,
)
def test_a_path_a_marker_or_an_option_asks_for_them(
    repository: Path, quick: QuickPytest, words: tuple[str, ...]
) -> None:
    done = quick.run("-q", *words, cwd=repository)
    assert done.status == 0, done.output
    assert measured(done, repository)


def test_the_folder_of_the_suite_is_asked_for_where_one_stands_in_it(repository: Path, quick: QuickPytest) -> None:
    done = quick.run("-q", cwd=repository / "perf_tests")
    assert measured(done, repository)


@pytest.mark.parametrize(("paths", "asked"), [("tests perf_tests", True), (".", False)])
def test_a_configuration_asks_where_it_names_their_folder(
    repository: Path, quick: QuickPytest, paths: str, asked: bool
) -> None:
    (repository / "pytest.ini").write_text(f"[pytest]\ntestpaths = {paths}\n", encoding="utf-8")
    done = quick.run("-q", cwd=repository)
    assert done.status == 0, done.output
    assert measured(done, repository) is asked


def test_a_failing_test_keeps_its_status_and_a_wrong_option_file_is_not_read(
    repository: Path, quick: QuickPytest
) -> None:
    """The other tests are not disturbed by the suite, whatever is wrong with it."""
    (repository / "tests" / "test_own.py").write_text("def test_own(): assert False\n", encoding="utf-8")
    (repository / "fixtures" / "workloads" / "small.yaml").write_text("input_tokens: [\n", encoding="utf-8")
    done = quick.run("-q", cwd=repository)
    assert done.status == 1, done.output
    assert not measured(done, repository)
    assert "small.yaml" not in done.output


def test_in_parallel_they_are_left_out_as_well(repository: Path, quick: QuickPytest) -> None:
    pytest.importorskip("xdist")
    done = quick.run("-q", "-n", "2", cwd=repository)
    assert done.status == 0, done.output
    assert not measured(done, repository)
    assert "1 passed" in done.output
