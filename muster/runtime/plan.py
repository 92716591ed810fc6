"""The plan: what Muster puts into the pods of one workload, and why. Immutable, and the same for every reader."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, overload


@dataclass(frozen=True, slots=True)
class FieldPath:
    """A value that the kubelet reads from the pod itself."""

    path: str


Value = str | FieldPath
"""What an environment variable holds: a text, or a field of the pod."""


@dataclass(frozen=True)
class Endpoints(Sequence[str]):
    """The host names `<prefix><rank><suffix>` in rank order, made only when looked at: there may be thousands."""

    prefix: str
    suffix: str
    size: int

    def __len__(self) -> int:
        return self.size

    @overload
    def __getitem__(self, rank: int) -> str: ...
    @overload
    def __getitem__(self, rank: slice) -> list[str]: ...
    def __getitem__(self, rank: int | slice) -> str | list[str]:
        ranks = range(self.size)[rank]
        return f"{self.prefix}{ranks}{self.suffix}" if isinstance(ranks, int) else [self[each] for each in ranks]


@dataclass(frozen=True, slots=True)
class EnvVar:
    """One variable with its provenance: the plugin that sets it, and what it follows from."""

    name: str
    value: Value
    plugin: str
    source: str

    def as_json(self) -> dict[str, Any]:
        """As it stands in a container."""
        if isinstance(self.value, FieldPath):
            reference = {"apiVersion": "v1", "fieldPath": self.value.path}
            return {"name": self.name, "valueFrom": {"fieldRef": reference}}
        return {"name": self.name, "value": self.value}

    def same(self, other: dict[str, Any]) -> bool:
        """Whether a container's variable says the same."""
        if isinstance(self.value, FieldPath):
            reference = (other.get("valueFrom") or {}).get("fieldRef") or {}
            return bool(reference.get("fieldPath") == self.value.path)
        return other.get("value", "") == self.value and not other.get("valueFrom")


@dataclass(frozen=True, slots=True)
class ContainerPlan:
    """What one container gets, in order."""

    name: str
    env: tuple[EnvVar, ...] = ()
    ports: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class PodSetPlan:
    """Pods of one shape: how many, how many processes each runs, where they are found, what their containers get.

    `slots` is None where the processes per pod are only known inside of the pod.
    """

    name: str
    count: int
    slots: int | None
    endpoints: Endpoints
    subdomain: str
    containers: tuple[ContainerPlan, ...]

    def container(self, name: str) -> ContainerPlan | None:
        """The plan of a container, by name."""
        return next((container for container in self.containers if container.name == name), None)


@dataclass(frozen=True, slots=True)
class Plan:
    """The answer for one workload."""

    framework: str
    pod_sets: tuple[PodSetPlan, ...]

    def pod_set(self, name: str) -> PodSetPlan | None:
        """The plan of a pod set, by name."""
        return next((pod_set for pod_set in self.pod_sets if pod_set.name == name), None)
