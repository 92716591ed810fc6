"""The time that is left for the review at hand, of the timeout in its URL.

A later answer is of no use: the client has its error, and look-ups for it would take the time of the next review.
"""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from muster.kube.errors import Unreachable

DEFAULT_S = 10.0
MARGIN_S = 0.5
"""Kept back for the answer itself."""
_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0}
_TIMEOUT = re.compile(r"(?:^|&)timeout=([0-9]+)(ms|s|m)(?:&|$)", re.ASCII)
_end: ContextVar[float] = ContextVar("end of the review")


@contextmanager
def of(query: str) -> Iterator[None]:
    """Set the end of a review while it lasts, from the query of its URL (`timeout=10s`)."""
    match = _TIMEOUT.search(query)
    given = float(match[1]) * _UNITS_S[match[2]] if match else DEFAULT_S
    token = _end.set(time.monotonic() + min(given, DEFAULT_S))
    try:
        yield
    finally:
        _end.reset(token)


def within(longest_s: float) -> float:
    """Return the timeout of a look-up, at most `longest_s`; raises Unreachable when no time is left for one."""
    end = _end.get(None)
    left = longest_s if end is None else end - time.monotonic() - MARGIN_S
    if left <= 0:
        raise Unreachable("no time is left for a look-up", where="review")
    return min(left, longest_s)
