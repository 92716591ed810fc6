"""Plugins `env` and `hcclrank`: the index of a pod in its task, and its rank for Ascend's device plugin."""

from collections.abc import Sequence
from typing import ClassVar

from muster.api.volcano.batch import Job
from muster.volcano.manifests import Manifest, containers, variables
from muster.volcano.plugins.base import Flags, JobPlugin
from muster.volcano.tasks import PodSlot


class Env(JobPlugin):
    """Sets VC_TASK_INDEX, and VK_TASK_INDEX for older programs; takes no flags."""

    name = "env"

    def env(self, job: Job, slot: PodSlot) -> Sequence[Manifest]:
        """Return the variables with the index."""
        return variables({"VK_TASK_INDEX": str(slot.index), "VC_TASK_INDEX": str(slot.index)})


ANNOTATION = "hccl/rankIndex"
_RANK = "RANK"


class HCCLRank(JobPlugin):
    """Flags: master, worker (task names)."""

    name = "hcclrank"
    flags: ClassVar[Flags] = {"master": "master", "worker": "worker"}

    def shape(self, job: Job, slot: PodSlot, manifest: Manifest) -> None:
        """Annotate the pod, unless the template does; a container's variable RANK (set by pytorch) takes precedence."""
        variables = [each for container in containers(manifest, init=False) for each in container.get("env") or []]
        named = (each["value"] for each in variables if each.get("name") == _RANK and each.get("value"))
        if value := next(named, "") or self._rank(job, slot):
            manifest["metadata"]["annotations"].setdefault(ANNOTATION, value)

    def _rank(self, job: Job, slot: PodSlot) -> str:
        """Return the rank: masters count first, then workers; pods of other tasks have none."""
        if slot.task.name == self.values["master"]:
            return str(slot.index)
        if slot.task.name == self.values["worker"]:
            masters = sum(task.replicas for task in job.spec.tasks if task.name == self.values["master"])
            return str(masters + slot.index)
        return ""
