"""A job plugin: settings of a Job as files, e.g. `settings: ["--mount=/etc/app", "lr=0.1", "batch=32"]`."""

from collections.abc import Sequence

from controller.job.rules.pods import Manifest
from controller.job.rules.sync import PodSlot
from controller.plugins.base import Owned, PluginError, add_env, add_volume, containers, flags
from muster.api.batch import Job
from muster.api.core import CONFIG_MAPS


class Settings:
    """Arguments `key=value`, and the flag `--mount`."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._path = flags(arguments, {"mount": "/etc/settings"})["mount"]
        self._data = dict(_pair(argument) for argument in arguments if not argument.startswith("-"))

    def objects(self, job: Job) -> list[Owned]:
        """A ConfigMap; Muster makes the Job its owner, creates it before the pods and deletes it after them."""
        return [Owned(CONFIG_MAPS, {"metadata": {"name": _name(job)}, "data": self._data})]

    def shape(self, job: Job, slot: PodSlot, manifest: Manifest) -> None:
        """Mounts it in every container, and says where; `slot` tells task and index of the pod."""
        del slot
        add_volume(manifest, {"name": "settings", "configMap": {"name": _name(job)}}, path=self._path)
        for container in containers(manifest):
            add_env(container, [{"name": "SETTINGS", "value": self._path}])


def _name(job: Job) -> str:
    return f"{job.metadata.name}-settings"


def _pair(argument: str) -> tuple[str, str]:
    key, equals, value = argument.partition("=")
    if not equals:
        raise PluginError(f"spec.plugins[settings]: {argument!r} must be key=value, for example lr=0.1")
    return key, value
