"""Plugin `tensorflow`: TF_CONFIG, the cluster and this pod's task in it."""

from collections.abc import Sequence

from controller.job.rules.pods import Manifest
from controller.job.rules.sync import PodSlot
from controller.plugins.base import Owned, PluginError, add_env, containers, fits_env
from muster.api.batch import Job
from muster.runtime.job_env import TF_CONFIG, tensorflow, tensorflow_cluster
from muster.runtime.job_plugins import flags


class TensorFlow:
    """Flags: ps, worker, chief, evaluator (task names), port (2222)."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._flags = flags("tensorflow", arguments)
        self._cluster = ""

    def objects(self, job: Job) -> list[Owned]:
        """None; the names come from plugin svc."""
        text = self._config(job, "worker", max((task.replicas for task in job.spec.tasks), default=0))
        if not fits_env(TF_CONFIG, text):
            raise PluginError(
                f"spec.plugins[tensorflow]: {TF_CONFIG} would have {len(text)} characters, more than a program can be "
                "started with; use fewer pods or shorter names"
            )
        return []

    def shape(self, job: Job, slot: PodSlot, manifest: Manifest) -> None:
        """Sets the variable; a Job of one pod is no cluster."""
        if len(job.spec.tasks) == 1 and job.spec.tasks[0].replicas == 1:
            return
        text = self._config(job, slot.task.name, slot.index)
        for container in containers(manifest, init=False):
            add_env(container, [{"name": TF_CONFIG, "value": text}])

    def _config(self, job: Job, task: str, index: int) -> str:
        if not self._cluster:
            self._cluster = tensorflow_cluster(job, self._flags)
        return tensorflow(self._cluster, self._flags, task, index)
