"""Writes into PodGroups where their gangs stand, for users who may not list the cluster and compute it themselves.

The place of one gang changes when others come and go, so this is written apart from what is news (`groupstatus`): once
a minute for each gang at most, some gangs each time, and only of those that have been told why they wait: most gangs
start without ever waiting. What ends with the wait is taken out by the write that says so.
"""

from collections.abc import Callable
from functools import partial

from msgspec.structs import replace

from extender.cluster import Live
from extender.groupwrites import write_status
from extender.planner.framework.session import Session
from extender.planner.standing import Standing, standings
from extender.planner.state.gangs import GangView
from extender.writes import Lane, Writes
from muster.kube.client import Client
from muster.kube.errors import APIError, Conflict

LOOK_EVERY_S = 10.0
"""Time between two looks at all gangs that wait, which have to be put in order for it."""
WRITE_EVERY_S = 60.0
"""Time between two writes about one gang."""
AGAIN_S = 600.0
"""Time after which the same is written again, if it is not there: a CRD of Volcano's own drops these fields."""
MAX_AT_ONCE = 40
"""Gangs that are written after one look, those that were written longest ago first."""


class StandingWriter:
    """Remembers what it wrote, as long as a gang waits; `wall_s` returns seconds since the epoch."""

    def __init__(self, client: Client, cluster: Live, writes: Writes, *, wall_s: Callable[[], float]) -> None:
        self._client = client
        self._cluster = cluster
        self._writes = writes
        self._wall_s = wall_s
        self._next = 0.0
        self._written: dict[str, tuple[Standing, float]] = {}
        """UID of a gang → what was written last, and when."""

    def write(self, session: Session) -> None:
        """Write the differences of the gangs whose turn it is, if it is time to look again."""
        now = self._wall_s()
        if now < self._next:
            return
        self._next = now + LOOK_EVERY_S
        known = standings(session)
        gangs = session.snapshot.gangs
        there = {gang.uid for gang in gangs}
        self._written = {uid: said for uid, said in self._written.items() if uid in there}
        due = [
            (gang, standing)
            for gang in gangs
            if (standing := known.get(gang.key)) and self._is_due(gang, standing, now)
        ]
        due.sort(key=lambda each: self._written.get(each[0].uid, (None, 0.0))[1])
        for gang, standing in due[:MAX_AT_ONCE]:
            self._writes.start(Lane.WORDS, "standing", gang.key, partial(self._write, gang, standing))

    def _is_due(self, gang: GangView, wanted: Standing, now: float) -> bool:
        status = gang.group.status
        if not gang.group.why_waiting or wanted == (status.place, status.expected_start):
            return False
        said, at = self._written.get(gang.uid, (None, 0.0))
        return now - at >= (AGAIN_S if said == wanted else WRITE_EVERY_S)

    def _write(self, gang: GangView, standing: Standing) -> None:
        self._written[gang.uid] = standing, self._wall_s()
        group, place, start = gang.group, standing.place or None, standing.expected_start
        body = {"metadata": {"uid": group.metadata.uid}, "status": {"place": place, "expectedStart": start}}
        status = replace(group.status, place=place or 0, expected_start=start)
        try:
            write_status(self._client, self._cluster, group, status, body, self._wall_s())
        except APIError as error:
            self._written.pop(gang.uid, None)  # its turn comes again
            if not isinstance(error, Conflict):  # of a native one, which had a newer version
                raise
