"""Pod classes: pods of the same shape are planned as one.

The shape is everything that decides on which nodes a pod can be: requests, selectors, affinity, tolerations, host
ports, claims, what it demands of its neighbours, and which of the others' demands it meets (its marks). What Muster
itself added (the pin) is taken off, so that a gated pod and its pinned twin are of one class.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from weakref import WeakValueDictionary

import msgspec

from extender.dynamic.needs import NO_NEEDS, Needs
from extender.state.neighbours import NONE, Neighbours, neighbours_of
from extender.state.queries import Mark, QueryTable
from muster.api import names
from muster.api.constraints import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    Toleration,
    TopologySpreadConstraint,
)
from muster.api.core import Pod, PodSpec
from muster.api.meta import LabelSelectorRequirement
from muster.resources.gpus import GpuShare, share_of
from muster.resources.pods import pod_requests, requests_on_node
from muster.resources.vector import GPU, Vector, add

ANY_ADDRESS = "0.0.0.0"  # noqa: S104 - Kubernetes' word for every address of a node
Port = tuple[str, str, int]
"""Address, protocol and number of a host port."""


@dataclass(frozen=True, slots=True)
class ClaimUse:
    """A claim that a pod mounts; that of an ephemeral volume is made for the pod once it exists."""

    key: str
    ephemeral: bool = False


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class PodClass:
    """One shape; compare classes by identity, they are interned by `ClassTable`."""

    key: bytes
    requests: Vector
    node_selector: dict[str, str]
    affinity: Affinity | None
    tolerations: tuple[Toleration, ...]
    host_ports: tuple[Port, ...]
    spread: tuple[TopologySpreadConstraint, ...]
    neighbours: Neighbours = NONE
    claims: tuple[ClaimUse, ...] = ()
    gpu: GpuShare | None = None
    """The part of GPUs that it shares with others."""
    matched: frozenset[Mark] = frozenset()
    """Marks of the queries of all pods that mean pods of this class."""
    charged: tuple[Mark, ...] = ()
    """What a pod of this class is counted under on its node."""
    shape: bytes = b""
    """The part of the key that other pods' demands do not change."""
    needs: Needs = NO_NEEDS
    """What its claims to devices come to now; `requests` has the amounts of it."""
    asked: Vector = field(default_factory=dict)
    """The requests without its needs."""
    plain: bytes = b""
    """The shape without its needs."""

    @property
    def required_node_affinity(self) -> NodeSelector | None:
        """The user's required node affinity, without Muster's pin."""
        node_affinity = self.affinity.node_affinity if self.affinity else None
        return node_affinity.required if node_affinity else None

    @property
    def dynamic(self) -> bool:
        """Whether a pod that is placed changes where the next of this class can be, beyond its own node."""
        return bool(self.neighbours) and self.neighbours.concern_themselves(self.matched)


class ClassTable:
    """Interns pod classes, so that equal shapes are the same object; a class that nobody uses is forgotten."""

    def __init__(self) -> None:
        self.queries = QueryTable()
        self._classes: WeakValueDictionary[bytes, PodClass] = WeakValueDictionary()

    def of_pod(self, pod: Pod) -> PodClass:
        """The class of a pod that exists."""
        meta = pod.metadata
        return self.of_spec(
            pod.spec,
            namespace=meta.namespace,
            labels=meta.labels,
            pod_name=meta.name,
            pin=meta.annotations.get(names.NODE),
            annotations=meta.annotations if ours(pod.spec) else None,
            taken=requests_on_node(pod) if pod.spec.node_name else None,
        )

    def of_spec(
        self,
        spec: PodSpec,
        *,
        namespace: str = "",
        labels: Mapping[str, str] | None = None,
        pod_name: str = "",
        pin: str | None = None,
        annotations: Mapping[str, str] | None = None,
        taken: Vector | None = None,
    ) -> PodClass:
        """The class of a pod or template with this spec; `pin` is the node that Muster pinned it to.

        `taken` is what a pod on a node takes of it, where that is not what its spec says.
        """
        requests, gpu = asked_of(spec, annotations, taken)
        affinity = without_pin(spec.affinity, pin) if pin else spec.affinity
        ports = host_ports(spec)
        claims = claims_of(spec, namespace, pod_name)
        neighbours = neighbours_of(spec, namespace, labels or {}, self.queries)
        shape = msgspec.msgpack.encode(
            (
                sorted(requests.items()),
                sorted(spec.node_selector.items()),
                affinity,
                spec.tolerations,
                ports,
                spec.topology_spread_constraints,
                neighbours.shape() if neighbours or neighbours.wishes else None,
                [(claim.key, claim.ephemeral) for claim in claims],
                (gpu.portion, gpu.memory, gpu.devices, gpu.by_resource) if gpu else None,
            )
        )
        matched = self.queries.matching(namespace, labels or {})
        known = self._classes.get(_key(shape, matched))
        if known is not None:
            return known
        bare = PodClass(
            shape,
            requests,
            spec.node_selector,
            affinity,
            tuple(spec.tolerations),
            ports,
            tuple(spec.topology_spread_constraints),
            neighbours,
            claims,
            gpu,
            shape=shape,
            asked=requests,
            plain=shape,
        )
        return self.marked(bare, matched)

    def equipped(self, cls: PodClass, needs: Needs) -> PodClass:
        """The class of the same pods whose claims to devices come to these needs."""
        if cls.needs.key == needs.key:
            return cls
        shape = cls.plain + b"\0" + needs.key if needs else cls.plain
        known = self._classes.get(_key(shape, cls.matched))
        if known is not None:
            return known
        requests = {name: amount for name, amount in cls.asked.items() if name not in needs.replaced}
        bare = replace(cls, shape=shape, needs=needs, requests=add(requests, dict(needs.rows)))
        return self.marked(bare, cls.matched)

    def of_claim(self, claim: str, rows: Mapping[str, int]) -> PodClass:
        """What a claim takes that counts by itself, in the form in which nodes are charged."""
        key = b"\0claim " + msgspec.msgpack.encode((claim, sorted(rows.items())))
        known = self._classes.get(key)
        if known is None:
            known = self._classes[key] = PodClass(key, dict(rows), {}, None, (), (), (), shape=key)
        return known

    def matched_again(self, cls: PodClass, namespace: str, labels: Mapping[str, str]) -> PodClass:
        """The class of the same pods with the demands of others that they meet now."""
        return self.marked(cls, self.queries.matching(namespace, labels))

    def marked(self, cls: PodClass, matched: frozenset[Mark]) -> PodClass:
        """The class like this one that meets exactly these demands of others."""
        key = _key(cls.shape, matched)
        known = self._classes.get(key)
        if known is None:
            rules = (rule.mark for rule in cls.neighbours.apart)
            ports = (("port", *port) for port in cls.host_ports)
            charged = tuple(dict.fromkeys((*sorted(matched), *rules, *ports)))
            known = self._classes[key] = replace(cls, key=key, matched=matched, charged=charged)
        return known


def _key(shape: bytes, matched: frozenset[Mark]) -> bytes:
    return shape + msgspec.msgpack.encode(sorted(matched)) if matched else shape


def requests_of(spec: PodSpec) -> Vector:
    """What a pod takes from a node. Markers are not among it: no node has any, and kube-scheduler ignores them too."""
    return _without_markers(pod_requests(spec))


def _without_markers(requests: Vector) -> Vector:
    return {name: amount for name, amount in requests.items() if name not in names.MARKERS}


def asked_of(
    spec: PodSpec, annotations: Mapping[str, str] | None, taken: Vector | None = None
) -> tuple[Vector, GpuShare | None]:
    """What a pod takes from a node, with its part of GPUs; without annotations it has none by annotation.

    A part of a device counts among the GPUs, so that queues, quotas and victims count it; how much that is where it
    asks for memory, depends on the node, so that it is not in these requests (see `NodeTable.taken`).
    """
    requests = _without_markers(pod_requests(spec) if taken is None else taken)
    gpu = share_of(annotations or {}, requests)
    if gpu is not None and not gpu.by_resource:
        requests = requests | {GPU: gpu.portion * gpu.devices}
    return requests, gpu


def ours(spec: PodSpec) -> bool:
    """Whether Muster's extender is asked about the pod: by its scheduler's name, or by the markers that it carries."""
    return spec.scheduler_name in names.SCHEDULERS or marked(spec)


def marked(spec: PodSpec) -> bool:
    """Whether a scheduler that Muster shares with others asks Muster about the pod: it carries both markers."""
    containers = (*spec.containers, *spec.init_containers)
    asked = {name for each in containers for name in (*each.resources.limits, *each.resources.requests)}
    return asked >= names.MARKERS


def host_ports(spec: PodSpec) -> tuple[Port, ...]:
    """Ports of the node that the pod takes: those of its containers and sidecars, all of them with hostNetwork."""
    sidecars = (container for container in spec.init_containers if container.restart_policy == "Always")
    return tuple(
        sorted(
            {
                (port.host_ip or ANY_ADDRESS, port.protocol or "TCP", port.host_port or port.container_port)
                for container in (*spec.containers, *sidecars)
                for port in container.ports
                if port.host_port or spec.host_network
            }
        )
    )


def claims_of(spec: PodSpec, namespace: str, pod_name: str) -> tuple[ClaimUse, ...]:
    """The claims that the pod mounts; a template's ephemeral volumes have none yet."""
    claims = []
    for volume in spec.volumes:
        if "persistentVolumeClaim" in volume:
            claims.append(ClaimUse(f"{namespace}/{volume['persistentVolumeClaim'].get('claimName', '')}"))
        elif "ephemeral" in volume and pod_name:
            claims.append(ClaimUse(f"{namespace}/{pod_name}-{volume.get('name', '')}", ephemeral=True))
    return tuple(claims)


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
