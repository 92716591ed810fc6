"""Variables of the Volcano Job plugins that serve a framework: pytorch, tensorflow, mpi.

`flags` are those of the plugin (`muster.runtime.job_plugins`). Host names are the ones that plugin `svc` gives. The
variables are Volcano's: programs find the values under the names, and in the form, that they have there.
"""

import json
from collections.abc import Mapping
from typing import Any

from muster.api.batch import Job
from muster.runtime.job_hosts import task_hosts

TF_CONFIG = "TF_CONFIG"
TF_ROLES = ("ps", "worker", "chief", "evaluator")
"""Flags of plugin tensorflow that name tasks, in the order that the cluster lists them."""
MPI_HOST = "MPI_HOST"


def pytorch(job: Job, flags: Mapping[str, Any], task: str, index: int) -> dict[str, str]:
    """The variables of one pod. Masters have rank 0, workers follow; a pod of another task has no rank.

    Empty for a Job without a master task, which the plugin leaves alone.
    """
    master, worker = flags["master"], flags["worker"]
    tasks = {each.name: each for each in job.spec.tasks}
    if master not in tasks:
        return {}
    workers = tasks[worker].replicas if worker in tasks else 0
    variables = {
        "MASTER_ADDR": next(iter(task_hosts(job, tasks[master])), ""),
        "MASTER_PORT": str(flags["port"]),
        "WORLD_SIZE": str(tasks[master].replicas + workers),
    }
    if task == master:
        variables["RANK"] = "0"
    elif task == worker:
        variables["RANK"] = str(index + 1)
    return variables


def tensorflow_cluster(job: Job, flags: Mapping[str, Any]) -> str:
    """The part of TF_CONFIG that all pods share, as JSON: addresses per role. Tasks without a role are not in it."""
    roles = _tensorflow_roles(flags)
    found = {
        roles[task.name]: [f"{host}:{flags['port']}" for host in task_hosts(job, task)]
        for task in job.spec.tasks
        if task.name in roles and task.replicas
    }
    return _json({role: found[role] for role in TF_ROLES if role in found})


def tensorflow(cluster: str, flags: Mapping[str, Any], task: str, index: int) -> str:
    """TF_CONFIG of one pod; `cluster` is what `tensorflow_cluster` gave. A task without a role is its own type."""
    role = _tensorflow_roles(flags).get(task, task)
    return f'{{"cluster":{cluster},"task":{_json({"type": role, "index": index})}}}'


def mpi_hosts(job: Job, flags: Mapping[str, Any]) -> str:
    """The names of the workers, separated by commas; empty if there is no such task."""
    return ",".join(host for task in job.spec.tasks if task.name == flags["worker"] for host in task_hosts(job, task))


def _tensorflow_roles(flags: Mapping[str, Any]) -> dict[str, str]:
    """Task → role; a task that several flags name has the first role."""
    return {flags[role]: role for role in reversed(TF_ROLES)}


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
