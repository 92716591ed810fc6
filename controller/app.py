"""The controller as a whole: caches, which a standby has too, and handlers and workers, which run in the leader."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from controller.caches import kept
from controller.cron.controller import CRON_INDEX, CronJobs, cron_keys
from controller.flow.controller import TEMPLATE_INDEX, JobFlows, template_keys
from controller.gangs.native import NativeGroups
from controller.gangs.podgroups import GROUP_INDEX, NATIVE_INDEX, PodGroups, group_keys, native_keys
from controller.gangs.rendezvous import Rendezvous
from controller.job.context import JOB_INDEX, Context
from controller.job.effects import AT_ONCE, Effects
from controller.job.expectations import Expectations
from controller.job.objects import Groups, Objects
from controller.job.pending_events import PendingEvents
from controller.job.reconcile import Reconciler
from controller.job.rules.events import command_issued, group_changed, job_changed, pod_changed, pod_matters
from controller.job.writer import StatusWriter
from controller.queues.controller import (
    PARENT_INDEX,
    QUEUE_INDEX,
    Queues,
    native_queue_names,
    parent_names,
    queue_names,
)
from controller.shipped import Manifest, Shipped
from controller.trainjob.controller import TrainJobs
from controller.trainjob.report import Authorities
from controller.trainjob.runtimes import Finalizers
from controller.worker import Worker
from muster.api.kubernetes.core import PODS, PRIORITY_CLASSES, Pod
from muster.api.kubernetes.meta import Object
from muster.api.kubernetes.scheduling import NATIVE_POD_GROUPS, NativePodGroup
from muster.api.volcano.batch import COMMANDS, JOBS, Command, Job
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES, PodGroup, Queue
from muster.kube.budget import Budget
from muster.kube.client import Client
from muster.kube.events import Recorder
from muster.kube.reflector import Reflector, not_ready
from muster.kube.store import Store
from muster.runtime.framework import Framework
from muster.runtime.train_job import Target
from muster.volcano.tasks import job_of, job_of_pod

GATHER_S = 0.1
"""Delay of the pass after an event of a pod, so that one pass handles the events of all pods of the Job; also after
changes that are mostly this controller's own: a phase that was written, a PodGroup that was created or deleted."""


def _job_of(pod: Pod) -> list[str]:
    job = job_of_pod(pod.metadata)
    return [job.entry] if job else []


class Controller:
    """All controllers for one API server; `workers` threads share the Jobs.

    `at_once` bounds the calls about pods in flight, `gather_s` is the delay of passes after events of pods; `shipped`
    are the objects of the installation, `authorities` the certificates that trainers trust when they report. Gangs are
    published as Kubernetes' own PodGroups, too, with `native_groups`.
    """

    def __init__(
        self,
        client: Client,
        workers: int,
        *,
        monotonic_s: Callable[[], float] = time.monotonic,
        wall_s: Callable[[], float] = time.time,
        at_once: int = AT_ONCE,
        gather_s: float = GATHER_S,
        shipped: Sequence[Manifest] = (),
        framework: Framework | None = None,
        authorities: Authorities | None = None,
        target: Target = "Job",
        native_groups: bool = False,
    ) -> None:
        self._monotonic_s, self._wall_s = monotonic_s, wall_s
        self._gather_s = gather_s
        pods = Store[Pod]({JOB_INDEX: _job_of, GROUP_INDEX: group_keys, NATIVE_INDEX: native_keys})
        jobs = Store({TEMPLATE_INDEX: template_keys, CRON_INDEX: cron_keys}, packed=Job)
        self._jobs = Reflector(client, JOBS, store=jobs, budget=Budget(JOBS))
        self._pods = Reflector(client, PODS, store=pods, keep=kept)
        self._groups = Reflector(
            client, POD_GROUPS, store=Store[PodGroup]({QUEUE_INDEX: queue_names}), budget=Budget(POD_GROUPS)
        )
        self._natives = Reflector(
            client,
            NATIVE_POD_GROUPS,
            store=Store[NativePodGroup]({QUEUE_INDEX: native_queue_names}),
            budget=Budget(NATIVE_POD_GROUPS),
            may_be_absent=True,
        )
        self._commands = Reflector(client, COMMANDS)
        self._queues = Reflector(client, QUEUES, store=Store[Queue]({PARENT_INDEX: parent_names}))
        self._priorities = Reflector(client, PRIORITY_CLASSES)
        self._recorder = Recorder(client, "muster-controller")
        self._expectations = Expectations(monotonic_s)
        self._pending_events = PendingEvents()
        self._effects = Effects(client, self._expectations, self._recorder, at_once, monotonic_s=monotonic_s)
        self._worker = Worker("job", self._process, threads=workers, monotonic_s=monotonic_s)
        self.job_flows = JobFlows(client, self._recorder, jobs, monotonic_s=monotonic_s, wall_s=wall_s)
        self.native_groups = (
            NativeGroups(client, self._groups.store, self._natives.store, pods, monotonic_s=monotonic_s, wall_s=wall_s)
            if native_groups
            else None
        )
        self._reconciler = Reconciler(self._context(client), self._pending_events)
        self.queue_controller = Queues(
            client,
            self._recorder,
            self._queues.store,
            self._groups.store,
            self._natives.store,
            pods,
            monotonic_s=monotonic_s,
        )
        self.group_controller = PodGroups(client, self._recorder, pods, self._groups.store, monotonic_s=monotonic_s)
        self.rendezvous = Rendezvous(client, self._recorder, pods, monotonic_s=monotonic_s)
        self.train_jobs = TrainJobs(
            client,
            self._recorder,
            self._jobs.store,
            self._groups.store,
            lambda job: pods.by_index(JOB_INDEX, job),
            framework=framework,
            authorities=authorities,
            target=target,
            threads=workers,
            monotonic_s=monotonic_s,
            wall_s=wall_s,
        )
        self.cron_jobs = CronJobs(client, self._recorder, jobs, monotonic_s=monotonic_s, wall_s=wall_s)
        self.finalizers = Finalizers(client, monotonic_s=monotonic_s)
        self.shipped = Shipped(client, [*shipped], monotonic_s=monotonic_s)
        self._leading = threading.Event()
        self._connect()

    def start(self) -> None:
        """Starts the caches, also of a standby, so that it takes over at once."""
        self._recorder.start()
        for reflector in self.reflectors.values():
            reflector.start()
        self.train_jobs.watched.start()

    def not_ready(self) -> str | None:
        """A sentence while a kind was never read, or cannot be read any more; None otherwise."""
        unfilled = [] if self.train_jobs.watched.synced else ["kinds that plugins watch"]
        return not_ready(self.reflectors, *unfilled)

    def sizes(self) -> dict[str, int]:
        """The number of objects in each cache and of keys in each worker's queue."""
        caches = {name: reflector.size for name, reflector in self.reflectors.items()}
        return caches | {f"{worker.name} queue": len(worker.queue) for worker in self.workers}

    def wait_synced(self, timeout_s: float) -> bool:
        """Waits until all caches are in sync; False if that takes longer."""
        end = time.monotonic() + timeout_s
        return all(reflector.wait_synced(max(0.0, end - time.monotonic())) for reflector in self.reflectors.values())

    def lead(self, may_act: Callable[[], bool]) -> None:
        """Starts the workers, first on every object; `may_act` is called before each pass."""
        self.take_over(may_act)
        for worker in self.workers:
            worker.start()

    def take_over(self, may_act: Callable[[], bool]) -> None:
        """`lead` without its threads: fills the queues."""
        for worker in self.workers:
            worker.may_act = may_act
        self._leading.set()
        for reflector, handler in self._handlers:
            for obj in reflector.store.list():
                handler(None, obj)
        self.queue_controller.replay()
        self.shipped.replay()
        if self.native_groups:
            self.native_groups.replay()

    def stop(self) -> None:
        """Ends the workers, then the caches that they read."""
        self._leading.clear()
        for worker in self.workers:
            worker.queue.shut_down()
        for worker in self.workers:
            worker.stop()
        for reflector in self.reflectors.values():
            reflector.stop()
        self.train_jobs.watched.stop()
        self._effects.close()
        self._recorder.stop()

    def _context(self, client: Client) -> Context:
        return Context(
            client=client,
            recorder=self._recorder,
            jobs=self._jobs.store,
            pod_store=self._pods.store,
            expectations=self._expectations,
            effects=self._effects,
            groups=Groups(client, self._groups.store, self._priorities.store.list, self._expectations),
            objects=Objects(client),
            writer=StatusWriter(client, self._expectations, self._worker.queue.add_after, self._monotonic_s),
            requeue_after=self._worker.queue.add_after,
            others_wait=self._worker.queue.others_wait,
            needed=self.job_flows.needs,
            joins_native=self.native_groups.joins if self.native_groups else lambda _: False,
            wall_s=self._wall_s,
        )

    def _connect(self) -> None:
        self.reflectors: dict[str, Reflector[Any]] = {
            "jobs": self._jobs,
            "pods": self._pods,
            "podgroups": self._groups,
            "native podgroups": self._natives,
            "commands": self._commands,
            "queues": self._queues,
            "priorityclasses": self._priorities,
            **self.train_jobs.reflectors,
            **self.job_flows.reflectors,
            **self.cron_jobs.reflectors,
            **self.finalizers.reflectors,
        }
        groups = (self.queue_controller, self.group_controller, self.rendezvous)
        self.workers = [
            self._worker,
            *(each.worker for each in (*groups, self.train_jobs, self.finalizers, self.shipped)),
            *(self.job_flows.worker, self.job_flows.list_worker, self.cron_jobs.worker),
            *([self.native_groups.worker] if self.native_groups else []),
        ]
        self._handlers: list[tuple[Reflector[Any], Any]] = [
            (self._jobs, self._job_seen),
            (self._groups, self._group_seen),
            (self._natives, self._native_seen),
            (self._pods, self._pod_seen),
            (self._commands, self._command_seen),
            (self._queues, self.queue_controller.queue_seen),
            *self.train_jobs.handlers,
            *self.job_flows.handlers,
            *self.cron_jobs.handlers,
            *self.finalizers.handlers,
        ]
        for budgeted in self.reflectors.values():
            if budgeted.mirror.budget is not None:
                budgeted.mirror.refused.append(self._left_out)
        self._jobs.add_handler(self._expectations.jobs.seen)
        self._pods.add_handler(self._expectations.pod_seen)
        self._groups.add_handler(self._expectations.groups.seen)
        for reflector, handler in self._handlers:
            reflector.add_handler(self._when_leading(handler))

    def _when_leading(self, handler: Any) -> Any:
        """The handler, for a leader only: a standby keeps caches, but no queues."""

        def handle(old: Any, new: Any) -> None:
            if self._leading.is_set():
                handler(old, new)

        return handle

    def _left_out(self, obj: Object, why: str) -> None:
        """Tells the owner of an object that it is not looked at."""
        if self._leading.is_set():
            self._recorder.event(obj, "Warning", "LeftOut", f"Muster does not look at this {obj.kind}: {why}")

    def _process(self, key: str) -> None:
        self._reconciler.process(key)

    def _job_seen(self, old: Job | None, new: Job | None) -> None:
        job = new or old
        if job is None:
            return
        if new is None or (old and old.metadata.uid != new.metadata.uid):
            self._pending_events.put_gone(old or job)
        if job_changed(old, new):
            asked = old is None or new is None or old.metadata.generation != new.metadata.generation
            self._worker.queue.add_after(job.metadata.key, 0.0 if asked else self._gather_s)
        self.train_jobs.job_seen(old, new)
        self.job_flows.job_seen(old, new)
        self.cron_jobs.job_seen(old, new)

    def _pod_seen(self, old: Pod | None, new: Pod | None) -> None:
        pod = new or old
        job = job_of_pod(pod.metadata) if pod else None
        if job and pod_matters(old, new):
            self._pending_events.put(job.key, pod_changed(old, new))
            self._worker.queue.add_after(job.key, self._gather_s)
        elif not job:
            self.group_controller.pod_seen(old, new)
        self.queue_controller.pod_seen(old, new)
        self.rendezvous.pod_seen(old, new)
        self.train_jobs.pod_seen(old, new)

    def _group_seen(self, old: PodGroup | None, new: PodGroup | None) -> None:
        group = new or old
        job = job_of(group.metadata) if group else None
        request = group_changed(old, new)
        if job and request:
            self._pending_events.put(job.key, request)
            if old and new and old.status.phase != new.status.phase == "Inqueue":
                # The gang may have its nodes: its pods come before those of later Jobs of its namespace.
                self._worker.queue.add(job.key, first=True)
            else:
                self._worker.queue.add_after(job.key, 0.0 if old and new else self._gather_s)
        elif not job:
            self.group_controller.group_seen(old, new)
            self.train_jobs.group_seen(old, new)
        self.queue_controller.group_seen(old, new)
        if self.native_groups:
            self.native_groups.group_seen(old, new)

    def _native_seen(self, old: NativePodGroup | None, new: NativePodGroup | None) -> None:
        self.queue_controller.native_seen(old, new)
        if self.native_groups:
            self.native_groups.native_seen(old, new)

    def _command_seen(self, old: Command | None, new: Command | None) -> None:
        self.queue_controller.command_seen(old, new)
        found = command_issued(new) if new and old is None else None
        if found:
            key, request = found
            self._pending_events.put(key, request)
            self._worker.queue.add(key)
