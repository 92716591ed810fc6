"""Health checks of the components of a local control plane, and waiting until a component is ready."""

import ssl
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from muster.kube.client import Client
from muster.kube.config import ClientConfig
from muster.kube.errors import APIError
from musterctl.plane.machine import LocalError
from musterctl.plane.process import PlaneProcess

_POLL_S: Final = 0.05
_ANSWER_S: Final = 2.0


def wait_until(part: PlaneProcess, trouble: Callable[[], str], timeout_s: float) -> None:
    """Wait until a component's health check succeeds; raise LocalError if it dies or is not ready in time."""
    deadline = time.monotonic() + timeout_s
    while True:
        if not part.alive:
            raise part.death()
        text = trouble()
        if not text:
            return
        if time.monotonic() > deadline:
            raise LocalError(
                f"{part.name} is not ready after {timeout_s:.0f} s ({text}). The end of {part.log_file}:\n"
                f"{part.log_tail()}"
            )
        time.sleep(_POLL_S)


def trouble_at(url: str, ca_file: Path) -> str:
    """Return "" if the URL responds with status 200, otherwise a description of the problem."""
    parts = urlsplit(url)
    tls = ssl.create_default_context(cafile=ca_file) if parts.scheme == "https" else None
    with closing(Client(ClientConfig(f"{parts.scheme}://{parts.netloc}", tls), timeout_s=_ANSWER_S)) as client:
        try:
            client.request("GET", parts.path)
        except APIError as error:
            return str(error)
    return ""
