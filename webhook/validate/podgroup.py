"""Validation of PodGroups: the amounts must be valid, and the queue must accept the PodGroup.

A user's own PodGroup needs an open queue. A controller's PodGroup may also enter a queue that is Closing, e.g. when a
Deployment is updated. The controller's pods are created in any case, and without the PodGroup would not be charged to
any queue. The PodGroup of a Volcano Job only needs an existing queue, because the Job's queue was checked. The
namespace must always be allowed to use the queue. Whether a PodGroup belongs to a controller depends on the sender of
the request, because every user can write an owner reference.

A PodGroup that moves must meet the rules for a user's new PodGroup. The PodGroup of a Volcano Job stays in the queue
that admitted the Job; it can only move back to that queue. The planner checks limits of queues before a gang starts.
Therefore, only an administrator can move a gang that has its nodes to a queue with limits. The minResources of a
PodGroup cannot be raised once its queue has admitted the gang.
"""

from collections.abc import Iterator

import msgspec

from muster.api import names
from muster.api.fields import FieldError
from muster.api.kubernetes import admission, meta, reviews
from muster.api.limits import PODS, SUB_GROUPS
from muster.api.muster.placement import PLACEMENTS
from muster.api.muster.pools import pool_of, words
from muster.api.volcano import batch, scheduling
from muster.kube.trimming import too_long
from muster.resources.quantity import parse
from muster.resources.vector import CPU
from muster.volcano.access import lineage
from muster.volcano.queuelimits import has_limits
from muster.volcano.tasks import queue_of
from muster.workloads.owners import as_kubectl_takes, workload_of
from muster.workloads.table import holds_min_resources, row_of
from webhook.lookup import Lookups, NamespaceQueues, Owners
from webhook.objects.names import unknown_keys, unknown_queue, unusable_queue
from webhook.objects.pools import wrong_label
from webhook.review import Handler, ReviewVerdict, decode
from webhook.senders import is_controller, may_be_controller
from webhook.validate.pod import check_annotations
from webhook.validate.trials import missing_class

_SYSTEM = "system-"
_REMEDY = "or create its workload again, or ask an administrator (`kubectl auth can-i charge placements.muster.dev -A`)"
_CHARGE = reviews.ResourceAttributes(verb="charge", group=PLACEMENTS.group, resource=PLACEMENTS.plural)
"""The right to change charges. An administrator with this right can move gangs that already have nodes."""


def reviewer(lookups: Lookups) -> Handler:
    """Return the handler for PodGroups, on CREATE, and on UPDATE of the queue or of minResources."""

    def review(request: admission.AdmissionRequest) -> ReviewVerdict:
        group = decode(request.object, scheduling.PodGroup)
        usable = lookups.queues_for(request.namespace)
        if request.operation != "UPDATE":
            wrong = [
                *too_long(request.object),
                *check_pod_group(group, usable, _owner(request, group)),
                *_class_errors(None, group, request, lookups),
            ]
            return ReviewVerdict(errors=wrong, warnings=warn(group))
        old = decode(request.old_object, scheduling.PodGroup)
        if group.metadata.deletion_timestamp:
            return ReviewVerdict()
        wrong = _class_errors(old, group, request, lookups) or _growth_errors(request, old, group, lookups)
        if wrong or (_queue(group) == _queue(old) and _pool(group) == _pool(old)):
            return ReviewVerdict(errors=wrong)
        if _pool(group) != _pool(old):
            message = (
                f"cannot be changed: the gang belongs to {words(_pool(old))}; create its workload in another queue"
            )
            return ReviewVerdict(
                errors=[FieldError(f"metadata.labels[{names.NODE_POOL}]", message, _pool(group), "Forbidden")]
            )
        errors = _move_errors(old, group, request.namespace, usable, lookups.owners)
        return ReviewVerdict(errors=errors or _limit_errors(request, old, group, lookups))

    return review


def _class_errors(
    old: scheduling.PodGroup | None, group: scheduling.PodGroup, request: admission.AdmissionRequest, lookups: Lookups
) -> list[FieldError]:
    """Refuse a PriorityClass that does not exist, and changes of a PriorityClass that the workload determines."""
    name, owner, path = group.spec.priority_class_name, group.metadata.controller, "spec.priorityClassName"
    if name == (old.spec.priority_class_name if old else ""):
        return []
    if owner and old and row_of(owner) and not is_controller(request, owned=True):
        message = f"must stay {old.spec.priority_class_name!r}, the class of its workload; use muster priority "
        title = as_kubectl_takes(workload_of(group))
        return [FieldError(path, f"{message}{title} --class {name}", name, "Forbidden")]
    dry_runs = None if owner else lookups.dry_runs
    return [*missing_class(path, name, request.namespace, dry_runs)] if name and dry_runs else []


def _owner(request: admission.AdmissionRequest, group: scheduling.PodGroup) -> meta.OwnerReference | None:
    """Return the owner of a PodGroup if the sender may be a controller; otherwise None.

    Offline, the user is unknown, and any owner is returned.
    """
    return group.metadata.controller if may_be_controller(request) else None


def check_pod_group(
    group: scheduling.PodGroup, queues: NamespaceQueues, owner: meta.OwnerReference | None
) -> Iterator[FieldError]:
    """Yield all errors in a new PodGroup with this owner."""
    spec = group.spec
    wrong = _queue_errors(_queue(group), owner, queues)
    yield from wrong or wrong_label(_pool(group), _queue(group), queues)
    yield from check_network_topology(spec.network_topology, "spec.networkTopology")
    if owner is None:  # else they are its workload's, and were checked there
        yield from check_annotations(group.metadata.annotations)
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
    """Return warnings about keys without effect, and about a system PriorityClass, which is capped."""
    name, own = group.spec.priority_class_name, group.metadata.controller is None
    result = unknown_keys(msgspec.to_builtins(group.metadata)) if own else []
    if name.startswith(_SYSTEM):
        what = "is capped at the highest priority of the gang's pods"
        result.append(f"spec.priorityClassName: {name!r} {what}")
    return result


def check_network_topology(topology: scheduling.NetworkTopology | None, path: str) -> Iterator[FieldError]:
    """Check that the topology of a PodGroup, Job or task gives the highest tier by number or by name, but not both."""
    if topology and topology.highest_tier_allowed is not None and topology.highest_tier_name:
        message = "must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology simultaneously"
        yield FieldError(f"{path}.highestTierName", message, topology.highest_tier_name)


def _amount(name: str, quantity: str | float) -> int:
    """Return an amount as an integer; a resource name of quotas such as `requests.cpu` is also allowed."""
    return parse(quantity, milli=name.rpartition(".")[2] == CPU)


def _growth_errors(
    request: admission.AdmissionRequest, old: scheduling.PodGroup, group: scheduling.PodGroup, lookups: Lookups
) -> list[FieldError]:
    """Refuse an increase of minResources after the queue has admitted the gang, unless the sender is an administrator.

    The queue reserves minResources without another check. The phase of the PodGroup alone does not count, because users
    may write the status.
    """
    waits = old.status.phase in {"", "Pending"} and not _has_nodes(old, request.namespace, lookups)
    if waits or not holds_min_resources(group.metadata):
        return []
    errors = list(_grown(old, group))
    return [] if errors and _may_charge(request, lookups) else errors


def _grown(old: scheduling.PodGroup, group: scheduling.PodGroup) -> Iterator[FieldError]:
    """Yield an error for each increased amount in minResources.

    If the queue changes, every amount counts as increased, because the new queue has not checked the amounts.
    """
    known = (old.spec.min_resources or {}) if _queue(group) == _queue(old) else {}
    for name, quantity in (group.spec.min_resources or {}).items():
        path, before = f"spec.minResources[{name}]", known.get(name, 0)
        try:
            grows = quantity != before and _amount(name, quantity) > _amount(name, before)
        except ValueError as error:
            yield FieldError(path, str(error), quantity)
            continue
        if grows:
            message = (
                f"must not be more than {before}: queue {_queue(old)} admitted the gang with this amount; to raise it, "
            )
            if _queue(group) != _queue(old):
                out = "" if group.metadata.controller else "be left out, or "  # an operator may depend on it
                message = f"must {out}stay in queue {_queue(old)}, which has admitted the gang with this amount; "
            yield FieldError(path, message + _REMEDY, quantity, "Forbidden")


def _queue(group: scheduling.PodGroup) -> str:
    return group.spec.queue or names.DEFAULT_QUEUE


def _pool(group: scheduling.PodGroup) -> str:
    return pool_of(group.metadata)


def _move_errors(
    old: scheduling.PodGroup, group: scheduling.PodGroup, namespace: str, queues: NamespaceQueues, owners: Owners
) -> list[FieldError]:
    """Refuse a move to a queue that does not accept the PodGroup.

    The rules for the previous owner apply too, because one update can change both the owner and the queue.
    """
    for owner in (old.metadata.controller, group.metadata.controller):
        if owner and batch.is_job(owner):
            job = owners.find(batch.JOBS, namespace, owner)
            if isinstance(job, batch.Job) and queue_of(job.spec) == _queue(group):
                return wrong_label(_pool(group), _queue(group), queues)
            message = (
                f"must stay {_queue(old)!r}: the PodGroup belongs to Job {owner.name}, which was admitted to a queue "
                "and stays in it; create the Job again in another queue"
            )
            return [FieldError("spec.queue", message, _queue(group))]
    wrong = unusable_queue("spec.queue", _queue(group), queues)
    return wrong or wrong_label(_pool(group), _queue(group), queues)


def _limit_errors(
    request: admission.AdmissionRequest, old: scheduling.PodGroup, group: scheduling.PodGroup, lookups: Lookups
) -> list[FieldError]:
    """Refuse to move a gang that has its nodes to a queue with limits that did not apply to the gang before."""
    before, after = (lineage(_queue(each), lookups.queues.get) for each in (old, group))
    left = {queue.metadata.name for queue in before}
    limited = next((queue for queue in after if queue.metadata.name not in left and has_limits(queue)), None)
    if limited is None or not _is_held(request, old, lookups):
        return []
    message = (
        f"must stay {_queue(old)!r}: the gang has its nodes, and the limits of queue {limited.metadata.name!r} are "
        "checked before a gang starts; delete its workload and create it in the other queue, or have an administrator "
        "move it (`kubectl auth can-i charge placements.muster.dev -A`)"
    )
    return [FieldError("spec.queue", message, _queue(group), "Forbidden")]


def _is_held(request: admission.AdmissionRequest, group: scheduling.PodGroup, lookups: Lookups) -> bool:
    """Return True if a gang has its nodes, and the sender of the request is not an administrator."""
    by_user = bool(request.user_info.username) and lookups.rights is not None
    return by_user and _has_nodes(group, request.namespace, lookups) and not _may_charge(request, lookups)


def _may_charge(request: admission.AdmissionRequest, lookups: Lookups) -> bool:
    """Return True if the sender is an administrator with the right to change charges."""
    user = request.user_info
    by_controller = user.username.endswith(f":{names.CONTROLLER_ACCOUNT}")  # acts for ordinary users, too
    if not user.username or by_controller or lookups.rights is None:
        return False
    return lookups.rights.allows(user, _CHARGE)


def _has_nodes(group: scheduling.PodGroup, namespace: str, lookups: Lookups) -> bool:
    """Return True if the gang has a placement; no tenant can write placements, unlike the status of a PodGroup."""
    if names.PLACEMENT in group.metadata.annotations:
        return True
    placement = lookups.placements(group.metadata.name, namespace) if lookups.placements else None
    return placement is not None and placement.status.phase not in {"Abandoned", "Reserved"}


def _queue_errors(name: str, owner: meta.OwnerReference | None, queues: NamespaceQueues) -> list[FieldError]:
    if batch.is_job(owner):
        return unknown_queue("spec.queue", name, queues) or queues.refusal("spec.queue", name)
    if owner and name != names.ROOT_QUEUE:
        queue = queues.get(name)
        if queue and queue.status.state == "Closing" and not queues.children(name):
            return queues.refusal("spec.queue", name)
    return unusable_queue("spec.queue", name, queues)
