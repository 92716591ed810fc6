"""Creation of a Job's objects: claims, objects of plugins and the PodGroup, then the pods."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from controller.job.context import Context
from controller.job.objects import ObjectError
from controller.job.rules.status import Failure
from controller.job.rules.sync import next_members
from controller.worker import Retry
from muster.api.kubernetes.core import Pod
from muster.api.muster.noderuns import slots_of
from muster.api.muster.placement import Placement
from muster.api.volcano.batch import Job
from muster.api.volcano.scheduling import PodGroup
from muster.kube.errors import APIError, NamespaceEnds
from muster.process.tracing import SPANS
from muster.volcano.manifests import Manifest
from muster.volcano.plugins.base import JobPlugin, PluginError
from muster.volcano.plugins.registry import plugins_for
from muster.volcano.pods import complete_pod, in_native_group, pinned_or_gated
from muster.volcano.tasks import PodSlot, queue_of

PODS_AT_ONCE = 64
"""Number of pods that a pass creates before it checks whether Jobs of other namespaces are waiting."""


class Prepared(NamedTuple):
    """The plugins and the PodGroup of a Job whose pods are about to be created.

    If `failures` is not empty, no pod is created.
    """

    plugins: Sequence[JobPlugin]
    group: PodGroup | None
    failures: list[Failure]
    may_create: bool = False
    """True if pods may be created: all required objects exist, and the gang is admitted."""


class Provisioner:
    """Creator of a Job's pods and of the objects that these pods need.

    Every failure is returned, and recorded in an Event of the Job.
    """

    def __init__(self, context: Context) -> None:
        self._context = context

    def prepare(self, job: Job, pods: Sequence[Pod]) -> Prepared:
        """Create or update the Job's claims, objects of plugins, and PodGroup; `pods` are the Job's existing pods."""
        plugins: Sequence[JobPlugin] = ()
        try:
            plugins = plugins_for(job.spec.plugins)
            self._context.objects.ensure(job, plugins)
            group = self._context.groups.ensure(job, pods)
        except PluginError as error:
            # Plugins of a Job cannot be changed: another attempt would fail, too.
            failure = Failure("PluginError", str(error), transient=False)
        except ObjectError as error:
            failure = Failure(error.reason, str(error))
        except NamespaceEnds:
            raise
        except (Retry, APIError, ValueError) as error:
            failure = Failure("PodGroupError", str(error))
        else:
            return Prepared(plugins, group, [], self._context.groups.admitted(group))
        return Prepared(plugins, self._context.groups.find(job), [self._failed(job, failure)])

    def create(
        self, job: Job, group: PodGroup, pods: Sequence[Pod], slots: Sequence[PodSlot], plugins: Sequence[JobPlugin]
    ) -> list[Failure]:
        """Create the pods of the given slots: pinned if the gang's placement has a node for the slot, otherwise gated.

        In a queue with a capability, members above the minimum are created in steps. `pods` are the existing pods of
        the Job.
        """
        if not slots:
            return []
        try:
            placement = self._context.groups.placement(group)
            if self._context.limited(queue_of(job.spec)):
                placed = {slot for slot, _ in slots_of(placement)} if placement else ()
                slots = next_members(job, pods, slots, group, placed)
            native = group.metadata.name if self._context.joins_native(group) else ""
            batches = self._batches(job, slots, plugins, placement, native)
            with SPANS.around(job.metadata.uid, "create pods", slots=len(slots)):
                return [Failure("FailedCreate", why) for why in self._context.effects.create_pods(job, batches)]
        except PluginError as error:
            return [self._failed(job, Failure("PluginError", str(error), transient=False))]
        except NamespaceEnds:
            raise
        except APIError as error:
            why = f"the gang's placement cannot be read: {error}"
            return [self._failed(job, Failure("FailedCreate", why))]

    def _batches(
        self, job: Job, slots: Sequence[PodSlot], plugins: Sequence[JobPlugin], placement: Placement | None, native: str
    ) -> Iterator[list[Manifest]]:
        """Yield the manifests of pods in batches; stop early if Jobs of other namespaces wait for a pass."""
        key = job.metadata.key
        for start in range(0, len(slots), PODS_AT_ONCE):
            if start and self._context.others_wait(key):
                self._context.requeue_after(key, 0)
                return
            now = slots[start : start + PODS_AT_ONCE]
            pods = [pinned_or_gated(complete_pod(job, slot, plugins), slot, placement) for slot in now]
            yield [in_native_group(each, native) if native else each for each in pods]

    def delete_group(self, job: Job) -> list[Failure]:
        """Delete the PodGroup, because a killed or ended Job must not count in its queue."""
        try:
            self._context.groups.delete(job)
        except APIError as error:
            return [self._failed(job, Failure("PodGroupError", f"the PodGroup cannot be deleted: {error}"))]
        return []

    def restart_group(self, job: Job) -> list[Failure]:
        """Delete the PodGroup of a restarting Job, unless nodes are held for its gang."""
        try:
            return [] if self._context.groups.keeps_nodes(job) else self.delete_group(job)
        except APIError as error:
            return [self._failed(job, Failure("PodGroupError", f"its placement cannot be read: {error}"))]

    def delete_objects(self, job: Job) -> list[Failure]:
        """Delete the objects of plugins, which only running pods need."""
        try:
            self._context.objects.delete(job, plugins_for(job.spec.plugins))
        except PluginError:
            pass  # a plugin was uninstalled; its objects are deleted with the Job
        except APIError as error:
            return [self._failed(job, Failure("PluginError", f"objects of plugins cannot be deleted: {error}"))]
        return []

    def _failed(self, job: Job, failure: Failure) -> Failure:
        self._context.recorder.event(job, "Warning", failure.reason, failure.message)
        return failure
