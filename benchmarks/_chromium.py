"""A headless Chromium on a leash: opens a page, measures it, photographs it, and tells what it complained about.

Spoken to over its debugging pipe (two file descriptors, messages of JSON that end with a zero byte), so nothing but
the browser itself is needed. The protocol is described at chromedevtools.github.io/devtools-protocol.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

TO_BROWSER, FROM_BROWSER = 3, 4
"""File descriptors that the browser reads and writes."""

WAIT = 30.0


def find_chromium() -> str | None:
    """The browser's program, or None."""
    return next((found for name in PROGRAMS if (found := shutil.which(name))), None)


class Chromium:
    """One browser with one page; a context manager.

    Attributes:
        complaints: console errors, exceptions and failed loads of the page that is open.
        requests: addresses that it asked for.
    """

    def __init__(self, program: str) -> None:
        self._program = program
        self._number = 0
        self._session: str | None = None
        self._rest = b""
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self._loaded = False

    def __enter__(self) -> Chromium:
        self._home = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        (read_end, self._out), (self._in, write_end) = os.pipe(), os.pipe()
        # Out of the way, so that putting one in its place closes none of the others.
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 20) for end in (read_end, write_end)]

        def place() -> None:
            os.dup2(ends[0], TO_BROWSER)
            os.dup2(ends[1], FROM_BROWSER)

        self._process = subprocess.Popen(
            [self._program, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
             "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions", f"--user-data-dir={self._home.name}",
             "--remote-debugging-pipe", "about:blank"],
            pass_fds=(TO_BROWSER, FROM_BROWSER), preexec_fn=place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        for end in (read_end, write_end, *ends):
            os.close(end)
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.wait(WAIT)
        for end in (self._out, self._in):
            os.close(end)
        self._home.cleanup()

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """One command and its answer; what else the browser says meanwhile is kept."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session is not None and not method.startswith("Target."):
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error'].get('message')}")
                return dict(answer.get("result", {}))
            self._note(answer)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            data = os.read(self._in, 1 << 20)
            if not data:
                raise RuntimeError("the browser closed its pipe")
            self._rest += data
        message, _, self._rest = self._rest.partition(b"\0")
        return dict(json.loads(message))

    def _note(self, event: dict[str, Any]) -> None:
        method, params = event.get("method"), event.get("params", {})
        if method == "Page.loadEventFired":
            self._loaded = True
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(str(params["exceptionDetails"].get("text")))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.complaints.append(str(params["entry"]["text"]))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.complaints.append(str([one.get("value") for one in params["args"]]))

    def open(self, page: Path, *, width: int, height: int, dark: bool = False, media: str = "") -> None:
        """Load a file in a window of that size; ``media`` may be ``print``."""
        self.complaints, self.requests, self._loaded = [], [], False
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                  mobile=width < 500)  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media=media, features=[scheme])
        self.call("Page.navigate", url=page.absolute().as_uri())
        while not self._loaded:
            self._note(self._next())

    def evaluate(self, expression: str) -> Any:
        """The value of an expression of JavaScript in the page."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(str(result["exceptionDetails"]))
        return result["result"].get("value")

    def press(self, key: str) -> None:
        """One key, such as ``Tab``."""
        codes = {"Tab": 9, "Enter": 13, " ": 32}
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=codes.get(key, 0))

    def screenshot(self, path: Path) -> None:
        """A picture of what the window shows."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))
