"""A real browser: Debian's Chromium without a window, told what to do through its chromedriver (W3C WebDriver)."""

import base64
import contextlib
import json
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROGRAMS = ("chromium", "chromedriver")
"""What must be installed."""
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the name that the standard gives to a reference to an element
_STARTED = re.compile(r"started successfully on port (\d+)")
_POLL_S = 0.1
_TIMEOUT_S = 180.0  # for a busy machine: nothing waits longer than it must


class BrowserError(Exception):
    """The browser could not do what it was told, or did not show in time what was waited for."""


def missing() -> str:
    """The programs that are not installed, for the reason of a skip; empty if all are."""
    return ", ".join(name for name in PROGRAMS if not shutil.which(name))


@dataclass(frozen=True, slots=True)
class Browser:
    """One window."""

    session: str
    """The address of its WebDriver session."""

    def open(self, url: str) -> None:
        """Goes to a page."""
        self._post("url", url=url)

    def text(self) -> str:
        """All that the page shows."""
        return str(self.run("return document.body.innerText"))

    def run(self, script: str) -> Any:
        """Runs JavaScript in the page."""
        return self._post("execute/sync", script=script, args=[])

    def see(self, *wanted: str, timeout_s: float = _TIMEOUT_S) -> str:
        """What the page shows as soon as that has every one of these texts."""
        deadline = time.monotonic() + timeout_s
        while True:
            shown = self.text()
            lacking = [each for each in wanted if each not in shown]
            if not lacking:
                return shown
            if time.monotonic() > deadline:
                raise BrowserError(f"{self.run('return location.href')} does not show {lacking}, but:\n{shown}")
            time.sleep(_POLL_S)

    def click(self, xpath: str) -> None:
        """Clicks the element that this names, as soon as there is one."""
        self._post(f"element/{self._find(xpath)}/click")

    def type(self, xpath: str, text: str) -> None:
        """Types into the element that this names, as soon as there is one."""
        self._post(f"element/{self._find(xpath)}/value", text=text)

    def picture(self, file: Path) -> None:
        """Writes what the window shows, as a PNG."""
        file.write_bytes(base64.b64decode(_send(f"{self.session}/screenshot")))

    def _find(self, xpath: str) -> str:
        deadline = time.monotonic() + _TIMEOUT_S
        while True:
            found = self._post("elements", using="xpath", value=xpath)
            if found:
                return str(found[0][_ELEMENT])
            if time.monotonic() > deadline:
                raise BrowserError(f"{self.run('return location.href')} has no {xpath}, but shows:\n{self.text()}")
            time.sleep(_POLL_S)

    def _post(self, command: str, **content: Any) -> Any:
        return _send(f"{self.session}/{command}", content)


@contextlib.contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """A window, with its profile and log in the folder; both programs end with it."""
    log = folder / "chromedriver.log"
    with log.open("wb") as output:
        driver = subprocess.Popen(["chromedriver", "--port=0"], stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    try:
        address = f"http://127.0.0.1:{_port(driver, log)}"
        arguments = ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
        arguments += ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]  # nothing but this machine
        arguments += [f"--user-data-dir={folder / 'profile'}", "--window-size=1500,1200", "--lang=en"]
        options = {"browserName": "chrome", "goog:chromeOptions": {"args": arguments}}
        made = _send(f"{address}/session", {"capabilities": {"alwaysMatch": options}})
        window = Browser(f"{address}/session/{made['sessionId']}")
        try:
            yield window
        finally:
            _send(window.session, method="DELETE")
    finally:
        driver.terminate()
        driver.wait()


def _port(driver: "subprocess.Popen[bytes]", log: Path) -> int:
    deadline = time.monotonic() + _TIMEOUT_S
    while True:
        said = log.read_text(encoding="utf-8", errors="replace")
        if found := _STARTED.search(said):
            return int(found[1])
        if driver.poll() is not None or time.monotonic() > deadline:
            raise BrowserError(f"chromedriver does not start:\n{said}")
        time.sleep(_POLL_S)


def _send(url: str, content: Any = None, *, method: str = "") -> Any:
    """The value that chromedriver answers with."""
    data = None if content is None else json.dumps(content).encode()
    method = method or ("GET" if data is None else "POST")
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:  # noqa: S310 - this machine
            return json.load(answer)["value"]
    except urllib.error.HTTPError as error:
        raise BrowserError(json.load(error)["value"]["message"]) from None
