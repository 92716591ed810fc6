"""Waits until a part of a plane answers, and notices at once when it dies instead."""

import time
from http import HTTPStatus
from pathlib import Path
from typing import Final

import urllib3

from musterctl.plane.errors import PartError
from musterctl.plane.process import Part

_POLL_S: Final = 0.05


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
    with urllib3.PoolManager(retries=False, timeout=2.0, ca_certs=str(ca_file)) as pool:
        try:
            response = pool.request("GET", url)
        except urllib3.exceptions.HTTPError as error:
            return str(error)
    if response.status == HTTPStatus.OK:
        return ""
    return f"{url} answers {response.status} {response.data[:200].decode(errors='replace')}"
