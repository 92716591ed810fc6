"""Plugin `env`: tells each container its pod's index in the task."""

from collections.abc import Sequence

from controller.job.rules.pods import Manifest
from controller.job.rules.sync import PodSlot
from controller.plugins.base import Owned, add_env, containers
from muster.api.batch import Job


class Env:
    """Sets VC_TASK_INDEX, and VK_TASK_INDEX for older programs; takes no flags."""

    def __init__(self, arguments: Sequence[str]) -> None:
        del arguments

    def objects(self, job: Job) -> list[Owned]:
        """None."""
        del job
        return []

    def shape(self, job: Job, slot: PodSlot, manifest: Manifest) -> None:
        """Sets the variables."""
        del job
        variables = [{"name": name, "value": str(slot.index)} for name in ("VK_TASK_INDEX", "VC_TASK_INDEX")]
        for container in containers(manifest):
            add_env(container, variables)
