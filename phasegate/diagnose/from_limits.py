"""From the roofline to what the diagnosis may use of it: only shares that can be believed."""

from __future__ import annotations

from phasegate.diagnose.observations import Machine
from phasegate.diagnose.roofline_words import Roofline


def machine_of(limits: Roofline) -> Machine:
    """How near the phases run to the limits; a share that cannot be is no evidence for anything."""
    return Machine(
        bandwidth=limits.mbu.believable,
        compute=limits.mfu.believable,
        decode_compute=limits.decode_mfu.believable,
    )
