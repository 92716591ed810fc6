"""Plugin `ray`: commands of a head and of workers that join it, and a Service for clients outside of the Job."""

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from muster.api import names
from muster.api.fields import FieldError
from muster.api.kubernetes.core import SERVICES
from muster.api.volcano.batch import Job, TaskSpec
from muster.volcano.manifests import Manifest, add_port, containers
from muster.volcano.plugins.base import Owned, Plugin, PluginError, missing_task
from muster.volcano.plugins.flags import Flags
from muster.volcano.slots import PodSlot, task_hosts


class Ray(Plugin):
    """Flags: head, worker (tasks), headContainer, workerContainer, port (6379), dashboardPort, clientPort."""

    name = "ray"
    flags: ClassVar[Flags] = {
        "head": "head",
        "headContainer": "head",
        "worker": "worker",
        "workerContainer": "worker",
        "port": 6379,
        "dashboardPort": 8265,
        "clientPort": 10001,
    }
    requires = ("svc",)

    def check(self, job: Job) -> Iterable[FieldError]:
        """Refuses a Job without a head."""
        return missing_task(job, self.name, "head", self.values["head"])

    def ports(self, job: Job, task: TaskSpec) -> Mapping[str, int]:
        """Those of the head."""
        del job
        return self._head_ports() if task.name == self.values["head"] else {}

    def objects(self, job: Job) -> Sequence[Owned]:
        """The Service of the head."""
        selector = {
            names.JOB_NAME: job.metadata.name,
            names.JOB_NAMESPACE: job.metadata.namespace,
            names.TASK_SPEC: self._head(job).name,
        }
        ports = [
            {"name": name, "port": port, "targetPort": port, "protocol": "TCP"}
            for name, port in self._head_ports().items()
        ]
        metadata = {"name": f"{job.metadata.name}-head-svc"}
        return [Owned(SERVICES, {"metadata": metadata, "spec": {"selector": selector, "ports": ports}})]

    def shape(self, job: Job, slot: PodSlot, manifest: Manifest) -> None:
        """Replaces the commands of the head's and the workers' container, and opens the head's ports."""
        head, role = self._head(job), slot.task.name
        for container in containers(manifest, init=False):
            if (role, container.get("name")) == (self.values["head"], self.values["headContainer"]):
                for name, port in self.ports(job, slot.task).items():
                    add_port(container, name, port)
                container["command"] = ["sh", "-c", self._start_head()]
            elif (role, container.get("name")) == (self.values["worker"], self.values["workerContainer"]):
                address = f"{next(iter(task_hosts(job, head)), '')}:{self.values['port']}"
                container["command"] = ["sh", "-c", f"ray start --block --address={address}"]

    def _head_ports(self) -> Mapping[str, int]:
        flags = {"gcs": "port", "dashboard": "dashboardPort", "client-server": "clientPort"}
        return {name: self.values[flag] for name, flag in flags.items()}

    def _start_head(self) -> str:
        return (
            f"ray start --head --block --dashboard-host=0.0.0.0 --port={self.values['port']} "
            f"--dashboard-port={self.values['dashboardPort']} --ray-client-server-port={self.values['clientPort']}"
        )

    def _head(self, job: Job) -> TaskSpec:
        for task in job.spec.tasks:
            if task.name == self.values["head"]:
                return task
        raise PluginError(f"spec.plugins[ray]: no task is named {self.values['head']!r}; name the head's with --head")
