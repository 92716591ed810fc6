"""Validation of a PodGroup: its amounts can be read, and its queue takes it.

A user's own needs an open queue. A controller's may also enter a queue that is Closing: its pods come anyway, e.g. when
a Deployment is updated, and without a queue they would count nowhere. The PodGroup of a Volcano Job, whose queue was
checked with the Job, needs no more than a queue that exists. In every case the queue is for its namespace.

A PodGroup that moves needs what a new one needs. That of a Volcano Job stays in the queue where the Job was admitted,
as the Job itself does: it can only move back there. The minResources of a PodGroup that its queue has admitted do not
grow.
"""

from collections.abc import Iterator

import msgspec

from muster.api import names
from muster.api.fields import FieldError
from muster.api.kubernetes import admission, meta
from muster.api.limits import PODS, SUB_GROUPS
from muster.api.muster.pools import pool_of, words
from muster.api.volcano import batch, scheduling
from muster.kube.lean import too_long
from muster.resources import faults, spares
from muster.resources.quantity import parse
from muster.resources.runtime import notice_mistakes
from muster.resources.topology import mistakes
from muster.resources.vector import CPU
from muster.volcano.tasks import queue_of
from muster.workloads.table import holds_min_resources
from webhook.lookup import Lookups, NamespaceQueues, Owners
from webhook.objects.names import unknown_keys, unknown_queue, unusable_queue
from webhook.objects.pools import wrong_label
from webhook.review import Handler, ReviewVerdict, decode

_SYSTEM = "system-"


def reviewer(lookups: Lookups) -> Handler:
    """Return the handler for PodGroups, on CREATE, and on UPDATE for those that move or whose minResources change."""

    def review(request: admission.AdmissionRequest) -> ReviewVerdict:
        group = decode(request.object, scheduling.PodGroup)
        usable = lookups.queues_for(request.namespace)
        if request.operation != "UPDATE":
            return ReviewVerdict(errors=[*too_long(request.object), *check(group, usable)], warnings=warn(group))
        old = decode(request.old_object, scheduling.PodGroup)
        if group.metadata.deletion_timestamp:
            return ReviewVerdict()
        grown = list(_grown(old, group))
        if grown or (_queue(group) == _queue(old) and _pool(group) == _pool(old)):
            return ReviewVerdict(errors=grown)
        if _pool(group) != _pool(old):
            message = (
                f"must stay as it is: the gang is of {words(_pool(old))}; create its workload again in another queue"
            )
            return ReviewVerdict(
                errors=[FieldError(f"metadata.labels[{names.NODE_POOL}]", message, _pool(group), "Forbidden")]
            )
        return ReviewVerdict(errors=_move_errors(old, group, request.namespace, usable, lookups.owners))

    return review


def check(group: scheduling.PodGroup, queues: NamespaceQueues) -> Iterator[FieldError]:
    """Yield everything that is wrong with a new PodGroup."""
    spec = group.spec
    wrong = _queue_errors(_queue(group), group.metadata.controller, queues)
    yield from wrong or wrong_label(_pool(group), _queue(group), queues)
    yield from check_network_topology(spec.network_topology, "spec.networkTopology")
    if group.metadata.controller is None:  # else they are its workload's, and were checked there
        yield from mistakes(group.metadata.annotations, "metadata.annotations")
        yield from spares.mistakes(group.metadata.annotations, "metadata.annotations")
        yield from notice_mistakes(group.metadata.annotations, "metadata.annotations")
        yield from faults.mistakes(group.metadata.annotations, "metadata.annotations")
    for index, policy in enumerate(spec.sub_group_policy):
        yield from check_network_topology(policy.network_topology, f"spec.subGroupPolicy[{index}].networkTopology")
    yield from SUB_GROUPS.exceeded_by("spec.subGroupPolicy", len(spec.sub_group_policy))
    yield from PODS.exceeded("spec.minMember", spec.min_member)
    for task, minimum in spec.min_task_member.items():
        yield from PODS.exceeded(f"spec.minTaskMember[{task}]", minimum)
        if minimum < 0:
            yield FieldError(f"spec.minTaskMember[{task}]", "must not be negative", minimum)
    for name, quantity in (spec.min_resources or {}).items():
        try:
            _amount(name, quantity)
        except ValueError as error:
            yield FieldError(f"spec.minResources[{name}]", str(error), quantity)


def warn(group: scheduling.PodGroup) -> list[str]:
    """Return warnings of keys without effect, and of a class of Kubernetes' own: no gang is above its pods."""
    name, own = group.spec.priority_class_name, group.metadata.controller is None
    result = unknown_keys(msgspec.to_builtins(group.metadata)) if own else []
    if name.startswith(_SYSTEM):
        what = "counts only as far as the pods of the gang have a class as high"
        result.append(f"spec.priorityClassName: {name!r} {what}")
    return result


def check_network_topology(topology: scheduling.NetworkTopology | None, path: str) -> Iterator[FieldError]:
    """Check that the highest tier is given by number or by name, not both; for PodGroups, Jobs and tasks."""
    if topology and topology.highest_tier_allowed is not None and topology.highest_tier_name:
        message = "must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology simultaneously"
        yield FieldError(f"{path}.highestTierName", message, topology.highest_tier_name)


def _amount(name: str, quantity: str | float) -> int:
    """Return an amount; names are those of a quota, too: requests.cpu is an amount of CPU."""
    return parse(quantity, milli=name.rpartition(".")[2] == CPU)


def _grown(old: scheduling.PodGroup, group: scheduling.PodGroup) -> Iterator[FieldError]:
    """Refuse more minResources for a gang that its queue has admitted, as the queue holds them without another check.

    In another queue nothing of them has been checked.
    """
    if old.status.phase in {"", "Pending"} or not holds_min_resources(group.metadata):
        return
    known = (old.spec.min_resources or {}) if _queue(group) == _queue(old) else {}
    for name, quantity in (group.spec.min_resources or {}).items():
        path, before = f"spec.minResources[{name}]", known.get(name, 0)
        try:
            grows = quantity != before and _amount(name, quantity) > _amount(name, before)
        except ValueError as error:
            yield FieldError(path, str(error), quantity)
            continue
        if grows:
            message = f"must not be more than {before}: queue {_queue(old)} has admitted the gang with that; "
            if _queue(group) != _queue(old):
                message = f"must be left out to move the gang: only queue {_queue(old)} has admitted it with that; "
            yield FieldError(path, message + "or create the PodGroup again", quantity, "Forbidden")


def _queue(group: scheduling.PodGroup) -> str:
    return group.spec.queue or names.DEFAULT_QUEUE


def _pool(group: scheduling.PodGroup) -> str:
    return pool_of(group.metadata)


def _move_errors(
    old: scheduling.PodGroup, group: scheduling.PodGroup, namespace: str, queues: NamespaceQueues, owners: Owners
) -> list[FieldError]:
    """Refuse a move to a queue that does not take the PodGroup; the old owner counts too: one write can change both."""
    for owner in (old.metadata.controller, group.metadata.controller):
        if owner and batch.is_job(owner):
            job = owners.find(batch.JOBS, namespace, owner)
            if isinstance(job, batch.Job) and queue_of(job.spec) == _queue(group):
                return wrong_label(_pool(group), _queue(group), queues)
            message = (
                f"must stay {_queue(old)!r}: the PodGroup is that of Job {owner.name}, which was admitted to a queue "
                "and stays in it; create the Job again in another queue"
            )
            return [FieldError("spec.queue", message, _queue(group))]
    wrong = _queue_errors(_queue(group), group.metadata.controller, queues)
    return wrong or wrong_label(_pool(group), _queue(group), queues)


def _queue_errors(name: str, owner: meta.OwnerReference | None, queues: NamespaceQueues) -> list[FieldError]:
    if batch.is_job(owner):
        return unknown_queue("spec.queue", name, queues) or queues.refusal("spec.queue", name)
    if owner and name != names.ROOT_QUEUE:
        queue = queues.get(name)
        if queue and queue.status.state == "Closing" and not queues.children(name):
            return queues.refusal("spec.queue", name)
    return unusable_queue("spec.queue", name, queues)
