"""Plugin `tensorflow`: TF_CONFIG, with the cluster and this pod's task in it."""

import json
from collections.abc import Mapping, Sequence
from typing import ClassVar

from muster.api.volcano.batch import Job
from muster.volcano.manifests import Manifest, fits_env, variables
from muster.volcano.plugins.base import Owned, Plugin, PluginError
from muster.volcano.plugins.flags import Flags
from muster.volcano.slots import PodSlot, task_hosts

TF_CONFIG = "TF_CONFIG"
ROLES = ("ps", "worker", "chief", "evaluator")
"""Flags that name tasks, in the order that the cluster lists them."""


class TensorFlow(Plugin):
    """Flags: ps, worker, chief, evaluator (task names), port (2222). The names come from plugin svc."""

    name = "tensorflow"
    flags: ClassVar[Flags] = {"ps": "ps", "worker": "worker", "chief": "chief", "evaluator": "evaluator", "port": 2222}
    requires = ("svc",)
    env_in_init_containers = False

    def __init__(self, arguments: Sequence[str]) -> None:
        super().__init__(arguments)
        self._cluster = ""

    def env(self, job: Job, slot: PodSlot) -> Sequence[Manifest]:
        """The variable; a Job of one pod is no cluster."""
        if len(job.spec.tasks) == 1 and job.spec.tasks[0].replicas == 1:
            return ()
        return variables({TF_CONFIG: self._config(job, slot.task.name, slot.index)})

    def objects(self, job: Job) -> Sequence[Owned]:
        """None; PluginError if no program could be started with the variable."""
        text = self._config(job, "worker", max((task.replicas for task in job.spec.tasks), default=0))
        if not fits_env(TF_CONFIG, text):
            raise PluginError(
                f"spec.plugins[tensorflow]: {TF_CONFIG} would have {len(text)} characters, more than a program can be "
                "started with; use fewer pods or shorter names"
            )
        return ()

    def _config(self, job: Job, task: str, index: int) -> str:
        """TF_CONFIG of one pod. A task without a role is its own type."""
        self._cluster = self._cluster or self._addresses(job)
        role = self._roles().get(task, task)
        return f'{{"cluster":{self._cluster},"task":{_json({"type": role, "index": index})}}}'

    def _addresses(self, job: Job) -> str:
        """The part of TF_CONFIG that all pods share, as JSON: addresses per role; tasks without a role have none."""
        roles = self._roles()
        found = {
            roles[task.name]: [f"{host}:{self.values['port']}" for host in task_hosts(job, task)]
            for task in job.spec.tasks
            if task.name in roles and task.replicas
        }
        return _json({role: found[role] for role in ROLES if role in found})

    def _roles(self) -> Mapping[str, str]:
        """Task → role; a task that several flags name has the first role."""
        return {self.values[role]: role for role in reversed(ROLES)}


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
