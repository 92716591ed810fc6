"""The kinds of apps/v1, with the fields that Muster reads: StatefulSets, whose pods have ranks, and ReplicaSets."""

from typing import Any

from msgspec import field

from muster.api.base import Resource, Wire
from muster.api.kubernetes.meta import Object


class Ordinals(Wire):
    """The first ordinal of a StatefulSet."""

    start: int = 0


class StatefulSetSpec(Wire):
    """spec of a StatefulSet; the pod template stays plain JSON."""

    replicas: int | None = None
    service_name: str = ""
    pod_management_policy: str = "OrderedReady"
    ordinals: Ordinals | None = None
    template: dict[str, Any] = field(default_factory=dict)


class StatefulSet(Object):
    """A StatefulSet: its pods have ordinals, which serve as ranks."""

    spec: StatefulSetSpec = field(default_factory=StatefulSetSpec)


class ReplicaSetSpec(Wire):
    """spec of a ReplicaSet."""

    replicas: int | None = None


class ReplicaSet(Object):
    """A ReplicaSet."""

    spec: ReplicaSetSpec = field(default_factory=ReplicaSetSpec)


DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment", Object)
REPLICA_SETS = Resource("apps", "v1", "replicasets", "ReplicaSet", ReplicaSet)
DAEMON_SETS = Resource("apps", "v1", "daemonsets", "DaemonSet", Object)
STATEFUL_SETS = Resource("apps", "v1", "statefulsets", "StatefulSet", StatefulSet)
