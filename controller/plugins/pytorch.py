"""Plugin `pytorch`: where the master is, how many we are, and which rank this pod has."""

from collections.abc import Sequence

from controller.job.rules.pods import Manifest
from controller.job.rules.sync import PodSlot
from controller.plugins.base import Owned, add_env, containers, open_port
from muster.api.batch import Job
from muster.runtime.job_env import pytorch
from muster.runtime.job_plugins import flags

PORT_NAME = "pytorchjob-port"
WAIT_NAME = "wait-for-master"


class PyTorch:
    """Flags: master, worker (task names), port (23456), and wait-master-* for an init container that waits."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._flags = flags("pytorch", arguments)

    def objects(self, job: Job) -> list[Owned]:
        """None; the names come from plugin svc."""
        del job
        return []

    def shape(self, job: Job, slot: PodSlot, manifest: Manifest) -> None:
        """Sets the variables, and opens the port; a Job without a master task is left alone."""
        variables = pytorch(job, self._flags, slot.task.name, slot.index)
        if not variables:
            return
        open_port(manifest, PORT_NAME, self._flags["port"])
        for container in containers(manifest, init=False):
            add_env(container, [{"name": name, "value": value} for name, value in variables.items()])
        if self._flags["wait-master-enabled"] and slot.task.name == self._flags["worker"]:
            self._wait(manifest, variables["MASTER_ADDR"])

    def _wait(self, manifest: Manifest, address: str) -> None:
        """Adds an init container that waits for the master, unless the template has one of its name."""
        waiting = manifest["spec"].get("initContainers") or []
        if any(container.get("name") == WAIT_NAME for container in waiting):
            return
        port, timeout_s = self._flags["port"], self._flags["wait-master-timeout"]
        script = (
            f"for i in $(seq {timeout_s}); do nc -z -w 1 {address} {port} && exit 0; sleep 1; done; "
            f"echo the master {address}:{port} did not answer within {timeout_s} s; exit 1"
        )
        container = {"name": WAIT_NAME, "image": self._flags["wait-master-image"], "command": ["sh", "-c", script]}
        manifest["spec"]["initContainers"] = [*waiting, container]
