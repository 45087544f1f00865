"""Whether this process is part of a pipeline, by the variable ``CI`` that pipelines set."""

from __future__ import annotations

import os
from collections.abc import Mapping

NO = ("", "0", "false", "no", "off")
"""Values of ``CI``, in any case, that mean no pipeline."""


def in_pipeline(environment: Mapping[str, str] | None = None) -> bool:
    """Whether ``CI`` says yes: it is set, and to none of `NO`."""
    found = os.environ if environment is None else environment
    return found.get("CI", "").strip().lower() not in NO
