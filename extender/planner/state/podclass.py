"""Pod classes: pods of the same shape belong to one class and are planned together.

The shape of a pod consists of all fields that determine on which nodes the pod can run. The shape has requests,
selectors, affinity, tolerations, host ports, claims, and demands on other pods. A class also has a mark for each
affinity or spreading term of other pods that pods of the class match.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from weakref import WeakValueDictionary

import msgspec

from extender.planner import reasons
from extender.planner.dynamic.needs import NO_NEEDS, ClaimNeeds
from extender.planner.state.neighbours import NONE, Neighbours, neighbours_of, rules_of
from extender.planner.state.podshape import (
    ClaimUse,
    PodTerms,
    Port,
    asked_of,
    claims_of,
    demands_of,
    host_ports,
    pin_of,
    raw_key,
    without_pin,
)
from extender.planner.state.queries import NO_MARKS, Mark, Marks, QueryTable
from muster.api.kubernetes.constraints import Affinity, NodeSelector, Toleration, conditions_of
from muster.api.kubernetes.core import Pod, PodSpec
from muster.api.limits import NODE_CONDITIONS, TOLERATIONS, LimitError
from muster.api.names import VOLCANO_GPU_NUMBER
from muster.resources.gpus import GpuShare
from muster.resources.pods import requests_on_node
from muster.resources.vector import GPU, WHOLE, Vector, add
from muster.workloads.charges import placed_by_muster


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class PodClass:
    """A class of pods of the same shape; `ClassTable` interns classes, so they are compared by identity."""

    key: bytes
    requests: Vector
    node_selector: dict[str, str]
    affinity: Affinity | None
    tolerations: tuple[Toleration, ...]
    host_ports: tuple[Port, ...]
    neighbours: Neighbours = NONE
    claims: tuple[ClaimUse, ...] = ()
    gpu: GpuShare | None = None
    matched: Marks = NO_MARKS
    """Marks (ids) of other pods' queries that match pods of this class."""
    marks: tuple[Mark, ...] = ()
    """Marks (ids of queries and host ports) with which pods of this class are counted on their nodes."""
    shape: bytes = b""
    """The key of the class, computed without `matched`."""
    needs: ClaimNeeds = NO_NEEDS
    """Device needs of the claims of a pod; `requests` includes these needs."""
    asked: Vector = field(default_factory=dict)
    """The requests of the pod, without its device needs."""
    plain: bytes = b""
    """The key of the pod's shape, without its device needs."""

    @property
    def required_node_affinity(self) -> NodeSelector | None:
        """The required node affinity that the user set, without Muster's pin."""
        node_affinity = self.affinity.node_affinity if self.affinity else None
        return node_affinity.required if node_affinity else None

    @property
    def conditions(self) -> int:
        """Number of conditions on nodes in the pods' spec."""
        return conditions_of(self.node_selector, self.affinity.node_affinity if self.affinity else None)

    @property
    def whole_gpus(self) -> int:
        """Number of whole GPUs that a pod requests, by Kubernetes' or Volcano's resource name."""
        return max(self.requests.get(GPU, 0) // WHOLE, self.requests.get(VOLCANO_GPU_NUMBER, 0))

    def counted_under(self, *, leaving: bool) -> tuple[Mark, ...]:
        """Return the marks with which a pod of this class is counted; a pod that is being deleted has fewer marks."""
        return tuple(mark for mark in self.marks if mark[0] != "staying") if leaving else self.marks

    @property
    def dynamic(self) -> bool:
        """True if placing a pod of this class can change which other nodes the next pod of the class may use."""
        return self.neighbours.restrict_own_kind(self.matched)


class ClassTable:
    """Table of the pod classes in use; equal shapes share one object."""

    def __init__(self) -> None:
        self.queries = QueryTable()
        self._classes: WeakValueDictionary[bytes, PodClass] = WeakValueDictionary()
        self._by_raw_key: WeakValueDictionary[bytes, PodClass] = WeakValueDictionary()
        """Maps the raw key of a shape to its class, without regard to the demands of other pods."""

    def of_pod(self, pod: Pod) -> PodClass:
        """Return the `PodClass` of an existing pod. Calling `of_pod` is cheap for pods that have the same template."""
        meta, raw = pod.metadata, raw_key(pod)
        known = self._by_raw_key.get(raw) if raw is not None else None
        if known is not None:
            return self.matched_again(known, meta.namespace, meta.labels)
        cls = self.worked_out(pod)
        if raw is not None:
            self._by_raw_key[raw] = cls
        return cls

    def worked_out(self, pod: Pod) -> PodClass:
        """Return the class of a complete pod; compute the class without the cache of similar pods."""
        meta = pod.metadata
        return self.of_spec(
            pod.spec,
            namespace=meta.namespace,
            labels=meta.labels,
            pod_name=meta.name,
            pin=pin_of(meta),
            annotations=meta.annotations if placed_by_muster(pod.spec) else None,
            taken=requests_on_node(pod) if pod.spec.node_name else None,
            demands=demands_of(pod),
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
        demands: PodTerms = PodTerms.ALL,
    ) -> PodClass:
        """Return the class of a pod or template with this spec; `pin` is the node to which Muster pinned it.

        `taken` contains the resources of a pod on a node if they differ from its spec. Raises LimitError for too many
        terms, conditions or tolerations. A pod on a node raises no error, because the pod already uses capacity.
        """
        requests, gpu = asked_of(spec, annotations, taken)
        affinity = without_pin(spec.affinity, pin) if pin else spec.affinity
        ports = host_ports(spec)
        claims = claims_of(spec, namespace, pod_name)
        neighbours = self._neighbours(spec, namespace, labels or {}, demands, on_node=taken is not None)
        shape = msgspec.msgpack.encode(
            (
                sorted(requests.items()),
                sorted(spec.node_selector.items()),
                affinity,
                spec.tolerations,
                ports,
                spec.topology_spread_constraints,
                neighbours.shape() if neighbours or neighbours.preferences else None,
                [(claim.key, claim.ephemeral) for claim in claims],
                (gpu.portion, gpu.memory, gpu.devices, gpu.by_resource) if gpu else None,
            )
        )
        bare = PodClass(
            shape,
            requests,
            spec.node_selector,
            affinity,
            tuple(spec.tolerations),
            ports,
            neighbours,
            claims,
            gpu,
            shape=shape,
            asked=requests,
            plain=shape,
        )
        for limit, count in ((NODE_CONDITIONS, bare.conditions), (TOLERATIONS, len(bare.tolerations))):
            if count > limit.value and taken is None:
                raise LimitError(reasons.exclusions.over_limit(what=reasons.exclusions.SPEC, value=count, limit=limit))
        return self.marked(bare, self.queries.matching(namespace, labels or {}))

    def _neighbours(
        self, spec: PodSpec, namespace: str, labels: Mapping[str, str], demands: PodTerms, *, on_node: bool
    ) -> Neighbours:
        if demands is PodTerms.ALL:
            try:
                return neighbours_of(spec, namespace, labels, self.queries)
            except LimitError:
                if not on_node:
                    raise
        return NONE if demands is PodTerms.NONE else rules_of(spec, namespace, labels, self.queries)

    def equipped(self, cls: PodClass, needs: ClaimNeeds) -> PodClass:
        """Return the class of the same pods with these device needs."""
        if cls.needs.key == needs.key:
            return cls
        shape = cls.plain + b"\0" + needs.key if needs else cls.plain
        requests = {name: amount for name, amount in cls.asked.items() if name not in needs.replaced}
        bare = replace(cls, shape=shape, needs=needs, requests=add(requests, dict(needs.rows)))
        return self.marked(bare, cls.matched)

    def of_amounts(self, amounts: Mapping[str, int]) -> PodClass:
        """Return a class with only these resources, for ledger entries that are not pods."""
        key = b"\0amounts " + msgspec.msgpack.encode(sorted(amounts.items()))
        known = self._classes.get(key)
        if known is None:
            known = self._classes[key] = PodClass(key, dict(amounts), {}, None, (), (), shape=key)
        return known

    def matched_again(self, cls: PodClass, namespace: str, labels: Mapping[str, str]) -> PodClass:
        """Return the class of the same pods with the marks of all current demands of other pods that the pods match."""
        matched = self.queries.matching(namespace, labels)
        return cls if matched == cls.matched else self.marked(cls, matched)

    def also_matched(self, cls: PodClass, found: Iterable[Mark]) -> PodClass:
        """Return the class of the same pods that also match these demands; demands of no existing pod are dropped."""
        matched = Marks(sorted({*self.queries.still(cls.matched), *found}))
        return cls if matched == cls.matched else self.marked(cls, matched)

    def marked(self, cls: PodClass, matched: Marks) -> PodClass:
        """Return the class with the same shape and these matched demands of other pods."""
        key = cls.shape + blake2b(msgspec.msgpack.encode(matched), digest_size=16).digest() if matched else cls.shape
        known = self._classes.get(key)
        if known is None:
            rules = (rule.mark for rule in cls.neighbours.apart)
            ports = (("port", *port) for port in cls.host_ports)
            own = tuple(dict.fromkeys((*rules, *ports)))
            marks = (*matched, *own) if own else matched  # shared, because a class may have a thousand marks
            known = self._classes[key] = replace(cls, key=key, matched=matched, marks=marks)
        return known
