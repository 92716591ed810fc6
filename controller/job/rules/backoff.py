"""How long a Job waits before it makes pods again that kubelet has refused. Pure: time is an argument.

A pod that is refused (`OutOfcpu`, `SysctlForbidden`, `NodeAffinity`, …) fails before any of its containers ran, and the
next one mostly does so too, within a second. Its policy restarts it, and uses up a retry, at once as ever; only the new
pods come later, twice as late each time. The note of it in the Job's status outlives the controller.
"""

from typing import NamedTuple

import msgspec
from msgspec import structs

from controller.job.rules.request import Request
from muster.api.batch import JobStatus
from muster.api.meta import format_time

REFUSED_NOTE = "muster.dev/refused"
FIRST_S = 10.0
"""How long the first refusal delays new pods; as long as kubelet waits after the first crash of a container."""
MAX_S = 300.0
"""Kubelet's limit for crashes, too."""


class BackOff(NamedTuple):
    """Restarts in a row that followed a refusal, when pods are made again (seconds since the epoch), and of which."""

    restarts: int
    until_s: float
    pod: str
    reason: str

    @property
    def refusal(self) -> str:
        """What happened last."""
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


def restarted(status: JobStatus, request: Request, now_s: float) -> JobStatus:
    """The status after a restart that `request` led to: one after a refusal delays pods, any other one ends the row."""
    if not request.refused and left_s(status, now_s) > 0:
        return status
    before = back_off(status)
    notes = {name: note for name, note in status.controlled_resources.items() if name != REFUSED_NOTE}
    if request.refused:
        restarts = before.restarts + 1 if before else 1
        delay_s = min(FIRST_S * 2.0 ** min(restarts - 1, 10), MAX_S)
        found = BackOff(restarts, round(now_s + delay_s, 3), request.pod, request.refused)
        notes[REFUSED_NOTE] = msgspec.json.encode(found).decode()
    return structs.replace(status, controlled_resources=notes)
