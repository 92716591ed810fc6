"""What admission and the controller make of a Job with plugins, as plain data; a program does the same for others."""

import json
import sys
from typing import Any

import msgspec

from muster.api.volcano.batch import Job
from muster.volcano.plugins.base import PluginError
from muster.volcano.plugins.registry import check_plugins, plugins_for, ports, required, warnings
from muster.volcano.pods import complete_pod
from muster.volcano.tasks import slot


def outcome(**plugins: list[str]) -> dict[str, Any]:
    """What becomes of Job `n/j` of one pod, which has a container and an init container."""
    template = {"spec": {"containers": [{"name": "main"}], "initContainers": [{"name": "init"}]}}
    spec = {"tasks": [{"name": "w", "replicas": 1, "template": template}], "plugins": plugins}
    job = msgspec.convert({"metadata": {"name": "j", "namespace": "n", "uid": "u"}, "spec": spec}, Job)
    task = job.spec.tasks[0]
    result: dict[str, Any] = {
        "refused": [[error.path, error.message] for error in check_plugins(job)],
        "warnings": warnings(job),
        "required": required(plugins),
        "ports": ports(job, task),
        "plugins": [],
        "objects": [],
        "pod": {},
        "error": "",
    }
    try:
        made = plugins_for(plugins)
        result["plugins"] = [type(plugin).__name__ for plugin in made]
        result["objects"] = [owned.manifest for plugin in made for owned in plugin.objects(job)]
        result["pod"] = complete_pod(job, slot(job, task, 0), made)
    except PluginError as error:
        result["error"] = str(error)
    return result


if __name__ == "__main__":
    sys.stdout.write(json.dumps(outcome(**json.loads(sys.argv[1]))))
