"""Reports for users of a single namespace: the nodes of the namespace's gangs, and a new gang's effect on its queue."""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from extender.explain.members import gang_text, readable_requests, where
from extender.explain.queues import QueueReport
from extender.explain.whatif import WhatIf
from muster.api.grammar import many
from muster.resources.vector import Vector, add, amount_text, to_quantities, vector_text


class GangPlaces(Struct, frozen=True, rename="camel"):
    """The nodes of a gang in rank order, one line for each pod set."""

    gang: str
    workload: str
    nodes: list[str]


class QueueDemand(Struct, frozen=True, rename="camel"):
    """The pods and resources that a new gang would request from its queue."""

    gang: str
    workload: str
    queue: str
    min_member: int
    pod_sets: list[str]
    """Texts such as `worker: 4 pods, each 8 nvidia.com/gpu`, one for each pod set."""
    requests: dict[str, str]
    """Sum of the requests of all pods, as text."""
    waiting: int | None
    """Number of gangs that wait in the queue; None if the user is not allowed to read the queue."""
    remarks: list[str]
    """Remarks about the queue's limit and deserved resources."""


def places(what_if: WhatIf, keys: Iterable[str] = ()) -> list[GangPlaces]:
    """Return the nodes of the gangs `keys` (by default, of all gangs with nodes), sorted by the gangs' names."""
    wanted = set(keys)
    views = [view for key in what_if.state.groups if (view := what_if.state.gang(key))]
    chosen = [view for view in views if (view.key in wanted if wanted else view.taken)]
    return [GangPlaces(view.key, gang_text(view), where(view)) for view in sorted(chosen, key=lambda view: view.key)]


def demands(what_if: WhatIf, keys: Iterable[str], queues: Mapping[str, QueueReport]) -> list[QueueDemand]:
    """Return each gang's requests from its queue, with remarks about the queue if `queues` contains it."""
    return [_demand(what_if, key, queues) for key in keys if what_if.state.gang(key)]


def _demand(what_if: WhatIf, key: str, queues: Mapping[str, QueueReport]) -> QueueDemand:
    view = what_if.state.gang(key)
    assert view is not None  # noqa: S101 # the caller has checked
    total: Vector = {}
    words = []
    for pod_set in view.pod_sets:
        each = readable_requests(pod_set.cls)
        total = add(total, {name: amount * pod_set.replicas for name, amount in each.items()})
        words.append(f"{pod_set.name}: {many(pod_set.replicas, 'pod')}, each {vector_text(each) or 'without requests'}")
    report = queues.get(view.queue)
    return QueueDemand(
        gang=key,
        workload=gang_text(view),
        queue=view.queue,
        min_member=view.min_member,
        pod_sets=words,
        requests=to_quantities(total),
        waiting=report.waiting if report else None,
        remarks=_remarks(total, report) if report else [],
    )


def _remarks(total: Vector, queue: QueueReport) -> list[str]:
    """Return a remark about each requested resource: the queue's future usage, limit and deserved amount."""
    found = []
    for name, asked in sorted(total.items()):
        used, most, quota = (amounts.get(name) for amounts in (queue.allocated, queue.capability, queue.deserved))
        after = (used or 0) + asked
        text = f"the queue uses {amount_text(name, used or 0)} {name}, with this gang {amount_text(name, after)}"
        if most is not None and after > most:
            text += f": more than the {amount_text(name, most)} that the queue may use (capability), so the gang waits"
        elif quota and after > quota:
            text += f": more than the {amount_text(name, quota)} that the queue deserves; others may reclaim the excess"
        elif quota:
            text += f", of the {amount_text(name, quota)} that the queue deserves"
        found.append(text)
    return found
