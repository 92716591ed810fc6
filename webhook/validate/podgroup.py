"""A PodGroup: its amounts can be read, and its queue takes it.

A user's own needs an open queue. That of a controller may also enter a queue that is Closing: its pods come whatever
is said to it, e.g. when a Deployment is updated, and in no queue they would count nowhere. A Volcano Job was asked
before, and its group needs no more than a queue that exists.
"""

from collections.abc import Iterator

from msgspec.json import Decoder

from muster.api import names
from muster.api.admission import AdmissionRequest
from muster.api.batch import is_job
from muster.api.fields import FieldError
from muster.api.meta import OwnerReference
from muster.api.scheduling import NetworkTopology, PodGroup
from muster.resources.quantity import parse
from muster.resources.vector import CPU
from webhook.lookup import Queues
from webhook.objects.names import unknown_queue, unusable_queue
from webhook.review import Handler, Verdict, decode

_POD_GROUP = Decoder(PodGroup)


def reviewer(queues: Queues) -> Handler:
    """The handler for PodGroups, on CREATE."""

    def review(request: AdmissionRequest) -> Verdict:
        return Verdict(errors=list(check(decode(request.object, _POD_GROUP), queues)))

    return review


def check(group: PodGroup, queues: Queues) -> Iterator[FieldError]:
    """Everything that is wrong with a new PodGroup."""
    spec = group.spec
    yield from _queue_errors(spec.queue or names.DEFAULT_QUEUE, group.metadata.controller, queues)
    yield from check_topology(spec.network_topology, "spec.networkTopology")
    for index, policy in enumerate(spec.sub_group_policy):
        yield from check_topology(policy.network_topology, f"spec.subGroupPolicy[{index}].networkTopology")
    for task, minimum in spec.min_task_member.items():
        if minimum < 0:
            yield FieldError(f"spec.minTaskMember[{task}]", "must not be negative", minimum)
    for name, quantity in (spec.min_resources or {}).items():
        try:
            # Names of a quota: requests.cpu is an amount of CPU too.
            parse(quantity, milli=name.rpartition(".")[2] == CPU)
        except ValueError as error:
            yield FieldError(f"spec.minResources[{name}]", str(error), quantity)


def check_topology(topology: NetworkTopology | None, path: str) -> Iterator[FieldError]:
    """The highest tier is given by number or by name, not both; an empty name is none. For Jobs and tasks too."""
    if topology and topology.highest_tier_allowed is not None and topology.highest_tier_name:
        message = "must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology simultaneously"
        yield FieldError(f"{path}.highestTierName", message, topology.highest_tier_name)


def _queue_errors(name: str, owner: OwnerReference | None, queues: Queues) -> list[FieldError]:
    if is_job(owner):
        return unknown_queue("spec.queue", name, queues)
    if owner and _is_closing_leaf(name, queues):
        return []
    return unusable_queue("spec.queue", name, queues)


def _is_closing_leaf(name: str, queues: Queues) -> bool:
    """Whether the queue holds gangs, and closes when the last of them has gone."""
    queue = queues.get(name)
    closing = queue is not None and queue.status.state == "Closing"
    return closing and name != names.ROOT_QUEUE and not queues.children(name)
