"""Plugin `hcclrank`: the rank of a pod as the annotation that Ascend's device plugin reads."""

from collections.abc import Sequence

from controller.job.rules.pods import Manifest
from controller.job.rules.sync import PodSlot
from controller.plugins.base import Owned, containers
from muster.api.batch import Job
from muster.runtime.job_plugins import flags

ANNOTATION = "hccl/rankIndex"
_RANK = "RANK"


class HCCLRank:
    """Flags: master, worker (task names)."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._flags = flags("hcclrank", arguments)

    def objects(self, job: Job) -> list[Owned]:
        """None."""
        del job
        return []

    def shape(self, job: Job, slot: PodSlot, manifest: Manifest) -> None:
        """Annotates the pod, unless the template has done so; RANK of a container (pytorch sets it) goes first."""
        value = _rank_variable(manifest) or self._rank(job, slot)
        if value:
            manifest["metadata"]["annotations"].setdefault(ANNOTATION, value)

    def _rank(self, job: Job, slot: PodSlot) -> str:
        """Masters count first, then workers; pods of other tasks have no rank."""
        if slot.task.name == self._flags["master"]:
            return str(slot.index)
        if slot.task.name == self._flags["worker"]:
            masters = sum(task.replicas for task in job.spec.tasks if task.name == self._flags["master"])
            return str(masters + slot.index)
        return ""


def _rank_variable(manifest: Manifest) -> str:
    variables = [variable for container in containers(manifest, init=False) for variable in container.get("env") or []]
    return next((one["value"] for one in variables if one["name"] == _RANK and one.get("value")), "")
