"""What happened to gangs by the API server's own audit log, to be held against what the history tells, each thing once.

The plane must be made `traced`: the log then has each PodGroup, each Placement and each status of a Volcano Job.
"""

from collections import Counter
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any, NamedTuple

import audits
from msgspec import convert
from sqlalchemy import select

from history.model import What
from history.schema import GANG_EVENTS
from history.store import HistoryStore
from muster.api.muster.placement import Placement
from muster.api.muster.placementnotes import noted
from muster.api.volcano.scheduling import EVICTED, PodGroup
from musterctl.plane.plane import Plane

CHECKED = (What.SUBMITTED, What.PLANNED, What.STARTED, What.EVICTED, What.RESTARTED, What.ENDED)
_PLACED = {"Planned", "Binding", "Bound"}
_OVER = {"Completed", "Failed", "Terminated"}


class Happened(NamedTuple):
    """One thing that happened: to a PodGroup in an epoch, or to a Volcano Job."""

    what: str
    uid: str
    """Of the PodGroup, or of the Job."""
    which: str = ""
    """The epoch, the number of the restart, the phase in which it ended, or when it started or was evicted."""


def happened(plane: Plane, told: Counter[Happened]) -> Counter[Happened]:
    """Everything that the audit log shows, and how often: starts and evictions have their times there.

    The start of a gang of one pod is written a second after its pod runs, or not at all if the pod ends before. The log
    has no pods, so of such a gang the start counts that is told.
    """
    found: set[Happened] = set()
    job_of: dict[str, str] = {}
    of_one: set[str] = set()
    for event in audits.of_gangs(plane):
        answer = event.get("responseObject") or {}
        done = HTTPStatus.OK <= event["responseStatus"]["code"] < HTTPStatus.MULTIPLE_CHOICES
        if done and (uid := answer.get("metadata", {}).get("uid")):
            resource = event["objectRef"]["resource"]
            if resource == "podgroups":
                job_of[uid] = next((each["uid"] for each in answer["metadata"].get("ownerReferences", ())), "")
                if noted(convert(answer, PodGroup)) is not None:
                    of_one.add(uid)
            found |= {*_READ[resource](answer)}
    started = {each.uid for each in found if each.what == What.STARTED}
    short = {uid for uid in job_of.keys() - started if told[Happened(What.STARTED, uid)]}
    found |= {Happened(What.STARTED, uid) for uid in short & of_one}
    found |= _unwritten_starts(found, job_of)
    timed = {What.STARTED, What.EVICTED}
    return Counter(each._replace(which="") if each.what in timed else each for each in found)


def _unwritten_starts(found: set[Happened], job_of: dict[str, str]) -> set[Happened]:
    """The starts of Jobs that have completed though the extender was killed before it wrote that they had started."""
    started = {job_of[each.uid] for each in found if each.what == What.STARTED}
    completed = {each.uid for each in found if each.what == What.ENDED and each.which == "Completed"}
    return {Happened(What.STARTED, job) for job in completed - started}


def _of_group(answer: dict[str, Any]) -> Iterator[Happened]:
    group = convert(answer, PodGroup)
    yield Happened(What.SUBMITTED, group.metadata.uid)
    for each in group.status.conditions:
        if each.type == "Unschedulable" and each.status == "True" and each.reason == EVICTED:
            yield Happened(What.EVICTED, group.metadata.uid, each.last_transition_time or "")
    placement = noted(group)
    if placement is not None:
        yield from _placed(placement)


def _of_placement(answer: dict[str, Any]) -> Iterator[Happened]:
    yield from _placed(convert(answer, Placement))


def _placed(placement: Placement) -> Iterator[Happened]:
    spec, status = placement.spec, placement.status
    if status.phase in _PLACED:
        yield Happened(What.PLANNED, spec.pod_group_uid, str(spec.epoch))
    if status.started:
        yield Happened(What.STARTED, spec.pod_group_uid, status.started_at)


def _of_job(job: dict[str, Any]) -> Iterator[Happened]:
    uid, status = job["metadata"]["uid"], job.get("status", {})
    if status.get("retryCount"):
        yield Happened(What.RESTARTED, uid, str(status["retryCount"]))
    if (phase := status.get("state", {}).get("phase")) in _OVER:
        yield Happened(What.ENDED, uid, phase)


_READ = {"podgroups": _of_group, "placements": _of_placement, "jobs": _of_job}


def told(store: HistoryStore) -> Counter[Happened]:
    """Everything of the same kinds that the history tells, and how often."""
    columns = (GANG_EVENTS.c[name] for name in ("what", "run", "epoch", "subject"))
    with store.engine.connect() as connection:
        rows = connection.execute(select(*columns).where(GANG_EVENTS.c.what.in_(CHECKED))).all()
    which = {What.PLANNED: "epoch", What.RESTARTED: "subject", What.ENDED: "subject"}
    return Counter(
        Happened(row.what, row.run, str(getattr(row, which[row.what])) if row.what in which else "") for row in rows
    )
