"""Reading of the fields of a pod that determine its pod class (see `planner.state.podclass`).

Muster's pin is left out, so that a pod has the same class before and after it is pinned.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto

import msgspec
from msgspec.structs import replace

from muster.api import names
from muster.api.kubernetes.constraints import Affinity, NodeAffinity, NodeSelector
from muster.api.kubernetes.core import Container, Pod, PodSpec
from muster.api.kubernetes.meta import LabelSelectorRequirement, ObjectMeta
from muster.resources.gpus import ASKING, GpuShare, share_of
from muster.resources.pods import amounts_on_node, pod_requests
from muster.resources.vector import GPU, Vector
from muster.workloads.charges import placed_by_muster
from muster.workloads.table import gang_of

MOST_KEY_BYTES = 16 * 1024
"""Maximum length of a raw key, in bytes. A raw key usually has some hundred bytes, but may have a million."""
ANY_ADDRESS = "0.0.0.0"  # noqa: S104 - every address of a node
Port = tuple[str, str, int]
"""Address, protocol and number of a host port."""


class PodTerms(Enum):
    """The affinity and spread terms about other pods that a pod's class includes."""

    ALL = auto()
    """All affinity and spread terms of the pod's spec, for a pod that is planned or is a member of a gang."""
    RULES = auto()
    """Only required anti-affinity, for another scheduler's pod on a node. Of the terms of a pod on a node, only
    required anti-affinity still excludes other pods."""
    NONE = auto()
    """No affinity or spread terms, for another scheduler's pod without a node."""


@dataclass(frozen=True, slots=True)
class ClaimUse:
    """A volume claim that a pod mounts; the claim of an ephemeral volume is created after the pod."""

    key: str
    ephemeral: bool = False


def pin_of(meta: ObjectMeta) -> str:
    """Return the node to which Muster pinned a pod; empty for a pod without a pin."""
    return meta.annotations.get(names.NODE, "")


def demands_of(pod: Pod) -> PodTerms:
    """Return which terms about other pods the pod's class includes."""
    if placed_by_muster(pod.spec) or gang_of(pod) is not None:
        return PodTerms.ALL
    return PodTerms.RULES if pod.spec.node_name else PodTerms.NONE


def raw_key(pod: Pod) -> bytes | None:
    """Return a key that is cheap to compute. Pods with equal keys have the same pod class.

    Computing the key takes a fifth of the time of computing the class. Returns None if the key cannot be encoded
    (numbers beyond 64 bits) or is too long to be stored.
    """
    spec, meta = pod.spec, pod.metadata
    pin = pin_of(meta)
    affinity = without_pin(spec.affinity, pin) if pin else spec.affinity
    near = affinity and (affinity.pod_affinity or affinity.pod_anti_affinity)
    demanding = (near or spec.topology_spread_constraints) and demands_of(pod)
    asking = ASKING & meta.annotations.keys()
    parts = (
        _asked(spec.containers),
        _asked(spec.init_containers),
        spec.resources,
        spec.overhead,
        amounts_on_node(pod) if spec.node_name else None,
        spec.host_network,
        spec.node_selector,
        spec.tolerations,
        affinity,
        spec.topology_spread_constraints,
        (meta.namespace, meta.labels, demanding.value) if demanding else None,
        claims_of(spec, meta.namespace, meta.name) if spec.volumes else None,
        [(name, meta.annotations[name]) for name in sorted(asking)] if asking and placed_by_muster(spec) else None,
    )
    try:
        key = msgspec.msgpack.encode(parts)
    except OverflowError:
        return None
    return key if len(key) <= MOST_KEY_BYTES else None


def _asked(containers: list[Container]) -> list[object]:
    return [(each.name, each.resources, each.ports, each.restart_policy) for each in containers]


def asked_of(
    spec: PodSpec, annotations: Mapping[str, str] | None, taken: Vector | None = None
) -> tuple[Vector, GpuShare | None]:
    """Return the requests of a pod, and the GPU fraction that its annotations request.

    A GPU fraction is added to the GPUs that the pod requests, so that queues, quotas and victim searches include the
    fraction. A fraction by GPU memory depends on the node, so it is not included (see `NodeTable.taken`). Muster's
    marker resources are left out, too, because kube-scheduler ignores them. For a pod on a node (`taken`), a fraction
    that cannot be parsed is ignored, and the other requests still count. For any other pod, a fraction that cannot be
    parsed raises ValueError.
    """
    amounts = pod_requests(spec) if taken is None else taken
    requests = {name: amount for name, amount in amounts.items() if name not in names.MARKERS}
    try:
        gpu = share_of(annotations or {}, requests)
    except ValueError:
        if taken is None:
            raise
        return requests, None
    if gpu is not None and not gpu.by_resource:
        requests = requests | {GPU: gpu.portion * gpu.devices}
    return requests, gpu


def host_ports(spec: PodSpec) -> tuple[Port, ...]:
    """Return the host ports of the pod's containers and sidecars; with hostNetwork, all ports of the containers."""
    sidecars = (container for container in spec.init_containers if container.restart_policy == "Always")
    found = {
        (port.host_ip or ANY_ADDRESS, port.protocol or "TCP", port.host_port or port.container_port)
        for container in (*spec.containers, *sidecars)
        for port in container.ports
        if port.host_port or spec.host_network
    }
    return tuple(sorted(found))


def claims_of(spec: PodSpec, namespace: str, pod_name: str) -> tuple[ClaimUse, ...]:
    """Return the volume claims that the pod mounts; ephemeral volumes of a template have no claims yet."""
    claims = []
    for volume in spec.volumes:
        if "persistentVolumeClaim" in volume:
            claims.append(ClaimUse(f"{namespace}/{volume['persistentVolumeClaim'].get('claimName', '')}"))
        elif "ephemeral" in volume and pod_name:
            claims.append(ClaimUse(f"{namespace}/{pod_name}-{volume.get('name', '')}", ephemeral=True))
    return tuple(claims)


def without_pin(affinity: Affinity | None, node: str) -> Affinity | None:
    """Return the affinity without Muster's pin; the inverse of `muster.api.muster.gang.pinned_affinity`."""
    node_affinity = affinity.node_affinity if affinity else None
    if affinity is None or node_affinity is None or node_affinity.required is None:
        return affinity
    pin = LabelSelectorRequirement(key="metadata.name", operator="In", values=[node])
    terms = [
        replace(term, match_fields=[requirement for requirement in term.match_fields if requirement != pin])
        for term in node_affinity.required.node_selector_terms
    ]
    own = [term for term in terms if term.match_expressions or term.match_fields]
    required = NodeSelector(node_selector_terms=own) if own else None
    stripped = NodeAffinity(required=required, preferred=node_affinity.preferred)
    result = replace(affinity, node_affinity=stripped if required or stripped.preferred else None)
    return result if result != Affinity() else None
