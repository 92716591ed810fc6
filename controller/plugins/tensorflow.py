"""Plugin `tensorflow`: TF_CONFIG, the cluster and this pod's task in it."""

import json
from collections.abc import Mapping, Sequence

from controller.job.pods import Manifest
from controller.job.sync import Seat
from controller.plugins.base import Owned, PluginError, add_env, containers, fits_env
from controller.plugins.svc import task_hosts
from muster.api.batch import Job
from muster.runtime.job_plugins import flags

VARIABLE = "TF_CONFIG"
ROLES = ("ps", "worker", "chief", "evaluator")


class TensorFlow:
    """Flags: ps, worker, chief, evaluator (task names), port (2222)."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._flags = flags("tensorflow", arguments)
        self._roles = {self._flags[role]: role for role in reversed(ROLES)}
        self._cluster = ""

    def objects(self, job: Job) -> list[Owned]:
        """None; the names come from plugin svc."""
        text = self._config(job, "worker", max((task.replicas for task in job.spec.tasks), default=0))
        if not fits_env(VARIABLE, text):
            raise PluginError(
                f"spec.plugins[tensorflow]: {VARIABLE} would have {len(text)} characters, more than a program can be "
                "started with; use fewer pods or shorter names"
            )
        return []

    def shape(self, job: Job, seat: Seat, manifest: Manifest) -> None:
        """Sets the variable; a Job of one pod is no cluster."""
        if len(job.spec.tasks) == 1 and job.spec.tasks[0].replicas == 1:
            return
        text = self._config(job, self._roles.get(seat.task.name, seat.task.name), seat.index)
        for container in containers(manifest, init=False):
            add_env(container, [{"name": VARIABLE, "value": text}])

    def _config(self, job: Job, role: str, index: int) -> str:
        if not self._cluster:
            self._cluster = _json(cluster(job, self._roles, self._flags["port"]))
        return f'{{"cluster":{self._cluster},"task":{_json({"type": role, "index": index})}}}'


def cluster(job: Job, roles: Mapping[str, str], port: int) -> dict[str, list[str]]:
    """The addresses per role; `roles` are by the names of tasks. Tasks without a role are not in the cluster."""
    found = {
        roles[task.name]: [f"{host}:{port}" for host in task_hosts(job, task)]
        for task in job.spec.tasks
        if task.name in roles and task.replicas
    }
    return {role: found[role] for role in ROLES if role in found}


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
