"""The context of a pass over a Job: caches, clients and clocks, and the snapshot of the Job's pods."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from controller.job.effects import Effects
from controller.job.expectations import Expectations
from controller.job.objects import Groups, Objects
from controller.job.rules.events import Request
from controller.job.rules.policies import Target
from controller.job.writer import StatusWriter
from muster.api.kubernetes.core import Pod
from muster.api.volcano.batch import Job
from muster.api.volcano.scheduling import PodGroup
from muster.kube.client import Client
from muster.kube.events import Recorder
from muster.kube.store import Store
from muster.volcano.podgroup import group_key
from muster.volcano.tasks import reference

JOB_INDEX = "job"
"""Index of the pod store: the Job that the pod belongs to (`JobRef.entry`)."""


@dataclass(frozen=True, slots=True)
class Context:
    """Caches, effects and the time.

    `requeue_after` asks for another pass after some seconds; `others_wait` is true while other namespaces wait;
    `needed` is true while the end of a Job is not noted by what has made it; `joins_native` if the pods of a gang are
    to name the native PodGroup as which it is published.
    """

    client: Client
    recorder: Recorder
    jobs: Store[Job]
    pod_store: Store[Pod]
    expectations: Expectations
    effects: Effects
    groups: Groups
    objects: Objects
    writer: StatusWriter
    requeue_after: Callable[[str, float], None]
    others_wait: Callable[[str], bool]
    needed: Callable[[Job], bool]
    joins_native: Callable[[PodGroup], bool]
    wall_s: Callable[[], float]

    def job(self, key: str) -> Job | None:
        """The Job as it is, or None if there is none."""
        cached = self.jobs.get(key)
        return self.expectations.jobs.newest(key, cached) if cached else None

    def pods(self, job: Job) -> list[Pod]:
        """The Job's pods as they are."""
        own = reference(job)
        return self.expectations.pods(own, self.pod_store.by_index(JOB_INDEX, own.entry))

    def forget(self, job: Job) -> None:
        """Drops everything that is kept about a Job that is gone."""
        self.groups.forget(job)
        self.objects.forget(job)
        self.writer.forget(job)
        self.effects.forget(job)
        self.expectations.forget(job, group_key(job))


class JobSnapshot:
    """A Job's pods and PodGroup as one pass sees them, and the parts that the pass restarts."""

    def __init__(self, context: Context, job: Job) -> None:
        self._context = context
        self._job = job
        self.pods = context.pods(job)
        self.targets: dict[Request, Target] = {}
        """Further targets of a Job that is restarting, by the request that led to them; not written yet."""

    @cached_property
    def by_name(self) -> dict[str, Pod]:
        """The pods by name: events and timers name pods."""
        return {pod.metadata.name: pod for pod in self.pods}

    @cached_property
    def group(self) -> PodGroup | None:
        """The Job's PodGroup, looked up once, on demand."""
        return self._context.groups.find(self._job)
