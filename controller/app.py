"""The controller process: its caches run in every replica; its handlers and workers run only in the leader."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from controller.caches import SharedCaches
from controller.cron.controller import CronJobs
from controller.flow.controller import JobFlows, JobTemplates
from controller.gangs.native import NativeGroupWorker
from controller.gangs.podgroups import PodGroups
from controller.gangs.rendezvous import Rendezvous
from controller.job.controller import GATHER_S, Jobs
from controller.job.effects import AT_ONCE
from controller.kit import KeyController, Kit
from controller.queues.controller import QueueController
from controller.shipped import Manifest, Shipped
from controller.trainjob.controller import TrainJobs
from controller.trainjob.report import Authorities
from controller.trainjob.runtimes import Finalizers
from muster.api.kubernetes.core import Lease
from muster.api.kubernetes.meta import Object
from muster.kube.client import Client
from muster.kube.events import EventWriter
from muster.kube.readable import not_ready
from muster.kube.store import Handler
from muster.runtime.framework import Framework
from muster.runtime.train_job import Target


class Controller:
    """All controllers for one API server.

    `workers` is the number of threads that process Jobs. `at_once` limits the concurrent calls that create and delete
    pods, and `gather_s` delays passes after pod events. `shipped` are the objects that the installation applies, and
    `lease` gets the Events about refused objects. `authorities` are the CA certificates that trainers trust. With
    `network_policies`, TrainJobs get a NetworkPolicy by default. With `native_groups`, gangs are also published as
    native PodGroups.
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
        lease: Lease | None = None,
        framework: Framework | None = None,
        authorities: Authorities | None = None,
        target: Target = "Job",
        network_policies: bool = True,
        native_groups: bool = False,
    ) -> None:
        kit = Kit(client, EventWriter(client, "muster-controller"), monotonic_s, wall_s)
        self._recorder, self._leading, caches = kit.recorder, threading.Event(), SharedCaches(client)
        templates = JobTemplates(kit, caches)
        self.job_flows = JobFlows(kit, caches, templates.cache)
        native = NativeGroupWorker(kit, caches) if native_groups else None
        self.queues = QueueController(kit, caches)
        self.jobs = Jobs(
            kit,
            caches,
            needed=self.job_flows.needs,
            joins_native=native.joins if native else lambda _: False,
            limited=self.queues.limited,
            threads=workers,
            at_once=at_once,
            gather_s=gather_s,
        )
        self.train_jobs = TrainJobs(
            kit,
            caches,
            framework=framework,
            authorities=authorities,
            target=target,
            network_policies=network_policies,
            threads=workers,
        )
        self._controllers: list[KeyController] = [
            self.jobs,
            self.queues,
            PodGroups(kit, caches),
            Rendezvous(kit, caches, framework),
            self.train_jobs,
            Finalizers(kit),
            Shipped(kit, shipped, lease),
            self.job_flows,
            templates,
            CronJobs(kit, caches),
            *([native] if native else []),
        ]
        self.workers = [each.worker for each in self._controllers]
        self.reflectors = dict(caches.reflectors)
        for controller in self._controllers:
            self.reflectors |= controller.reflectors
            for reflector, handler in controller.handlers:
                reflector.add_handler(self._when_leading(handler))
        for reflector in self.reflectors.values():
            if reflector.mirror.budget is not None:
                reflector.mirror.refused.append(self._left_out)

    def start(self) -> None:
        """Start the caches, even in a standby process, so that the process can take over at once."""
        self._recorder.start()
        for reflector in self.reflectors.values():
            reflector.start()
        self.train_jobs.watched.start()
        self.queues.offers.reflector.start()

    def not_ready(self) -> str | None:
        """Return a message while a cache has not been filled yet or its kind can no longer be read; otherwise None."""
        unfilled = [] if self.train_jobs.watched.synced else ["kinds that plugins watch"]
        return not_ready(self.reflectors, *unfilled)

    def sizes(self) -> dict[str, int]:
        """Return the number of objects in each cache and of keys in each worker's queue."""
        caches = {name: reflector.size for name, reflector in self.reflectors.items()}
        return caches | {f"{worker.name} queue": len(worker.queue) for worker in self.workers}

    def wait_synced(self, timeout_s: float) -> bool:
        """Wait until all caches are in sync; return False after the timeout."""
        end = time.monotonic() + timeout_s
        return all(reflector.wait_synced(max(0.0, end - time.monotonic())) for reflector in self.reflectors.values())

    def lead(self, may_act: Callable[[], bool]) -> None:
        """Start the workers. The workers process every existing object first, and call `may_act` before each pass."""
        self.take_over(may_act)
        for worker in self.workers:
            worker.start()

    def take_over(self, may_act: Callable[[], bool]) -> None:
        """Fill the work queues like `lead`, but start no threads."""
        for worker in self.workers:
            worker.may_act = may_act
        self._leading.set()
        for reflector in self.reflectors.values():
            for obj in reflector.store.list():
                for handler in reflector.mirror.handlers:
                    handler(None, obj)
        for controller in self._controllers:
            controller.replay()

    def stop(self) -> None:
        """Stop the workers, then the caches that they read."""
        self._leading.clear()
        for worker in self.workers:
            worker.queue.shut_down()
        for worker in self.workers:
            worker.stop()
        for reflector in self.reflectors.values():
            reflector.stop()
        self.train_jobs.watched.stop()
        self.queues.offers.reflector.stop()
        self.jobs.close()
        self._recorder.stop()

    def _when_leading(self, handler: Handler[Any]) -> Handler[Any]:
        """Wrap a handler so that it only runs in the leader: a standby has caches but no queues."""

        def handle(old: Any, new: Any) -> None:
            if self._leading.is_set():
                handler(old, new)

        return handle

    def _left_out(self, obj: Object, why: str) -> None:
        """Report in an Event that Muster ignores an object."""
        if self._leading.is_set():
            self._recorder.event(obj, "Warning", "LeftOut", f"Muster ignores this {obj.kind}: {why}")
