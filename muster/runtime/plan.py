"""The plan of a workload's pods (environment, command, volumes, …), and the other objects that the workload needs.

Each value of a plan has a field with the value's source. Plans are immutable. The webhook and the controller compute
equal plans.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from muster.api.fields import FieldError, Findings
from muster.api.kubernetes.endpoints import Endpoints
from muster.resources.vector import Vector
from muster.runtime.settings import Setting
from muster.workloads.adapter import FieldPath, Owner, Value

Role = Literal["trainer", "launcher", "dataset-initializer", "model-initializer", "other"]
"""Role of a pod set: its pods train (each with at least one rank), launch processes with mpirun, fetch data, or have
another purpose."""


@dataclass(frozen=True, slots=True)
class PlannedEnvVar:
    """One environment variable, with the plugin that sets it and the source of its value."""

    name: str
    value: Value
    plugin: str
    source: str

    def as_json(self) -> dict[str, Any]:
        """Return the variable as JSON for a container."""
        if isinstance(self.value, FieldPath):
            reference = {"apiVersion": "v1", "fieldPath": self.value.path}
            return {"name": self.name, "valueFrom": {"fieldRef": reference}}
        return {"name": self.name, "value": self.value}

    def same(self, other: Mapping[str, Any]) -> bool:
        """Return True if a container's environment variable has the same value."""
        if isinstance(self.value, FieldPath):
            source = other.get("valueFrom")
            reference = source.get("fieldRef") if isinstance(source, Mapping) else None
            return isinstance(reference, Mapping) and reference.get("fieldPath") == self.value.path
        return other.get("value", "") == self.value and not other.get("valueFrom")


@dataclass(frozen=True, slots=True)
class Mount:
    """Mount of a volume, or of its directory `sub_path`, in a container."""

    volume: str
    path: str
    sub_path: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the mount as JSON for a container; Muster's mounts are read-only."""
        result = {"name": self.volume, "mountPath": self.path, "readOnly": True}
        return {**result, "subPath": self.sub_path} if self.sub_path else result


@dataclass(frozen=True, slots=True)
class Volume:
    """Volume of a pod, with the plugin that adds it; `source` is the volume's JSON without its name."""

    name: str
    source: Mapping[str, Any]
    plugin: str
    reason: str

    def as_json(self) -> dict[str, Any]:
        """Return the volume as JSON for a pod."""
        return {"name": self.name, **self.source}


@dataclass(frozen=True, slots=True)
class ContainerPlan:
    """Additions to one container, in order. `command` and `readiness` are None if they are not changed."""

    name: str
    env: tuple[PlannedEnvVar, ...] = ()
    ports: tuple[int, ...] = ()
    mounts: tuple[Mount, ...] = ()
    command: tuple[str, ...] | None = None
    readiness: Mapping[str, Any] | None = None
    init: bool = False

    @property
    def empty(self) -> bool:
        """True if nothing is added to the container."""
        return not (self.env or self.ports or self.mounts or self.command or self.readiness)


@dataclass(frozen=True, slots=True)
class InitPlan:
    """An init container that Muster adds; it has the image, rights and mounts (at `paths`) of the container `like`."""

    name: str
    like: str
    command: tuple[str, ...]
    env: Mapping[str, str]
    paths: tuple[str, ...]
    plugin: str
    reason: str


@dataclass(frozen=True, slots=True)
class PodSetPlan:
    """Pods of one shape: their number, processes per pod, host names and additions to their containers.

    `slots` is None if the pods run no processes of the framework, or if their number is only known inside the pod.
    `jobs` is the number of Jobs over which a JobSet spreads the pods. `requests` are one pod's requests, including
    limits. `after` names pod sets that must be Ready or Complete before pods of this pod set are created. `searches`
    are additional DNS search domains. `inits` run after the pod's own init containers.
    """

    name: str
    count: int
    slots: int | None
    endpoints: Endpoints
    subdomain: str
    containers: tuple[ContainerPlan, ...]
    role: Role = "trainer"
    jobs: int = 1
    volumes: tuple[Volume, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    searches: tuple[str, ...] = ()
    requests: Vector = field(default_factory=dict)
    after: Mapping[str, str] = field(default_factory=dict)
    inits: tuple[InitPlan, ...] = ()

    def container(self, name: str) -> ContainerPlan | None:
        """Return the additions to the container with this name; None without such a container."""
        return next((container for container in self.containers if container.name == name), None)


@dataclass(frozen=True, slots=True)
class GangShape:
    """The pods of a workload that start together.

    `pod_sets` lists the names of the members' pod sets. `minimum` counts only members that are created at the
    beginning.
    """

    plugin: str
    pod_sets: tuple[str, ...]
    minimum: int
    resources: Vector
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Plan:
    """All pod sets of one workload, its gang, and the template of its other objects.

    `base` is the template of the components, for reading only: the merged JobSet spec of a TrainJob, empty if the owner
    creates its pods itself. `suspend` is true if the TrainJob currently wants no pods.
    """

    framework: str
    pod_sets: tuple[PodSetPlan, ...]
    owner: Owner = field(default_factory=Owner)
    gang: GangShape | None = None
    settings: Mapping[str, Setting] = field(default_factory=dict)
    target: str = ""
    base: Mapping[str, Any] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    suspend: bool = False

    def pod_set(self, name: str) -> PodSetPlan | None:
        """Return the pod set with this name; None without such a pod set."""
        return next((pod_set for pod_set in self.pod_sets if pod_set.name == name), None)


KeyKind = Literal["ed25519", "ecdsa"]


@dataclass(frozen=True, slots=True)
class Component:
    """One object that is ready for server-side apply.

    All components of a `stage` must be finished (Jobs complete, other objects applied) before the next stage begins. An
    object with `once` is created if it does not exist, and is never changed. An object with `keys` is an SSH Secret
    without data. `certs.ssh` generates the data, because this package uses no random numbers.
    """

    manifest: Mapping[str, Any]
    plugin: str
    stage: int = 0
    once: bool = False
    keys: KeyKind | None = None

    @property
    def kind(self) -> str:
        """Kind of the object, which determines the URL for applying it."""
        return str(self.manifest["kind"])

    @property
    def name(self) -> str:
        """Name of the object, in the namespace of its workload."""
        return str(self.manifest["metadata"]["name"])


@dataclass(frozen=True, slots=True)
class Compiled:
    """The result of compiling a workload.

    A result with errors contains no plan and no components. Warnings do not stop the compilation.
    """

    plan: Plan | None
    components: tuple[Component, ...]
    findings: Findings

    @property
    def errors(self) -> list[FieldError]:
        """All errors of the workload; a workload with any error was not compiled."""
        return self.findings.errors


def owned(owner: Owner, name: str) -> dict[str, Any]:
    """Return the metadata of an object that is deleted together with its workload."""
    return {"name": name, "namespace": owner.namespace, "ownerReferences": [owner.reference()]}


def metadata_of(plan: Plan, name: str) -> dict[str, Any]:
    """Return the metadata of an object that creates pods of a workload: owner, labels and annotations."""
    result = owned(plan.owner, name)
    for key, values in (("labels", plan.labels), ("annotations", plan.annotations)):
        if values:
            result[key] = dict(values)
    return result
