"""A kind of workload that nobody has: the one file that a new kind needs, beside its row in the table.

A Swarm has as many pods as `spec.bees` says. Its controller numbers them in a label of its own, and writes
`status.landed` at the end.
"""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import msgspec

from muster.api.base import Resource, Wire
from muster.api.fields import FieldError
from muster.api.kubernetes.endpoints import Endpoints, NumberedNames
from muster.api.kubernetes.meta import Object, ObjectMeta
from muster.workloads.adapter import Adapter, Owner, Value, label
from muster.workloads.kind import Admission, GangRules, Place, Ranks, WorkloadKind
from muster.workloads.sample import JSON, SamplePod, mapping, name_of, pod_of

BEE = "example.com/bee"


class SwarmSpec(Wire):
    """spec of a Swarm."""

    bees: int = 1
    template: dict[str, Any] = msgspec.field(default_factory=dict)


class Swarm(Object):
    """A Swarm."""

    spec: SwarmSpec = msgspec.field(default_factory=SwarmSpec)
    status: dict[str, Any] = msgspec.field(default_factory=dict)


SWARMS = Resource("example.com", "v1", "swarms", "Swarm", Swarm)


class SwarmAdapter(Adapter):
    """A Swarm: the rank is the number of the bee."""

    def __init__(self, swarm: Swarm) -> None:
        super().__init__(Owner.from_meta(SWARMS, swarm.metadata), swarm.spec.template, swarm.metadata.annotations)
        self._bees = swarm.spec.bees

    def errors(self) -> list[FieldError]:
        """None."""
        return []

    def rank(self, pod: ObjectMeta | None) -> Value:
        """The number of the bee."""
        del pod
        return label(BEE)

    def size(self) -> int:
        """All bees."""
        return self._bees

    def subdomain(self) -> str:
        """The Swarm's name."""
        return self.owner.name

    def endpoints(self) -> Endpoints:
        """`<swarm>-<bee>.<swarm>`."""
        return NumberedNames(f"{self.owner.name}-", f".{self.owner.name}", self._bees)


def pods(swarm: JSON) -> Iterator[JSON]:
    """All pods of a Swarm."""
    spec = mapping(swarm.get("spec"))
    for bee in range(spec.get("bees", 1)):
        name = f"{name_of(swarm)}-{bee}"
        yield pod_of(swarm, mapping(spec.get("template")), name, {BEE: str(bee)}, {"hostname": name})


def _samples(swarm: JSON, /, *, every: bool = False) -> Iterator[SamplePod]:
    for pod in islice(pods(swarm), None if every else 1):
        yield SamplePod(pod, f"the first pod of Swarm {name_of(swarm)}")


def _mistakes(swarm: JSON, together: Mapping[Place, str]) -> Iterator[FieldError]:
    if together and swarm["spec"].get("lazy"):
        yield FieldError("spec.lazy", "must be left out: the bees start together", value=True)


SWARM = WorkloadKind(
    SWARMS,
    labelled=True,
    one_template=True,
    ranks=Ranks(lambda swarm, _pod: SwarmAdapter(swarm), SWARMS, index=BEE, recommended_as="a Swarm"),
    gang=GangRules(
        at_once=lambda swarm: swarm.spec.bees,
        is_over=lambda swarm: swarm.status.get("landed") is True,
        failure=lambda swarm: swarm.status.get("why", ""),
    ),
    admission=Admission(
        warnings=lambda _swarm, places: [f"{len(places)} template with bees"],
        mistakes=_mistakes,
        count=("spec", "bees"),
    ),
    samples=_samples,
)
