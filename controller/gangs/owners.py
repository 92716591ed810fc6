"""Owners of gangs, read from the API server, with the labels and annotations that they inherit."""

from msgspec import structs

from controller.live import controller_of
from muster.api import names
from muster.api.kubernetes.core import NAMESPACES, PODS, Pod
from muster.api.kubernetes.meta import Object, ObjectMeta
from muster.api.volcano.scheduling import PodGroup
from muster.kube.client import Client
from muster.workloads.kind import GangRules
from muster.workloads.podgroup import inherited, queue_of
from muster.workloads.table import gang_rules, row_of


def group_owner(client: Client, group: PodGroup) -> tuple[Object | None, GangRules | None]:
    """Return the owner of a PodGroup, and the rules that define when a gang of this owner's kind has ended."""
    ref = group.metadata.controller
    kind = row_of(ref)
    if kind is None or kind.world is None:
        return pod_owner(client, group.metadata), gang_rules(ref)
    return controller_of(client, group.metadata, kind.resource), kind.world.rules


def pod_owner(client: Client, meta: ObjectMeta) -> Object | None:
    """Return the controller of a pod or of a pod's owner, with inherited labels and annotations.

    Return None if the controller was deleted or its pods form no gang.
    """
    kind = row_of(meta.controller)
    owner = controller_of(client, meta, kind.resource) if kind and kind.gang else None
    if owner and (above := owner.metadata.controller) and above.kind == PODS.kind:
        return _of_leader(client, owner)
    return inherited(owner, pod_owner(client, owner.metadata)) if owner else None


def _of_leader(client: Client, owner: Object) -> Object:
    """Return the StatefulSet of a LeaderWorkerSet's workers, with the LeaderWorkerSet as its owner.

    In the cluster, the leader pod owns the StatefulSet. The returned StatefulSet also has the annotation with the queue
    to which the LeaderWorkerSet was moved. If no workload controls the leader pod, return the StatefulSet unchanged.
    """
    leader = controller_of(client, owner.metadata, PODS)
    above = pod_owner(client, leader.metadata) if leader else None
    if above is None or above.metadata.controller is None:
        return owner
    moved = {key: value for key, value in above.metadata.annotations.items() if key == names.MOVED_TO}
    metadata = structs.replace(
        owner.metadata,
        owner_references=above.metadata.owner_references,
        annotations={**moved, **owner.metadata.annotations},
    )
    return structs.replace(owner, metadata=metadata)


def keeps_queue(client: Client, pod: Pod, owner: Object | None) -> bool:
    """Return True if the PodGroup of a pod must keep its queue.

    A PodGroup keeps its queue if neither the pod nor its owner names a queue, or if admission has moved it to the
    namespace's queue.
    """
    if not queue_of(pod, owner):
        return True
    namespace = client.get(NAMESPACES, pod.metadata.namespace)
    return names.VOLCANO_QUEUE in namespace.metadata.annotations
