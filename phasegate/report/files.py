"""Reports as files: the format by the suffix, checked before anything is measured, written whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from phasegate.core.atomic_write import check_writable, write_atomic
from phasegate.report.document.model import Document


class ReportPathError(ValueError):
    """A report that could not be written. The message is one line naming the path and the remedy."""


def _html(document: Document) -> str:
    from phasegate.report.html.page import render_html

    return render_html(document)


def _markdown(document: Document) -> str:
    from phasegate.report.as_markdown import render_markdown

    return render_markdown(document)


def _json(document: Document) -> str:
    from phasegate.report.document.codec import to_json

    return to_json(document)


def _csv(document: Document) -> str:
    from phasegate.report.as_csv import render_csv

    return render_csv(document)


FORMATS: dict[str, Callable[[Document], str]] = {".html": _html, ".md": _markdown, ".json": _json, ".csv": _csv}
"""Suffix -> how a document is written."""


def check_path(path: Path, source: str) -> None:
    """Refuse a report that could not be written later.

    Args:
        path: where it shall go.
        source: the option, for the message.

    Raises:
        ReportPathError: the suffix is unknown, or the path is a folder or goes through a file.
        UnwritableError: the folder cannot be made or written to.
    """
    if path.suffix.lower() not in FORMATS:
        raise ReportPathError(f"{source} {path}: the suffix says the format; use one of {', '.join(FORMATS)}")
    if path.is_dir():
        raise ReportPathError(f"{source} {path}: is a folder; name a file in it")
    # A folder that is missing is made when the report is written; the first one that exists has to allow that.
    folder = next(one for one in path.absolute().parents if one.exists())
    if not folder.is_dir():
        raise ReportPathError(f"{source} {path}: {folder} is a file; name a file in a folder")
    check_writable(path.parent, f"{source} {path.name}: the folder")


def write_report(document: Document, path: Path) -> None:
    """Write a document in the format of the path's suffix; the old file stays until the new one is whole.

    Raises:
        ReportPathError: the suffix is unknown, or the disk refused.
    """
    render = FORMATS.get(path.suffix.lower())
    if render is None:
        raise ReportPathError(f"{path}: the suffix says the format; use one of {', '.join(FORMATS)}")
    write_text(path, render(document))


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all, beside its place and then renamed; its folder is made where it is missing.

    Raises:
        ReportPathError: the disk refused.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, text)
    except OSError as error:
        raise ReportPathError(f"{path}: cannot be written: {error.strerror or error}") from None
