"""The child process that is the embedded engine: llama.cpp's own HTTP server from its wheel.

``python -m phasegate.engines.llama_process SETTINGS PARENT`` where SETTINGS is a JSON object. Prints one JSON line
with its address when it is ready, or with the reason why it is not, and then serves until it is told to stop or its
parent is gone.
"""

from __future__ import annotations

import contextlib
import enum
import json
import os
import signal
import sys
from typing import Any

from phasegate.engines.orphan import end_with_parent


def main() -> int:
    """Serve until SIGTERM; exit status 1 when the server did not start."""
    settings, parent = json.loads(sys.argv[1]), int(sys.argv[2])
    # Ctrl-C in the terminal belongs to the parent, which stops this process when it is done with it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent(parent)
    _pin(settings["cores"])
    # llama.cpp writes its own log to the standard output; keep that for the one line the parent waits for.
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    try:
        server = _serve(settings)
    except Exception as error:
        print(json.dumps({"error": f"{type(error).__name__}: {error}"}), file=answer, flush=True)
        return 1
    print(json.dumps({"address": server.listening_address}), file=answer, flush=True)
    answer.close()
    # The server runs in threads of its own. SIGTERM ends the process at once: its state is worth nothing.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    while True:
        signal.pause()


def _pin(cores: list[int]) -> None:
    """Stay on these cores; an empty list, or a system that cannot pin, leaves the choice to the scheduler."""
    if cores and hasattr(os, "sched_setaffinity"):
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, cores)


def _serve(settings: dict[str, Any]) -> Any:
    """Start the server; its parameters carry the names of llama.cpp's own structure."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = settings["path"]
    params.model_alias = {settings["alias"]}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.ui = False
    params.endpoint_metrics = params.endpoint_props = params.endpoint_slots = True
    # Opens the door that erases a slot's cache; under a path that is no folder nothing can be saved or loaded.
    params.slot_save_path = f"{os.devnull}/"
    for name, value in settings["params"].items():
        _set(params, name, value)
    return xllamacpp.Server(params)


def _set(params: Any, name: str, value: Any) -> None:
    """Set ``a.b`` to a value; for an enumeration, or a list of such, a member's name stands for it."""
    *path, last = name.split(".")
    for part in path:
        params = getattr(params, part)
    old = getattr(params, last)
    if isinstance(value, list):
        value = [type(old[0])[name].value for name in value]
    setattr(params, last, type(old)[value] if isinstance(old, enum.Enum) else value)


if __name__ == "__main__":
    sys.exit(main())
