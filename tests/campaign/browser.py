"""A headless Chromium for the tests of pages, driven over a pipe by its DevTools protocol.

Found as ``REPRISE_CHROMIUM``, else by the usual names; tests that need it are skipped where there
is none (Debian: ``apt-get install chromium``; ``make browser``).
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome", "chromium-headless-shell")


def found() -> str | None:
    """The browser's path."""
    given = os.environ.get("REPRISE_CHROMIUM")
    return given or next(filter(None, map(shutil.which, _NAMES)), None)


needs_chromium = pytest.mark.skipif(found() is None, reason="no Chromium (make browser)")


class Browser:
    """One page. Everything that it asked the network for, and all that its console said, is
    kept in ``requests`` and ``messages``."""

    def __init__(self, to: int, back: int, limit: float = 60.0) -> None:
        self._to, self._back, self._limit = to, back, limit
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.requests: list[str] = []
        self.messages: list[str] = []
        self._loaded = False

    def call(self, method: str, **params: object) -> dict[str, Any]:
        self._number += 1
        message: dict[str, object] = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + self._limit
        while True:
            answer = self._next(deadline)
            if answer.get("id") == self._number:
                assert "error" not in answer, answer["error"]
                result: dict[str, Any] = answer["result"]
                return result

    def attach(self) -> None:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def open(
        self, file: Path, width: int = 1280, height: int = 900, *, dark: bool = False,
        script: bool = True, media: str = "",
    ) -> None:  # fmt: skip
        """Load a file and wait until it is there."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=width < 600)  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media=media, features=[scheme])
        self.call("Emulation.setScriptExecutionDisabled", value=not script)
        self._loaded = False
        self.call("Page.navigate", url=file.resolve().as_uri())
        deadline = time.monotonic() + self._limit
        while not self._loaded:
            self._next(deadline)

    def value(self, expression: str) -> Any:
        """What a JavaScript expression comes to (promises are waited for)."""
        done = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def picture(self, file: Path, *, whole: bool = True) -> None:
        data = self.call("Page.captureScreenshot", captureBeyondViewport=whole)["data"]
        file.write_bytes(base64.b64decode(data))

    def _next(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._back], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, "the browser does not answer"
            part = os.read(self._back, 1 << 20)
            assert part, "the browser has ended"
            self._buffer += part
        line, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        params = message.get("params", {})
        match message.get("method"):
            case "Page.loadEventFired":
                self._loaded = True
            case "Network.requestWillBeSent":
                self.requests.append(params["request"]["url"])
            case "Runtime.consoleAPICalled":
                self.messages.append(str(params["args"]))
            case "Runtime.exceptionThrown":
                self.messages.append(str(params["exceptionDetails"]))
            case "Log.entryAdded":
                self.messages.append(params["entry"]["text"])
        return message


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser with one empty page; it ends with the block."""
    program = found()
    assert program is not None
    to_read, to = os.pipe()
    back, back_write = os.pipe()
    with tempfile.TemporaryDirectory(prefix="reprise-chromium-", ignore_cleanup_errors=True) as own:
        command = [
            program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            "--hide-scrollbars", "--no-first-run", "--remote-debugging-pipe",
            "--disable-background-networking", f"--user-data-dir={own}", "about:blank",
        ]  # fmt: skip

        def place() -> None:
            """The protocol's descriptors are 3 and 4, whatever ours are."""
            read, write = os.dup(to_read), os.dup(back_write)
            os.dup2(read, 3)
            os.dup2(write, 4)

        process = subprocess.Popen(
            command, preexec_fn=place, close_fds=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(to_read)
        os.close(back_write)
        try:
            browser = Browser(to, back)
            browser.attach()
            yield browser
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            os.close(to)
            os.close(back)
