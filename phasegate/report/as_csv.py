"""The findings of a document as CSV: one row each, for spreadsheets."""

from __future__ import annotations

import csv
import io

from phasegate.core.showing import in_csv
from phasegate.report.document.model import Document
from phasegate.report.document.rows import FINDING_COLUMNS, finding_rows


def render_csv(document: Document) -> str:
    """The table, with a head; a text that a spreadsheet would run as a formula is marked as text."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(FINDING_COLUMNS)
    writer.writerows([in_csv(cell) for cell in row] for row in finding_rows(document))
    return buffer.getvalue()
