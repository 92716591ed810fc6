"""Recovery of the events that happened while no recorder was running.

API servers keep changes for a few minutes. Earlier changes are derived from objects that have not ended according to
the store but no longer exist in the cluster.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NamedTuple

import structlog

from history import gangruns, members, spares
from history.entries import Entries
from history.groups import RECORDED_JOBS
from history.model import MS
from history.observations import KINDS, Observation
from history.pods import RECORDED_PODS, ObservationTime, stamps
from muster.api.base import Resource
from muster.api.kubernetes import core, meta
from muster.api.volcano.scheduling import POD_GROUPS
from muster.kube.client import Client
from muster.kube.errors import APIError, Gone

log = structlog.get_logger(__name__)

_WATCH_S: Final = 1
"""Timeout in seconds of a watch that reads past changes; these changes arrive at once."""
_ROUNDS: Final = 20


class Past(NamedTuple):
    """Changes since the previous recorder stopped, in the API server's order."""

    observations: list[Observation]
    forgotten: tuple[str, ...]
    """Kinds for which the API server no longer has all changes since the previous recorder stopped."""


class _WatchedChange(NamedTuple):
    """A change that a watch of past changes has reported."""

    version: int
    kind: str
    what: str
    obj: Any


def past(client: Client, positions: Mapping[str, str], until: Mapping[str, str], since: int, now: int) -> Past:
    """Read all changes between two resource versions of each kind; API servers keep changes for a few minutes.

    The changes happened between the times `since` and `now`.
    """
    with ThreadPoolExecutor(len(KINDS)) as pool:
        changes = pool.map(
            lambda kind: _between(client, kind, positions.get(kind.plural, ""), until[kind.plural]), KINDS
        )
        found = [*changes]
    events = sorted((each for one in found for each in one or ()), key=lambda each: each.version)
    observations = [
        Observation(event.kind, meta.uid, event.obj, event.what == "DELETED", moment, meta.namespace)
        for event, moment in zip(events, moments(events, since, now), strict=True)
        for meta in [event.obj.metadata]
    ]
    return Past(observations, tuple(kind.plural for kind, one in zip(KINDS, found, strict=True) if one is None))


def moments(events: Sequence[_WatchedChange], since: int, now: int) -> list[ObservationTime]:
    """Return the time of each change, as precisely as the order of changes allows.

    A change cannot be older than any time that its object, or the object of an earlier change, contains. A change
    cannot be newer than an object that was created after the change. Times that tenants are able to write are ignored.
    """
    least, lower = since, list[int]()
    for event in events:
        known = [event.obj.metadata.creation_timestamp, *(stamps(event.obj) if isinstance(event.obj, core.Pod) else ())]
        seconds = [at for at in map(meta.readable_time, known) if at is not None]
        least = min(max([least, *(round(at * MS) for at in seconds)]), now)
        lower.append(least)
    most, found = now, list[ObservationTime]()
    for event, first in zip(reversed(events), reversed(lower), strict=True):
        created = meta.readable_time(event.obj.metadata.creation_timestamp)
        if event.what == "ADDED" and created is not None:
            most = max(min(most, round(created * MS) + MS - 1), since)
        last = max(first, most)
        found.append(ObservationTime((first + last) // 2, live=True, within=(last - first) // 2))
    return found[::-1]


def _between(client: Client, kind: Resource[Any], version: str, until: str) -> list[_WatchedChange] | None:
    """Return the changes of one kind between two resource versions; None if the API server no longer has them."""
    if not version:
        return None
    found: list[_WatchedChange] = []
    last = int(until or 0)
    try:
        for _ in range(_ROUNDS):
            before = version
            watched = client.watch(kind, resource_version=version, timeout_s=_WATCH_S)
            for what, obj in watched:
                version = obj.metadata.resource_version
                if int(version) > last:
                    watched.close()
                    return found
                if what != "BOOKMARK":
                    found.append(_WatchedChange(int(version), kind.plural, what, obj))
            if version == before or int(version) >= last:
                return found
    except Gone:
        return None
    except APIError as error:
        log.warning("events during this time cannot be read", resource=kind.plural, why=str(error))
        return None
    return found


class KnownObjects(NamedTuple):
    """UIDs of the objects that have not ended according to the store.

    The UID of a Job is paired with the Job's namespace.
    """

    pods: set[str]
    groups: set[str]
    jobs: set[str]


def known_of(entries: Entries) -> KnownObjects:
    """Return the objects that have not ended according to the recorder's entries."""
    return KnownObjects(
        {key for key, each in entries.holdings.items() if each.node}, set(entries.runs), set(entries.of_owner)
    )


def close_unlisted(entries: Entries, known: KnownObjects, listed: Sequence[Observation], since: int, now: int) -> int:
    """Record the end of objects that no longer exist; return the number of members among these objects.

    The objects have ended at an unknown time between `since` and `now`.
    """
    there: dict[str, set[str]] = defaultdict(set)
    for observation in listed:
        there[observation.kind].add(observation.key if observation.kind == RECORDED_JOBS.plural else observation.uid)
    middle = ObservationTime((since + now) // 2, live=False)
    count = members.unseen(entries, known.pods - there[RECORDED_PODS.plural], since, now)
    for uid in known.groups - there[POD_GROUPS.plural]:
        if not uid.startswith(members.PODS_ONLY):
            gangruns.group_gone(entries, uid, middle)
    for key in known.jobs - there[RECORDED_JOBS.plural]:
        gangruns.job_gone(entries, key, middle)
    for uid in known.groups & entries.runs.keys():  # placements that changed meanwhile were read before the pods
        spares.settle(entries, uid, now)
    return count


def gap_text(*, missing: bool) -> str:
    """Return a text for users about data that is missing or inexact because no recorder was running for a time."""
    known = "the events of this time were read later: no event is missing, and times are exact to the second"
    forgotten = (
        "the API server no longer has the changes; pods that started and ended in this time are missing; other ends "
        "are recorded in its middle"
    )
    return f"the recorder did not run; {forgotten if missing else known}"
