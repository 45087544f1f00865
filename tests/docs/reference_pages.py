"""Pages of the reference that say what code says: written by ``python -m tests.docs.reference_pages``.

The test beside this file fails where a page and the code differ.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from phasegate.core.atomic_write import write_atomic
from phasegate.core.metric import METRICS
from phasegate.pytest_plugin.options import OPTIONS
from tests.docs.blocks import ROOT
from tests.docs.engines_page import engines_page
from tests.docs.server_pages import hardware_page, server_metrics_page

FOLDER = ROOT / "docs" / "reference"


def options_page() -> str:
    """Every option of the pytest suite."""
    lines = [
        "# Options of pytest",
        "",
        "Every option of the measuring suite, as `pytest --help` has it. A wrong value ends the run in one line",
        "before anything is started. `OPENAI_BASE_URL` and `OPENAI_API_KEY` work as everywhere else.",
        "",
        "| option | meaning |",
        "|---|---|",
    ]
    for names, help_text, extra in OPTIONS:
        lines.append(f"| {', '.join(f'`{_shape(name, extra)}`' for name in names)} | {_cell(help_text)} |")
    return "\n".join(lines) + "\n"


def _shape(name: str, extra: dict[str, object]) -> str:
    choices, metavar = extra.get("choices"), extra.get("metavar")
    if isinstance(choices, (tuple, list)):
        return f"{name} {'/'.join(map(str, choices))}"
    shown = f" {metavar}" if metavar else ""
    return f"{name}{shown}{' ...' if extra.get('nargs') == '+' else ''}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def metrics_page() -> str:
    """Every metric and its definition."""
    lines = [
        "# Metrics",
        "",
        "Definitions differ between tools; these are ours, from the table in `phasegate/core/metric.py`. A metric that",
        "a request does not have is *undefined*, with a reason; it is never zero and never enters a sample.",
        "",
        "| short | name | unit | better | phase | definition |",
        "|---|---|---|---|---|---|",
    ]
    for one in METRICS:
        lines.append(
            f"| `{one.short}` | `{one.name}` | {one.unit} | {one.better.value} | {one.phase.value} | {one.definition} |"
        )
    lines += [
        "",
        "*Sent* is the moment the request's headers were handed to the socket; connection set-up is kept apart. A",
        "*token event* is a chunk that carries content, reasoning or a tool call; a frame with a role only, or with",
        "empty text, is not one. *Due* is the moment a schedule wanted the request sent; in a closed loop it is the",
        "moment before. The count of output tokens is the server's own (`usage`); without one, TPOT is undefined.",
        "",
        "Between token events lie inter-chunk latencies. They equal inter-token latencies only where one chunk is one",
        "token; the widest one of a stream is its longest stall.",
    ]
    return "\n".join(lines) + "\n"


PAGES: dict[str, Callable[[], str]] = {
    "options.md": options_page,
    "metrics.md": metrics_page,
    "engines.md": engines_page,
    "server-metrics.md": server_metrics_page,
    "hardware.md": hardware_page,
}


def main() -> None:
    """Write the pages."""
    for name, page in PAGES.items():
        path: Path = FOLDER / name
        write_atomic(path, page())
        print(f"wrote {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
