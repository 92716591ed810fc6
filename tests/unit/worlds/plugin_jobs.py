"""Jobs with plugins, and their pods after all plugins have shaped them."""

from copy import deepcopy
from typing import Any

from builders import job as a_job
from builders.manifests import task

from muster.api.volcano.batch import Job
from muster.volcano.plugins.base import Owned
from muster.volcano.plugins.registry import plugins_for
from muster.volcano.pods import complete_pod
from muster.volcano.tasks import slot


def job(tasks: dict[str, int], **plugins: list[str]) -> Job:
    """Job `n/j`; each task has as many pods as said, with containers `main` and `side` and an init container."""
    spec = {"containers": [{"name": "main"}, {"name": "side"}], "initContainers": [{"name": "init"}]}
    made = [task(name, count, template={"spec": deepcopy(spec)}) for name, count in tasks.items()]
    return a_job("j", made, "n", uid="u", plugins=plugins)


def shaped(of: Job, task: str, index: int) -> dict[str, Any]:
    """The manifest of a pod after all plugins."""
    spec = next(one for one in of.spec.tasks if one.name == task)
    return complete_pod(of, slot(of, spec, index), plugins_for(of.spec.plugins))


def container(manifest: dict[str, Any], name: str = "main") -> dict[str, Any]:
    """One container of a pod, init containers included."""
    spec = manifest["spec"]
    found: dict[str, Any] = next(one for one in (*spec["containers"], *spec["initContainers"]) if one["name"] == name)
    return found


def variables(manifest: dict[str, Any], name: str = "main") -> dict[str, Any]:
    """The environment of one container."""
    return {one["name"]: one.get("value", one.get("valueFrom")) for one in container(manifest, name).get("env", [])}


def objects(of: Job) -> list[Owned]:
    """The objects of all plugins."""
    return [owned for plugin in plugins_for(of.spec.plugins) for owned in plugin.objects(of)]
