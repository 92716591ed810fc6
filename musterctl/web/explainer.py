"""`muster explain` by the server: the planner's cycle over its caches, for those who may not list the cluster."""

import threading
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from typing import Final

from starlette.exceptions import HTTPException

from extender.explain.clusterdump import ClusterDump
from extender.explain.find import explain as explain_in
from extender.explain.pools import in_pool, pool_of_object
from extender.explain.report import GangReport, PodReport, UnknownNameError
from extender.explain.whatif import WhatIf
from extender.planner.reasons.grammar import many
from muster.api.kubernetes.core import PODS
from muster.api.muster.pools import DEFAULT_POOL
from muster.api.volcano.scheduling import QUEUES
from muster.resources.gpus import is_gpu
from muster.resources.pods import pod_requests
from musterctl.gangs.rows import gang_name
from musterctl.web.caches import Caches
from musterctl.web.caller import Caller
from musterctl.web.turns import Turns
from musterctl.web.unnamed import Unnamed

TRIALS_S: Final = 10.0
"""After that no more changes are tried that would help: others wait for their turn, and pages for the processor."""
FRESH_S: Final = 10.0
"""So long a cluster is explained that has changed since: to take it up anew costs seconds where it is large."""


class Explainer:
    """Explains gangs of the caches, one at a time; the state of a pool serves until something has changed."""

    def __init__(self, caches: Caches, prepare: Callable[[ClusterDump], None] = lambda _: None) -> None:
        self._caches = caches
        self._prepare = prepare
        """Puts into a dump what the extenders run with."""
        self._turns = Turns("are explained")
        self._taking = threading.Lock()
        self._dump: ClusterDump | None = None
        self._total = -1
        self._made: dict[tuple[str, bool], tuple[ClusterDump, WhatIf]] = {}

    def explain(self, caller: Caller, kind: str, namespace: str, name: str, now: float) -> GangReport | PodReport:
        """Return a report without the names of others; HTTPException 404, or 429 while others have their turn."""
        dump = self.dump(now)
        unnamed = None if caller.everything else self._unnamed(dump, caller)
        with self._turns.taken():
            try:
                what_if = self._what_if(dump, pool_of_object(dump, kind, name, namespace), names=unnamed is None)
                over = time.monotonic() + TRIALS_S
                report = explain_in(what_if, kind, name, namespace, lambda: time.monotonic() > over)
            except (UnknownNameError, ValueError) as error:
                status = HTTPStatus.NOT_FOUND if isinstance(error, UnknownNameError) else HTTPStatus.CONFLICT
                raise HTTPException(status, unnamed.text(str(error)) if unnamed else str(error)) from error
        return unnamed.of(report) if unnamed else report

    def dump(self, now: float) -> ClusterDump:
        """Return the cluster as it is explained: it may be a little old where it is large. Nobody may change it."""
        with self._taking:
            known, total = self._dump, self._caches.total
            if known is None or (total != self._total and now - known.taken_at > FRESH_S):
                known = self._caches.dump()
                self._prepare(known)
                self._dump, self._total = known, total
            return known

    def _what_if(self, dump: ClusterDump, pool: str, *, names: bool) -> WhatIf:
        made = self._made.get((pool, names))
        if made is None or made[0] is not dump:
            self._made = {
                key: each for key, each in self._made.items() if each[0] is dump
            }  # the others are of the past
            made = self._made[pool, names] = dump, WhatIf(in_pool(dump, pool or DEFAULT_POOL), names_others=names)
        return made[1]

    def _unnamed(self, dump: ClusterDump, caller: Caller) -> Unnamed:
        seen = {name: caller.scope.has(name) for name in self._caches.namespaces()}
        used = {row.queue for name, his in seen.items() if his for row in self._caches.rows(name)}
        hidden = {queue.metadata.name for queue in dump.of(QUEUES) if not caller.queues} - used
        return Unnamed(caller.scope, self._caches.known_namespaces(), hidden, partial(self._called, hidden))

    def _called(self, hidden: Collection[str], namespace: str, name: str) -> str:
        """Return the words for a gang of another namespace: its queue, if that may be known, and what it holds."""
        found = [row for row in self._caches.rows(namespace) if name in {row.name, row.gang}]
        if not found:
            return "something of another namespace"
        row, gpus = found[0], 0
        for pod in self._caches.of(PODS, namespace):
            if gang_name(pod) == row.gang and not pod.finished:
                with suppress(ValueError):
                    gpus += sum(amount for what, amount in pod_requests(pod.spec).items() if is_gpu(what))
        told = [f"queue {row.queue}"] if row.queue not in hidden else []
        told.append(many(gpus // 1000, "GPU") if gpus else many(row.wanted, "pod"))
        return f"a gang of another namespace ({', '.join(told)})"
