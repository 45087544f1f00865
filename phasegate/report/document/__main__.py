"""``python -m phasegate.report.document`` prints the JSON Schema of reports, as kept in ``report/schema``."""

from __future__ import annotations

import json

from phasegate.report.document.codec import json_schema

if __name__ == "__main__":
    print(json.dumps(json_schema(), indent=1))
