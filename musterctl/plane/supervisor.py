"""The supervisor of a local control plane, which restarts dead components, as a kubelet does in other clusters.

Restarts are needed, for example, because leading processes exit if the API server does not respond until their Leases
expire. With `muster up --foreground`, the command itself is the supervisor. Otherwise, this module runs as a process,
which `muster down` stops first.
"""

import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from muster.resources.delays import doubled_s
from musterctl.plane.machine import LocalError
from musterctl.plane.process import PlaneProcess

_WATCH_S: Final = 1.0
_RENEW_S: Final = 1800.0
PAUSE_S: Final = 10.0
"""Minimum interval between two starts of a component, in seconds. The interval doubles each time the component dies
before it has become stable."""
LONGEST_PAUSE_S: Final = 300.0
_STEADY: Final = 3
"""A component counts as stable once it has run for this multiple of its current restart interval."""
_AGAIN: Final = "starting {} again"


@dataclass(slots=True)
class _Starts:
    """The record of the supervisor's restarts of one component; times are monotonic, in seconds."""

    deaths: int = 0
    at_s: float = 0.0
    pause_s: float = 0.0


def supervise(
    parts: Mapping[str, PlaneProcess],
    report: Callable[[str], None],
    renew: Callable[[], None],
    alone: Callable[[], AbstractContextManager[None]],
    goes_on: Callable[[], bool] = lambda: True,
) -> None:
    """As long as `goes_on()` is true, report and restart dead components, at growing intervals.

    Tokens are renewed every half hour. While the supervisor holds the lock `alone`, no command starts or stops
    components.
    """
    renewed_s = time.monotonic()
    starts = {name: _Starts() for name in parts}
    while goes_on():
        time.sleep(_WATCH_S)
        now_s = time.monotonic()
        if now_s - renewed_s > _RENEW_S:
            renewed_s = now_s
            renew()
        for name, part in parts.items():
            known = starts[name]
            if part.alive or not part.started or now_s - known.at_s <= known.pause_s:
                continue
            with alone():
                if part.alive or not part.started:
                    continue  # a command has started or stopped it in the meantime
                steady = now_s - known.at_s > _STEADY * known.pause_s
                known.deaths = 1 if steady else known.deaths + 1
                known.at_s, known.pause_s = now_s, doubled_s(PAUSE_S, known.deaths - 1, LONGEST_PAUSE_S)
                report(f"{part.death()}\n{_AGAIN.format(name)}")
                _start(part, report)


def _start(part: PlaneProcess, report: Callable[[str], None]) -> None:
    try:
        part.start()
    except (LocalError, OSError) as error:
        report(f"{part.name} cannot be started: {error}")


def restarts(log_file: Path, parts: Mapping[str, PlaneProcess]) -> Counter[str]:
    """Return how often the supervisor has restarted each component, according to its log."""
    if not log_file.exists():
        return Counter()
    words = {_AGAIN.format(name): name for name in parts}
    lines = log_file.read_text(encoding="utf-8", errors="replace").splitlines()
    return Counter(words[line] for line in lines if line in words)


def _main(folder: Path) -> None:
    """Supervise the control plane in this folder as long as the folder exists."""
    from musterctl.plane.plane import Plane  # noqa: PLC0415 - a plane knows its supervisor
    from musterctl.plane.state import load  # noqa: PLC0415 - beside it

    plane = Plane(folder)

    def report(text: str) -> None:
        print(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text}", flush=True)

    supervise(plane.parts, report, lambda: plane.renew_tokens(report), plane.alone, lambda: load(folder) is not None)


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
