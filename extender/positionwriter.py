"""Writer of waiting gangs' queue positions to PodGroup.status; `extender.groupstatus` writes the other fields.

A gang's position changes whenever other gangs arrive or leave. Therefore positions are written separately: at most once
a minute per gang, and only for some gangs at a time. A gang gets a position only once a condition explains its wait,
because most gangs start without waiting. The write of the status that ends a gang's wait removes the gang's position.
"""

from functools import partial
from math import inf

from msgspec.structs import replace

from extender.groupstatus import write_status
from extender.planner.framework.session import Session
from extender.planner.queuepositions import QueuePosition, queue_positions
from extender.planner.state.gangs import GangView
from extender.writes import Lane, WriteContext, Writer
from muster.kube.errors import APIError, Conflict

CHECK_INTERVAL_S = 10.0
"""Interval in seconds between passes over all waiting gangs; passes are costly, because each pass sorts the gangs."""
WRITE_EVERY_S = 60.0
"""Minimum interval in seconds between two writes of one gang's queue position."""
AGAIN_S = 600.0
"""Interval in seconds after which a missing position is written again; Volcano's own CRD drops the fields of positions.
"""
MAX_AT_ONCE = 40
"""Maximum number of gangs whose positions are written per pass; the gangs with the oldest written positions come first.
"""


class QueuePositionWriter(Writer):
    """Writer of queue positions, for users who are not allowed to list all gangs and so cannot compute positions."""

    def __init__(self, context: WriteContext) -> None:
        super().__init__(context)
        self._next = -inf
        self._written: dict[str, tuple[QueuePosition, float]] = {}
        """Maps the UID of a waiting gang to the gang's last written position and the time of this write."""

    def write(self, session: Session) -> None:
        """If a pass is due, write the changed positions of gangs whose last write is long enough ago."""
        now = self._monotonic_s()
        if now < self._next:
            return
        self._next = now + CHECK_INTERVAL_S
        known = queue_positions(session)
        gangs = session.snapshot.gangs
        there = {gang.uid for gang in gangs}
        self._written = {uid: written for uid, written in self._written.items() if uid in there}
        due = [
            (gang, position)
            for gang in gangs
            if (position := known.get(gang.key)) and self._is_due(gang, position, now)
        ]
        due.sort(key=lambda each: self._written.get(each[0].uid, (None, -inf))[1])
        for gang, position in due[:MAX_AT_ONCE]:
            self._writes.start(Lane.WORDS, "standing", gang.key, partial(self._write_position, gang, position))

    def _is_due(self, gang: GangView, wanted: QueuePosition, now: float) -> bool:
        status = gang.group.status
        if not gang.group.why_waiting or wanted == (status.place, status.expected_start):
            return False
        written, at = self._written.get(gang.uid, (None, -inf))
        return now - at >= (AGAIN_S if written == wanted else WRITE_EVERY_S)

    def _write_position(self, gang: GangView, position: QueuePosition) -> None:
        self._written[gang.uid] = position, self._monotonic_s()
        group, place, start = gang.group, position.place or None, position.expected_start
        body = {"metadata": {"uid": group.metadata.uid}, "status": {"place": place, "expectedStart": start}}
        status = replace(group.status, place=place or 0, expected_start=start)
        try:
            write_status(self._client, self._cluster, group, status, body, self._wall_s())
        except APIError as error:
            self._written.pop(gang.uid, None)  # the next pass retries
            if not isinstance(error, Conflict):  # a native PodGroup may have had a newer version
                raise
