"""Plugin `pytorch`: the address of the master, the number of pods, and the rank of this pod."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from muster.api.volcano.batch import Job, TaskSpec
from muster.volcano.manifests import Manifest, open_port, variables
from muster.volcano.plugins.base import Plugin
from muster.volcano.plugins.flags import Flags
from muster.volcano.slots import PodSlot, task_hosts

PORT_NAME = "pytorchjob-port"
WAIT_NAME = "wait-for-master"


class PyTorch(Plugin):
    """Flags: master, worker (task names), port (23456), and wait-master-* for an init container that waits.

    The names come from plugin svc. A Job without a master task is left alone.
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

    def ports(self, job: Job, task: TaskSpec) -> Mapping[str, int]:
        """The master's port, in the pods of every task."""
        del task
        return {PORT_NAME: self.values["port"]} if self._master(job) else {}

    def env(self, job: Job, slot: PodSlot) -> Sequence[Manifest]:
        """Masters have rank 0, workers follow; a pod of another task has no rank."""
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
        """Opens the port, and adds the wait to workers if the flags ask for it."""
        for name, port in self.ports(job, slot.task).items():
            open_port(manifest, name, port)
        master = self._master(job)
        if master and self.values["wait-master-enabled"] and slot.task.name == self.values["worker"]:
            self._wait(manifest, _address(job, master))

    def _master(self, job: Job) -> TaskSpec | None:
        return next((task for task in job.spec.tasks if task.name == self.values["master"]), None)

    def _wait(self, manifest: Manifest, address: str) -> None:
        """Adds an init container that waits for the master, unless the template has one of its name."""
        waiting = manifest["spec"].get("initContainers") or []
        if any(container.get("name") == WAIT_NAME for container in waiting):
            return
        port, timeout_s = self.values["port"], self.values["wait-master-timeout"]
        script = (
            f"for i in $(seq {timeout_s}); do nc -z -w 1 {address} {port} && exit 0; sleep 1; done; "
            f"echo the master {address}:{port} did not answer within {timeout_s} s; exit 1"
        )
        container = {"name": WAIT_NAME, "image": self.values["wait-master-image"], "command": ["sh", "-c", script]}
        manifest["spec"]["initContainers"] = [*waiting, container]


def _address(job: Job, master: TaskSpec) -> str:
    """The host name of rank 0; empty while the master has no pods."""
    return next(iter(task_hosts(job, master)), "")
