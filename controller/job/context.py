"""The context of passes over Jobs: caches, clients and clocks, and a snapshot of the Job's pods for each pass."""

from collections.abc import Callable
from functools import cached_property

from controller.caches import JOB_INDEX, SharedCaches
from controller.job.effects import PodEffects
from controller.job.expectations import Expectations
from controller.job.objects import Groups, JobObjects
from controller.job.rules.done import GonePod, with_done
from controller.job.rules.events import JobEvent
from controller.job.rules.policies import RestartTarget
from controller.job.writer import JobStatusWriter
from controller.kit import KindController, Kit
from muster.api.kubernetes.core import Pod, PriorityClass
from muster.api.muster.placement import Placement
from muster.api.volcano.batch import Job
from muster.api.volcano.scheduling import PodGroup
from muster.kube.store import ObjectStore
from muster.volcano.podgroup import group_key
from muster.volcano.tasks import reference


class Context:
    """The caches, clients and clocks that all passes over Jobs share.

    `job` returns the current Job with a key, or None. `requeue_after` requests another pass after a delay in seconds.
    `others_wait` returns True while Jobs of other namespaces wait for a pass. `needed` returns True while the creator
    of a Job has not recorded that the Job has ended. `joins_native` returns True if the pods of a gang must name the
    gang's native PodGroup. `limited` returns True if a queue or one of its ancestors has a capability.
    """

    def __init__(
        self,
        kit: Kit,
        caches: SharedCaches,
        priorities: ObjectStore[PriorityClass],
        placements: ObjectStore[Placement],
        jobs: KindController[Job],
        *,
        at_once: int,
        needed: Callable[[Job], bool],
        joins_native: Callable[[PodGroup], bool],
        limited: Callable[[str], bool],
    ) -> None:
        self.client, self.recorder, self.wall_s = kit.client, kit.recorder, kit.wall_s
        self.needed, self.joins_native, self.limited = needed, joins_native, limited
        self.job, queue = jobs.newest, jobs.worker.queue
        self.requeue_after, self.others_wait = queue.add_after, queue.others_wait
        self._pods = caches.pods.store
        self.expectations = Expectations(kit.monotonic_s)
        self.effects = PodEffects(kit.client, self.expectations, kit.recorder, at_once, monotonic_s=kit.monotonic_s)
        self.groups = Groups(kit.client, caches.groups.store, placements, priorities.list, self.expectations)
        self.objects = JobObjects(kit.client)
        self.writer = JobStatusWriter(jobs.patched, queue.add_after, kit.monotonic_s)

    def pods(self, job: Job) -> list[Pod]:
        """Return the Job's current pods, with a placeholder for each succeeded member whose pod is gone."""
        own = reference(job)
        return with_done(job, self.expectations.pods(own, self._pods.by_index(JOB_INDEX, own.entry)))

    def forget(self, job: Job) -> None:
        """Drop all data about a deleted Job."""
        self.groups.forget(job)
        self.objects.forget(job)
        self.writer.forget(job)
        self.effects.forget(job)
        self.expectations.forget(job, group_key(job))


class JobSnapshot:
    """The state that a pass over a Job works on: the Job's pods and PodGroup, and the parts that the pass restarts."""

    def __init__(self, context: Context, job: Job) -> None:
        self._context = context
        self._job = job
        self.pods = context.pods(job)
        self.targets: dict[JobEvent, RestartTarget] = {}
        """Maps a request to the restart target that it has caused and that the Job's status does not contain yet."""

    @cached_property
    def by_name(self) -> dict[str, Pod]:
        """The Job's pods, keyed by name, because events and timers refer to names."""
        return {pod.metadata.name: pod for pod in self.pods}

    def is_done(self, name: str) -> bool:
        """Return True for a member that has succeeded and whose pod is gone."""
        return isinstance(self.by_name.get(name), GonePod)

    @cached_property
    def group(self) -> PodGroup | None:
        """The PodGroup of the Job; None if it does not exist. The PodGroup is looked up once in a pass."""
        return self._context.groups.find(self._job)
