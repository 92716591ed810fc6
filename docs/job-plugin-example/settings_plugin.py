"""A job plugin: settings of a Job as files, e.g. `settings: ["--mount=/etc/app", "lr=0.1", "batch=32"]`."""

from collections.abc import Iterator, Sequence
from typing import ClassVar

from muster.api.fields import FieldError
from muster.api.kubernetes.core import CONFIG_MAPS
from muster.api.volcano.batch import Job
from muster.volcano.manifests import Manifest, add_volume, variables
from muster.volcano.plugins.base import Flags, JobPlugin, Owned, PluginError
from muster.volcano.tasks import PodSlot


class Settings(JobPlugin):
    """Arguments `key=value`, and the flag `--mount`."""

    flags: ClassVar[Flags] = {"mount": "/etc/settings"}

    def __init__(self, arguments: Sequence[str]) -> None:
        super().__init__(arguments)
        self._path: str = self.values["mount"]
        self._data = dict(_pair(argument) for argument in arguments if not argument.startswith("-"))

    def check(self, job: Job) -> Iterator[FieldError]:
        """Admission refuses a Job that no pod could be made of."""
        if not self._path.startswith("/"):
            message = "--mount must be an absolute path, for example /etc/app"
            yield FieldError("spec.plugins[settings]", message, job.spec.plugins["settings"])

    def env(self, job: Job, slot: PodSlot) -> Sequence[Manifest]:
        """Add the path of the files to every container; `slot` has the pod's task and index."""
        del job, slot
        return variables({"SETTINGS": self._path})

    def objects(self, job: Job) -> Sequence[Owned]:
        """A ConfigMap; Muster makes the Job its owner, creates it before the pods and deletes it after them."""
        return [Owned(CONFIG_MAPS, {"metadata": {"name": _name(job)}, "data": self._data})]

    def shape(self, job: Job, slot: PodSlot, manifest: Manifest) -> None:
        """Mounts it in every container."""
        del slot
        add_volume(manifest, {"name": "settings", "configMap": {"name": _name(job)}}, path=self._path)


def _name(job: Job) -> str:
    return f"{job.metadata.name}-settings"


def _pair(argument: str) -> tuple[str, str]:
    key, equals, value = argument.partition("=")
    if not equals:
        raise PluginError(f"spec.plugins[settings]: {argument!r} must be key=value, for example lr=0.1")
    return key, value
