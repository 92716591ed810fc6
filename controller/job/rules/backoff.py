"""How long a Job waits before it makes pods again that kubelet has refused, or that end at once every time.

Pure: time is an argument.

A pod that is refused (`OutOfcpu`, `SysctlForbidden`, `NodeAffinity`, …) fails before any of its containers ran, and the
next one mostly does so too, within a second. Its policy restarts it, and uses up a retry, at once as ever; only the new
pods come later, twice as late each time. The note of it in the Job's status outlives the controller.

The same holds for a Job with a large maxRetry whose pods run and fail at once: after some restarts that followed each
other quickly, each of which makes a PodGroup and its pods anew, the next ones come later.
"""

from typing import NamedTuple

import msgspec
from msgspec import structs

from controller.job.rules.request import Request
from muster.api.kubernetes.meta import format_time
from muster.api.volcano.batch import JobStatus

REFUSED_NOTE = "muster.dev/refused"
QUICK_S = 60.0
"""A Job that ran for less before it was restarted got nowhere."""
AT_ONCE = 3
"""So many restarts are never delayed, however soon they come: Volcano's default for maxRetry."""
FIRST_QUICK_S, MAX_QUICK_S = 5.0, 40.0
"""How long quick restarts delay new pods: not long, as a single pod of a large Job may be what fails.

The longest is shorter than `QUICK_S`, as a wait is part of the time from one restart to the next.

Each restart of a gang of three costs the API server and its clients 0.4 CPU seconds: it is four Jobs of this kind, not
a flood of requests, that take a whole CPU from everybody else.
"""
FIRST_S = 10.0
"""How long the first refusal delays new pods; as long as kubelet waits after the first crash of a container."""
MAX_S = 300.0
"""Kubelet's limit for crashes, too."""


class BackOff(NamedTuple):
    """Restarts in a row that were delayed, when pods are made again (seconds since the epoch), and what happened last.

    Without a reason no pod was refused: the pods ended at once.
    """

    restarts: int
    until_s: float
    pod: str
    reason: str

    @property
    def refusal(self) -> str:
        """What happened last."""
        if not self.reason:
            return f"it was restarted more than {AT_ONCE} times, the last ones within {QUICK_S:.0f} s each"
        return f"kubelet refused pod {self.pod} ({self.reason})"

    @property
    def words(self) -> tuple[str, str]:
        """Reason and message of a Job that waits for its end."""
        return "BackOff", f"{self.refusal}; pods are made again at {format_time(self.until_s)}"


def back_off(status: JobStatus) -> BackOff | None:
    """What the status says of refused pods; a note that cannot be read (somebody edited it) is none."""
    try:
        return msgspec.json.decode(status.controlled_resources.get(REFUSED_NOTE, ""), type=BackOff)
    except msgspec.DecodeError:
        return None


def left_s(status: JobStatus, now_s: float) -> float:
    """Seconds until pods may be made; 0 if they may now."""
    found = back_off(status)
    return max(0.0, found.until_s - now_s) if found else 0.0


def restarted(status: JobStatus, request: Request, now_s: float, ran_s: float) -> JobStatus:
    """The status after a restart that `request` led to, `ran_s` seconds after the Job came to the phase it was in.

    A restart after a refusal delays pods, and so does a quick one after many; any other one ends the row.
    """
    quick = not request.command and status.retry_count > AT_ONCE and ran_s < QUICK_S
    delayed = bool(request.refused) or quick
    if not delayed and left_s(status, now_s) > 0:
        return status
    before = back_off(status)
    notes = {name: note for name, note in status.controlled_resources.items() if name != REFUSED_NOTE}
    if delayed:
        restarts = before.restarts + 1 if before else 1
        first_s, max_s = (FIRST_S, MAX_S) if request.refused else (FIRST_QUICK_S, MAX_QUICK_S)
        delay_s = min(first_s * 2.0 ** min(restarts - 1, 10), max_s)
        found = BackOff(restarts, round(now_s + delay_s, 3), request.pod, request.refused)
        notes[REFUSED_NOTE] = msgspec.json.encode(found).decode()
    return structs.replace(status, controlled_resources=notes)
