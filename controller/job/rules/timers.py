"""Actions that wait for a timeout. Pure: `controller.job.actions` keeps the list and the clock.

A timer says only that an event happened at a certain time; when it is due, everything is checked again: the Job, its
version, the policy, and whether the event is still true. Where an object's timestamp has the time of the event, the
timer is made again from that object after a restart of the controller; the others are noted in the Job's status.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

import msgspec

from controller.job.rules import notes
from controller.job.rules.events import POD_EVICTED, POD_FAILED, POD_PENDING, SYNC, UNKNOWN, Request
from controller.job.rules.phases import STOPPED_PHASES
from muster.api.kubernetes.core import Pod
from muster.api.kubernetes.meta import parse_time
from muster.api.volcano.batch import Job, JobStatus
from muster.api.volcano.compat import TTL_SPARES_ABORTED, compat

MAX_NOTED = 100
"""Timers noted per Job, the first that are due: the restarts of a hundred evicted pods cover those of more."""
_ACTING = frozenset({"Pending", "Running", "Restarting"})
_DEFAULTS = asdict(SYNC)


@dataclass(frozen=True, slots=True)
class Timer:
    """At `due_s` (seconds since the epoch) the action of `request` is to be carried out."""

    due_s: float
    request: Request

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Event and pod; a second timer with the same key is dropped."""
        return self.request.event, self.request.task, self.request.pod, self.request.pod_uid

    def to_check(self, now_s: float) -> bool:
        """True if the timer is to be checked: when it is due, or at any time if the event may be over by then."""
        return self.due_s <= now_s or self.request.since_s is None


def noted(status: JobStatus, timers: Iterable[Timer]) -> JobStatus:
    """The status with a note of the timers that follow from no object's timestamp."""
    lasting = sorted((timer for timer in timers if timer.request.since_s is None), key=lambda timer: timer.due_s)
    text = msgspec.json.encode([_entry(timer) for timer in lasting[:MAX_NOTED]]).decode() if lasting else ""
    return notes.noted(status, notes.TIMERS, text)


def _entry(timer: Timer) -> tuple[float, dict[str, object]]:
    given = {name: value for name, value in asdict(timer.request).items() if value != _DEFAULTS[name]}
    return round(timer.due_s, 3), given


def timers_of(status: JobStatus) -> list[Timer]:
    """The timers that the status notes; none if the note cannot be read (it was edited)."""
    note = notes.note(status, notes.TIMERS)
    if not note:
        return []
    try:
        return [Timer(due_s, request) for due_s, request in msgspec.json.decode(note, type=list[tuple[float, Request]])]
    except msgspec.DecodeError:
        return []


def expires_s(job: Job) -> float | None:
    """The time at which the Job is to be deleted, in seconds since the epoch; None if never, or not yet known."""
    state, ttl_s = job.status.state, job.spec.ttl_seconds_after_finished
    ended = parse_time(state.last_transition_time)
    if ttl_s is None or ended is None or state.phase not in STOPPED_PHASES or job.metadata.deletion_timestamp:
        return None
    if state.phase == "Aborted" and TTL_SPARES_ABORTED in compat(job.metadata):
        return None
    return ended + ttl_s


def still_true(request: Request, job: Job, pods: Mapping[str, Pod], group_phase: str) -> bool:
    """True if the event still holds: a pod that is back after it failed or was evicted is no failure."""
    if job.status.state.phase not in _ACTING:
        return False
    if request.event == UNKNOWN:
        return group_phase == "Unknown"
    here = pods.get(request.pod)
    if request.event == POD_PENDING:
        same = here is not None and here.metadata.uid == request.pod_uid and not here.metadata.deletion_timestamp
        return same and here is not None and here.status.phase in {"", "Pending"}
    if request.event in {POD_FAILED, POD_EVICTED}:
        return not (here and here.metadata.uid != request.pod_uid and here.status.phase in {"Running", "Succeeded"})
    return True
