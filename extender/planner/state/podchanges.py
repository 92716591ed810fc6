"""What a change of a pod means to planning, and the fields by which a bound pod is charged.

Until it ends, a bound pod is charged according to its fields when it was first observed with its node. A pod's owner
may change the pod's labels and annotations. A policy of the API server (`muster-pods`) protects the labels and
annotations that affect the charge. The policy may be missing or bypassed, or a write may come between the binding and
the watch event. Even if a change of a bound pod succeeds, the planner charges the pod as it was bound. A bound pod
stays charged even if it names another queue, gang, slot or device, requests a smaller GPU fraction, or becomes
unreadable. A GPU fraction that no scheduler has assigned, as in a pod that was created with a node name, is not
charged.
"""

from msgspec.structs import astuple, replace

from extender.planner.state.pods import PodRecord, grace_s
from muster.api.kubernetes.core import Pod
from muster.resources.gpus import asking_for, given_devices

_RUNNING = frozenset({"", "Pending", "Running"})


def keeps_running(before: PodRecord, after: PodRecord) -> bool:
    """Return True if a bound pod is still on the same node and has not ended."""
    same = (before.node, before.gang, before.cls) == (after.node, after.gang, after.cls)
    return bool(after.node) and same and not after.terminating and {before.phase, after.phase} <= _RUNNING


def differs_in_messages(before: PodRecord, after: PodRecord) -> bool:
    """Return True if two states of a pod differ at most in what Muster has written into the condition PodScheduled."""
    alike = replace(after, resource_version=before.resource_version, asks=before.asks, says=before.says)
    return astuple(before) == astuple(alike)


def only_takes_capacity(before: PodRecord | None, after: PodRecord) -> bool:
    """Return True for a new or newly bound pod of another scheduler to which no term and no claim refers."""
    cls = after.cls
    if after.gang or after.ours or cls.marks or cls.claims or cls.needs:
        return False
    there = not after.terminating and after.phase in _RUNNING
    if before is None or not there:
        return there
    return (before.gang, before.ours, before.cls) == (None, False, cls) and before.node in {"", after.node}


def has_same_entry(before: PodRecord, after: PodRecord) -> bool:
    """Return True if the change of a running pod leaves its ledger entry unchanged."""
    charged_by = (before.queue, before.devices, before.slot, before.ours)
    return keeps_running(before, after) and charged_by == (after.queue, after.devices, after.slot, after.ours)


def as_charged(known: PodRecord | None, pod: Pod) -> Pod:
    """Return the pod with the GPU fraction for which it is charged; a bound pod keeps the fraction at its binding."""
    meta = pod.metadata
    if known is not None and _still_there(known, pod):
        asking = asking_for(known.cls.gpu, meta.annotations)
    elif pod.spec.node_name and not given_devices(meta.annotations):
        asking = asking_for(None, meta.annotations)
    else:
        return pod
    return pod if asking is None else replace(pod, metadata=replace(meta, annotations=asking))


def charged(known: PodRecord | None, record: PodRecord) -> PodRecord:
    """Return the record to store: a bound pod keeps the queue, gang, slot and devices with which it was bound.

    A bound pod without a gang may be assigned to a gang, because the controller creates gangs for pods whose owner
    names no gang.
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
    """Return the known record with the current phase for a bound pod that can no longer be parsed, otherwise None."""
    if known is None or not _still_there(known, pod):
        return None
    meta = pod.metadata
    return replace(
        known,
        phase=pod.status.phase,
        terminating=meta.deletion_timestamp is not None,
        gone_by=meta.deletion_timestamp or "",
        grace_s=grace_s(pod),
        resource_version=meta.resource_version,
    )


def _still_there(known: PodRecord, pod: Pod) -> bool:
    """Return True if a pod is still on its known node, even if the watch has not reported its binding yet."""
    return bool(known.node) and pod.spec.node_name in {"", known.node}
