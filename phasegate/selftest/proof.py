"""The whole self-test: planted slowdowns, re-scaled sessions, unchanged builds, and whether all of it held."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from phasegate.baseline.store import BaselineStore
from phasegate.gate.policy import Policy
from phasegate.gate.verdict import finite
from phasegate.selftest.check import Check
from phasegate.selftest.known_truth import simulated_checks
from phasegate.selftest.measured import measured_pass
from phasegate.selftest.noise import noise_of
from phasegate.selftest.plants import NOISE, noise_line
from phasegate.selftest.rescaled import LEAST_SESSIONS, Rescaled, rescale, usable
from phasegate.selftest.unchanged import AABuilds, judge_unchanged
from phasegate.session import Session

Say = Callable[[str], None]

MEASURED_SOURCE = "sessions just measured"

LEAST_BASELINE = 8
"""Baseline sessions of an A/A build where fewer were seen: as many as a user is asked to record."""


@dataclass(frozen=True, slots=True)
class Proof:
    """What the self-test found.

    Attributes:
        seed: of everything drawn.
        checks: all of them, in the order of the parts.
        rescaled: one for each set of sessions that was re-scaled.
        unchanged: the A/A builds, one for each of these sets.
        remarks: sentences that change nothing: models, sets of sessions that could not be used.
    """

    seed: int
    checks: tuple[Check, ...]
    rescaled: tuple[Rescaled, ...]
    unchanged: tuple[AABuilds, ...]
    remarks: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether the gate did everything that it must."""
        return all(check.holds for check in self.checks)

    def sentence(self) -> str:
        """The last line: what was shown, or the first thing that did not hold."""
        broken = [check for check in self.checks if not check.holds]
        if broken:
            more = f" (and {len(broken) - 1} more)" if len(broken) > 1 else ""
            first = broken[0]
            return f"{len(broken)} of {len(self.checks)} checks do not hold: {first.part}, {first.name}: {first.remedy}{more}"
        found = sum(one.wanted.startswith("REGRESSION") for one in self.checks)
        builds, alarms = (sum(getattr(one.alarms, name) for one in self.unchanged) for name in ("n", "hits"))
        return (
            f"the gate found all {found} planted slowdowns in their phases, kept the promises of its detectable effects, "
            f"and raised {alarms} alarms in {builds} unchanged builds"
        )

    def as_json(self) -> dict[str, Any]:
        """The proof as plain values; an MDE that finds nothing is null."""
        return {
            "result": "PASS" if self.holds else "FAIL",
            "sentence": self.sentence(),
            "seed": self.seed,
            "checks": [check.as_json() for check in self.checks],
            "rescaled": [
                {**asdict(one), "detections": [{**asdict(row), "mde": finite(row.mde)} for row in one.detections]}
                for one in self.rescaled
            ],
            "unchanged": [{**asdict(one), "claim": one.claim()} for one in self.unchanged],
            "remarks": list(self.remarks),
        }


def prove(policy: Policy, *, builds: int, seed: int, baselines: Path, say: Say | None = None) -> Proof:
    """Run all parts.

    Args:
        policy: the policy that is to be proven.
        builds: A/A builds, at least 1; shared by all stored baselines.
        seed: of everything drawn; prompts and noise of the measured pass too.
        baselines: stored sessions; where there are none that can be used, the pass over HTTP lends its own.
        say: told what is being done, for a live line.

    Raises:
        InvalidBaselineError: a stored session cannot be read.
    """
    tell = say or (lambda _: None)
    sources, remarks = stored_sources(baselines, policy)
    tell("judging simulated sessions with known slowdowns")
    checks = simulated_checks(policy, seed)
    measured = measured_pass(policy, seed, say)
    checks += measured.checks
    if not sources and measured.unchanged:
        sources = {MEASURED_SOURCE: usable(measured.unchanged, policy)}
    remarks = [f"noise of the simulated sessions: {noise_line(NOISE)}", *remarks]
    rescaled, unchanged = [], []
    for number, (source, sessions) in enumerate(sources.items()):
        tell(f"re-scaling {source}")
        rescaled.append(rescale(source, sessions, policy, seed))
        share = builds // len(sources) + (number < builds % len(sources))
        if share:
            unchanged.append(_builds(sessions, policy, share, seed + number, tell))
    checks += [check for one in rescaled for check in one.checks(policy)]
    checks += [one.check() for one in unchanged]
    return Proof(seed, tuple(checks), tuple(rescaled), tuple(unchanged), tuple(remarks))


def _builds(sessions: Sequence[Session], policy: Policy, builds: int, seed: int, tell: Say) -> AABuilds:
    def done(number: int) -> None:
        if number % 20 == 0:
            tell(f"judging unchanged builds, {number} of {builds}")

    count = max(LEAST_BASELINE, len(sessions))
    return judge_unchanged(
        noise_of(sessions), policy, builds=builds, baseline_sessions=count, seed=seed, done=done
    )  # fmt: skip


def stored_sources(root: Path, policy: Policy) -> tuple[dict[str, list[Session]], list[str]]:
    """Stored baselines that can be re-scaled, by name, and a remark on each that cannot.

    Raises:
        InvalidBaselineError: a stored session cannot be read.
    """
    store = BaselineStore(root)
    sources: dict[str, list[Session]] = {}
    remarks = []
    for fingerprint in store.fingerprints():
        sessions = usable(store.read(fingerprint), policy)
        if len(sessions) >= LEAST_SESSIONS:
            sources[fingerprint] = sessions
        else:
            remarks.append(
                f"{fingerprint}: {len(sessions)} undisturbed sessions of one level, at least {LEAST_SESSIONS} are "
                "needed to leave some out; record more with --update-baselines"
            )
    return sources, remarks
