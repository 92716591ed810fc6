"""What a bound pod is charged: as it was when it was first seen with its node, until it ends. Pure.

Labels and annotations of a pod are its owner's, and a policy of the API server (`muster-pods`) keeps those by which it
is charged. Where it is not installed, or somebody may pass it, or a write comes between the binding and its news, the
planner still holds on to what it bound: a pod that names another queue, gang, slot or device, asks for a smaller part
of a GPU, or cannot be read any more, gives nothing back that it uses. And a part of a GPU that nobody has given takes
nothing: a pod that was on a node from the beginning was bound by no scheduler.
"""

from msgspec.structs import replace

from extender.planner.state.pods import PodRecord
from muster.api.kubernetes.core import Pod
from muster.resources.gpus import asking_for, given_devices


def as_charged(known: PodRecord | None, pod: Pod) -> Pod:
    """Return the pod as it asks for its part of GPUs; a bound one asks for what it was bound with."""
    annotations = _asking(known, pod)
    if annotations is None:
        return pod
    return replace(pod, metadata=replace(pod.metadata, annotations=annotations))


def _asking(known: PodRecord | None, pod: Pod) -> dict[str, str] | None:
    """Return the annotations with which a bound pod asks for what it was given; None if it does as it is."""
    annotations = pod.metadata.annotations
    if known is not None and _still_there(known, pod):
        return asking_for(known.cls.gpu, annotations)
    if pod.spec.node_name and not given_devices(annotations):
        return asking_for(None, annotations)
    return None


def charged(known: PodRecord | None, record: PodRecord) -> PodRecord:
    """Return the record with the queue, gang, slot and devices that a bound pod was bound with.

    A gang that it gets later counts: the controller makes one for pods whose owner names none.
    """
    if known is None or not known.node or known.node != record.node:
        return record
    gang = known.gang or record.gang
    slot = known.slot if known.gang and known.slot else record.slot
    kept = known.queue, gang, slot, known.devices or record.devices, known.creator
    if kept == (record.queue, record.gang, record.slot, record.devices, record.creator):
        return record
    return replace(record, queue=kept[0], gang=gang, slot=slot, devices=kept[3], creator=known.creator)


def unread(known: PodRecord | None, pod: Pod) -> PodRecord | None:
    """Return the record of a bound pod that cannot be read any more, as far as it counts; None of any other."""
    if known is None or not _still_there(known, pod):
        return None
    meta = pod.metadata
    return replace(
        known,
        phase=pod.status.phase,
        terminating=meta.deletion_timestamp is not None,
        gone_by=meta.deletion_timestamp or "",
        resource_version=meta.resource_version,
    )


def _still_there(known: PodRecord, pod: Pod) -> bool:
    """Return True for a pod on the node that it is known to be on; the news of a binding may not have come yet."""
    return bool(known.node) and pod.spec.node_name in {"", known.node}
