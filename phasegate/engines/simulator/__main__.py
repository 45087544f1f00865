"""Starts the simulator: ``python -m phasegate.engines.simulator --config JSON [--port 0]``.

Prints one line of JSON with its address when it is ready, and serves until SIGTERM or until the process that
started it is gone. The API key, if there is to be one, comes in the environment variable
`PHASEGATE_SIMULATOR_API_KEY`.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import resource
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from phasegate.core.faults import guarded
from phasegate.engines.orphan import end_with_parent
from phasegate.engines.simulator.clock import punctual_loop
from phasegate.engines.simulator.config import KEY_VARIABLE, SimulatorConfig, SimulatorConfigError
from phasegate.engines.simulator.connection import Connection
from phasegate.engines.simulator.service import ENGINE_NAME, Service
from phasegate.gate.exit_status import NOT_MEASURED

BACKLOG = 4_096


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve; returns the exit status."""
    return guarded("the simulator", lambda: _main(arguments))


def _main(arguments: Sequence[str] | None) -> int:
    parser = argparse.ArgumentParser(prog="python -m phasegate.engines.simulator", description=__doc__)
    parser.add_argument("--config", default="{}", help="settings as a JSON object, or the path of a file with one")
    parser.add_argument("--port", type=int, default=0, choices=range(65536), metavar="PORT", help="0: a free one")
    parser.add_argument("--parent", type=int, help="end when this process is no longer the parent")
    options = parser.parse_args(arguments)
    try:
        config = SimulatorConfig.from_json(_config_text(options.config))
    except SimulatorConfigError as error:
        print(error, file=sys.stderr)
        return 2
    if options.parent is not None:
        end_with_parent(options.parent)
    loop = punctual_loop()
    try:
        loop.run_until_complete(serve(config, options.port))
    except OSError as error:
        print(f"the simulator cannot listen on 127.0.0.1:{options.port}: {error.strerror}", file=sys.stderr)
        return NOT_MEASURED
    finally:
        loop.close()
    return 0


async def serve(config: SimulatorConfig, port: int) -> None:
    """Serve on loopback until SIGTERM or SIGINT, after printing the address as a line of JSON."""
    loop = asyncio.get_running_loop()
    service = Service(config, loop, os.environ.get(KEY_VARIABLE) or None)
    server = await loop.create_server(lambda: Connection(service, loop), "127.0.0.1", port, backlog=BACKLOG)
    _keep_quiet()
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    host, bound = server.sockets[0].getsockname()[:2]
    ready = {"engine": ENGINE_NAME, "address": f"http://{host}:{bound}", "base_url": f"http://{host}:{bound}/v1"}
    print(json.dumps(ready), flush=True)
    await stopped.wait()
    server.close()


def _keep_quiet() -> None:
    """Keep what would disturb the timing out of the way: garbage collection, and the limit on open files."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _config_text(given: str) -> str:
    if given.lstrip().startswith("{"):
        return given
    try:
        return Path(given).read_text(encoding="utf-8")
    except OSError as error:
        raise SimulatorConfigError(f"--config is {given!r}: no JSON object, and no file: {error}") from None


if __name__ == "__main__":
    sys.exit(main())
