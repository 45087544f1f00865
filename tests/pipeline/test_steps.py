"""The shell steps of the workflows, run one after the other as a runner would, on a simulated server.

Candidate slower: status 1, and summary and comment name the phase and the lever. Same build: 0. No baseline: 14.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from phasegate.cli import main
from phasegate.cli.ci.tell import MARK
from tests.pipeline.workflows import ACTION, GATE, STARTER, UPDATE, run_step, step

WORKLOAD = "input_tokens: 96\noutput_tokens: 8\nrequests: 3\nwarmups: 0\n"

POLICY = "tolerance: {prefill: 0.4, decode: 0.4, both: 0.4}\ngate: always\n"
"""Wide, since a busy machine may shift the simulator's sleeps; the planted slowdown is far beyond it."""

GH = """#!/usr/bin/env python3
import json, os, pathlib, sys
book = pathlib.Path(os.environ["GH_BOOK"])
words = sys.argv[1:]
if "--method" in words:
    body = next(word for word in words if word.startswith("body=@"))[6:]
    book.write_text(json.dumps({"words": words, "body": pathlib.Path(body).read_text()}))
elif "--jq" in words:
    print(os.environ.get("GH_KNOWN", ""))
else:
    book.write_text(json.dumps({"words": words}))
"""
"""Stands in for GitHub's command line: remembers what it was asked to write, and lists the comments it is told of."""


@dataclass(frozen=True, slots=True)
class Job:
    """What a job left behind."""

    status: int
    log: str
    summary: str
    outputs: Mapping[str, str]


@dataclass
class Repository:
    """A repository with a suite, and a runner that has phasegate installed."""

    folder: Path

    def environment(self, **more: str) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("HOME", "LANG") if name in os.environ}
        path = f"{self.folder / 'bin'}:{Path(sys.executable).parent}:/usr/bin:/bin"
        runner = {name: str(self.folder / name) for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")}
        return {**kept, "PATH": path, "CI": "true", "PERF_OUT": "perf-results", **runner, **more}

    def job(self, workflow: Path, name: str, settings: str = "", ci: str = "true", **inputs: str) -> Job:
        summary, outputs = self.folder / "GITHUB_STEP_SUMMARY", self.folder / "GITHUB_OUTPUT"
        for path in (summary, outputs):
            path.write_text("", encoding="utf-8")
        engine = f"--perf-engine simulator --perf-engine-config 'speed=1 {settings}'"
        values = {"inputs.suite": "perf_tests/test_regression.py", "inputs.args": engine}
        values.update({f"inputs.{key.replace('_', '-')}": value for key, value in inputs.items()})
        # The update has no suite of its own to choose: it records what the whole suite measures.
        more = {"PERF_SUITE": values["inputs.suite"], "CI": ci}
        done = run_step(step(workflow, name), values, self.environment(**more), self.folder)
        pairs = (line.partition("=") for line in outputs.read_text(encoding="utf-8").splitlines())
        return Job(
            done.returncode,
            done.stdout + done.stderr,
            summary.read_text(encoding="utf-8"),
            {key: value for key, _, value in pairs},
        )

    def comment(self) -> str:
        return (self.folder / "perf-results" / "comment.md").read_text(encoding="utf-8")


def make_repository(folder: Path) -> Repository:
    assert main(["init", str(folder)]) == 0
    for path in (folder / "fixtures" / "workloads").glob("*.yaml"):
        path.unlink()
    (folder / "fixtures" / "workloads" / "small.yaml").write_text(WORKLOAD, encoding="utf-8")
    (folder / "fixtures" / "policy.yaml").write_text(POLICY, encoding="utf-8")
    (folder / "bin").mkdir()
    tool = folder / "bin" / "gh"
    tool.write_text(GH, encoding="utf-8")
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    return Repository(folder)


@pytest.fixture(scope="module")
def accepted(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """A repository whose baselines were recorded by the update workflow's own step."""
    repository = make_repository(tmp_path_factory.mktemp("repository"))
    job = repository.job(UPDATE, "Measure", sessions="6")
    assert job.status == 0, job.log
    assert "## Baselines updated" in job.summary
    assert "| workload | metric | before | after |" in repository.comment()
    assert len(list((repository.folder / "baselines").rglob("*.json"))) == 6
    return repository


@pytest.mark.alone
def test_a_slower_candidate_ends_with_1_and_names_phase_and_lever(accepted: Repository) -> None:
    job = accepted.job(GATE, "Gate", "decode_factor=2")
    assert job.status == 1, job.log
    assert job.outputs["status"] == "1"
    for text in (job.summary, accepted.comment()):
        assert "REGRESSION" in text
        assert "decode" in text
        assert "speculative decoding" in text
    assert accepted.comment().startswith(MARK)
    results = {path.name for path in (accepted.folder / "perf-results").iterdir()}
    assert {"report.html", "report.json", "summary.md", "comment.md", "junit.xml", "sessions"} <= results
    tracked = json.loads((accepted.folder / "perf-results" / "github-action-benchmark.json").read_text())
    tpot = next(one for one in tracked if one["name"] == "small[in=96,out=8] tpot")
    assert tpot["unit"] == "ms/token"
    assert 0.5 < tpot["value"] < 50
    history = json.loads((accepted.folder / "perf-results" / "bencher.json").read_text())
    assert history[tpot["name"]]["latency"]["value"] == pytest.approx(tpot["value"] * 1e6, rel=1e-4)


@pytest.mark.alone
def test_the_same_build_ends_with_0(accepted: Repository) -> None:
    job = accepted.job(GATE, "Gate")
    assert job.status == 0, job.log
    assert job.outputs["status"] == "0"
    assert "PASS" in job.summary


@pytest.mark.parametrize("ci", ["true", ""], ids=["ci", "elsewhere"])
def test_no_baseline_ends_with_14_and_says_how_to_record_one(tmp_path: Path, ci: str) -> None:
    """Wherever it runs: a gate without a baseline has shown nothing."""
    repository = make_repository(tmp_path)
    job = repository.job(GATE, "Gate", ci=ci)
    assert job.status == 14, job.log
    assert job.outputs["status"] == "14"
    assert "--update-baselines" in job.summary


def test_a_server_that_is_not_there_ends_with_15_and_a_summary(accepted: Repository) -> None:
    job = accepted.job(GATE, "Gate", base_url="http://127.0.0.1:9/v1", args="")
    assert job.status == 15, job.log
    assert job.summary.startswith("#")


def test_a_former_input_still_names_the_server(accepted: Repository) -> None:
    job = accepted.job(GATE, "Gate", endpoint="http://127.0.0.1:9/v1", args="")
    assert job.status == 15, job.log
    assert "127.0.0.1:9" in job.log


@pytest.mark.parametrize("workflow", [STARTER, GATE], ids=["starter", "reusable"])
def test_the_install_step_installs_what_it_is_told(tmp_path: Path, workflow: Path) -> None:
    """Nothing is on PyPI yet, so a name alone would install nothing; `python` here only writes down its arguments."""
    tool = tmp_path / "bin" / "python"
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/arguments\n', encoding="utf-8")
    tool.chmod(0o755)
    what = "ci/phasegate-0.1.0-py3-none-any.whl[local]"
    environment = {"PATH": f"{tool.parent}:/usr/bin:/bin", "PHASEGATE": what}
    done = run_step(step(workflow, "Install"), {"inputs.phasegate": what}, environment, tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "arguments").read_text().split() == ["-m", "pip", "install", what]


def test_a_starter_that_does_not_know_what_to_install_says_so(tmp_path: Path) -> None:
    done = run_step(step(STARTER, "Install"), {}, {"PATH": "/usr/bin:/bin", "PHASEGATE": ""}, tmp_path)
    assert done.returncode == 2
    assert "set PHASEGATE" in done.stdout


def test_the_action_installs_its_own_commit_where_nothing_else_is_named(tmp_path: Path) -> None:
    tool = tmp_path / "bin" / "python"
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/arguments\n', encoding="utf-8")
    tool.chmod(0o755)
    place = Path(ACTION).parent
    environment = {"PATH": f"{tool.parent}:/usr/bin:/bin", "GITHUB_ACTION_PATH": str(place)}
    done = run_step(step(ACTION, "Install"), {}, environment, tmp_path)
    assert done.returncode == 0, done.stderr
    path = Path((tmp_path / "arguments").read_text().split()[-1].removesuffix("[local]"))
    assert (path.resolve() / "pyproject.toml").is_file()


def test_a_wrong_option_ends_with_4_and_the_summary_says_so(accepted: Repository) -> None:
    job = accepted.job(GATE, "Gate", args="--perf-sloo=1")
    assert job.status == 4, job.log
    assert "nothing was measured" in job.summary
    assert "wrong usage" in job.summary


@pytest.mark.parametrize(("known", "method"), [("", "POST"), ("77", "PATCH")], ids=["first", "again"])
def test_the_comment_is_added_once_and_then_kept_up_to_date(tmp_path: Path, known: str, method: str) -> None:
    repository = make_repository(tmp_path)
    (tmp_path / "perf-results").mkdir()
    (tmp_path / "perf-results" / "comment.md").write_text(f"{MARK}\nhello", encoding="utf-8")
    values = {"github.repository": "o/r", "github.event.pull_request.number": "5", "github.token": "t0ken"}
    environment = repository.environment(GH_BOOK=str(tmp_path / "book"), GH_KNOWN=known)
    done = run_step(step(GATE, "Comment"), values, environment, tmp_path)
    assert done.returncode == 0, done.stderr
    told = json.loads((tmp_path / "book").read_text(encoding="utf-8"))
    assert told["words"][told["words"].index("--method") + 1] == method
    assert told["body"].startswith(MARK)
    place = "repos/o/r/issues/comments/77" if known else "repos/o/r/issues/5/comments"
    assert place in told["words"]
    assert "t0ken" not in " ".join(told["words"])


def test_an_update_becomes_a_branch_and_a_pull_request(accepted: Repository, tmp_path: Path) -> None:
    """On a copy, with a bare repository for a remote."""
    folder = tmp_path / "clone"
    shutil.copytree(accepted.folder, folder)
    remote = tmp_path / "remote.git"

    def git(*words: str) -> str:
        here = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *words]
        return subprocess.run(here, cwd=folder, check=True, capture_output=True, text=True).stdout

    subprocess.run(["git", "init", "--quiet", "--bare", str(remote)], check=True)
    git("init", "--quiet", "--initial-branch=main")
    git("add", "perf_tests")
    git("commit", "--quiet", "--message=start")
    git("remote", "add", "origin", str(remote))
    (folder / "perf-results" / "comment.md").write_text("what changed", encoding="utf-8")
    environment = Repository(folder).environment(GH_BOOK=str(tmp_path / "book"))
    done = run_step(step(UPDATE, "Propose"), {"github.run_id": "9", "github.ref_name": "main"}, environment, folder)
    assert done.returncode == 0, done.stderr
    listed = subprocess.run(
        ["git", "--git-dir", str(remote), "ls-tree", "-r", "--name-only", "baselines-9"],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    assert listed.count(".json") == 6
    assert "perf-results" not in listed
    told = json.loads((tmp_path / "book").read_text(encoding="utf-8"))["words"]
    assert told[:2] == ["pr", "create"]
    again = run_step(step(UPDATE, "Propose"), {"github.run_id": "10"}, environment, folder)
    assert "no baseline changed" in again.stdout
