"""A desk: a folder with one workload and its baselines, and pytest runs of the gate on it against the simulator."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from tests.edges.quick_pytest import Done, QuickPytest

WORKLOAD = "input_tokens: 96\noutput_tokens: 8\nrequests: 3\nwarmups: 0\n"

POLICY = "tolerance: {prefill: 0.4, decode: 0.4, both: 0.4}\ngate: always\n"
"""Wide, since a busy machine may shift the simulator's sleeps; the planted slowdowns are far beyond it."""

SPEED = "speed=1"
"""A token takes 8 ms, well above what a busy machine is late by; a session of the workload less than half a second."""


class Desk:
    """A folder with one workload and its baselines, and pytest runs on it."""

    def __init__(self, folder: Path, runner: QuickPytest) -> None:
        self.folder, self.runner = folder, runner
        (folder / "workloads").mkdir()
        (folder / "workloads" / "small.yaml").write_text(WORKLOAD, encoding="utf-8")
        (folder / "policy.yaml").write_text(POLICY, encoding="utf-8")
        self.baselines = folder / "baselines"

    def run(self, settings: str = "", *options: str, ci: bool | str = False) -> Done:
        return self.runner.run(
            "perf_tests/test_regression.py", "-q",
            "--perf-engine", "simulator", "--perf-engine-config", f"{SPEED} {settings}",
            "--perf-workloads", str(self.folder / "workloads"), "--perf-baselines", str(self.baselines),
            "--perf-policy", str(self.folder / "policy.yaml"),
            "--junitxml", str(self.folder / "junit.xml"), *options,
            CI=ci if isinstance(ci, str) else "true" if ci else "",
        )  # fmt: skip

    def sessions(self) -> list[Path]:
        return sorted(self.baselines.rglob("*.json"))

    def failures(self) -> list[str]:
        tree = ElementTree.parse(self.folder / "junit.xml")
        return [str(node.get("message")).removeprefix("Judged: ") for node in tree.iter("failure")]
