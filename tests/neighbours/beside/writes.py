"""What Muster did to a plane: how often its processes wrote to one object, and what its webhook refused.

Both are told by others: by the API server's audit log, and by a counter of the webhook.
"""

import re
import urllib.request
from collections import defaultdict
from collections.abc import Mapping
from http import HTTPStatus
from typing import NamedTuple

import audits

from musterctl.plane.plane import Plane

LIMIT = 10
"""Writes to one object in a minute that are not a loop yet."""
_MINUTE_S = 60.0
_WRITES = frozenset({"create", "update", "patch", "delete"})
_CLOCKS = frozenset({"leases"})
"""Kinds that are there to be written all the time."""
_DENIED = re.compile(r'^muster_webhook_reviews_total\{outcome="denied",route="([^"]+)"\} (\S+)$', re.MULTILINE)


class Written(NamedTuple):
    """An object that a process of Muster has written to. All Events about an object count as one of that name."""

    process: str
    resource: str
    namespace: str
    name: str


def most_in_a_minute(plane: Plane) -> dict[Written, int]:
    """The most writes to each object in any minute so far, also those that the API server has refused.

    What was meant for an object that is gone has written to none.
    """
    moments = defaultdict[Written, list[float]](list)
    for one in audits.asked(plane):
        resource = one.use.resource.partition("/")[0]
        if one.use.verb not in _WRITES or resource in _CLOCKS or not one.name or one.code == HTTPStatus.NOT_FOUND:
            continue
        name = one.name.rpartition(".")[0] or one.name if resource == "events" else one.name
        moments[Written(one.use.process, resource, one.namespace, name)].append(one.moment_s)
    return {written: _densest(sorted(found)) for written, found in moments.items()}


def loops(plane: Plane, namespace: str, starts: Mapping[str, int] | None = None) -> list[str]:
    """The objects of a namespace that were written more often in some minute, each as a sentence; the worst first.

    `starts` says how often gangs have started: the objects of one that starts again and again do not wait, and each
    start may cost as much as the first. Events about a workload are about all its gangs.
    """
    starts = starts or {}
    found = []
    for each, count in most_in_a_minute(plane).items():
        times = sum(starts.values()) if each.resource == "events" else starts.get(each.name, 0)
        if each.namespace == namespace and count > LIMIT * max(1, times):
            found.append((count, each))
    return [
        f"{each.process} wrote {count} times in a minute to {each.resource} {each.name}"
        for count, each in sorted(found, reverse=True)
    ]


def refused(plane: Plane) -> dict[str, int]:
    """The reviews that Muster's webhook has answered with a refusal, by route."""
    url = f"http://127.0.0.1:{plane.state.ports['webhook-status']}/metrics"
    with urllib.request.urlopen(url, timeout=10) as answer:
        return {route: int(float(count)) for route, count in _DENIED.findall(answer.read().decode())}


def _densest(moments: list[float]) -> int:
    """The largest number of moments, which are in order, that lie within one minute."""
    most = first = 0
    for last, moment in enumerate(moments):
        while moment - moments[first] > _MINUTE_S:
            first += 1
        most = max(most, last - first + 1)
    return most
