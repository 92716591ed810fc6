"""What tests of Kubernetes' own gangs create: Jobs with `spec.scheduling`, groups and members."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from builders import manifests
from planes import Muster

from muster.api import names
from muster.api.base import Resource
from muster.api.kubernetes.core import INDEXED_JOBS, PODS, Pod
from muster.api.kubernetes.scheduling import NATIVE_POD_GROUPS, NativePodGroup
from muster.api.muster.gang import native_gang
from muster.api.muster.placement import PLACEMENTS, Placement
from muster.api.volcano.scheduling import POD_GROUPS
from muster.kube.client import Client
from muster.kube.errors import NotFound
from musterctl.plane.plane import Plane

JSON = dict[str, Any]
WaitFor = Callable[..., Any]


def containers(gpus: int = 0, cpu: str = "10m") -> list[JSON]:
    """One container that asks for so much."""
    resources = {"requests": {"cpu": cpu}, "limits": {"nvidia.com/gpu": gpus} if gpus else {}}
    return [{"name": "main", "image": "none", "resources": resources}]


def scheduled_job(
    name: str, size: int, scheduling: JSON | None, *, gpus: int = 8, queue: str = "default", run_s: float | None = None,
    **annotations: str,
) -> JSON:  # fmt: skip
    """A batch Job in a queue whose pods start as `spec.scheduling` has it; they end after `run_s` if that is given."""
    lasts = {} if run_s is None else {"kwok.muster.dev/run-seconds": str(run_s)}
    pods = {"restartPolicy": "Never", "containers": containers(gpus)}
    spec = {} if scheduling is None else {"scheduling": scheduling}
    made = manifests.batch_job(name, size, "", template={"metadata": {"annotations": lasts}, "spec": pods}, **spec)
    given = {f"muster.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    made["metadata"] |= {"labels": {names.QUEUE: queue}, "annotations": given}
    return made


@dataclass(frozen=True, slots=True)
class Scene:
    """One namespace of such a plane."""

    plane: Plane
    client: Client
    namespace: str
    wait_for: WaitFor

    def job(self, *arguments: Any, **more: Any) -> None:
        """Creates a Job, see `scheduled_job`."""
        self.client.create(INDEXED_JOBS, scheduled_job(*arguments, **more), self.namespace)

    def create(self, resource: Resource[Any], name: str, **spec: Any) -> None:
        """Creates an object of scheduling.k8s.io."""
        kind = {"apiVersion": resource.api_version, "kind": resource.kind}
        self.client.create(resource, {**kind, "metadata": {"name": name}, "spec": spec}, self.namespace)

    def group(self, name: str, least: int | None, *, queue: str = "", **spec: Any) -> NativePodGroup:
        """Creates a native PodGroup, `basic` without a minimum."""
        policy = {"gang": {"minCount": least}} if least else {"basic": {}}
        body = {
            "apiVersion": NATIVE_POD_GROUPS.api_version,
            "kind": NATIVE_POD_GROUPS.kind,
            "metadata": {"name": name, "labels": {names.QUEUE: queue} if queue else {}},
            "spec": {"schedulingPolicy": policy, **spec},
        }
        return self.client.create(NATIVE_POD_GROUPS, body, self.namespace)

    def members(self, group: str, indexes: Iterable[int], *, gpus: int = 8, **spec: Any) -> None:
        """Creates pods of a native PodGroup, of Muster's scheduler unless their spec says otherwise."""
        named = {"schedulerName": "muster", "schedulingGroup": {"podGroupName": group}}
        for index in indexes:
            body = {"metadata": {"name": f"{group}-{index}"}, "spec": {**named, "containers": containers(gpus), **spec}}
            self.client.create(PODS, body, self.namespace)

    def muster(self, *typed: str) -> str:
        """What a command prints about the namespace."""
        return Muster(self.plane.kubeconfig)(*typed, "-n", self.namespace)

    def pods(self) -> list[Pod]:
        """The pods of the namespace."""
        return self.client.list(PODS, self.namespace)

    def bound(self) -> list[Pod]:
        """Those that have a node."""
        return [pod for pod in self.pods() if pod.spec.node_name]

    def starts(self, count: int, timeout_s: float = 60.0) -> None:
        """Waits until so many pods have a node."""
        self.wait_for(lambda: len(self.bound()) == count, timeout_s, f"{count} pods to be bound")

    def native(self, name: str = "") -> NativePodGroup:
        """The native PodGroup of this name, or the only one."""
        if name:
            return self.client.get(NATIVE_POD_GROUPS, name, self.namespace)
        [one] = self.client.list(NATIVE_POD_GROUPS, self.namespace)
        return one

    def placement(self, group: str) -> Placement | None:
        """The Placement of a group's gang."""
        try:
            return self.client.get(PLACEMENTS, native_gang(group), self.namespace)
        except NotFound:
            return None

    def says(self, name: str, kind: str) -> tuple[str, str, str]:
        """Status, reason and message of a condition of a native PodGroup; empty without it."""
        held = {each.type: each for each in self.native(name).status.conditions}
        return (held[kind].status, held[kind].reason, held[kind].message) if kind in held else ("", "", "")

    def no_mirror(self) -> bool:
        """True if no PodGroup of Volcano's stands for a gang."""
        return not self.client.list(POD_GROUPS, self.namespace)
