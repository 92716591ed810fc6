"""Plugin `ray`: a head and workers that join it, by commands of its own; and a Service for those outside."""

from collections.abc import Sequence

from controller.job.rules.pods import Manifest
from controller.job.rules.sync import PodSlot
from controller.plugins.base import Owned, PluginError, add_port, containers
from muster.api import names
from muster.api.batch import Job, TaskSpec
from muster.api.core import SERVICES
from muster.runtime.job_hosts import task_hosts
from muster.runtime.job_plugins import flags
from muster.runtime.job_ports import RAY_PORTS


class Ray:
    """Flags: head, worker (tasks), headContainer, workerContainer, port (6379), dashboardPort, clientPort."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._flags = flags("ray", arguments)

    def objects(self, job: Job) -> list[Owned]:
        """The Service of the head."""
        selector = {
            names.JOB_NAME: job.metadata.name,
            names.JOB_NAMESPACE: job.metadata.namespace,
            names.TASK_SPEC: self._head(job).name,
        }
        ports = [
            {"name": name, "port": self._flags[flag], "targetPort": self._flags[flag], "protocol": "TCP"}
            for name, flag in RAY_PORTS.items()
        ]
        metadata = {"name": f"{job.metadata.name}-head-svc"}
        return [Owned(SERVICES, {"metadata": metadata, "spec": {"selector": selector, "ports": ports}})]

    def shape(self, job: Job, slot: PodSlot, manifest: Manifest) -> None:
        """Replaces the commands of the head's and the workers' container, and opens the head's ports."""
        head, role = self._head(job), slot.task.name
        for container in containers(manifest, init=False):
            if (role, container.get("name")) == (self._flags["head"], self._flags["headContainer"]):
                for name, flag in RAY_PORTS.items():
                    add_port(container, name, self._flags[flag])
                container["command"] = ["sh", "-c", self._start_head()]
            elif (role, container.get("name")) == (self._flags["worker"], self._flags["workerContainer"]):
                address = f"{next(iter(task_hosts(job, head)), '')}:{self._flags['port']}"
                container["command"] = ["sh", "-c", f"ray start --block --address={address}"]

    def _start_head(self) -> str:
        return (
            f"ray start --head --block --dashboard-host=0.0.0.0 --port={self._flags['port']} "
            f"--dashboard-port={self._flags['dashboardPort']} --ray-client-server-port={self._flags['clientPort']}"
        )

    def _head(self, job: Job) -> TaskSpec:
        for task in job.spec.tasks:
            if task.name == self._flags["head"]:
                return task
        raise PluginError(f"spec.plugins[ray]: no task is named {self._flags['head']!r}; name the head's with --head")
