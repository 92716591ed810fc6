"""Writes the status of PodGroups: phases at once, reasons at most once a second, counts when they have come to rest.

What is new in it is told in Events too.
"""

from collections.abc import Callable
from functools import partial
from math import inf
from typing import Any, NamedTuple

import msgspec
import structlog

from extender.live import Live
from extender.planner.framework import decisions
from extender.planner.framework.groupstatus import wanted_status
from extender.planner.framework.session import Session
from extender.planner.state.gangs import GangView
from extender.writes import Lane, Writes
from muster.api.volcano.scheduling import POD_GROUPS, PodGroupStatus
from muster.kube.client import Client
from muster.kube.errors import Conflict, NotFound
from muster.kube.events import Recorder

log = structlog.get_logger()
TEXTS_EVERY_S = 1.0
WORDS_EVERY_S = 5.0
"""Other words for the same reasons: what a gang lacks changes whenever another one moves, and each change is a write of
the PodGroup, of its Job's status, and two Events."""
COUNTS_REST_S = 1.0
"""Counts of members that have not changed for so long are written,"""
COUNTS_MAX_S = 5.0
"""and counts that never rest so often."""
END_LASTS_S = 1.0
"""A gang is Completed after so long: that of a Job is gone by then, as the controller deletes it when the Job ends."""
LOSS_LASTS_S = 2.0
"""A running gang that has lost members is Unknown after so long: by then whoever makes its pods has made others, and a
policy of a Job for any event must not answer the loss of one pod as if the gang had failed."""


class _Held(NamedTuple):
    """What waits to be written: since when it would be this phase, and since when there are counts, and these."""

    phase: str
    phase_s: float
    counts: tuple[int, int, int]
    first_s: float
    latest_s: float


class StatusWriter:
    """Remembers what it said, so that a gang that did not change costs nothing. `wall_s` is seconds since the epoch."""

    def __init__(
        self,
        client: Client,
        cluster: Live,
        recorder: Recorder,
        writes: Writes,
        *,
        wall_s: Callable[[], float],
    ) -> None:
        self._client = client
        self._cluster = cluster
        self._recorder = recorder
        self._writes = writes
        self._wall_s = wall_s
        self._said: dict[str, tuple[GangView, str, float]] = {}
        """Key of a gang → what was looked at, and when it has to be looked at again (seconds since the epoch)."""
        self._status_at: dict[str, float] = {}
        self._held: dict[str, _Held] = {}
        self._elsewhere: dict[str, GangView] = {}
        """What was written by others since the last cycle: the view knows nothing of it yet."""

    def wrote(self, gang: GangView, status: PodGroupStatus) -> None:
        """Somebody else has just written the status that follows from this cycle, along with something of his own."""
        self._elsewhere[gang.key] = gang
        self._status_at[gang.key] = self._wall_s()
        self._held.pop(gang.key, None)
        self._tell(gang, status, None)

    def write(self, session: Session) -> None:
        """Has what this cycle made of every gang written."""
        waits = {decision.gang.key: decision for decision in session.decided(decisions.Unschedulable)}
        placed = {decision.gang.key for decision in session.decided(decisions.Place)}
        gangs = [*session.snapshot.gangs, *session.snapshot.set_aside]
        for gang in gangs:
            if self._elsewhere.pop(gang.key, None) is gang:
                continue
            why = waits.get(gang.key)
            enqueued = gang.key in session.enqueued
            text = f"{enqueued} {gang.key in placed} {why.message if why else ''}"
            said = self._said.get(gang.key)
            if said is not None and said[0] is gang and said[1] == text and session.now < said[2]:
                continue
            status = wanted_status(gang, enqueued=enqueued, placed=gang.key in placed, waits=why, now=session.now)
            due_s = self._due_s(gang, status, session.now)
            if due_s > session.now:
                self._said[gang.key] = (gang, text, due_s)
            else:
                self._said.pop(gang.key, None)
                lane = Lane.WORDS if status.phase == gang.group.status.phase else Lane.PODS
                self._writes.start(lane, "status", gang.key, partial(self._write, gang, status, text, why))
        if len(self._said) > 2 * len(gangs) + 100:
            keys = {gang.key for gang in gangs}
            self._said = {key: said for key, said in self._said.items() if key in keys}
            self._status_at = {key: moment for key, moment in self._status_at.items() if key in keys}
            self._held = {key: held for key, held in self._held.items() if key in keys}

    def _due_s(self, gang: GangView, status: PodGroupStatus, now: float) -> float:
        """When this status is to be written, in seconds since the epoch; never, if it is the present one."""
        present = gang.group.status
        if status == present:
            self._held.pop(gang.key, None)
            return inf
        held = self._hold(gang.key, status, now)
        if status.phase == present.phase and status.conditions != present.conditions:
            every_s = WORDS_EVERY_S if _reasons(status) == _reasons(present) else TEXTS_EVERY_S
            return max(now, self._status_at.get(gang.key, 0.0) + every_s)
        if status.phase == present.phase:
            return min(held.latest_s + COUNTS_REST_S, held.first_s + COUNTS_MAX_S)
        if (present.phase, status.phase) == ("Running", "Unknown"):
            return held.phase_s + LOSS_LASTS_S
        return held.phase_s + END_LASTS_S if status.phase == "Completed" else now

    def _hold(self, key: str, status: PodGroupStatus, now: float) -> "_Held":
        counts = (status.running, status.succeeded, status.failed)
        held = self._held.get(key) or _Held(status.phase, now, counts, now, now)
        if held.phase != status.phase:
            held = held._replace(phase=status.phase, phase_s=now)
        if held.counts != counts:
            held = held._replace(counts=counts, latest_s=now)
        self._held[key] = held
        return held

    def _write(self, gang: GangView, status: PodGroupStatus, text: str, why: decisions.Unschedulable | None) -> None:
        meta = gang.group.metadata
        body = {
            "metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version},
            "status": status_body(status),
        }
        self._status_at[gang.key] = self._wall_s()
        try:
            group = self._client.merge_patch(POD_GROUPS, meta.name, body, meta.namespace)
        except (Conflict, NotFound) as error:
            log.debug("the PodGroup has changed, its status is decided again", gang=gang.key, error=str(error))
            return
        self._said[gang.key] = (gang, text, inf)
        self._held.pop(gang.key, None)
        self._cluster.change(lambda state: state.on_pod_group_written(group))
        self._tell(gang, status, why)

    def _tell(self, gang: GangView, status: PodGroupStatus, why: decisions.Unschedulable | None) -> None:
        before = {(condition.type, condition.status, condition.message) for condition in gang.group.status.conditions}
        for condition in status.conditions:
            if condition.status != "True" or (condition.type, "True", condition.message) in before:
                continue
            if condition.type == "Unschedulable" and why is not None:
                self._recorder.event(gang.group, "Warning", "Unschedulable", condition.message)
            elif condition.type == "Scheduled" and len(gang.pods) > 1:  # of a single pod kube-scheduler says so
                self._recorder.event(gang.group, "Normal", "Scheduled", condition.message)


def _reasons(status: PodGroupStatus) -> set[tuple[str, str, str]]:
    """What its conditions say, but for the words."""
    return {(condition.type, condition.status, condition.reason) for condition in status.conditions}


def status_body(status: PodGroupStatus) -> dict[str, Any]:
    """The status in a merge patch; counts of 0 are left out by the wire type, and must still replace others."""
    return {"running": 0, "succeeded": 0, "failed": 0, **msgspec.to_builtins(status)}
