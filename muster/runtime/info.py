"""The builder that plugins work on; `freeze` makes it a plan."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from muster.api.core import Container as WireContainer
from muster.resources.vector import Vector, vector
from muster.runtime.plan import ContainerPlan, Endpoints, EnvVar, Plan, PodSetPlan, Value


@dataclass(slots=True)
class Container:
    """One container: what the user wrote (`given`, with its field path), and what plugins add."""

    path: str
    given: WireContainer
    env: list[EnvVar] = field(default_factory=list)
    ports: list[int] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Its name."""
        return self.given.name

    @property
    def requests(self) -> Vector:
        """What it asks for after merging: a limit counts where a request is missing, as the API server fills it in."""
        resources = self.given.resources
        return vector({**resources.limits, **resources.requests})


@dataclass(slots=True)
class PodSet:
    """Pods of one shape, as the owner's adapter describes them.

    `rank` is how a member learns its own rank, `target` the container that runs the framework.
    """

    name: str
    count: int
    rank: Value
    endpoints: Endpoints
    subdomain: str
    target: Container
    containers: list[Container]
    slots: int | None = None


@dataclass(slots=True)
class Info:
    """One workload on its way to a plan. `parameters` are annotations; `parameters_path` is where they stand."""

    framework: str
    workload: str
    pod_sets: list[PodSet]
    parameters: Mapping[str, str] = field(default_factory=dict)
    parameters_path: str = "metadata.annotations"

    def freeze(self) -> Plan:
        """The plan so far, immutable."""
        return Plan(self.framework, tuple(_freeze(pod_set) for pod_set in self.pod_sets))


def _freeze(pod_set: PodSet) -> PodSetPlan:
    return PodSetPlan(
        name=pod_set.name,
        count=pod_set.count,
        slots=pod_set.slots,
        endpoints=pod_set.endpoints,
        subdomain=pod_set.subdomain,
        containers=tuple(
            ContainerPlan(container.name, tuple(container.env), tuple(container.ports))
            for container in pod_set.containers
            if container.env or container.ports
        ),
    )
