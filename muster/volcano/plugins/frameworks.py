"""Plugins `env`, `pytorch`, `tensorflow`, `mpi` and `hcclrank`, which set addresses and ranks for programs."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

from muster.api.fields import FieldError
from muster.api.volcano.batch import Job, TaskSpec
from muster.volcano.manifests import Manifest, containers, fits_env, open_port, safe_as, variables
from muster.volcano.plugins.base import Flags, JobPlugin, Owned, PluginError, missing_task
from muster.volcano.plugins.svc import hosts_file
from muster.volcano.tasks import PodSlot, task_hosts


class Env(JobPlugin):
    """Plugin that sets VC_TASK_INDEX, and VK_TASK_INDEX for older programs; it has no flags."""

    name = "env"

    def env(self, job: Job, slot: PodSlot) -> Sequence[Manifest]:
        """Return the environment variables that contain the pod's index."""
        return variables({"VK_TASK_INDEX": str(slot.index), "VC_TASK_INDEX": str(slot.index)})


PYTORCH_PORT = "pytorchjob-port"
WAIT_NAME = "wait-for-master"


class PyTorch(JobPlugin):
    """Plugin for PyTorch with the flags master and worker (task names), port (23456), and wait-master-*.

    The flags wait-master-* are for an init container that waits for the master. Plugin svc provides the host names. A
    Job without a master task is not changed.
    """

    name = "pytorch"
    flags: ClassVar[Flags] = {
        "master": "master",
        "worker": "worker",
        "port": 23456,
        "wait-master-enabled": False,
        "wait-master-image": "busybox:1.36.1",
        "wait-master-timeout": 300,
    }
    requires = ("svc",)
    env_in_init_containers = False

    def world(self, tasks: Collection[str]) -> Collection[str]:
        """Return the master and worker tasks; empty for a Job without a master."""
        return (self.values["master"], self.values["worker"]) if self.values["master"] in tasks else ()

    def check(self, job: Job) -> Iterator[FieldError]:
        """Yield an error if the task in the flag `master` is missing, or has several pods (all would have rank 0)."""
        named = self.values["master"]
        if named != self.flags["master"]:
            yield from missing_task(job, self.name, "master", named)
        for number, task in enumerate(job.spec.tasks):
            if task.name == named and task.replicas > 1:
                message = f"must be 1, because each pod of the master task of plugin {self.name} has rank 0"
                yield FieldError(f"spec.tasks[{number}].replicas", message, task.replicas)

    def ports(self, job: Job, task: TaskSpec) -> Mapping[str, int]:
        """Return the master's port, which the pods of every task open."""
        return {PYTORCH_PORT: self.values["port"]} if self._master(job) else {}

    def env(self, job: Job, slot: PodSlot) -> Sequence[Manifest]:
        """Return address and rank as variables: masters have rank 0, workers follow, pods of other tasks get none."""
        master = self._master(job)
        if master is None:
            return ()
        workers = next((task.replicas for task in job.spec.tasks if task.name == self.values["worker"]), 0)
        found = {
            "MASTER_ADDR": _address(job, master),
            "MASTER_PORT": str(self.values["port"]),
            "WORLD_SIZE": str(master.replicas + workers),
        }
        if slot.task.name == self.values["master"]:
            found["RANK"] = "0"
        elif slot.task.name == self.values["worker"]:
            found["RANK"] = str(slot.index + 1)
        return variables(found)

    def shape(self, job: Job, slot: PodSlot, manifest: Manifest) -> None:
        """Open the port, and add the init container that waits for the master to workers if the flags request it."""
        for name, port in self.ports(job, slot.task).items():
            open_port(manifest, name, port)
        master = self._master(job)
        if master and self.values["wait-master-enabled"] and slot.task.name == self.values["worker"]:
            self._wait(manifest, _address(job, master))

    def _master(self, job: Job) -> TaskSpec | None:
        return next((task for task in job.spec.tasks if task.name == self.values["master"]), None)

    def _wait(self, manifest: Manifest, address: str) -> None:
        """Add an init container that waits for the master, unless the template has one with the same name."""
        waiting = manifest["spec"].get("initContainers") or []
        if any(container.get("name") == WAIT_NAME for container in waiting):
            return
        port, timeout_s = self.values["port"], self.values["wait-master-timeout"]
        script = (
            f"for i in $(seq {timeout_s}); do nc -z -w 1 {address} {port} && exit 0; sleep 1; done; "
            f"echo the master {address}:{port} did not answer within {timeout_s} s; exit 1"
        )
        image, like = self.values["wait-master-image"], containers(manifest, init=False)[0]
        container = {"name": WAIT_NAME, "image": image, "command": ["sh", "-c", script], **safe_as(like)}
        manifest["spec"]["initContainers"] = [*waiting, container]


def _address(job: Job, master: TaskSpec) -> str:
    """Return the host name of rank 0; empty while the master has no pods."""
    return next(iter(task_hosts(job, master)), "")


TF_CONFIG = "TF_CONFIG"
ROLES = ("ps", "worker", "chief", "evaluator")
"""Flags that name tasks, in the order of the roles in TensorFlow's cluster definition."""


class TensorFlowJobPlugin(JobPlugin):
    """Plugin for TensorFlow with the flags ps, worker, chief and evaluator (task names), and port (2222).

    Plugin svc provides the host names.
    """

    name = "tensorflow"
    flags: ClassVar[Flags] = {"ps": "ps", "worker": "worker", "chief": "chief", "evaluator": "evaluator", "port": 2222}
    requires = ("svc",)
    env_in_init_containers = False

    def __init__(self, arguments: Sequence[str]) -> None:
        super().__init__(arguments)
        self._cluster = ""

    def world(self, tasks: Collection[str]) -> Collection[str]:
        """Return the tasks that have a role in the TensorFlow cluster."""
        return self._roles().keys()

    def env(self, job: Job, slot: PodSlot) -> Sequence[Manifest]:
        """Return the variable TF_CONFIG; a Job with a single pod is not a cluster and gets no variable.

        Raises PluginError if a program cannot be started because the variable is too long.
        """
        if len(job.spec.tasks) == 1 and job.spec.tasks[0].replicas == 1:
            return ()
        return variables({TF_CONFIG: self._fitting(job, slot.task.name, slot.index)})

    def objects(self, job: Job) -> Sequence[Owned]:
        """Return no objects; raise PluginError if a program cannot be started because TF_CONFIG is too long."""
        self._fitting(job, "worker", max((task.replicas for task in job.spec.tasks), default=0))
        return ()

    def _fitting(self, job: Job, task: str, index: int) -> str:
        text = self._config(job, task, index)
        if not fits_env(TF_CONFIG, text):
            raise PluginError(
                f"spec.plugins[tensorflow]: {TF_CONFIG} would have {len(text)} characters, more than a program can be "
                "started with; use fewer pods or shorter names"
            )
        return text

    def _config(self, job: Job, task: str, index: int) -> str:
        """Return the value of TF_CONFIG for one pod. The type of a task without a role is the task's name."""
        self._cluster = self._cluster or self._addresses(job)
        role = self._roles().get(task, task)
        return f'{{"cluster":{self._cluster},"task":{_json({"type": role, "index": index})}}}'

    def _addresses(self, job: Job) -> str:
        """Return the part of TF_CONFIG that is equal for all pods: JSON with the addresses of each role."""
        roles = self._roles()
        found = {
            roles[task.name]: [f"{host}:{self.values['port']}" for host in task_hosts(job, task)]
            for task in job.spec.tasks
            if task.name in roles and task.replicas
        }
        return _json({role: found[role] for role in ROLES if role in found})

    def _roles(self) -> Mapping[str, str]:
        """Return the role of each task; if several flags name a task, it has the role of the first flag."""
        return {self.values[role]: role for role in reversed(ROLES)}


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


MPI_PORT = "mpijob-port"
HOST = "MPI_HOST"
HOSTFILE = "MPI_HOSTFILE"


class MPIJobPlugin(JobPlugin):
    """Plugin for MPI with the flags master and worker (task names), and port (22).

    Plugin svc provides the host names, and plugin ssh provides the ssh keys.
    """

    name = "mpi"
    flags: ClassVar[Flags] = {"master": "master", "worker": "worker", "port": 22}
    requires = ("svc", "ssh")

    def __init__(self, arguments: Sequence[str]) -> None:
        super().__init__(arguments)
        self._hosts: str | None = None

    def world(self, tasks: Collection[str]) -> Collection[str]:
        """Return the master and worker tasks."""
        return self.values["master"], self.values["worker"]

    def check(self, job: Job) -> Iterable[FieldError]:
        """Reject a Job without a master task."""
        return missing_task(job, self.name, "master", self.values["master"])

    def ports(self, job: Job, task: TaskSpec) -> Mapping[str, int]:
        """Return the ssh port, which the pods of every task open."""
        return {MPI_PORT: self.values["port"]}

    def env(self, job: Job, slot: PodSlot) -> Sequence[Manifest]:
        """Return, for the master's pods, a variable with the names of the workers, separated by commas.

        A Job without workers gets no variable.

        If the list is too long for a variable, it is only in the file of plugin svc, for `mpiexec --hostfile`.
        """
        hosts = self._workers(job) if slot.task.name == self.values["master"] else ""
        if not hosts:
            return ()
        return variables({HOST: hosts} if fits_env(HOST, hosts) else {HOSTFILE: hosts_file(self.values["worker"])})

    def objects(self, job: Job) -> Sequence[Owned]:
        """Return no objects; raise PluginError for a Job without a master task."""
        master = self.values["master"]
        if master not in {task.name for task in job.spec.tasks}:
            raise PluginError(f"spec.plugins[mpi]: no task is named {master!r}; name the master's task with --master")
        return ()

    def shape(self, job: Job, slot: PodSlot, manifest: Manifest) -> None:
        """Open the ssh port in the pods of every task."""
        for name, port in self.ports(job, slot.task).items():
            open_port(manifest, name, port, init=True)

    def _workers(self, job: Job) -> str:
        if self._hosts is None:
            workers = [task for task in job.spec.tasks if task.name == self.values["worker"]]
            self._hosts = ",".join(host for task in workers for host in task_hosts(job, task))
        return self._hosts


HCCL_ANNOTATION = "hccl/rankIndex"


class HCCLRank(JobPlugin):
    """Plugin hcclrank with the flags master and worker (task names)."""

    name = "hcclrank"
    flags: ClassVar[Flags] = {"master": "master", "worker": "worker"}

    def shape(self, job: Job, slot: PodSlot, manifest: Manifest) -> None:
        """Annotate the pod with its rank unless the template sets one; a container's RANK takes precedence."""
        variables = [each for container in containers(manifest, init=False) for each in container.get("env") or []]
        named = (each["value"] for each in variables if each.get("name") == "RANK" and each.get("value"))
        if value := next(named, "") or self._rank(job, slot):
            manifest["metadata"]["annotations"].setdefault(HCCL_ANNOTATION, value)

    def _rank(self, job: Job, slot: PodSlot) -> str:
        """Return the rank of a pod: masters come first, then workers; pods of other tasks have no rank."""
        if slot.task.name == self.values["master"]:
            return str(slot.index)
        if slot.task.name == self.values["worker"]:
            masters = sum(task.replicas for task in job.spec.tasks if task.name == self.values["master"])
            return str(masters + slot.index)
        return ""
