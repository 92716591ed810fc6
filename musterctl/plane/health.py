"""Whether the parts of a plane are well: waits until one is ready, says how it is, starts again what dies."""

import ssl
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from muster.kube.client import Client
from muster.kube.config import Config
from muster.kube.errors import APIError
from musterctl.plane.errors import PartError
from musterctl.plane.process import Part

_POLL_S: Final = 0.05
_ANSWER_S: Final = 2.0
_WATCH_S: Final = 1.0
_MAX_DELAY_S: Final = 30.0
_STABLE_S: Final = 60.0
_RENEW_S: Final = 1800.0


@dataclass(frozen=True, slots=True)
class PartStatus:
    """How a part is at this moment, as `muster status` shows it."""

    name: str
    pid: int | None
    started: bool
    url: str
    log_file: Path

    @property
    def word(self) -> str:
        """running, dead (it was started and is gone) or stopped."""
        return "running" if self.pid else "dead" if self.started else "stopped"


def wait_ready(part: Part, url: str, *, ca_file: Path, timeout_s: float) -> None:
    """Returns when the part answers 200 on the URL (or lives, without one); raises PartError if it dies or is late."""
    deadline = time.monotonic() + timeout_s
    while True:
        if not part.alive:
            raise part.death()
        answer = answers(url, ca_file=ca_file) if url else ""
        if not answer:
            return
        if time.monotonic() > deadline:
            raise PartError(
                f"{part.name} is not ready after {timeout_s:.0f} s ({answer}). The end of {part.log_file}:\n"
                f"{part.log_tail()}"
            )
        time.sleep(_POLL_S)


def answers(url: str, *, ca_file: Path) -> str:
    """Empty if the URL answers 200, else what is wrong."""
    parts = urlsplit(url)
    tls = ssl.create_default_context(cafile=ca_file) if parts.scheme == "https" else None
    with closing(Client(Config(f"{parts.scheme}://{parts.netloc}", tls), timeout_s=_ANSWER_S)) as client:
        try:
            client.request("GET", parts.path)
        except APIError as error:
            return str(error)
    return ""


def supervise(parts: Mapping[str, Part], report: Callable[[str], None], renew: Callable[[], None]) -> None:
    """Reports what dies and starts it again, later each time it dies soon; runs until it is interrupted.

    `renew` is called every half hour, for tokens whose life somebody else's API server has cut short.
    """
    renewed_at = time.monotonic()
    delay_s: defaultdict[str, float] = defaultdict(float)
    started_at: defaultdict[str, float] = defaultdict(float)
    while True:
        time.sleep(_WATCH_S)
        if time.monotonic() - renewed_at > _RENEW_S:
            renewed_at = time.monotonic()
            renew()
        for name, part in parts.items():
            if part.alive or time.monotonic() - started_at[name] < delay_s[name]:
                continue
            report(f"{part.death()}\nstarting {name} again")
            stable = time.monotonic() - started_at[name] > _STABLE_S
            delay_s[name] = _WATCH_S if stable else min(2 * delay_s[name], _MAX_DELAY_S)
            started_at[name] = time.monotonic()
            part.start()
