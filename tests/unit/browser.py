"""A headless Chromium, led through a pipe (the DevTools protocol, without a web socket)."""

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)


class Browser:
    """One page. Use as a context manager; `folder` has to be empty."""

    def __init__(self, folder: Path) -> None:
        assert PROGRAM is not None
        hears, self._say = os.pipe()
        self._hear, says = os.pipe()
        # It reads from 3 and writes to 4. From high numbers, since 3 and 4 may be ours.
        high = [os.dup2(each, 100 + n) for n, each in enumerate((hears, says))]
        words = ["bash", "-c", 'exec "$@" 3<&100 4>&101 2>/dev/null', "bash", PROGRAM, *FLAGS]
        self._process = subprocess.Popen(
            [*words, f"--user-data-dir={folder}", "about:blank"], pass_fds=high
        )
        for each in (hears, says, *high):
            os.close(each)
        self._left, self._number, self.events = b"", 0, list[dict[str, Any]]()
        targets = self("Target.getTargets", {}, "")["targetInfos"]
        target = next(t["targetId"] for t in targets if t["type"] == "page")
        attached = self("Target.attachToTarget", {"targetId": target, "flatten": True}, "")
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self(f"{domain}.enable")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._process.terminate()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._say)
        os.close(self._hear)

    def __call__(
        self, method: str, given: Mapping[str, Any] | None = None, session: str | None = None
    ) -> dict[str, Any]:
        """The result of a command; what happens meanwhile goes to `events`."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": given or {}}
        if session is None:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._say, data) :]
        while True:
            answer = self._message()
            if answer.get("id") == self._number:
                assert "result" in answer, answer
                return dict(answer["result"])
            self.events.append(answer)

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self._left:
            got = os.read(self._hear, 1 << 16)
            assert got, "the browser has ended"
            self._left += got
        first, _, self._left = self._left.partition(b"\0")
        return dict(json.loads(first))

    def show(self, file: Path, width: int, dark: bool = False) -> None:
        """Open a file in a window of so many CSS pixels."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        self("Emulation.setDeviceMetricsOverride", size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self("Emulation.setEmulatedMedia", {"features": [scheme]})
        self.events.clear()
        self("Page.navigate", {"url": file.absolute().as_uri()})
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._message())

    def evaluate(self, script: str) -> Any:
        """What an expression of JavaScript gives, as JSON has it."""
        got = self("Runtime.evaluate", {"expression": script, "returnByValue": True})
        assert "exceptionDetails" not in got, got
        return got["result"].get("value")

    def picture(self, file: Path) -> None:
        """Write a PNG of the whole page."""
        got = self("Page.captureScreenshot", {"captureBeyondViewport": True})
        file.write_bytes(base64.b64decode(got["data"]))

    @property
    def complaints(self) -> list[str]:
        """What the console says."""
        return [
            str(event["params"])
            for event in self.events
            if event.get("method") in ("Log.entryAdded", "Runtime.exceptionThrown")
        ]
