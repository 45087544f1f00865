"""Six reports, one for each way a run can end: ``python -m benchmarks.report_gallery FOLDER``.

Each is a real pytest run against the simulated engine: eight accepted sessions of a healthy server, then an unchanged
candidate, one with a slower prefill, one with a slower decode, one that breaks an objective under load, one too noisy
to judge, and one whose server fails requests. With Chromium on the machine each page is also photographed: the first
screen at desk and at phone width, in light and in dark, and the whole page.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks._chromium import Chromium, find_chromium

ROOT = Path(__file__).resolve().parents[1]

WORKLOADS = {
    "prompt-length": "input_tokens: [128, 512, 1024]\noutput_tokens: 8\nrequests: 6\nwarmups: 1\n",
    "output-length": "input_tokens: 64\noutput_tokens: [16, 48, 96]\nrequests: 6\nwarmups: 1\n",
}

POLICY = "tolerance: {prefill: 0.15, decode: 0.10, both: 0.15}\n"
"""A little wider than the built-in policy, since this machine may be a busy one."""

SPEED = "speed=2"

TESTS = ("perf_tests/test_prefill.py", "perf_tests/test_decode.py", "perf_tests/test_regression.py")

FAILING = '[{"fault":"http_500","at":[' + ",".join(str(number) for number in range(12, 400, 4)) + "]}]"
"""Every fourth request is refused, after those that count tokens."""


@dataclass(frozen=True, slots=True)
class Scene:
    """One report of the gallery.

    Attributes:
        name: of its files.
        wanted: the word it must end with.
        settings: of the simulated engine.
        options: further options of the run.
        tests: what is run.
        noise: settings of both sides, which then have a baseline of their own.
    """

    name: str
    wanted: str
    settings: str = ""
    options: tuple[str, ...] = ()
    tests: tuple[str, ...] = TESTS
    noise: str = ""


SCENES = (
    Scene("pass", "PASS"),
    Scene("prefill", "REGRESSION", "prefill_factor=1.45"),
    Scene("decode", "REGRESSION", "decode_factor=1.35"),
    Scene(
        "slo", "SLO_BREACH", options=("--perf-slo", "ttft:p95:180ms", "tpot:p95:40ms", "--perf-concurrency", "1", "4",
                                      "16", "--perf-find-limit"),
        tests=(*TESTS, "perf_tests/test_slo.py"),
    ),
    Scene("inconclusive", "INCONCLUSIVE", "prefill_factor=1.1", ("--perf-sessions", "2"),
          noise="session_prefill_cv=0.06 session_decode_cv=0.06"),
    Scene("invalid", "INVALID_RUN", f"faults={FAILING}"),
)  # fmt: skip


def main(words: Sequence[str] | None = None) -> int:
    """Measure, write the reports, photograph them. Exit status 0; 1 where a scene ends with another word."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.report_gallery", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where reports and pictures go")
    parser.add_argument("--only", choices=[scene.name for scene in SCENES], action="append", help="these scenes alone")
    parser.add_argument("--keep", type=Path, help="folder that keeps the baseline for another call")
    parser.add_argument("--images", type=Path, help="folder that gets the two pictures of the documentation")
    args = parser.parse_args(words)
    args.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        desk = Desk(args.keep or Path(scratch))
        chosen = [scene for scene in SCENES if not args.only or scene.name in args.only]
        words_of = {scene: desk.run(scene, args.folder) for scene in chosen}
    for scene, word in words_of.items():
        print(f"{scene.name}: {word}{'' if word == scene.wanted else f', wanted {scene.wanted}'}")
    photograph([args.folder / f"{scene.name}.html" for scene in chosen])
    if args.images is not None:
        keep_images(args.folder, args.images)
    return 0 if all(word == scene.wanted for scene, word in words_of.items()) else 1


class Desk:
    """A folder with workloads, a policy and a baseline, and pytest runs on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def prepare(self, noise: str) -> Path:
        """Write the workloads and record the baseline where it is not kept; returns the baseline's folder."""
        workloads = self.folder / "workloads"
        workloads.mkdir(parents=True, exist_ok=True)
        for name, text in WORKLOADS.items():
            (workloads / f"{name}.yaml").write_text(text, encoding="utf-8")
        (self.folder / "policy.yaml").write_text(POLICY, encoding="utf-8")
        baselines = self.folder / ("noisy" if noise else "baselines")
        if not baselines.exists():
            record = ("--update-baselines", "--perf-sessions", "8")
            self._pytest(noise, ("perf_tests/test_regression.py",), record, baselines)
        return baselines

    def run(self, scene: Scene, folder: Path) -> str:
        """Run a scene, leave its reports in a folder, and return the word it ended with."""
        from phasegate.report.document import from_json

        baselines = self.prepare(scene.noise)
        paths = [folder / f"{scene.name}{suffix}" for suffix in (".html", ".json", ".md", ".csv")]
        reports = [word for path in paths for word in ("--perf-report", str(path))]
        self._pytest(f"{scene.noise} {scene.settings}", scene.tests, (*scene.options, *reports), baselines)
        return from_json(paths[1].read_text(encoding="utf-8"), str(paths[1])).headline.verdict

    def _pytest(self, settings: str, tests: Sequence[str], options: Sequence[str], baselines: Path) -> None:
        surroundings = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "PYTEST"))}
        command = [
            sys.executable, "-m", "pytest", *tests, "-q", "-p", "no:cacheprovider",
            "--perf-engine", "simulator", "--perf-engine-config", f"{SPEED} {settings}",
            "--perf-workloads", str(self.folder / "workloads"), "--perf-policy", str(self.folder / "policy.yaml"),
            "--perf-baselines", str(baselines), *options,
        ]  # fmt: skip
        done = subprocess.run(command, cwd=ROOT, env=surroundings, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1, 13, 14, 15):
            raise SystemExit(f"a run of the gallery broke:\n{done.stdout[-3000:]}{done.stderr[-2000:]}")


SHOTS = (("desk", 1280, 860, False), ("desk-dark", 1280, 860, True), ("phone", 360, 780, False),
         ("whole", 1280, 5200, False))  # fmt: skip
"""Name, width, height and darkness of the pictures of each page."""


def photograph(pages: Sequence[Path]) -> None:
    """A picture of each page in every light and width; says so where there is no Chromium."""
    program = find_chromium()
    if program is None:
        print("no Chromium here, so no pictures")
        return
    with Chromium(program) as browser:
        for page in pages:
            for name, width, height, dark in SHOTS:
                browser.open(page, width=width, height=height, dark=dark)
                browser.screenshot(page.with_name(f"{page.stem}-{name}.png"))


IMAGES = {"prefill-desk.png": "report-prefill.png", "decode-phone.png": "report-phone.png"}
"""Picture of the gallery -> its name in the documentation."""


def keep_images(gallery: Path, images: Path) -> None:
    """Copy the pictures of the documentation, where they were taken."""
    for taken, kept in IMAGES.items():
        if (gallery / taken).exists():
            shutil.copyfile(gallery / taken, images / kept)


if __name__ == "__main__":
    sys.exit(main())
