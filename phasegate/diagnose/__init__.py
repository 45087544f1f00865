"""From measurements to the decision: which phase takes the time, which lever helps, and what does not.

Pure. A `Observations` holds what was measured; `diagnose` asks every rule in `RULES` and ranks what they find.
`from_runs` and `from_sessions` make situations from what the suite measures and stores.
"""

from __future__ import annotations

from phasegate.diagnose.explanation import Confidence, Explanation, Rule
from phasegate.diagnose.observations import (
    Ask,
    CacheCalls,
    Level,
    Limits,
    Machine,
    Observations,
    Repeats,
    Stall,
    Steps,
)
from phasegate.diagnose.proof import Proof
from phasegate.diagnose.rules import RULES, Diagnosis, diagnose

__all__ = [
    "RULES",
    "Ask",
    "CacheCalls",
    "Confidence",
    "Diagnosis",
    "Explanation",
    "Level",
    "Limits",
    "Machine",
    "Observations",
    "Proof",
    "Repeats",
    "Rule",
    "Stall",
    "Steps",
    "diagnose",
]
