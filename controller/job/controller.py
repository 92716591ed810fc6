"""The controller of Volcano Jobs: changes of a Job's objects cause events of the Job, and passes over the Job."""

from collections.abc import Callable

from controller.caches import SharedCaches, placements_of
from controller.job.context import Context
from controller.job.effects import AT_ONCE
from controller.job.pending_events import PendingEvents
from controller.job.reconcile import Reconciler
from controller.job.rules.events import command_issued, group_changed, job_changed, pod_changed, pod_matters
from controller.kit import KindController, Kit
from muster.api.kubernetes.core import PRIORITY_CLASSES, Pod
from muster.api.muster.placement import Placement
from muster.api.volcano.batch import JOBS, Command, Job
from muster.api.volcano.scheduling import PodGroup
from muster.kube.reflector import Reflector
from muster.volcano.pods import usable
from muster.volcano.tasks import job_of, job_of_pod

GATHER_S = 0.1
"""Delay between a pod event and the pass, in seconds, so that one pass handles the events of all pods of the Job.

The delay also applies after changes that this controller has usually made itself, such as a new phase or PodGroup.
"""


class Jobs(KindController[Job]):
    """The controller of Volcano Jobs.

    `at_once` limits the concurrent calls that create and delete pods, and `gather_s` delays passes after pod events.
    The docstring of `Context` explains `needed` and `joins_native`.
    """

    def __init__(
        self,
        kit: Kit,
        caches: SharedCaches,
        *,
        needed: Callable[[Job], bool],
        joins_native: Callable[[PodGroup], bool],
        limited: Callable[[str], bool] = lambda _: False,
        threads: int = 1,
        at_once: int = AT_ONCE,
        gather_s: float = GATHER_S,
    ) -> None:
        super().__init__(kit, "job", JOBS, caches.jobs, threads=threads)
        self._gather_s = gather_s
        self._pending_events = PendingEvents()
        priorities = self.reflectors["priorityclasses"] = Reflector(kit.client, PRIORITY_CLASSES)
        self._placements = self.reflectors["placements"] = placements_of(kit.client)
        self._context = Context(
            kit,
            caches,
            priorities.store,
            self._placements.store,
            self,
            at_once=at_once,
            needed=needed,
            joins_native=joins_native,
            limited=limited,
        )
        self._groups = caches.groups.store
        self._reconciler = Reconciler(self._context, self._pending_events)
        self.handlers += [
            (caches.groups, self._group_seen),
            (self._placements, self._placement_seen),
            (caches.pods, self._pod_seen),
            (caches.commands, self._command_seen),
        ]

    def process(self, key: str) -> None:
        """Run one pass over one Job."""
        self._reconciler.process(key)

    def close(self) -> None:
        """Stop the threads that create and delete pods."""
        self._context.effects.close()

    def _seen(self, old: Job | None, new: Job | None) -> None:
        self._written.seen(old, new)
        job = new or old
        if job is None:
            return
        if new is None or (old and old.metadata.uid != new.metadata.uid):
            self._pending_events.put_gone(old or job)
        if job_changed(old, new):
            asked = old is None or new is None or old.metadata.generation != new.metadata.generation
            self.worker.queue.add_after(job.metadata.key, 0.0 if asked else self._gather_s)

    def _pod_seen(self, old: Pod | None, new: Pod | None) -> None:
        self._context.expectations.pod_seen(old, new)
        pod = new or old
        job = job_of_pod(pod.metadata) if pod else None
        if job and pod_matters(old, new):
            self._pending_events.put(job.key, pod_changed(old, new))
            self.worker.queue.add_after(job.key, self._gather_s)

    def _group_seen(self, old: PodGroup | None, new: PodGroup | None) -> None:
        self._context.expectations.groups.seen(old, new)
        group = new or old
        job = job_of(group.metadata) if group else None
        request = group_changed(old, new)
        if job is None or request is None:
            return
        self._pending_events.put(job.key, request)
        if old and new and old.status.phase != new.status.phase == "Inqueue":
            # The gang may have its nodes, so its pods come before pods of later Jobs in its namespace.
            self.worker.queue.add(job.key, first=True)
        else:
            self.worker.queue.add_after(job.key, 0.0 if old and new else self._gather_s)

    def _placement_seen(self, old: Placement | None, new: Placement | None) -> None:
        """Queue a Job whose gang has received its nodes, without waiting for the write of the PodGroup's phase."""
        if new is None or new.status.phase != "Planned" or (old and old.spec == new.spec):
            return
        group = self._groups.get(new.metadata.key)
        job = job_of(group.metadata) if group and usable(new, group.metadata.uid) else None
        if job:
            self.worker.queue.add(job.key, first=True)

    def _command_seen(self, old: Command | None, new: Command | None) -> None:
        found = command_issued(new) if new and old is None else None
        if found:
            key, request = found
            self._pending_events.put(key, request)
            self.worker.queue.add(key)
