"""Plugin `env`: tells each container its pod's index in the task."""

from collections.abc import Sequence

from muster.api.volcano.batch import Job
from muster.volcano.manifests import Manifest, variables
from muster.volcano.plugins.base import Plugin
from muster.volcano.slots import PodSlot


class Env(Plugin):
    """Sets VC_TASK_INDEX, and VK_TASK_INDEX for older programs; takes no flags."""

    name = "env"

    def env(self, job: Job, slot: PodSlot) -> Sequence[Manifest]:
        """The index."""
        del job
        return variables({"VK_TASK_INDEX": str(slot.index), "VC_TASK_INDEX": str(slot.index)})
