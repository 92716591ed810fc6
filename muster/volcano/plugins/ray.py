"""Plugin `ray`, which sets the commands of the head and the workers, and creates the head's Service."""

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from muster.api import names
from muster.api.fields import FieldError
from muster.api.kubernetes.core import SERVICES
from muster.api.volcano.batch import Job, TaskSpec
from muster.resources.labels import MAX_LABEL
from muster.volcano.manifests import Manifest, add_port, containers
from muster.volcano.plugins.base import Flags, JobPlugin, Owned, PluginError, missing_task
from muster.volcano.tasks import PodSlot, task_hosts

_HEAD_SERVICE = "-head-svc"
"""Suffix of the name of the Service for the head."""


def _starts_ray(container: Manifest) -> bool:
    """Return True if the user's own command starts ray and ends no earlier than ray."""
    command = " ".join(map(str, [*(container.get("command") or []), *(container.get("args") or [])]))
    return "ray start" in command and "--block" in command


class Ray(JobPlugin):
    """Plugin ray; flags: head, worker, headContainer, workerContainer, port (6379), dashboardPort, clientPort."""

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

    def check(self, job: Job) -> Iterator[FieldError]:
        """Yield an error for a Job without a head task, and for a Job name that is too long for the head's Service."""
        yield from missing_task(job, self.name, "head", self.values["head"])
        name, longest = job.metadata.name, MAX_LABEL - len(_HEAD_SERVICE)
        if len(name) > longest:
            message = (
                f"must have at most {longest} characters, because plugin {self.name} creates "
                f"Service <name>{_HEAD_SERVICE}"
            )
            yield FieldError("metadata.name", message, name)

    def ports(self, job: Job, task: TaskSpec) -> Mapping[str, int]:
        """Return the ports of the head, which only the head's pods open."""
        return self._head_ports() if task.name == self.values["head"] else {}

    def objects(self, job: Job) -> Sequence[Owned]:
        """Return the Service for the head."""
        selector = {
            names.JOB_NAME: job.metadata.name,
            names.JOB_NAMESPACE: job.metadata.namespace,
            names.TASK_SPEC: self._head(job).name,
        }
        ports = [
            {"name": name, "port": port, "targetPort": port, "protocol": "TCP"}
            for name, port in self._head_ports().items()
        ]
        metadata = {"name": f"{job.metadata.name}{_HEAD_SERVICE}"}
        return [Owned(SERVICES, {"metadata": metadata, "spec": {"selector": selector, "ports": ports}})]

    def shape(self, job: Job, slot: PodSlot, manifest: Manifest) -> None:
        """Open the head's ports, and set the commands of the head's and the workers' containers.

        A command that starts ray itself is not replaced.
        """
        head, is_head = self._head(job), slot.task.name == self.values["head"]
        for container in containers(manifest, init=False):
            if container.get("name") != self._container(slot.task.name):
                continue
            for name, port in self.ports(job, slot.task).items():
                add_port(container, name, port)
            if not _starts_ray(container):
                address = f"{next(iter(task_hosts(job, head)), '')}:{self.values['port']}"
                start = self._start_head() if is_head else f"ray start --block --address={address}"
                container["command"] = ["sh", "-c", start]
                container.pop("args", None)

    def warn(self, job: Job) -> Iterator[str]:
        """Yield a warning for each command that the plugin replaces, as in Volcano."""
        for number, task in enumerate(job.spec.tasks):
            given = containers({"spec": task.template.get("spec") or {}}, init=False)
            for place, container in enumerate(given):
                own = container.get("command") or container.get("args")
                if own and container.get("name") == self._container(task.name) and not _starts_ray(container):
                    yield (
                        f"spec.tasks[{number}].template.spec.containers[{place}].command: plugin {self.name} replaces "
                        "command and args by its `ray start`; a command with `ray start` and `--block` is kept, and "
                        "your own programs can run in a container or task with another name"
                    )

    def _container(self, task: str) -> str | None:
        """Return the container of a task's pods in which ray runs."""
        flags = {self.values["worker"]: "workerContainer", self.values["head"]: "headContainer"}
        return self.values[flags[task]] if task in flags else None

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
        raise PluginError(
            f"spec.plugins[ray]: no task is named {self.values['head']!r}; name the head's task with --head"
        )
