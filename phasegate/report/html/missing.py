"""What a report does not show, and what would fill it: one line each, so that a gap is never taken for a result."""

from __future__ import annotations

from collections.abc import Iterator

from phasegate.report.document.model import Document


def missing_sections(document: Document) -> list[tuple[str, str]]:
    """(section, what fills it) for everything that this run did not measure."""
    return list(_missing(document))


def _missing(document: Document) -> Iterator[tuple[str, str]]:
    if document.gate is None or not document.gate.rows:
        yield "Comparison", "record a baseline with --update-baselines, or name a --perf-reference-url"
    if not document.workloads:
        yield "Phases", "run perf_tests/test_prefill.py and perf_tests/test_decode.py"
    if not document.laws:
        yield "Laws", "run perf_tests/test_prefill.py, test_decode.py and test_prefix_cache.py"
    if document.load is None or not document.load.levels:
        yield "Load", "run perf_tests/test_slo.py with --perf-slo ttft:p95:500ms and --perf-concurrency 1 4 16"
    elif not document.load.limits:
        yield "Break point", "add --perf-find-limit to an objective"
    if not document.trends:
        yield "Trend", "store sessions with --update-baselines"
    if document.request is None:
        yield (
            "One request",
            "run perf_tests/test_prefill.py: a request with at least two output tokens shows both phases",
        )
