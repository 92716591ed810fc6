"""PodGroup.status: its content and its writer.

Phases are written at once, reasons at most once a second, other words for them ever more rarely, counts when they have
come to rest; new conditions are Events too. The rules of the phases are Volcano's (session.go, getPodGroupPhase). A
started gang counts by the minimum that it started with, so that a larger one does not make it Unknown, which policies
of a Job may answer by a restart.
"""

from collections.abc import Callable
from functools import partial
from math import inf
from typing import Any, NamedTuple
from uuid import NAMESPACE_URL, uuid5

import msgspec
import structlog
from msgspec.structs import replace

from extender.cluster import Live
from extender.gangevents import GangEvents
from extender.groupwrites import write_status
from extender.planner import reasons
from extender.planner.framework import decisions
from extender.planner.framework.session import Session
from extender.planner.state.gangs import GangView
from extender.writes import Lane, Writes
from muster.api.kubernetes.meta import format_time
from muster.api.muster.reason import NOTHING, Reason
from muster.api.muster.states import PHASES, Facts, Members, state_of
from muster.api.volcano.scheduling import PLACED, ConditionType, PodGroupCondition, PodGroupPhase, PodGroupStatus
from muster.kube.client import Client
from muster.kube.errors import Conflict, NotFound

log = structlog.get_logger()
TEXTS_EVERY_S = 1.0
WORDS_EVERY_S = 5.0
"""Time before other words for the same reasons: what a gang lacks changes whenever another one moves, and each change
is a write of the PodGroup, of its Job's status, and two Events. It doubles with each of them, up to the next number."""
WORDS_AT_LAST_S = 60.0
COUNTS_REST_S = 1.0
"""Time for which counts of members must not have changed to be written."""
COUNTS_MAX_S = 5.0
"""Time after which counts that never rest are written."""
END_LASTS_S = 1.0
"""Delay of Completed: the PodGroup of a Job is gone by then, as the controller deletes it when the Job ends."""
LOSS_LASTS_S = 10.0
"""Delay of Unknown after the loss of members, in which the controller makes new ones: a policy of a Job for any event
must not answer the loss of one pod as if the gang had failed."""

EVICTION_SHOWS_S = 5.0
"""Time in which pods that were told to go are seen to go, and the reason is written: it is decided once."""

_ENDED = frozenset({"Succeeded", "Failed"})
"""Phases of pods that run no more."""
_NO_NEWS = frozenset({reasons.pods.TOO_FEW, reasons.placements.EVICTED})
"""Reasons to wait that a gang has because it has just been evicted."""
_OVER = {PLACED: reasons.placements.PLACED, "Admitted": reasons.placements.ADMITTED}


_Told = tuple[bool, bool, Reason]
"""A gang was enqueued, or placed, and why it waits."""


class _Held(NamedTuple):
    """A waiting status: its phase since `phase_s`, any counts since `first_s`, these since `latest_s` (epoch)."""

    phase: str
    phase_s: float
    counts: tuple[int, int, int]
    first_s: float
    latest_s: float


class StatusWriter:
    """Remembers written statuses, so that an unchanged gang costs nothing. `wall_s` returns seconds since the epoch."""

    def __init__(
        self, client: Client, cluster: Live, events: GangEvents, writes: Writes, *, wall_s: Callable[[], float]
    ) -> None:
        self._client = client
        self._cluster = cluster
        self._events = events
        self._writes = writes
        self._wall_s = wall_s
        self._said: dict[str, tuple[GangView, _Told, float]] = {}
        """Key of a gang → its view and what was decided, and the time to look at it again (seconds since the epoch)."""
        self._status_at: dict[str, float] = {}
        self._words_s: dict[str, float] = {}
        """Time between words for the same reasons by now, in seconds."""
        self._held: dict[str, _Held] = {}
        self._evicted: dict[str, tuple[decisions.Unschedulable, float]] = {}
        """Key of a gang that was just evicted → what was decided, and when (seconds since the epoch)."""
        self._elsewhere: dict[str, GangView] = {}
        """Statuses written by `extender.notes` since the last cycle, which the views do not show yet."""

    def wrote(self, gang: GangView, status: PodGroupStatus) -> None:
        """Note that `extender.notes` has written the status that follows from this cycle."""
        self._elsewhere[gang.key] = gang
        self._status_at[gang.key] = self._wall_s()
        self._held.pop(gang.key, None)
        self._tell(gang, status, None)

    def write(self, session: Session) -> None:
        """Write the statuses of all gangs that follow from this cycle."""
        waits = {decision.gang.key: decision for decision in session.decided(decisions.Unschedulable)}
        placed = {decision.gang.key for decision in session.decided(decisions.Place)}
        self._evicted = {key: one for key, one in self._evicted.items() if session.now < one[1] + EVICTION_SHOWS_S}
        told = (each for each in waits.values() if each.reason == reasons.placements.EVICTED)
        self._evicted |= {each.gang.key: (each, session.now) for each in told if each.gang.key not in self._evicted}
        gangs = [*session.snapshot.gangs, *session.snapshot.set_aside]
        for gang in gangs:
            if self._elsewhere.pop(gang.key, None) is gang:
                continue
            why = self._evicted_or(waits.get(gang.key), gang, session.now)
            enqueued = gang.key in session.enqueued
            text = enqueued, gang.key in placed, why.why if why else NOTHING
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
            self._words_s = {key: pause_s for key, pause_s in self._words_s.items() if key in keys}
            self._held = {key: held for key, held in self._held.items() if key in keys}

    def _evicted_or(
        self, why: decisions.Unschedulable | None, gang: GangView, now: float
    ) -> decisions.Unschedulable | None:
        """Return why the gang waits: for a moment after its eviction that, unless there is other news than its end.

        Those of its pods that are not seen to go yet are told to go again, which is no eviction of them alone.
        """
        evicted, _ = self._evicted.get(gang.key, (None, now))
        if evicted is None or evicted.gang.uid != gang.uid or gang.active:
            self._evicted.pop(gang.key, None)
            return why
        return why if why is not None and why.reason not in _NO_NEWS else evicted

    def _due_s(self, gang: GangView, status: PodGroupStatus, now: float) -> float:
        """Return the time to write this status, in seconds since the epoch; infinity if it is the present one."""
        present = gang.group.status
        if status == present:
            self._held.pop(gang.key, None)
            return inf
        held = self._hold(gang.key, status, now)
        if status.phase == present.phase and status.conditions != present.conditions:
            every_s = self._words_s.get(gang.key, WORDS_EVERY_S) if _same_reasons(status, present) else TEXTS_EVERY_S
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

    def _write(self, gang: GangView, status: PodGroupStatus, text: _Told, why: decisions.Unschedulable | None) -> None:
        meta = gang.group.metadata
        body = {"metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version}, "status": status_body(status)}
        begun = self._wall_s()
        try:
            write_status(self._client, self._cluster, gang.group, status, body, begun)
        except (Conflict, NotFound) as error:
            log.debug("the PodGroup has changed, its status is decided again", gang=gang.key, error=str(error))
            return
        self._status_at[gang.key] = begun
        self._said[gang.key] = (gang, text, inf)
        self._held.pop(gang.key, None)
        self._pause(gang, status)
        self._tell(gang, status, why)

    def _pause(self, gang: GangView, status: PodGroupStatus) -> None:
        """Note how long the next words for the same reasons have to wait."""
        present = gang.group.status
        if status.phase != present.phase or not _same_reasons(status, present):
            self._words_s.pop(gang.key, None)
        elif status.conditions != present.conditions:
            pause_s = 2 * self._words_s.get(gang.key, WORDS_EVERY_S)
            self._words_s[gang.key] = min(pause_s, WORDS_AT_LAST_S)

    def _tell(self, gang: GangView, status: PodGroupStatus, why: decisions.Unschedulable | None) -> None:
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


def _same_reasons(one: PodGroupStatus, other: PodGroupStatus) -> bool:
    mine, others = ({(each.type, each.status, each.reason) for each in status.conditions} for status in (one, other))
    return mine == others


def status_body(status: PodGroupStatus) -> dict[str, Any]:
    """Return the status as a merge patch, with what the wire type leaves out: counts of 0, and no standing."""
    gone = {"running": 0, "succeeded": 0, "failed": 0, "place": None, "expectedStart": None}
    return {**gone, **msgspec.to_builtins(status)}


def wanted_status(
    gang: GangView, *, enqueued: bool, placed: bool, waits: decisions.Unschedulable | None, now: float
) -> PodGroupStatus:
    """Return the status after a cycle that has enqueued or placed the gang, or has found why it `waits`."""
    if gang.set_aside:  # its pods are not known
        status = gang.group.status
        return replace(status, conditions=_conditions(gang, status.phase, waits, "", now))
    alive = [pod for pod in gang.pods if not pod.terminating]
    running = sum(pod.phase == "Running" for pod in alive)
    succeeded = sum(pod.phase == "Succeeded" for pod in alive)
    failed = sum(pod.phase == "Failed" for pod in alive)
    scheduled = [pod for pod in gang.pods if pod.node or pod.phase in _ENDED]
    # a pod that has ended, or goes, and its successor are one member
    slots = {pod.slot or pod.uid for pod in scheduled}
    expected = {slot for slot, _, _ in gang.placed_slots()} if gang.started else set()
    finished = all(pod.phase in _ENDED for pod in scheduled) and not expected and not any(pod.waiting for pod in alive)
    enough = bool(slots) and len(slots | expected) >= gang.floor.min_member
    phase = _phase(gang, enqueued=enqueued, enough=enough, running=running, finished=finished)
    over = PLACED if placed or gang.active else "Admitted" if enqueued else ""
    conditions = _conditions(gang, phase, waits, over, now)
    status = replace(
        gang.group.status, phase=phase, conditions=conditions, running=running, succeeded=succeeded, failed=failed
    )
    if phase in {"Pending", "Inqueue"} and over != PLACED:  # it waits still; `extender.standings` keeps these up
        return status
    return replace(status, place=0, expected_start=None)


def _phase(gang: GangView, *, enqueued: bool, enough: bool, running: int, finished: bool) -> PodGroupPhase:
    present = gang.group.status.phase
    members: Members = ""
    if finished and (enough or present == "Completed"):
        members = "over"  # the controller says so of a workload that has ended, also if pods of it were deleted
    elif enough:
        members = "whole"
    elif present in {"Running", "Unknown"} and (running or gang.started):  # else none is there any more
        members = "whole" if present == "Running" and not running else "short"
    phase = PHASES[state_of(Facts(members=members))]
    return "Inqueue" if phase == "Pending" and (enqueued or present == "Inqueue") else phase


def _is_evicted(gang: GangView) -> bool:
    """Return True for an evicted gang of which there is no pod but those that go: it stays known why they go."""
    return bool(gang.group.evicted) and all(pod.terminating or pod.phase == "Failed" for pod in gang.pods)


def _conditions(
    gang: GangView, phase: PodGroupPhase, waits: decisions.Unschedulable | None, over: str, now: float
) -> list[PodGroupCondition]:
    """Return one condition per type, those that have ended with status False; `over` is the reason of the end."""
    known: dict[ConditionType, PodGroupCondition] = {
        condition.type: condition for condition in gang.group.status.conditions
    }
    wanted: dict[ConditionType, tuple[str, str, str]] = {}
    data = waits.data if waits is not None else None
    if waits is None and _is_evicted(gang):
        ended = "False" if phase == "Completed" else "True"
        data = gang.group.evicted.data
        wanted["Unschedulable"] = (ended, reasons.placements.EVICTED, str(gang.group.evicted))
    elif phase in {"Running", "Completed"} and waits is None:
        wanted["Scheduled"] = ("True", "Scheduled", reasons.placements.ENOUGH)
        if "Unschedulable" in known:
            wanted["Unschedulable"] = ("False", "Scheduled", reasons.placements.ENOUGH)
    elif waits is not None:
        wanted["Unschedulable"] = ("True", waits.reason, waits.message)
        if "Scheduled" in known and not gang.started:
            wanted["Scheduled"] = ("False", waits.reason, waits.message)
    elif over and "Unschedulable" in known and known["Unschedulable"].status == "True":
        wanted["Unschedulable"] = ("False", over, _OVER[over])
    result = []
    for kind in dict.fromkeys([*known, *wanted]):
        old = known.get(kind)
        status, reason, message = wanted.get(kind) or (old.status, old.reason, old.message) if old else wanted[kind]
        if old is not None and (old.status, old.reason, old.message) == (status, reason, message):
            result.append(old)
            continue
        changed = old is None or old.status != status
        moment = format_time(now) if changed or old is None else old.last_transition_time
        result.append(
            PodGroupCondition(
                type=kind,
                status=status,
                transition_id=str(uuid5(NAMESPACE_URL, f"{gang.uid}/{kind}/{moment}")),
                last_transition_time=moment,
                reason=reason,
                message=message,
                why=data if kind == "Unschedulable" else None,
            )
        )
    return result
