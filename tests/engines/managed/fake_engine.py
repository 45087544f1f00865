"""A program that behaves like an engine's server: ``fake_engine.py PORT MODE [arguments nobody reads]``

It starts a worker of its own, as vLLM does, and prints that worker's number. Modes: ``serves``, ``dies``, ``stubborn``
(takes no notice of SIGTERM once the number is printed), ``late`` (its model is ready a moment after its door) and
``never``.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

WAITS = {"late": 0.5, "never": 600.0}
"""Mode -> seconds between the open door and the model."""


class Door(BaseHTTPRequestHandler):
    """The two doors that are asked before measuring."""

    ready_at = 0.0

    def do_GET(self) -> None:
        """The list of models."""
        self._answer(200, {"data": [{"id": "generated", "owned_by": "fake"}]})

    def do_POST(self) -> None:
        """One short answer, once the model is there; the surroundings are told for the tests."""
        self.rfile.read(int(self.headers["Content-Length"]))
        if time.monotonic() < self.ready_at:
            return self._answer(503, {})
        keys = {name: os.environ.get(name) for name in ("OPENAI_API_KEY", "PYTHONPATH", "OMP_NUM_THREADS")}
        return self._answer(200, {"choices": [{"text": " hi"}], "keys": keys, "arguments": sys.argv[3:]})

    def _answer(self, status: int, body: object) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Nothing."""


def main() -> None:
    """Serve until told to stop."""
    port, mode = int(sys.argv[1]), sys.argv[2]
    worker = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    if mode == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print(f"worker {worker.pid}", flush=True)
    if mode == "dies":
        print("loading\nRuntimeError: the weights are not there", file=sys.stderr, flush=True)
        sys.exit(3)
    Door.ready_at = time.monotonic() + WAITS.get(mode, 0.0)
    HTTPServer(("127.0.0.1", port), Door).serve_forever()


if __name__ == "__main__":
    main()
