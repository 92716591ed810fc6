"""Actions that wait for a timeout. Pure: `actions` keeps the list and the clock.

A timer says nothing but that an event happened at a certain time; when it is due, everything is asked again: the Job,
its version, the policy, and whether what happened is still so. Where an object's timestamp says when it happened, the
timer is made again from that object after a restart of the controller; the others are noted in the Job's status.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

import msgspec

from controller.job.rules import request as event
from controller.job.rules.machine import STOPPED_PHASES
from controller.job.rules.request import SYNC, Request
from muster.api.kubernetes.core import Pod
from muster.api.kubernetes.meta import parse_time
from muster.api.volcano.batch import Job
from muster.api.volcano.compat import TTL_SPARES_ABORTED, compat

MAX_NOTED = 100
"""Timers noted per Job, the first that are due: what a hundred pods' evictions lead to covers those of more."""
_ACTING = frozenset({"Pending", "Running", "Restarting"})
_DEFAULTS = asdict(SYNC)


@dataclass(frozen=True, slots=True)
class Timer:
    """At `due_s` (seconds since the epoch) the action of `request` is to be carried out."""

    due_s: float
    request: Request

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What happened to whom: a second timer for the same is none."""
        return self.request.event, self.request.task, self.request.pod, self.request.pod_uid

    def to_ask(self, now_s: float) -> bool:
        """Whether it is time to ask again: when it is due, or at any time if what happened may be over by then.

        A pod that was pending is the same pod later; one that came back after a failure may have failed again.
        """
        return self.due_s <= now_s or self.request.since_s is None


def to_note(timers: Iterable[Timer]) -> str:
    """The timers that no object's timestamp brings back, as text; "" if there are none."""
    lasting = sorted((timer for timer in timers if timer.request.since_s is None), key=lambda timer: timer.due_s)
    return msgspec.json.encode([_words(timer) for timer in lasting[:MAX_NOTED]]).decode() if lasting else ""


def _words(timer: Timer) -> tuple[float, dict[str, object]]:
    given = {name: value for name, value in asdict(timer.request).items() if value != _DEFAULTS[name]}
    return round(timer.due_s, 3), given


def from_note(note: str) -> list[Timer]:
    """The inverse of `to_note`; what cannot be read (somebody edited it) is no timer."""
    if not note:
        return []
    try:
        return [Timer(due_s, request) for due_s, request in msgspec.json.decode(note, type=list[tuple[float, Request]])]
    except msgspec.DecodeError:
        return []


def expires_s(job: Job) -> float | None:
    """When the Job is to be deleted, in seconds since the epoch; None if never, or not yet known."""
    state, ttl_s = job.status.state, job.spec.ttl_seconds_after_finished
    ended = parse_time(state.last_transition_time)
    if ttl_s is None or ended is None or state.phase not in STOPPED_PHASES or job.metadata.deletion_timestamp:
        return None
    if state.phase == "Aborted" and TTL_SPARES_ABORTED in compat(job.metadata):
        return None
    return ended + ttl_s


def still_true(request: Request, job: Job, pods: Mapping[str, Pod], group_phase: str) -> bool:
    """Whether what the event told is so even now; `pods` are the Job's, by name.

    A pod that is back after it failed or was evicted is no failure.
    """
    if job.status.state.phase not in _ACTING:
        return False
    if request.event == event.UNKNOWN:
        return group_phase == "Unknown"
    here = pods.get(request.pod)
    if request.event == event.POD_PENDING:
        same = here is not None and here.metadata.uid == request.pod_uid and not here.metadata.deletion_timestamp
        return same and here is not None and here.status.phase in {"", "Pending"}
    if request.event in {event.POD_FAILED, event.POD_EVICTED}:
        return not (here and here.metadata.uid != request.pod_uid and here.status.phase in {"Running", "Succeeded"})
    return True
