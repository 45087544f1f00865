"""The pictures of docs/explanation/phases.md, from measured data: ``python -m benchmarks.phase_pictures``.

Runs the suite on the embedded engine (a few minutes), keeps the run as ``docs/images/phases.json``, draws every
picture from that file, and puts each picture's caption into the page. ``--draw`` draws again from the kept run without
measuring, which is also how a test checks that pictures and page are what the code makes of it.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from phasegate.report.charts.cache import cache_chart
from phasegate.report.charts.gaps import gaps_chart
from phasegate.report.charts.lengths import length_chart, per_token_chart
from phasegate.report.charts.load import load_charts
from phasegate.report.charts.standalone import standalone
from phasegate.report.charts.svg import Chart
from phasegate.report.charts.timeline import timeline_chart
from phasegate.report.document import Document, from_json, to_json
from phasegate.report.document.model import Reproduce

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
RUN = IMAGES / "phases.json"
PAGE = ROOT / "docs" / "explanation" / "phases.md"

TESTS = ("test_prefill.py", "test_decode.py", "test_prefix_cache.py", "test_slo.py::test_objective_is_kept")

OPTIONS = ("--perf-requests", "8", "--perf-slo", "ttft:p95:500ms", "--perf-concurrency", "1", "2", "4", "8")


def main(words: Sequence[str] | None = None) -> int:
    """Measure, draw, and fill the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.phase_pictures", description=__doc__.splitlines()[0])
    parser.add_argument("--draw", action="store_true", help="draw from the kept run; measure nothing")
    args = parser.parse_args(words)
    IMAGES.mkdir(parents=True, exist_ok=True)
    if not args.draw:
        measure()
    charts = dict(pictures(from_json(RUN.read_text(encoding="utf-8"), str(RUN))))
    for name, chart in charts.items():
        (IMAGES / f"{name}.svg").write_text(standalone(chart), encoding="utf-8")
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), charts), encoding="utf-8")
    print(f"{len(charts)} pictures in {IMAGES.relative_to(ROOT)}")
    return 0


def measure() -> None:
    """Run the suite and keep its document, without what would only repeat where it was run."""
    tests = [f"perf_tests/{name}" for name in TESTS]
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / RUN.name
        command = [sys.executable, "-m", "pytest", *tests, "-q", *OPTIONS, "--perf-report", str(report)]
        done = subprocess.run(command, cwd=ROOT, check=False)
        if done.returncode not in (0, 1, 13):
            raise SystemExit(f"the run ended with {done.returncode}, so its numbers are not kept")
        document = from_json(report.read_text(encoding="utf-8"), str(report))
    shown = " ".join(["pytest", *tests, *OPTIONS, "--perf-report", RUN.relative_to(ROOT).as_posix()])
    RUN.write_text(to_json(replace(document, reproduce=Reproduce((shown,), document.reproduce.seed))), encoding="utf-8")


def pictures(document: Document) -> Iterator[tuple[str, Chart]]:
    """Name and chart of every picture."""
    tables = {table.name: table for table in document.workloads}
    found: dict[str, Chart | None] = {
        "one-request": timeline_chart(document.request) if document.request is not None else None,
        "ttft-over-prompt": length_chart(tables["prompt-length"]),
        "tpot-over-prompt": per_token_chart(tables["prompt-length"]),
        "total-over-output": length_chart(tables["output-length"]),
        "tpot-over-output": per_token_chart(tables["output-length"]),
        "gaps": gaps_chart(tables["output-length"]),
        "prefix-cache": cache_chart(tables["prefix-cache"]),
    }
    if document.load is not None:
        found.update(zip(("ttft-under-load", "tpot-under-load"), load_charts(document.load), strict=False))
    for name, chart in found.items():
        if chart is not None:
            yield name, chart


_BLOCK = re.compile(r"<!-- picture: ([\w-]+) -->\n.*?<!-- end -->", re.DOTALL)


def filled(page: str, charts: dict[str, Chart]) -> str:
    """The page with every picture block as the charts say it.

    Raises:
        KeyError: the page names a picture that nobody draws.
    """

    def block(match: re.Match[str]) -> str:
        chart = charts[match.group(1)]
        picture = f"![{chart.title}](../images/{match.group(1)}.svg)"
        return f"<!-- picture: {match.group(1)} -->\n{picture}\n\n*{chart.caption or chart.title}*\n<!-- end -->"

    return _BLOCK.sub(block, page)


if __name__ == "__main__":
    sys.exit(main())
