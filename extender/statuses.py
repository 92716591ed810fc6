"""Writes the status of PodGroups: phases at once, counts and texts at most once a second, Events for what is new."""

from collections.abc import Callable
from functools import partial

import msgspec
import structlog

from extender.cluster import Cluster
from extender.framework import decisions
from extender.framework.groupstatus import wanted_status
from extender.framework.session import Session
from extender.state.gangs import GangView
from extender.writes import Lane, Writes
from muster.api.scheduling import POD_GROUPS, PodGroupStatus
from muster.kube.client import Client
from muster.kube.errors import Conflict, NotFound
from muster.kube.events import Recorder

log = structlog.get_logger()
COUNTS_EVERY_S = 1.0
LOSS_LASTS_S = 2.0
"""A running gang that has lost members is Unknown after so long: by then whoever makes its pods has made others, and a
policy of a Job for any event must not answer the loss of one pod as if the gang had failed."""


class StatusWriter:
    """Remembers what it said, so that a gang that did not change costs nothing. `wall_s` is seconds since the epoch."""

    def __init__(
        self,
        client: Client,
        cluster: Cluster,
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
        self._said: dict[str, tuple[GangView, str]] = {}
        self._status_at: dict[str, float] = {}
        self._lost_at: dict[str, float] = {}
        """Key of a gang that would be Unknown → since when."""

    def write(self, session: Session) -> None:
        """Has what this cycle made of every gang written."""
        waits = {decision.gang.key: decision for decision in session.decided(decisions.Unschedulable)}
        placed = {decision.gang.key for decision in session.decided(decisions.Place)}
        gangs = [*session.snapshot.gangs, *session.snapshot.set_aside]
        for gang in gangs:
            why = waits.get(gang.key)
            enqueued = gang.key in session.enqueued
            text = f"{enqueued} {gang.key in placed} {why.message if why else ''}"
            said = self._said.get(gang.key)
            if said is not None and said[0] is gang and said[1] == text:
                continue
            status = wanted_status(gang, enqueued=enqueued, placed=gang.key in placed, waits=why, now=session.now)
            if status.phase != "Unknown":
                self._lost_at.pop(gang.key, None)
            if status == gang.group.status:
                self._said[gang.key] = (gang, text)
            elif self._due(gang, status, session.now):
                lane = Lane.WORDS if status.phase == gang.group.status.phase else Lane.PODS
                self._writes.start(lane, "status", gang.key, partial(self._write, gang, status, text, why))
        if len(self._said) > 2 * len(gangs) + 100:
            keys = {gang.key for gang in gangs}
            self._said = {key: said for key, said in self._said.items() if key in keys}
            self._status_at = {key: moment for key, moment in self._status_at.items() if key in keys}
            self._lost_at = {key: moment for key, moment in self._lost_at.items() if key in keys}

    def _due(self, gang: GangView, status: PodGroupStatus, now: float) -> bool:
        """Whether to write now: a new phase at once (a loss must last), counts and texts at most once a second."""
        if (gang.group.status.phase, status.phase) == ("Running", "Unknown"):
            return now - self._lost_at.setdefault(gang.key, now) >= LOSS_LASTS_S
        if status.phase != gang.group.status.phase:
            return True
        return now - self._status_at.get(gang.key, 0.0) >= COUNTS_EVERY_S

    def _write(self, gang: GangView, status: PodGroupStatus, text: str, why: decisions.Unschedulable | None) -> None:
        meta = gang.group.metadata
        wanted = msgspec.to_builtins(status)
        body = {
            "metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version},
            "status": {"running": 0, "succeeded": 0, "failed": 0, **wanted},
        }
        self._status_at[gang.key] = self._wall_s()
        try:
            group = self._client.merge_patch(POD_GROUPS, meta.name, body, meta.namespace)
        except (Conflict, NotFound) as error:
            log.debug("the PodGroup has changed, its status is decided again", gang=gang.key, error=str(error))
            return
        self._said[gang.key] = (gang, text)
        with self._cluster.lock:
            self._cluster.state.on_pod_group(gang.group, group)
        self._cluster.changed()
        self._tell(gang, status, why)

    def _tell(self, gang: GangView, status: PodGroupStatus, why: decisions.Unschedulable | None) -> None:
        before = {(condition.type, condition.status, condition.message) for condition in gang.group.status.conditions}
        for condition in status.conditions:
            if condition.status != "True" or (condition.type, "True", condition.message) in before:
                continue
            if condition.type == "Unschedulable" and why is not None:
                self._recorder.event(gang.group, "Warning", "Unschedulable", condition.message)
            elif condition.type == "Scheduled":
                self._recorder.event(gang.group, "Normal", "Scheduled", condition.message)
