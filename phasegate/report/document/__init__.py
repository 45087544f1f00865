"""The document of a finished run: what all reports are made from."""

from phasegate.report.document.codec import UnreadableReportError, from_json, json_schema, to_json
from phasegate.report.document.model import SCHEMA, Document

__all__ = ["SCHEMA", "Document", "UnreadableReportError", "from_json", "json_schema", "to_json"]
