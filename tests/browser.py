# SPDX-License-Identifier: GPL-2.0-only
"""Debian's Chromium without a window, by its DevTools protocol. It reaches no network."""

import json
import subprocess
from base64 import b64decode
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.request import urlopen

from websocket import create_connection

from foliolab.process import dying_with_parent
from tests.processes import wait_until

CHROMIUM = "/usr/lib/chromium/chromium-headless-shell"
"""The program itself: what is in the PATH is a script, which would be killed alone."""

# As root it has no sandbox, and goes no further than to pages that we have made.
_OPTIONS = (
    "--no-sandbox",
    "--disable-gpu",
    "--hide-scrollbars",
    "--remote-debugging-port=0",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)


class Browser:
    """One tab. ``events`` are those since the last page was opened."""

    def __init__(self, directory: Path) -> None:
        self._profile = directory
        self.events: list[dict[str, Any]] = []
        self._sent = 0

    def __enter__(self) -> Self:
        argv = dying_with_parent([CHROMIUM, *_OPTIONS, f"--user-data-dir={self._profile}", "about:blank"])
        process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with ExitStack() as started:
            started.callback(process.wait)
            started.callback(process.kill)
            self._connect()
            started.callback(self._socket.close)
            for domain in ("Page", "Network", "Log", "Runtime"):
                self.ask(f"{domain}.enable")
            self._started = started.pop_all()
        return self

    def _connect(self) -> None:
        file = self._profile / "DevToolsActivePort"
        assert wait_until(lambda: file.exists() and file.read_text().count("\n") == 1)
        port = file.read_text().splitlines()[0]
        with urlopen(f"http://127.0.0.1:{port}/json/list") as answer:
            (tab,) = json.load(answer)
        self._socket = create_connection(tab["webSocketDebuggerUrl"], suppress_origin=True, timeout=60)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._started.close()

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """What it answers to a command of the protocol."""
        self._sent += 1
        self._socket.send(json.dumps({"id": self._sent, "method": method, "params": parameters}))
        while (message := self._received()).get("id") != self._sent:
            self.events.append(message)
        assert "error" not in message, message
        return dict(message["result"])

    def open(self, page: Path, width: int, scheme: str) -> None:
        """Load a page in a window of so many pixels, light or dark, and wait until all of it is there."""
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self._resize(width, 900)
        self.events.clear()
        self.ask("Page.navigate", url=page.as_uri())
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self.events.append(self._received())

    def evaluate(self, script: str) -> Any:
        """The value of an expression in the page."""
        answer = self.ask("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def unroll(self, width: int) -> None:
        """Make the window as high as the page, so that all of it is in view."""
        self._resize(width, int(self.evaluate("Math.ceil(document.documentElement.scrollHeight)")))

    def picture(self) -> bytes:
        """What is in view, as PNG."""
        return b64decode(self.ask("Page.captureScreenshot", format="png")["data"])

    def _resize(self, width: int, height: int) -> None:
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.ask("Emulation.setDeviceMetricsOverride", **metrics)

    def _received(self) -> dict[str, Any]:
        return dict(json.loads(self._socket.recv()))
