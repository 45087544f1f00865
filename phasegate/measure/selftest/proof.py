"""The whole self-test: planted slowdowns, re-scaled sessions, unchanged builds, and whether all of it held."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from phasegate.core.session import Session
from phasegate.gate.policy import Policy
from phasegate.gate.verdict import finite
from phasegate.measure.selftest.check import Check, Count, clean_builds_needed
from phasegate.measure.selftest.known_truth import simulated_baseline, simulated_checks
from phasegate.measure.selftest.measured import measured_pass
from phasegate.measure.selftest.noise import measured_alike, noise_of
from phasegate.measure.selftest.plants import NOISE, noise_line
from phasegate.measure.selftest.rescaled import LEAST_SESSIONS, Rescaled, rescale, usable
from phasegate.measure.selftest.unchanged import AABuilds, judge_unchanged
from phasegate.store.baseline_folder import BaselineStore

Say = Callable[[str], None]

SIMULATED_SOURCE = "simulated sessions"
MEASURED_SOURCE = "sessions just measured"

LEAST_BASELINE = 8
"""Baseline sessions of an A/A build where fewer were seen: as many as a user is asked to record."""


@dataclass(frozen=True, slots=True)
class Proof:
    """What the self-test found.

    Attributes:
        seed: of everything drawn.
        alpha: the chance of an alarm that the policy allows.
        checks: all of them, in the order of the parts.
        rescaled: one for each set of sessions that was re-scaled.
        unchanged: the A/A builds, one for each of these sets.
        remarks: sentences that change nothing: models, sets of sessions that could not be used.
    """

    seed: int
    alpha: float
    checks: tuple[Check, ...]
    rescaled: tuple[Rescaled, ...]
    unchanged: tuple[AABuilds, ...]
    remarks: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether the gate did everything that it must."""
        return all(check.holds for check in self.checks)

    @property
    def alarms(self) -> Count | None:
        """Alarms of all A/A builds together; None where there was no build."""
        builds, hits = (sum(getattr(one.alarms, name) for one in self.unchanged) for name in ("n", "hits"))
        return Count.of(hits, builds) if builds else None

    def sentence(self) -> str:
        """The last line: what was shown, or the first thing that did not hold."""
        broken = [check for check in self.checks if not check.holds]
        if broken:
            first = broken[0]
            return f"{len(broken)} of {len(self.checks)} checks do not hold; {first.part}, {first.name}: {first.remedy}"
        rows = [row for one in self.rescaled for row in one.detections]
        promised, broken_promises = (sum(getattr(row, name) for row in rows) for name in ("promised", "broken"))
        return (
            f"every planted slowdown was found in its phase, {promised - broken_promises} of {promised} re-scaled ones "
            f"that the gate promised to find were found; false alarms of unchanged builds: {self.alarms or 'none'}"
        )

    def claim(self) -> str:
        """What the number of A/A builds can and cannot claim."""
        needed = clean_builds_needed(self.alpha)
        return f"to claim at most {100 * self.alpha:g} % with 95 % confidence takes {needed} builds without an alarm"

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
            "unchanged": [asdict(one) for one in self.unchanged],
            "claim": self.claim(),
            "remarks": list(self.remarks),
        }


def prove(policy: Policy, *, builds: int, seed: int, baselines: Path, say: Say | None = None) -> Proof:
    """Run all parts.

    Args:
        policy: the policy that is to be proven.
        builds: A/A builds, at least 1, in all.
        seed: of everything drawn; prompts and noise of the measured pass too.
        baselines: stored sessions; where there are none that can be used, the self-test's own are taken.
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
    sources = sources or _own_sources(policy, seed, measured.unchanged)
    remarks = [f"noise of the simulated sessions: {noise_line(NOISE)}", *remarks]
    rescaled = []
    for source, sessions in sources.items():
        tell(f"re-scaling {source}")
        rescaled.append(rescale(source, sessions, policy, seed))
    unchanged = _builds(sources, policy, builds, seed, tell)
    checks += [one.check() for one in rescaled]
    remarks += [one.remark() for one in rescaled]
    checks += [one.check() for one in unchanged]
    return Proof(seed, policy.alpha, tuple(checks), tuple(rescaled), tuple(unchanged), tuple(remarks))


def _own_sources(policy: Policy, seed: int, measured: Sequence[Session]) -> dict[str, list[Session]]:
    """The self-test's own sessions: simulated ones, whose noise is known, and those that were just measured."""
    own = {SIMULATED_SOURCE: simulated_baseline(seed), MEASURED_SOURCE: list(measured)}
    fit = {source: usable(sessions, policy) for source, sessions in own.items() if sessions}
    return {source: sessions for source, sessions in fit.items() if len(sessions) >= LEAST_SESSIONS}


def _builds(
    sources: Mapping[str, Sequence[Session]], policy: Policy, builds: int, seed: int, tell: Say
) -> list[AABuilds]:
    """A/A builds, shared evenly by all sources of noise."""
    judged = []
    for number, (source, sessions) in enumerate(sources.items()):
        share = builds // len(sources) + (number < builds % len(sources))
        tell(f"judging {share} unchanged builds with the noise of {source}")
        if share:
            stored = max(LEAST_BASELINE, len(sessions))
            judged.append(
                judge_unchanged(
                    noise_of(sessions), policy, source=source, builds=share, baseline_sessions=stored,
                    seed=seed + number,
                )
            )  # fmt: skip
    return judged


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
        if len(sessions) >= LEAST_SESSIONS and measured_alike(sessions):
            sources[fingerprint] = sessions
        else:
            remarks.append(
                f"{fingerprint}: not re-scaled, {len(sessions)} undisturbed sessions of one level; at least "
                f"{LEAST_SESSIONS} that measured the same are needed; record more with --update-baselines"
            )
    return sources, remarks
