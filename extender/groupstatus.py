"""Writer of PodGroup.status: phase, counts and conditions; `extender.positionwriter` writes the queue position.

Phases are written at once, and reasons at most once a second. New messages with an unchanged reason are written at
growing intervals, and counts of pods once they are stable. A new condition also causes an Event.
`extender.groupcontent` computes the content of the status.
"""

from collections import defaultdict
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Any, NamedTuple

import msgspec
import structlog

from extender.cluster import Live
from extender.groupcontent import status_body, wanted_status
from extender.planner import reasons
from extender.planner.framework import decisions
from extender.planner.framework.session import Session
from extender.planner.state.gangs import GangView
from extender.writes import Lane, WriteContext, Writer
from muster.api.kubernetes.scheduling import NATIVE_POD_GROUPS
from muster.api.muster.native import conditions_of, is_native
from muster.api.muster.placementnotes import is_noted
from muster.api.muster.reason import NOTHING, Reason
from muster.api.volcano.scheduling import POD_GROUPS, PodGroup, PodGroupStatus
from muster.kube.client import Client
from muster.kube.errors import Conflict, NotFound

log = structlog.get_logger()
TEXTS_EVERY_S = 1.0
MESSAGE_INTERVAL_S = 5.0
"""Minimum interval in seconds between two messages with the same reasons.

A waiting gang's shortage changes with every placement of another gang. Each message costs a write of the PodGroup, a
write of its Job's status, and two Events. The interval doubles with each message, up to `LONGEST_MESSAGE_DELAY_S`.
"""
LONGEST_MESSAGE_DELAY_S = 60.0
COUNTS_REST_S = 1.0
"""Time in seconds for which the counts of members must be stable before they are written."""
COUNTS_MAX_S = 5.0
"""Time in seconds after which the counts of members are written even if they are still changing."""
END_LASTS_S = 1.0
"""Delay in seconds before the phase Completed is written. The controller usually deletes the PodGroup of a finished Job
within this time.
"""
LOSS_LASTS_S = 10.0
"""Delay in seconds before the phase Unknown is written after a loss of members. The controller creates new members
within this time.

Without the delay, a Job policy for any event would treat the loss of one pod as a failure of the gang.
"""
EVICTION_SHOWS_S = 5.0
"""Time in seconds for which the reason of an eviction is shown; the evicted pods terminate within this time."""
MOMENT_S = 10.0
"""Time in seconds after which a gang's missing pods, or pods not yet compared with affinities, are reported.

An owner creates pods one after another, and a normal start must not cause a Warning event."""
_MOMENTARY = frozenset({reasons.pods.TOO_FEW, reasons.pods.NOT_COMPARED, reasons.pods.LATER})
_NO_NEWS = frozenset({reasons.pods.TOO_FEW, reasons.placements.EVICTED})
"""Reasons for waiting that are a direct consequence of an eviction, and do not replace the eviction's reason."""
_Decided = tuple[bool, bool, Reason]
"""The decisions of a cycle about a gang: if it is admitted, if it is placed, and the reason why it waits."""


class _Held(NamedTuple):
    """A status whose write is delayed; its phase changed at `phase_s`, its counts from `first_s` to `latest_s`."""

    phase: str
    phase_s: float
    counts: tuple[int, int, int]
    first_s: float
    latest_s: float


@dataclass(slots=True)
class _Memory:
    """The writer's memory of one gang; times are in seconds of the monotonic clock."""

    seen: tuple[GangView, _Decided, float] | None = None
    """View of the gang, decisions about the gang, and the time until which these decisions require no write."""
    written_s: float = -inf
    interval_s: float = MESSAGE_INTERVAL_S
    """Current minimum interval in seconds between messages with the same reason."""
    held: _Held | None = None
    evicted: tuple[decisions.Unschedulable, float] | None = None
    """Decision and time of the gang's last eviction."""
    lacks: tuple[Reason, float] | None = None
    """Temporary reason why the gang waits, and the time since when this reason has not changed."""
    noted: GangView | None = None
    """View of the gang for which `extender.notes` has written a status since the last cycle; this cycle does not
    include the status yet.
    """
    ends: tuple[GangView, float] | None = None
    """View of the just started gang whose placement annotation ends later, and the time of this write."""


class PodGroupStatusWriter(Writer):
    """Writer of a PodGroup's phase, counts and conditions; it remembers its writes and skips unchanged gangs."""

    def __init__(self, context: WriteContext) -> None:
        super().__init__(context)
        self._known: defaultdict[str, _Memory] = defaultdict(_Memory)
        """Maps the key of a gang to the writer's memory of this gang."""

    def wrote(self, gang: GangView, status: PodGroupStatus) -> None:
        """Record that `extender.notes` has written the status that results from this cycle."""
        known = self._known[gang.key]
        known.noted, known.written_s, known.held, known.ends = gang, self._monotonic_s(), None, None
        self._report(gang, status, None)

    def holds(self, gang: GangView, status: PodGroupStatus) -> bool:
        """Return True if the end of the placement annotation of a just started gang is written later, with `status`.

        `extender.notes` then writes the status together with this end.
        """
        now = self._monotonic_s()
        due_s = self._due_s(gang, status, now)
        held = gang.group.status.phase == "Inqueue" and now < due_s < inf
        self._known[gang.key].ends = (gang, due_s) if held else None
        return held

    def still_holds(self, gang: GangView) -> bool:
        """Return True if `holds` has returned True for this view of the gang and the time of the write has not come."""
        ends = self._known[gang.key].ends
        return ends is not None and ends[0] is gang and self._monotonic_s() < ends[1]

    def write(self, session: Session) -> None:
        """Write the statuses that result from this cycle's decisions, for all gangs."""
        waits = {decision.gang.key: decision for decision in session.decided(decisions.Unschedulable)}
        placed = {decision.gang.key for decision in session.decided(decisions.Place)}
        closed = {decision.gang.key for decision in session.decided(decisions.ClosePlacement)}
        gangs, now = [*session.snapshot.gangs, *session.snapshot.excluded], self._monotonic_s()
        for gang in gangs:
            known = self._known[gang.key]
            why = _lasting(known, gang, _why(known, gang, waits.get(gang.key), now), now)
            noted, known.noted = known.noted, None
            if noted is gang or (gang.key in closed and known.ends is not None and known.ends[0] is gang):
                continue
            enqueued = gang.key in session.enqueued
            decided = enqueued, gang.key in placed, why.why if why else NOTHING
            seen = known.seen
            if seen and seen[0] is gang and seen[1] == decided and now < seen[2]:
                continue
            status = wanted_status(gang, enqueued=enqueued, placed=gang.key in placed, waits=why, now=session.now)
            due_s = self._due_s(gang, status, now)
            if due_s > now:
                known.seen = gang, decided, due_s
            else:
                known.seen = None
                lane = Lane.WORDS if status.phase == gang.group.status.phase else Lane.PODS
                self._writes.start(lane, "status", gang.key, partial(self._write, gang, status, decided, why))
        if len(self._known) > 2 * len(gangs) + 100:
            for key in self._known.keys() - {gang.key for gang in gangs}:
                del self._known[key]

    def _due_s(self, gang: GangView, status: PodGroupStatus, now: float) -> float:
        """Return the time in seconds at which to write this status; infinity if the status is unchanged."""
        known, present = self._known[gang.key], gang.group.status
        if status == present:
            known.held = None
            return inf
        held = known.held = _hold(known.held, status, now)
        if status.phase == present.phase and status.conditions != present.conditions:
            every_s = known.interval_s if _same_reasons(status, present) else TEXTS_EVERY_S
            return max(now, known.written_s + every_s)
        longest_s = held.first_s + COUNTS_MAX_S
        stable_s = min(held.latest_s + COUNTS_REST_S, longest_s)
        if status.phase == present.phase:
            return stable_s
        if (present.phase, status.phase) == ("Inqueue", "Running") and gang.placement and is_noted(gang.placement):
            return stable_s if status.running else longest_s
        if (present.phase, status.phase) == ("Running", "Unknown"):
            return held.phase_s + LOSS_LASTS_S
        return held.phase_s + END_LASTS_S if status.phase == "Completed" else now

    def _write(
        self, gang: GangView, status: PodGroupStatus, decided: _Decided, why: decisions.Unschedulable | None
    ) -> None:
        meta = gang.group.metadata
        body = {"metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version}, "status": status_body(status)}
        begun = self._wall_s()
        try:
            write_status(self._client, self._cluster, gang.group, status, body, begun)
        except (Conflict, NotFound) as error:
            log.debug("the PodGroup has changed; its status is computed again", gang=gang.key, error=str(error))
            return
        known = self._known[gang.key]
        known.written_s, known.seen, known.held = self._monotonic_s(), (gang, decided, inf), None
        _lengthen(known, gang.group.status, status)
        self._report(gang, status, why)

    def _report(self, gang: GangView, status: PodGroupStatus, why: decisions.Unschedulable | None) -> None:
        """Record Events about new conditions."""
        before = {each.type: each for each in gang.group.status.conditions if each.status == "True"}
        for condition in status.conditions:
            old = before.get(condition.type)
            if condition.status != "True" or (old is not None and old.message == condition.message):
                continue
            if condition.type == "Unschedulable" and why is not None:
                other_reason = old is None or old.reason != condition.reason
                self._events.waits(gang, condition.reason, condition.message, other_reason=other_reason)
            elif condition.type == "Scheduled":
                self._events.scheduled(gang, condition.message)


def _why(
    known: _Memory, gang: GangView, why: decisions.Unschedulable | None, now: float
) -> decisions.Unschedulable | None:
    """Return the decision why the gang waits; for a while after an eviction, the eviction counts as the reason.

    Repeated evictions of pods that have not ended yet do not count as separate evictions.
    """
    if known.evicted is not None and now >= known.evicted[1] + EVICTION_SHOWS_S:
        known.evicted = None
    if known.evicted is None and why is not None and why.reason == reasons.placements.EVICTED:
        known.evicted = why, now
    if known.evicted is None:
        return why
    evicted, _ = known.evicted
    if evicted.gang.uid != gang.uid or gang.active:
        known.evicted = None
        return why
    return why if why is not None and why.reason not in _NO_NEWS else evicted


def _lasting(
    known: _Memory, gang: GangView, why: decisions.Unschedulable | None, now: float
) -> decisions.Unschedulable | None:
    """Return the decision why the gang waits; None if its reason is temporary and not yet worth a report."""
    if why is None or why.reason not in _MOMENTARY or gang.group.why_waiting:
        known.lacks = None
        return why
    if known.lacks is None or known.lacks[0] != why.why:
        known.lacks = why.why, now
    return why if now - known.lacks[1] >= MOMENT_S else None


def _hold(held: _Held | None, status: PodGroupStatus, now: float) -> _Held:
    counts = (status.running, status.succeeded, status.failed)
    if held is None:
        return _Held(status.phase, now, counts, now, now)
    if held.phase != status.phase:
        held = held._replace(phase=status.phase, phase_s=now)
    return held if held.counts == counts else held._replace(counts=counts, latest_s=now)


def _lengthen(known: _Memory, present: PodGroupStatus, status: PodGroupStatus) -> None:
    """Double the interval after a message with the same reason; reset the interval after another reason or phase."""
    if status.phase != present.phase or not _same_reasons(status, present):
        known.interval_s = MESSAGE_INTERVAL_S
    elif status.conditions != present.conditions:
        known.interval_s = min(2 * known.interval_s, LONGEST_MESSAGE_DELAY_S)


def _same_reasons(one: PodGroupStatus, other: PodGroupStatus) -> bool:
    mine, others = ({(each.type, each.status, each.reason) for each in status.conditions} for status in (one, other))
    return mine == others


def write_status(
    client: Client, cluster: Live, group: PodGroup, status: PodGroupStatus, body: dict[str, Any], now: float
) -> None:
    """Write a gang's new status to the API server and to the state; `body` is the merge patch for a Volcano PodGroup.

    A native PodGroup can store a status only as conditions (`muster.api.muster.native`), in its status subresource. The
    merge patch of a native PodGroup replaces the whole list of conditions, so the patch names the object's version.

    Raises Conflict if the patch names a version of the object and the object has changed since.
    """
    meta = group.metadata
    if not is_native(group):
        written = client.merge_patch(POD_GROUPS, meta.name, body, meta.namespace)
        cluster.change(lambda state: state.on_pod_group_written(written))
        return
    native = cluster.ask(lambda state: state.native.groups.get(meta.key))
    seen = native and (native.metadata.uid, native.metadata.resource_version)
    if native is None or seen != (meta.uid, meta.resource_version):
        raise Conflict("the PodGroup has changed since its status was computed", where=f"native PodGroup {meta.key}")
    pool, queue = cluster.ask(lambda state: state.pool), group.spec.queue
    conditions = msgspec.to_builtins(conditions_of(status, native.status.conditions, now, pool=pool, queue=queue))
    patch = {
        "metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version},
        "status": {"conditions": conditions},
    }
    new = client.merge_patch(NATIVE_POD_GROUPS, native.metadata.name, patch, meta.namespace, subresource="status")
    cluster.change(lambda state: state.on_native_written(new))
