"""What differs between managed engines: how one is found, how it is called, and what it wants to be told."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from phasegate.engines.managed.numbers import Numbers


@dataclass(frozen=True, slots=True)
class Launch:
    """One start of an engine.

    Attributes:
        program: the interpreter of the environment where the engine is installed, or its own binary.
        model: path or name of the weights.
        alias: the name clients ask for.
        port: a free port of the loopback address.
        cores: processor cores that the engine computes on; never empty.
        on_gpu: whether it has a GPU to compute on.
        generated: whether the weights are the suite's own.
        folder: an empty folder that lasts as long as the engine.
    """

    program: Path
    model: str
    alias: str
    port: int
    cores: tuple[int, ...]
    on_gpu: bool
    generated: bool
    folder: Path


@dataclass(frozen=True, slots=True)
class Kind:
    """An engine that can be started.

    Attributes:
        name: as in `ServerIdentity.engine`.
        distributions: names under which its package may be installed; the first found gives the version.
        executable: the program on PATH whose environment is used where none is named.
        install: how it is installed, for the message where it is missing.
        call: the command as far as program, model and address; a launch -> words.
        flags: the serving settings that the suite gives by itself, before the user's; a launch -> words.
        environment: variables to set; None removes one.
        numbers: arguments and stored format of the weights -> the formats it computes with, or None where unknown.
        refused: flags that the suite sets itself, -> why the user need not.
        form: ``"hf"`` for a folder of weights, ``"gguf"`` for a file.
        names_model_by_path: whether clients must ask for the model by the path it was loaded from.
        is_binary: whether ``program`` is the engine itself and no interpreter.
        thread_flags: flags that say how many threads it computes with, each with all its names.
    """

    name: str
    distributions: tuple[str, ...]
    executable: str
    install: str
    call: Callable[[Launch], list[str]]
    flags: Callable[[Launch], list[str]]
    environment: Callable[[Launch], Mapping[str, str | None]]
    numbers: Callable[[Sequence[str], str | None], Numbers | None]
    refused: Mapping[str, str] = field(default_factory=dict)
    form: str = "hf"
    names_model_by_path: bool = False
    is_binary: bool = False
    thread_flags: tuple[tuple[str, ...], ...] = ()


ADDRESS = "the suite chooses a free port on the loopback address"
NO_KEY = "a started engine listens on the loopback address only and needs no key"
MODEL = "give it with --perf-engine-model"
ALIAS = "give it with --perf-engine-model; the suite names the model itself"
