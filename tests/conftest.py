"""Settings of all tests of the library."""

from __future__ import annotations

import os

from hypothesis import settings

# A build judges a change, so it tries the same examples each time; at a desk they differ from run to run and search on.
settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("desk", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "desk")
