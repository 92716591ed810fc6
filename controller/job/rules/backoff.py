"""The delay before a Job makes pods again that kubelet has refused, or that ended at once every time.

A pod that is refused (`OutOfcpu`, `SysctlForbidden`, `NodeAffinity`, …) fails before any of its containers ran, and the
next one mostly does so too, within a second. Its policy restarts it, and uses up a retry, at once as ever; only the new
pods come later, twice as late each time. A note in the Job's status outlives the controller.

The same holds for a Job with a large maxRetry whose pods run and fail at once: after some restarts that followed each
other quickly, each of which makes a PodGroup and its pods anew, the next ones come later. Pure: time is an argument.
"""

from typing import NamedTuple

import msgspec

from controller.job.rules import notes
from controller.job.rules.events import Request
from muster.api.kubernetes.meta import format_time
from muster.api.volcano.batch import JobStatus

QUICK_S = 60.0
"""A Job that ran for less before it was restarted got nowhere."""
AT_ONCE = 3
"""So many restarts are never delayed, however soon they come: Volcano's default for maxRetry."""
FIRST_QUICK_S, MAX_QUICK_S = 5.0, 40.0
"""Delays of new pods after quick restarts: short, as a single pod of a large Job may be the one that fails.

The longest is shorter than `QUICK_S`, as a delay is part of the time from one restart to the next. Each restart of a
gang of three costs the API server and its clients 0.4 CPU seconds: four Jobs of this kind take a whole CPU.
"""
FIRST_S = 10.0
"""Delay of new pods after the first refusal; as long as kubelet waits after the first crash of a container."""
MAX_S = 300.0
"""Kubelet's limit for crashes, too."""


class BackOff(NamedTuple):
    """Delayed restarts in a row, the time of the next pods, and the last pod that was refused, if one was.

    `until_s` is in seconds since the epoch.
    """

    restarts: int
    until_s: float
    pod: str
    reason: str

    @property
    def refusal(self) -> str:
        """The last refusal as a sentence."""
        if not self.reason:
            return f"it was restarted more than {AT_ONCE} times, the last ones within {QUICK_S:.0f} s each"
        return f"kubelet refused pod {self.pod} ({self.reason})"

    @property
    def words(self) -> tuple[str, str]:
        """Reason and message of a Job that waits for its end."""
        return "BackOff", f"{self.refusal}; pods are made again at {format_time(self.until_s)}"


def back_off(status: JobStatus) -> BackOff | None:
    """The delay that the status notes; None if there is none, or the note cannot be read (it was edited)."""
    try:
        return msgspec.json.decode(notes.note(status, notes.BACK_OFF), type=BackOff)
    except msgspec.DecodeError:
        return None


def left_s(status: JobStatus, now_s: float) -> float:
    """Seconds until pods may be made; 0 if they may now."""
    found = back_off(status)
    return max(0.0, found.until_s - now_s) if found else 0.0


def restarted(status: JobStatus, request: Request, now_s: float, ran_s: float) -> JobStatus:
    """The status after a restart by `request`, with a note if pods were refused or, time and again, ended at once.

    `ran_s` are the seconds that the Job was in its phase.
    """
    quick = not request.command and status.retry_count > AT_ONCE and ran_s < QUICK_S
    delayed = bool(request.refused) or quick
    if not delayed and left_s(status, now_s) > 0:
        return status
    if not delayed:
        return notes.noted(status, notes.BACK_OFF, "")
    before = back_off(status)
    restarts = before.restarts + 1 if before else 1
    first_s, max_s = (FIRST_S, MAX_S) if request.refused else (FIRST_QUICK_S, MAX_QUICK_S)
    delay_s = min(first_s * 2.0 ** min(restarts - 1, 10), max_s)
    found = BackOff(restarts, round(now_s + delay_s, 3), request.pod, request.refused)
    return notes.noted(status, notes.BACK_OFF, msgspec.json.encode(found).decode())
