"""Keeps the parts of a plane alive while `muster up --foreground` stays."""

import time
from collections import defaultdict
from collections.abc import Callable
from typing import Final

from musterctl.plane.plane import Plane

_POLL_S: Final = 1.0
_MAX_DELAY_S: Final = 30.0
_STABLE_S: Final = 60.0


def supervise(plane: Plane, report: Callable[[str], None]) -> None:
    """Reports what dies and starts it again, later each time it dies soon; runs until it is interrupted."""
    delay_s: defaultdict[str, float] = defaultdict(float)
    started_at: defaultdict[str, float] = defaultdict(float)
    while True:
        time.sleep(_POLL_S)
        for name, part in plane.parts.items():
            if part.alive or time.monotonic() - started_at[name] < delay_s[name]:
                continue
            report(f"{part.death()}\nstarting {name} again")
            stable = time.monotonic() - started_at[name] > _STABLE_S
            delay_s[name] = _POLL_S if stable else min(2 * delay_s[name], _MAX_DELAY_S)
            started_at[name] = time.monotonic()
            part.start()
