"""The controller of TrainJobs: its caches, handlers and worker."""

import time
from collections.abc import Callable
from typing import Any

from controller.trainjob.children import TRAIN_JOB_INDEX, Caches, Steps, train_job_keys
from controller.trainjob.obstacle import train_job_key
from controller.trainjob.reconcile import Context, Reconciler, StatusWriter
from controller.trainjob.report import Authorities
from controller.trainjob.rules.status import is_ready, why_the_gang_waits
from controller.trainjob.runtimes import Runtimes
from controller.trainjob.watched import Watched
from controller.worker import Worker
from muster.api import names
from muster.api.kubeflow.trainer import TRAIN_JOBS, TrainJob
from muster.api.kubernetes.core import CONFIG_MAPS, INDEXED_JOBS, IndexedJob, Pod
from muster.api.kubernetes.meta import Object
from muster.api.volcano.batch import Job
from muster.api.volcano.scheduling import PodGroup
from muster.kube.budget import Budget
from muster.kube.client import Client
from muster.kube.events import Recorder
from muster.kube.reflector import Reflector
from muster.kube.store import Store
from muster.runtime import registry
from muster.runtime.framework import Framework
from muster.runtime.train_job import Target
from muster.volcano.tasks import job_of

PODS_S = 0.1
"""Delay of the pass after a change of a pod, so that one pass handles the changes of all pods of a TrainJob."""


class TrainJobs:
    """A worker over `namespace/name` of TrainJobs; `pods_of` gives the pods of a Job (`JobRef.entry`)."""

    def __init__(
        self,
        client: Client,
        recorder: Recorder,
        jobs: Store[Job],
        groups: Store[PodGroup],
        pods_of: Callable[[str], list[Pod]],
        *,
        framework: Framework | None = None,
        authorities: Authorities | None = None,
        target: Target = "Job",
        threads: int = 1,
        monotonic_s: Callable[[], float] = time.monotonic,
        wall_s: Callable[[], float] = time.time,
    ) -> None:
        made = names.TRAIN_JOB
        self._train_jobs = Reflector(client, TRAIN_JOBS, store=Store(packed=TrainJob), budget=Budget(TRAIN_JOBS))
        by_train_job = Store({TRAIN_JOB_INDEX: train_job_keys}, packed=IndexedJob)
        self._initializers = Reflector(client, INDEXED_JOBS, label_selector=made, store=by_train_job)
        self._maps = Reflector(client, CONFIG_MAPS, label_selector=made)
        self.reflectors: dict[str, Reflector[Any]] = {
            "trainjobs": self._train_jobs,
            "jobs of trainjobs": self._initializers,
            "configmaps of trainjobs": self._maps,
        }
        self.handlers: list[tuple[Reflector[Any], Any]] = [
            (self._train_jobs, self._train_job_seen),
            (self._initializers, self._child_seen),
            (self._maps, self._child_seen),
        ]
        framework = framework or registry.framework()
        self.watched = Watched(client, framework, self._child_seen, job_sets=target == "JobSet")
        self.worker = Worker("trainjob", self.process, threads=threads, monotonic_s=monotonic_s)
        caches = Caches(jobs, groups, self._initializers.store, self._maps.store, self.watched, pods_of)
        self.reconciler = Reconciler(
            Context(
                framework=framework,
                target=target,
                watched=self.watched,
                runtimes=Runtimes(client, recorder, self._maps.store, target),
                steps=Steps(client, caches, monotonic_s),
                writer=StatusWriter(client, self._train_jobs.store),
                recorder=recorder,
                requeue_after=self.worker.queue.add_after,
                wall_s=wall_s,
                authorities=authorities,
            )
        )

    def process(self, key: str) -> None:
        """One pass over one TrainJob."""
        self.reconciler.process(key)

    def job_seen(self, old: Job | None, new: Job | None) -> None:
        """Queues the TrainJob of a Job that has changed, if it has one."""
        self._child_seen(old, new)

    def group_seen(self, old: PodGroup | None, new: PodGroup | None) -> None:
        """Queues the TrainJob of a gang of a JobSet's pods that begins or ceases to wait for a place."""
        if bool(why_the_gang_waits(old)) != bool(why_the_gang_waits(new)):
            self._child_seen(old, new)

    def pod_seen(self, old: Pod | None, new: Pod | None) -> None:
        """Queues the TrainJob of a pod whose state has changed."""
        pod = new or old
        job = job_of(pod.metadata) if pod and names.REPLICATED_JOB in pod.metadata.labels else None
        if job is None or self._train_jobs.store.get(job.key) is None:  # a Job is named as its TrainJob
            return
        if old is None or new is None or _state(old) != _state(new):
            self.worker.queue.add_after(job.key, PODS_S)

    def _train_job_seen(self, old: TrainJob | None, new: TrainJob | None) -> None:
        if old and (new is None or new.metadata.uid != old.metadata.uid):
            self.reconciler.forget(old)
        if new and (old is None or _asked(old) != _asked(new)):
            self.worker.queue.add(new.metadata.key)

    def _child_seen(self, old: Object | None, new: Object | None) -> None:
        child = new or old
        key = train_job_key(child.metadata) if child else None
        if key:
            self.worker.queue.add(key)


def _state(pod: Pod) -> tuple[str, bool, bool]:
    return pod.status.phase, is_ready(pod), bool(pod.metadata.deletion_timestamp)


def _asked(train_job: TrainJob) -> tuple[Any, ...]:
    """The fields of a TrainJob that a pass depends on.

    Reports of trainers are not among them, nor the words of its conditions: a refusal whose words are others each time
    would have it tried again at once, without end.
    """
    meta, status = train_job.metadata, train_job.status
    held = [(each.type, each.status, each.reason) for each in status.conditions]
    return meta.generation, meta.deletion_timestamp, meta.annotations, held, status.jobs_status
