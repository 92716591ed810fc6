"""Delays of a Job: actions that wait for a timeout, and new pods after the kubelet has refused pods.

All functions are pure and get the time as an argument.

When a timer is due, everything is checked again: the Job, its version, the policy, and the event. After a restart of
the controller, timers are derived from timestamps of objects. The Job's status records the timers that cannot be
derived.

A pod that the kubelet refuses (`OutOfcpu`, `NodeAffinity`, …) fails before any container starts, and its replacement
usually fails, too. The restart by a policy, which uses up a retry, is not delayed. Only the creation of new pods is
delayed, with doubling delays. If the pods of a Job with a large maxRetry fail immediately, the creation of new pods is
delayed in the same way.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import NamedTuple

import msgspec

from controller.job.rules import notes
from controller.job.rules.events import POD_EVICTED, POD_FAILED, POD_PENDING, SYNC, UNKNOWN, JobEvent
from controller.job.rules.phases import STOPPED_PHASES
from muster.api.kubernetes.core import Pod
from muster.api.kubernetes.meta import format_time, parse_time
from muster.api.volcano.batch import TTL_SPARES_ABORTED, Job, JobStatus, compat
from muster.resources.delays import doubled_s

CLOCKS_S = 60.0
"""Tolerated clock skew in seconds: if an event is further in the future, a clock must have been set back."""
MAX_NOTED = 100
"""Maximum number of timers that a Job's status records, earliest first. A hundred timers are enough, because the
restart after an eviction usually includes further evicted pods."""
_ACTING = frozenset({"Pending", "Running", "Restarting"})
_DEFAULTS = asdict(SYNC)


@dataclass(frozen=True, slots=True)
class Timer:
    """A delayed action: the action for `request` must be carried out at `due_s` (seconds since the epoch)."""

    due_s: float
    request: JobEvent

    @property
    def key(self) -> tuple[str, str, str, str]:
        """The key of the timer, which consists of its event and pod; a Job has at most one timer with the same key."""
        return self.request.event, self.request.task, self.request.pod, self.request.pod_uid

    def to_check(self, now_s: float) -> bool:
        """Return True if this pass must check the timer.

        A timer must be checked if it is due, or if its event is in the future. A timer of an event without a timestamp
        must be checked in every pass, because the event may cease to apply earlier.
        """
        since_s = self.request.since_s
        return self.due_s <= now_s or since_s is None or since_s > now_s + CLOCKS_S


def noted(status: JobStatus, timers: Iterable[Timer]) -> JobStatus:
    """Return the status with a record of the timers that cannot be derived from timestamps."""
    lasting = sorted((timer for timer in timers if timer.request.since_s is None), key=lambda timer: timer.due_s)
    text = msgspec.json.encode([_entry(timer) for timer in lasting[:MAX_NOTED]]).decode() if lasting else ""
    return notes.noted(status, notes.TIMERS, text)


def _entry(timer: Timer) -> tuple[float, dict[str, object]]:
    given = {name: value for name, value in asdict(timer.request).items() if value != _DEFAULTS[name]}
    return round(timer.due_s, 3), given


def timers_of(status: JobStatus) -> list[Timer]:
    """Return the timers that the status records; no timers if the record is unreadable (because it was edited)."""
    note = notes.note(status, notes.TIMERS)
    if not note:
        return []
    try:
        return [
            Timer(due_s, request) for due_s, request in msgspec.json.decode(note, type=list[tuple[float, JobEvent]])
        ]
    except msgspec.DecodeError:
        return []


def expires_s(job: Job) -> float | None:
    """Return the time (seconds since the epoch) at which the Job must be deleted; None if it has no such time yet."""
    state, ttl_s = job.status.state, job.spec.ttl_seconds_after_finished
    ended = parse_time(state.last_transition_time)
    if ttl_s is None or ended is None or state.phase not in STOPPED_PHASES or job.metadata.deletion_timestamp:
        return None
    if state.phase == "Aborted" and TTL_SPARES_ABORTED in compat(job.metadata):
        return None
    return ended + ttl_s


def still_true(request: JobEvent, job: Job, pods: Mapping[str, Pod], group_phase: str) -> bool:
    """Return True if the event still applies; the failure of a pod does not apply once a new pod runs in its place."""
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


QUICK_S = 60.0
"""Run time, in seconds, below which a restarted Job counts as making no progress."""
AT_ONCE = 3
"""Number of restarts without a delay; equal to Volcano's default for maxRetry."""
FIRST_QUICK_S, MAX_QUICK_S = 5.0, 40.0
"""First and longest delay of new pods after quick restarts, in seconds. The restart of a gang of three pods costs 0.4
CPU seconds. The longest delay is shorter than `QUICK_S`, because the time between two restarts includes a delay."""
FIRST_S = 10.0
"""Delay of new pods after the first refusal of a pod, in seconds; equal to the kubelet's delay after the first crash of
a container."""
MAX_S = 300.0
"""Maximum delay of new pods, in seconds; equal to the kubelet's maximum restart delay."""


class BackOff(NamedTuple):
    """The delay of new pods: number of delayed restarts in a row, end (seconds since the epoch), last rejected pod."""

    restarts: int
    until_s: float
    pod: str
    reason: str

    @property
    def refusal(self) -> str:
        """A clause about the last pod that the kubelet rejected, or about the quick restarts."""
        if not self.reason:
            return (
                f"the Job was restarted more than {AT_ONCE} times, and its last runs were shorter than {QUICK_S:.0f} s"
            )
        return f"kubelet refused pod {self.pod} ({self.reason})"

    @property
    def words(self) -> tuple[str, str]:
        """The reason and the message for the status of a Job that waits for the end of the delay."""
        return "BackOff", f"{self.refusal}; new pods are created at {format_time(self.until_s)}"


def back_off(status: JobStatus) -> BackOff | None:
    """Return the delay that the status records; None without a readable record."""
    try:
        return msgspec.json.decode(notes.note(status, notes.BACK_OFF), type=BackOff)
    except msgspec.DecodeError:
        return None


def left_s(status: JobStatus, now_s: float) -> float:
    """Return the seconds until pods may be created; 0 if they may be created now."""
    found = back_off(status)
    delay_s = found.until_s - now_s if found else 0.0
    return delay_s if 0 < delay_s <= MAX_S else 0.0  # longer means that the clock was set back


def restarted(status: JobStatus, request: JobEvent, now_s: float, ran_s: float) -> JobStatus:
    """Return the status after a restart that `request` has caused; the Job had run for `ran_s` seconds.

    The status may record a delay of new pods.
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
    delay_s = doubled_s(first_s, restarts - 1, max_s)
    found = BackOff(restarts, round(now_s + delay_s, 3), request.pod, request.refused)
    return notes.noted(status, notes.BACK_OFF, msgspec.json.encode(found).decode())
