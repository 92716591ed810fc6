"""Events from the changes of a PodGroup, its Placement or its Volcano Job since the last observation. Pure."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from msgspec import field

from history.model import NAME_CHARS, LastSeen, What, clean
from history.pods import ObservationTime
from muster.api import names
from muster.api.base import Resource
from muster.api.grammar import many
from muster.api.kubernetes.meta import Object
from muster.api.limits import RESOURCES
from muster.api.muster.noderuns import slots_of
from muster.api.muster.placement import Placement
from muster.api.muster.states import PLANNED, State, facts_of, stopped
from muster.api.volcano.batch import JOBS, JobStatus, is_job
from muster.api.volcano.scheduling import EVICTED, SUSPENDED, TOO_FEW_PODS, PodGroup
from muster.resources.vector import Vector, vector

_LONGEST_RESOURCE: Final = 317
_OF_QUOTAS: Final = ("requests.", "limits.", "count/")


class RecordedJob(Object):
    """A Volcano Job without its spec, which may be long."""

    status: JobStatus = field(default_factory=JobStatus)


RECORDED_JOBS: Final = Resource(JOBS.group, JOBS.version, JOBS.plural, JOBS.kind, RecordedJob)


class NewGangEvent(NamedTuple):
    """An event for which no row has been created yet."""

    what: What
    at: int
    epoch: int = 0
    text: str = ""
    subject: str = ""
    nodes: Sequence[str] = ()


ALL_THERE: Final = "all required members have their nodes"
"""Text of the event that a gang has started."""


def owner_uid(group: PodGroup) -> str:
    """Return the UID of a gang's Volcano Job; empty for other gangs."""
    owner = group.metadata.controller
    return owner.uid if owner and is_job(owner) else ""


def queue_of(group: PodGroup) -> str:
    """Return the queue of a gang."""
    return clean(group.spec.queue, NAME_CHARS) or names.DEFAULT_QUEUE


def asks(group: PodGroup) -> str:
    """Return a text about a new PodGroup's PriorityClass and minimum, shown after the name of the queue."""
    name, least = clean(group.spec.priority_class_name, NAME_CHARS), group.spec.min_member
    together = f"; {least} members start together" if least > 1 else ""
    return f" with class {name}{together}" if name else together


def minimum(group: PodGroup) -> Vector:
    """Return the minimum resources of a gang; empty if unreadable.

    Names with a prefix from ResourceQuotas (such as `requests.cpu`) are skipped, because they repeat other resources.
    """
    given = group.spec.min_resources or {}
    plain = {
        name: each
        for name, each in islice(given.items(), RESOURCES.value)
        if not name.startswith(_OF_QUOTAS) and len(name) <= _LONGEST_RESOURCE and "\0" not in name
    }
    try:
        return {name: amount for name, amount in vector(plain).items() if amount > 0}
    except ValueError:
        return {}


def news(seen: LastSeen, group: PodGroup, moment: ObservationTime) -> Iterator[NewGangEvent]:
    """Yield new events from the status of a PodGroup, and record the status in `seen`."""
    condition = next((each for each in group.status.conditions if each.type == "Unschedulable"), None)
    if condition is not None and condition.status == "True":
        since = condition.last_transition_time or ""
        # The gang keeps waiting while its reason changes, so a live event's time is the time of the observation.
        at = moment.at if moment.live else moment.time_of(since)
        if condition.reason == SUSPENDED and seen.waits != SUSPENDED:
            yield NewGangEvent(What.SUSPENDED, at, seen.epoch, condition.message)
            seen.waits = SUSPENDED
        elif condition.reason == EVICTED:
            if since != seen.evicted_at:
                yield NewGangEvent(What.EVICTED, at, seen.epoch, condition.message)
            seen.evicted_at = since
        elif condition.reason not in {seen.waits, TOO_FEW_PODS}:
            yield NewGangEvent(What.WAITS, at, seen.epoch, condition.message, condition.reason)
            seen.waits = condition.reason
    before, seen.facts = seen.facts, facts_of(group)
    if seen.facts.members == "short" and (before is None or before.members != "short"):
        yield NewGangEvent(What.DEGRADED, moment.at, seen.epoch, "fewer members run than the minimum")


def edits(seen: LastSeen, queue: str, group: PodGroup, moment: ObservationTime) -> Iterator[NewGangEvent]:
    """Yield the changes of a PodGroup's spec by users since the last observation, and record them in `seen`."""
    new, version, moved_to = group.spec, group.metadata.resource_version, queue_of(group)
    user = group.metadata.annotations.get(names.CHANGED_BY, "")  # the user who last changed the queue or PriorityClass
    by, priority_class = f", by {user}" if user else "", clean(new.priority_class_name, NAME_CHARS)
    if moved_to != queue:
        yield NewGangEvent(What.MOVED, moment.at, seen.epoch, f"from queue {queue} to {moved_to}{by}", version)
    known = seen.minimum > 0
    if known and new.min_member != seen.minimum:
        text = f"members that start together: from {seen.minimum} to {new.min_member}"
        yield NewGangEvent(What.RESIZED, moment.at, seen.epoch, text, version)
    if known and priority_class != seen.priority_class:
        text = f"from class {seen.priority_class or 'none'} to {priority_class or 'none'}{by}"
        yield NewGangEvent(What.PRIORITY, moment.at, seen.epoch, text, version)
    seen.minimum, seen.priority_class = new.min_member, priority_class


def placed(seen: LastSeen, placement: Placement, moment: ObservationTime) -> Iterator[NewGangEvent]:
    """Yield new events from a placement, and record the placement in `seen`."""
    spec, status = placement.spec, placement.status
    if spec.epoch < seen.epoch:
        return
    if spec.epoch > seen.epoch or status.phase != seen.phase:
        if spec.epoch > seen.epoch:
            seen.waits = seen.failure = ""
        first = spec.epoch > seen.epoch or seen.phase not in PLANNED
        seen.epoch, seen.phase = spec.epoch, status.phase
        if status.phase in PLANNED and first:
            nodes = list(dict.fromkeys(node for _, node in slots_of(placement)))
            yield NewGangEvent(What.PLANNED, moment.at, spec.epoch, _planned(placement, nodes), nodes=nodes)
        elif status.phase == "Abandoned":
            yield NewGangEvent(What.ABANDONED, moment.at, spec.epoch, status.message)
    if status.phase == "Reserved" and status.reserved_at != seen.reserved_at:
        seen.reserved_at = status.reserved_at
        nodes = list(dict.fromkeys(node for _, node in slots_of(placement)))
        yield NewGangEvent(What.RESERVED, moment.time_of(status.reserved_at), spec.epoch, status.message, nodes=nodes)
    if status.started and status.started_at != seen.started_at:
        seen.started_at = status.started_at
        # The status has the next full second; an earlier observation is more exact.
        at = min(moment.time_of(status.started_at), moment.at) if moment.live else moment.time_of(status.started_at)
        yield NewGangEvent(What.STARTED, at, spec.epoch, ALL_THERE)


def _planned(placement: Placement, nodes: Sequence[str]) -> str:
    words = f"{many(sum(1 for _ in slots_of(placement)), 'member')} on {many(len(nodes), 'node')}"
    victims = len(placement.spec.victims)
    return f"{words}, after {victims} {'pod goes' if victims == 1 else 'pods go'}" if victims else words


def of_job(job: RecordedJob, moment: ObservationTime, failure: str) -> Iterator[NewGangEvent]:
    """Yield the events in a Volcano Job's status: the last restart, the suspension and the end, each with a key.

    `failure` is a text about the first failure of a member.
    """
    status, phase = job.status, job.status.state
    at = moment.time_of(phase.last_transition_time)
    if status.retry_count > 0:
        yield NewGangEvent(What.RESTARTED, at, 0, phase.message, str(status.retry_count))
    if phase.phase == "Aborted":
        yield NewGangEvent(What.SUSPENDED, at, 0, phase.message, phase.last_transition_time or "")
    elif (state := stopped(phase.phase, job.metadata)) is not None:
        yield NewGangEvent(What.ENDED, at, 0, ending_text(state, failure, phase.message), phase.phase)


def ending_text(state: State, failure: str, message: str) -> str:
    """Return a text about a gang's end: its state, its first failed member if any, and its owner's message."""
    known = failure and state == "Failed" and f"pod {failure.partition(' ')[0]} " not in message
    parts = "; ".join(filter(None, (failure if known else "", message if state != "Deleted" else "")))
    return f"{state.lower()}: {parts}" if parts else state.lower()
