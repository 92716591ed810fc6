"""The context of a pass over a Job: caches, clients and clocks, and the snapshot of the Job's pods."""

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
    """The caches, the executor of pod calls, and the clock of a pass over a Job.

    `job` returns the current Job of a key, or None. `requeue_after` requests another pass after a delay in seconds.
    `others_wait` is true while Jobs of other namespaces wait for a pass. `needed` is true while the creator of a Job
    has not recorded that the Job has ended. `joins_native` is true if the pods of a gang must name its published native
    PodGroup. `limited` is true if the queue or one of its ancestors has a capability.
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
        """Return the Job's current pods, with placeholders for succeeded members whose pods are gone."""
        own = reference(job)
        return with_done(job, self.expectations.pods(own, self._pods.by_index(JOB_INDEX, own.entry)))

    def forget(self, job: Job) -> None:
        """Forget a deleted Job."""
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
        """Further restart targets of a Job, by the request that caused them; the status does not contain them yet."""

    @cached_property
    def by_name(self) -> dict[str, Pod]:
        """The pods by name, because events and timers refer to names."""
        return {pod.metadata.name: pod for pod in self.pods}

    def is_done(self, name: str) -> bool:
        """Return True for a member that has succeeded and whose pod is gone."""
        return isinstance(self.by_name.get(name), GonePod)

    @cached_property
    def group(self) -> PodGroup | None:
        """The PodGroup of the Job, which is read when it is first needed, and then kept."""
        return self._context.groups.find(self._job)
