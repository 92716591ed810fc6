"""The barrier for bind calls: the members of a gang wait for each other, and are then all bound.

kube-scheduler places pods one by one, and a binding cannot be undone. Suppose that each member were bound when its bind
call arrives. A gang would then stay partially bound if kube-scheduler, which checks more rules than the planner,
rejected the last member. Therefore all bind calls of a gang are answered together, once enough members have arrived.
Before the bind call for a member, kube-scheduler has checked the member's node with all its plugins, and has reserved
the member's resources. Once the bind calls of enough members are held, the gang can therefore certainly start.

Because the planner has already chosen the nodes, the bind calls of a gang's members arrive shortly after each other.
The barrier's timeout starts with the first call and is short, because held calls occupy capacity. Each member
that arrives extends the timeout, because thousands of members need more time.

A *meeting* consists of the bind calls of one gang and one epoch, because members pinned by different placements do not
start together. A meeting ends once, with one outcome for all its calls; the gang's next call opens another meeting. All
code of this module runs on the event loop.
"""

import asyncio
from collections import Counter as Counts
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from prometheus_client import Counter, Gauge, Histogram

from muster.api.muster.gang import Slot
from muster.process.counters import from_zero

HELD = Gauge("muster_barrier_held", "Bind calls that wait for the other members of their gang")
OUTCOMES = Counter("muster_barrier_total", "Barriers that ended, by outcome", ["outcome"])
WAIT = Histogram(
    "muster_barrier_wait_seconds",
    "Seconds that a gang's first member waited for the other members",
    buckets=(0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30),
)

MEMBER_S = 0.05
"""Time in seconds that each arrived member adds to the barrier's timeout.

Without the added time, a gang of a thousand pods would never start with a busy API server, because kube-scheduler then
binds only twenty pods per second.
"""
LONGEST_S = 290.0
"""Longest timeout of the barrier in seconds; kube-scheduler abandons a bind call after 300 s (`httpTimeout`)."""


class MeetingOutcome(Enum):
    """Outcome of a wait at the barrier: either the members may be bound, or kube-scheduler must retry."""

    RELEASED = "released"
    TIMED_OUT = "timed out"
    CANCELLED = "cancelled"


from_zero(OUTCOMES, (outcome.name.lower() for outcome in MeetingOutcome))


@dataclass(slots=True)
class _Meeting:
    """The held bind calls of one gang and epoch; `arrived` maps each slot to the UID of the slot's last pod."""

    opened_at: float
    arrived: dict[Slot, str] = field(default_factory=dict)
    calls: Counts[tuple[Slot, str]] = field(default_factory=Counts)
    """Maps a slot and a pod's UID to the number of held calls for this pod."""
    outcome: MeetingOutcome | None = None
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    timer: asyncio.TimerHandle | None = None


class Barrier:
    """Barrier at which bind calls of a gang wait for one another, for `timeout_s` or longer from the first call."""

    def __init__(self, *, timeout_s: float, monotonic_s: Callable[[], float]) -> None:
        self._timeout_s = timeout_s
        self._monotonic_s = monotonic_s
        self._meetings: dict[tuple[str, int], _Meeting] = {}

    async def join(
        self,
        gang_uid: str,
        epoch: int,
        slot: Slot,
        enough: Callable[[Mapping[Slot, str]], bool],
        *,
        pod_uid: str = "",
        on_arrival: Callable[[], None] = lambda: None,
    ) -> MeetingOutcome:
        """Call `on_arrival`, then wait until `enough` returns True for the held members, or until the timeout.

        The argument of `enough` maps the slot of each held member to the UID of its pod. If several pods arrive for the
        same slot, the last pod keeps the slot, and the other pods get the outcome CANCELLED. If a member's call ends
        with an exception, the member no longer counts as held.
        """
        key = (gang_uid, epoch)
        meeting = self._arrive(key, slot, pod_uid)
        HELD.inc()
        try:
            if meeting.outcome is None and enough(meeting.arrived):
                self._end(key, meeting, MeetingOutcome.RELEASED)
            on_arrival()
            await meeting.ended.wait()
            outcome = meeting.outcome or MeetingOutcome.CANCELLED
            return outcome if meeting.arrived[slot] == pod_uid else MeetingOutcome.CANCELLED
        finally:
            HELD.dec()
            meeting.calls[slot, pod_uid] -= 1
            if meeting.outcome is None and not meeting.calls[slot, pod_uid] and meeting.arrived[slot] == pod_uid:
                del meeting.arrived[slot]

    def cancel(self, gang_uid: str, epoch: int | None = None) -> None:
        """End the meetings of a gang, for one epoch or all, after the gang's placement has ended or lost a member."""
        for key in [key for key in self._meetings if key[0] == gang_uid and epoch in {None, key[1]}]:
            self._end(key, self._meetings[key], MeetingOutcome.CANCELLED)

    def cancel_all(self) -> None:
        """End every meeting when this replica no longer leads."""
        for gang_uid, epoch in list(self._meetings):
            self.cancel(gang_uid, epoch)

    def arrived(self) -> dict[str, frozenset[Slot]]:
        """Return a mapping from a gang's UID to the slots of the members whose bind calls are held."""
        return {uid: frozenset(meeting.arrived) for (uid, _), meeting in self._meetings.items()}

    def waiting(self) -> int:
        """Return the total number of held bind calls."""
        return sum(meeting.calls.total() for meeting in self._meetings.values())

    def _arrive(self, key: tuple[str, int], slot: Slot, pod_uid: str) -> _Meeting:
        meeting = self._meetings.get(key)
        if meeting is None:
            meeting = self._meetings[key] = _Meeting(self._monotonic_s())
            self._check_again(self._timeout_s, key, meeting)
        meeting.arrived[slot] = pod_uid
        meeting.calls[slot, pod_uid] += 1
        return meeting

    def _check_again(self, after_s: float, key: tuple[str, int], meeting: _Meeting) -> None:
        loop = asyncio.get_running_loop()
        meeting.timer = loop.call_later(after_s, self._check_deadline, key, meeting)

    def _check_deadline(self, key: tuple[str, int], meeting: _Meeting) -> None:
        """End a meeting if its timeout has passed, otherwise check again later; one timer serves all members."""
        lasts_s = min(self._timeout_s + MEMBER_S * len(meeting.arrived), LONGEST_S)
        left = meeting.opened_at + lasts_s - self._monotonic_s()
        if left > 0 and meeting.outcome is None:
            self._check_again(left, key, meeting)
        else:
            self._end(key, meeting, MeetingOutcome.TIMED_OUT)

    def _end(self, key: tuple[str, int], meeting: _Meeting, outcome: MeetingOutcome) -> None:
        if meeting.outcome is None:
            meeting.outcome = outcome
            OUTCOMES.labels(outcome.name.lower()).inc()
            WAIT.observe(self._monotonic_s() - meeting.opened_at)
            if meeting.timer:
                meeting.timer.cancel()
            meeting.ended.set()
        if self._meetings.get(key) is meeting:
            del self._meetings[key]
