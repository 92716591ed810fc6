"""Pod classes: pods of the same shape are planned as one.

The shape is everything that decides on which nodes a pod can be: requests, selectors, affinity, tolerations, host
ports. What Muster itself added (the pin) is taken off, so that a gated pod and its pinned twin are of one class.
"""

from dataclasses import dataclass

import msgspec

from muster.api import names
from muster.api.core import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    Pod,
    PodSpec,
    Toleration,
    TopologySpreadConstraint,
)
from muster.api.meta import LabelSelectorRequirement
from muster.resources.pods import pod_requests
from muster.resources.vector import Vector


@dataclass(frozen=True, slots=True, eq=False)
class PodClass:
    """One shape; compare classes by identity, they are interned by `ClassTable`."""

    key: bytes
    requests: Vector
    node_selector: dict[str, str]
    affinity: Affinity | None
    tolerations: tuple[Toleration, ...]
    host_ports: tuple[tuple[str, str, int], ...]
    spread: tuple[TopologySpreadConstraint, ...]

    @property
    def required_node_affinity(self) -> NodeSelector | None:
        """The user's required node affinity, without Muster's pin."""
        node_affinity = self.affinity.node_affinity if self.affinity else None
        return node_affinity.required if node_affinity else None


class ClassTable:
    """Interns pod classes, so that equal shapes are the same object."""

    def __init__(self) -> None:
        self._classes: dict[bytes, PodClass] = {}

    def of_pod(self, pod: Pod) -> PodClass:
        """The class of a pod that exists."""
        return self.of_spec(pod.spec, pin=pod.metadata.annotations.get(names.NODE))

    def of_spec(self, spec: PodSpec, *, pin: str | None = None) -> PodClass:
        """The class of a pod or template with this spec; `pin` is the node that Muster pinned it to."""
        requests = pod_requests(spec)
        affinity = without_pin(spec.affinity, pin) if pin else spec.affinity
        ports = tuple(
            sorted(
                (port.host_ip or "0.0.0.0", port.protocol, port.host_port)  # noqa: S104 - Kubernetes' word for any address
                for container in spec.containers
                for port in container.ports
                if port.host_port
            )
        )
        shape = (
            sorted(requests.items()),
            sorted(spec.node_selector.items()),
            affinity,
            spec.tolerations,
            ports,
            spec.topology_spread_constraints,
        )
        key = msgspec.msgpack.encode(shape)
        known = self._classes.get(key)
        if known is None:
            known = self._classes[key] = PodClass(
                key,
                requests,
                spec.node_selector,
                affinity,
                tuple(spec.tolerations),
                ports,
                tuple(spec.topology_spread_constraints),
            )
        return known


def without_pin(affinity: Affinity | None, node: str) -> Affinity | None:
    """The affinity as the user wrote it: the inverse of `muster.api.gang.pinned_affinity`."""
    node_affinity = affinity.node_affinity if affinity else None
    if affinity is None or node_affinity is None or node_affinity.required is None:
        return affinity
    pin = LabelSelectorRequirement(key="metadata.name", operator="In", values=[node])
    terms = [
        NodeSelectorTerm(
            match_expressions=term.match_expressions,
            match_fields=[requirement for requirement in term.match_fields if requirement != pin],
        )
        for term in node_affinity.required.node_selector_terms
    ]
    own = [term for term in terms if term.match_expressions or term.match_fields]
    required = NodeSelector(node_selector_terms=own) if own else None
    stripped = NodeAffinity(required=required, preferred=node_affinity.preferred)
    result = Affinity(
        node_affinity=stripped if required or stripped.preferred else None,
        pod_affinity=affinity.pod_affinity,
        pod_anti_affinity=affinity.pod_anti_affinity,
    )
    return result if result != Affinity() else None
