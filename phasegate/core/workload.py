"""What is asked of the server: lengths, repetitions and order, without a word of text.

A workload is a grid of cells (input length x output length x role), each measured ``requests`` times. The plan
interleaves: every block visits every cell once in an order drawn anew, so that a drift of the machine falls on
all cells alike and blocks can be compared as pairs. Prompts themselves are written by `prompt`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from phasegate.core.naming import LONGEST
from phasegate.core.settings_file import SettingsError, list_of, load_mapping, one_of, text, whole_number

ENDPOINTS = ("chat", "completions", "messages", "ollama")

PREFIXES: Mapping[str, tuple[str, ...]] = {
    "unique": ("cold",),
    "repeated": ("cold", "cached", "control"),
    "shared": ("first", "next", "control"),
}
"""What a workload does with prompt prefixes -> the roles each block sends, in the words of the tests.

unique: every prompt is new from its first token. repeated: a prompt, the same prompt again, and a new one of the
same length as control. shared: a long prefix with one suffix, the same prefix with another, and a new prompt.
"""

SPEC_VERSION = 1
"""Part of the digest: raise it when the meaning of a workload file changes, so old baselines do not match."""


@dataclass(frozen=True, slots=True)
class Workload:
    """One workload file.

    Attributes:
        name: unique name; equals the file's stem.
        description: one sentence for readers.
        input_tokens: prompt lengths in tokens as the server counts them, template included.
        output_tokens: output lengths in tokens.
        requests: how many times each cell is measured in one session.
        warmups: requests sent before measuring, with prompts that are never used again.
        prefix: a key of `PREFIXES`.
        shared_tokens: for ``shared``: how many tokens of the prompt are the shared prefix, else 0.
        endpoint: one of `ENDPOINTS`, or None to take what the engine offers.
        mark_prefix: whether requests mark how far their prompt may be cached, as a run may ask for; no file says it.
    """

    name: str
    description: str
    input_tokens: tuple[int, ...]
    output_tokens: tuple[int, ...]
    requests: int
    warmups: int
    prefix: str
    shared_tokens: int
    endpoint: str | None
    mark_prefix: bool = False

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles each block sends, in order of need: a later role may depend on an earlier one."""
        return PREFIXES[self.prefix]

    @property
    def cells(self) -> tuple[Cell, ...]:
        """All cells, inputs outermost."""
        return tuple(
            Cell(self.name, n_in, n_out, role)
            for n_in in self.input_tokens
            for n_out in self.output_tokens
            for role in self.roles
        )

    def digest(self) -> str:
        """Eight hexadecimal digits over everything that decides what is sent.

        Neither the description nor the number of repetitions takes part: they do not change what a request
        is. The seed does not either: prompts of two runs differ on purpose, so that a warm prefix cache of
        an earlier run cannot help a later one.
        """
        fields = asdict(self)
        for name in ("description", "requests", "warmups"):
            del fields[name]
        if not self.mark_prefix:  # Said only where it is so: digests of plain requests stay what they were.
            del fields["mark_prefix"]
        canonical = json.dumps({"version": SPEC_VERSION, **fields}, sort_keys=True)
        return hashlib.sha256(canonical.encode()).hexdigest()[:8]

    def with_requests(self, requests: int | None) -> Workload:
        """The same workload with another number of repetitions; None leaves it as it is."""
        return self if requests is None else replace(self, requests=requests)


@dataclass(frozen=True, slots=True, order=True)
class Cell:
    """One combination of lengths and role within a workload."""

    workload: str
    input_tokens: int
    output_tokens: int
    role: str

    @property
    def label(self) -> str:
        """The cell's name in tables, files and test ids."""
        role = "" if self.role == "cold" else f",{self.role}"
        return f"{self.workload}[in={self.input_tokens},out={self.output_tokens}{role}]"


@dataclass(frozen=True, slots=True)
class Planned:
    """One request of the plan.

    Attributes:
        cell: what it measures; None for a warm-up.
        block: the repetition it belongs to (warm-ups: -1).
        input_tokens, output_tokens: its lengths.
        prompt_key: requests with equal keys have equal prompts.
        prefix_key: requests with equal keys share their first ``shared_tokens`` tokens; None for no sharing.
        cold: whether no prefix cache may help it.
    """

    cell: Cell | None
    block: int
    input_tokens: int
    output_tokens: int
    prompt_key: str
    prefix_key: str | None
    cold: bool


def parse_workload(source_text: str, source: str) -> Workload:
    """The workload in a YAML text.

    Raises:
        SettingsError: one line naming the value, the place and the remedy.
    """
    given = load_mapping(source_text, source)
    given.refuse_unknown(_KEYS)
    given.require("input_tokens")
    given.require("output_tokens")
    tokens = "a whole number of at least 1, or a list of different ones"
    workload = Workload(
        name=given.take("name", text, Path(source).stem, wanted="a text"),
        description=given.take("description", text, "", wanted="a text"),
        input_tokens=given.take("input_tokens", list_of(whole_number(1)), (), wanted=tokens),
        output_tokens=given.take("output_tokens", list_of(whole_number(1)), (), wanted=tokens),
        requests=given.take("requests", whole_number(1), 8, wanted="a whole number of at least 1"),
        warmups=given.take("warmups", whole_number(0), 2, wanted="a whole number of at least 0"),
        prefix=given.take("prefix", one_of(*PREFIXES), "unique", wanted=f"one of {', '.join(PREFIXES)}"),
        shared_tokens=given.take("shared_tokens", whole_number(0), 0, wanted="a whole number of at least 0"),
        endpoint=given.take("endpoint", one_of(*ENDPOINTS), None, wanted=f"one of {', '.join(ENDPOINTS)}"),
    )
    _check_shared(workload, given.where("shared_tokens"))
    return workload


_KEYS = (
    "name",
    "description",
    "input_tokens",
    "output_tokens",
    "requests",
    "warmups",
    "prefix",
    "shared_tokens",
    "endpoint",
)


def _check_shared(workload: Workload, where: str) -> None:
    if (workload.prefix == "shared") != (workload.shared_tokens > 0):
        raise SettingsError(f"{where}: shared_tokens belongs to 'prefix: shared', and both are needed together")
    if workload.shared_tokens >= min(workload.input_tokens):
        raise SettingsError(
            f"{where}: shared_tokens is {workload.shared_tokens}; it must be below the shortest input_tokens, "
            f"{min(workload.input_tokens)}, to leave room for a suffix"
        )


def plan_warmups(workload: Workload) -> list[Planned]:
    """Warm-up requests: the longest and the shortest cell in turn, prompts of their own."""
    cells = workload.cells
    ends = (cells[-1], cells[0])
    return [
        Planned(
            None, -1, ends[i % 2].input_tokens, ends[i % 2].output_tokens,
            f"{workload.name}/warmup/{i}", None, cold=False,
        )
        for i in range(workload.warmups)
    ]  # fmt: skip


def plan_blocks(workload: Workload, rng: np.random.Generator, first_block: int = 0) -> list[Planned]:
    """All measured requests in the order in which they are sent.

    ``rng`` decides the order of cells within each block. ``first_block`` numbers the blocks on when more are
    measured later, so that their prompts are new.
    """
    plan: list[Planned] = []
    grid = [(n_in, n_out) for n_in in workload.input_tokens for n_out in workload.output_tokens]
    for block in range(first_block, first_block + workload.requests):
        for index in rng.permutation(len(grid)):
            n_in, n_out = grid[int(index)]
            plan.extend(_plan_roles(workload, block, n_in, n_out, rng))
    return plan


def _plan_roles(workload: Workload, block: int, n_in: int, n_out: int, rng: np.random.Generator) -> list[Planned]:
    """The requests of one grid point in one block: dependent roles in order, the control before or after."""
    point = f"{workload.name}/{n_in}/{n_out}/{block}"
    planned = {}
    for role in workload.roles:
        own_prompt = role if role in ("control", "next") else "main"
        planned[role] = Planned(
            cell=Cell(workload.name, n_in, n_out, role),
            block=block,
            input_tokens=n_in,
            output_tokens=n_out,
            prompt_key=f"{point}/{own_prompt}",
            prefix_key=f"{point}/shared" if role in ("first", "next") else None,
            cold=role in ("cold", "control", "first"),
        )
    chain = [planned[role] for role in workload.roles if role != "control"]
    if "control" in planned:
        # Before or after the pair by lot, so that neither side of the comparison always comes first.
        chain.insert(int(rng.integers(2)) * len(chain), planned["control"])
    return chain


def load_workload(path: Path) -> Workload:
    """The workload in a file.

    Raises:
        SettingsError: the file cannot be read or used.
    """
    try:
        content = path.read_text(encoding="utf-8")
    except OSError as error:
        raise SettingsError(f"{path}: cannot read the workload: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{path}: not a text file in UTF-8") from None
    workload = parse_workload(content, str(path))
    if workload.name != path.stem:
        raise SettingsError(f"{path}: the workload calls itself {workload.name[:LONGEST]!r}; name and file must agree")
    return workload
