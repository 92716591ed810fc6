"""`muster explain` on the server: planner cycles over the server's caches, for users who cannot list the cluster."""

import time
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from typing import Any, Final, NamedTuple

from starlette.exceptions import HTTPException

from extender.explain.clusterdump import ClusterDump
from extender.explain.find import explain as explain_in
from extender.explain.pools import in_pool, pool_of_object
from extender.explain.reader import ALL, Viewer
from extender.explain.report import GangReport, PodReport, UnknownNameError
from extender.explain.whatif import WhatIf
from muster.api.base import Resource
from muster.api.kubernetes import core, meta, scheduling
from muster.api.muster.pools import DEFAULT_POOL
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES
from web.caches import PageCaches
from web.slow import SlowWork, StaleWhileRevalidate
from web.view import Caller

TRIALS_S: Final = 10.0
"""Time limit in seconds for the search for changes that would let a gang start. After this time, no more changes are
tried, because other requests wait."""
UNREADABLE: Final = (
    "the extender's published configuration cannot be read; the cluster's administrator can find the reason"
)
_ASKED: Final[tuple[Resource[Any], ...]] = (POD_GROUPS, scheduling.NATIVE_POD_GROUPS, JOBS, core.PODS)
"""Kinds of objects that a request for an explanation may name. Pods are not tracked separately, because a change of a
pod also changes the status of its gang."""


class Explained(NamedTuple):
    """A report, and the time of the cluster state that the report describes."""

    report: GangReport | PodReport
    at: float
    """Time of the cluster state, in seconds since the epoch."""


class _ExplainedCluster:
    """The cluster state at one moment, with the planner cycles over this state.

    Each node pool has one cycle whose reports contain other users' names, and one whose reports do not.
    """

    def __init__(self, dump: ClusterDump) -> None:
        self.dump = dump
        self._made: dict[tuple[str, bool], WhatIf] = {}

    def what_if_of(self, pool: str, *, names: bool) -> WhatIf:
        """Return the cycle for a node pool, whose reports have or do not have names of other users' objects.

        Only one thread at a time is allowed to use the cycle.
        """
        known = self._made.get((pool, names))
        if known is None:
            other = self._made.get((pool, not names))
            if other:
                known = other.for_readers(names_others=names)
            else:
                known = WhatIf(in_pool(self.dump, pool or DEFAULT_POOL), names_others=names)
            self._made[pool, names] = known
        return known


class Explainer:
    """Explainer of gangs, which runs planner cycles over the caches for one request at a time.

    It takes seconds to read a large cluster and to run a cycle. Therefore the cluster is read in the background, and
    the explained state may be slightly older than the caches. The state of the requested gang itself is always current.
    """

    def __init__(self, caches: PageCaches, prepare: Callable[[ClusterDump], None] = lambda _: None) -> None:
        self._caches = caches
        self._prepare = prepare
        """Function that adds the inputs of the running extenders to a dump."""
        self._slots = SlowWork("are explained")
        self._cluster: StaleWhileRevalidate[_ExplainedCluster] = StaleWhileRevalidate()
        self._dump: StaleWhileRevalidate[ClusterDump] = StaleWhileRevalidate()

    def explain(self, caller: Caller, kind: str, namespace: str, name: str) -> Explained:
        """Return a report without names of other users' objects.

        Raises HTTPException 404 if there is no such object, and 429 if too many requests wait.
        """
        with self._slots.taken(caller.account):
            cluster = self._cluster.value(self._caches.total, self._read_cluster)
            if not self._has(cluster.dump, namespace, name):
                cluster = self._cluster.renewed(self._caches.total, self._read_cluster)
            dump = cluster.dump
            reader = ALL if caller.everything else self._reader(dump, caller)
            try:
                what_if = cluster.what_if_of(pool_of_object(dump, kind, name, namespace), names=caller.everything)
                over = time.monotonic() + TRIALS_S
                report = explain_in(what_if, kind, name, namespace, lambda: time.monotonic() > over, reader)
            except UnknownNameError as error:
                raise HTTPException(HTTPStatus.NOT_FOUND, str(error)) from error
            except ValueError as error:
                raise HTTPException(HTTPStatus.CONFLICT, str(error) if caller.everything else UNREADABLE) from error
        return Explained(report, dump.taken_at)

    def warm(self) -> None:
        """Read the cluster, and run the first cycle over its state, before the first request."""
        self._cluster.value(self._caches.total, self._read_cluster)

    def dump(self) -> ClusterDump:
        """Return the cluster state, which may be slightly old in a large cluster.

        Callers must not change the returned state.
        """
        return self._dump.value(self._caches.total, self._read_dump)

    def _read_cluster(self) -> _ExplainedCluster:
        cluster = _ExplainedCluster(self._dump.renewed(self._caches.total, self._read_dump))
        with suppress(UnknownNameError, ValueError):  # the caller gets an error about the unreadable configuration
            cluster.what_if_of(DEFAULT_POOL, names=True).decided()
        return cluster

    def _read_dump(self) -> ClusterDump:
        dump = self._caches.dump()
        self._prepare(dump)
        return dump

    def _has(self, dump: ClusterDump, namespace: str, name: str) -> bool:
        """Return True if a dump has the current version of all workloads and gangs with this name."""
        return all(
            _named(self._caches.objects_in(resource, namespace), namespace, name)
            == _named(dump.objects_of(resource), namespace, name)
            for resource in _ASKED
        )

    def _reader(self, dump: ClusterDump, caller: Caller) -> Viewer:
        seen = {name: caller.scope.has(name) for name in self._caches.namespaces()}
        used = {row.queue for name, visible in seen.items() if visible for row in self._caches.rows(name)}
        hidden = {queue.metadata.name for queue in dump.objects_of(QUEUES) if not caller.queues} - used
        return Viewer(partial(self._called, hidden), caller.scope.has, hidden)

    def _called(self, hidden: Collection[str], namespace: str, name: str) -> str:
        """Return a text that is shown instead of the name of a gang in another namespace.

        The text does not contain the gang's name, but contains the name of the gang's queue if the user may see the
        queue.
        """
        row = next((row for row in self._caches.rows(namespace) if name in {row.name, row.gang}), None)
        if row is None:
            return "something of another namespace"
        return "a gang of another namespace" + (f" (queue {row.queue})" if row.queue not in hidden else "")


def _named(items: Iterable[meta.Object], namespace: str, name: str) -> dict[str, str]:
    """Return a mapping from UID to resource version of the objects whose name, or whose owner's name, is `name`."""
    return {
        each.metadata.uid: each.metadata.resource_version
        for each in items
        if each.metadata.namespace == namespace
        and (each.metadata.name == name or any(owner.name == name for owner in each.metadata.owner_references))
    }
