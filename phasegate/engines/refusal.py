"""What a server means by the status of a refusal, and what to do about it: one rule for its list and its answers."""

from __future__ import annotations


def refusal_words(status: int, key_name: str, *, listing: bool = False) -> str | None:
    """Meaning and remedy in a few words; None where the status says neither.

    Args:
        status: HTTP status of the refusal.
        key_name: the variable that holds the key.
        listing: the list of models was asked for, which a key may be kept from and a server may be without.
    """
    other = "; or name the model (--perf-model, or --model of probe)" if listing else ""
    if status in (401, 403):
        return f"the key was refused (HTTP {status}); check {key_name}{other}"
    if 300 <= status < 400:
        return f"it redirects (HTTP {status}), which a measurement does not follow; give the final address{other}"
    if status == 503:
        return f"the server is not ready (HTTP {status}); wait until it has loaded its model, or look at its log{other}"
    if status >= 500 and listing:
        return f"its list of models failed (HTTP {status}); name the model (--perf-model, or --model of probe)"
    return None
