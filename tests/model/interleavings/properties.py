"""What must hold in every world, after every step, and where nothing happens any more.

Small worlds and recorded ones (`interleavings.replay`) are judged by the same functions.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Protocol

import msgspec

from extender.planner.state.gangphase import ACTIVE
from interleavings.api import Api, Event, Request, Stored
from interleavings.automaton import At
from interleavings.world import Step, World
from muster.api import names
from muster.api.kubernetes.core import NODES, PODS, Node, Pod
from muster.api.muster.gang import DEFAULT_POD_SET, Slot
from muster.api.muster.noderuns import slots_of
from muster.api.muster.placement import PLACEMENTS, Placement, node_of
from muster.api.muster.placementnotes import noted
from muster.api.volcano.scheduling import POD_GROUPS, PodGroup
from muster.resources.gpus import counted
from muster.resources.pods import node_allocatable
from muster.resources.vector import Vector, add
from muster.workloads.table import gang_of, slot_of

NAMESPACE = "ns"
"""Of everything in the small worlds."""
_OVER = {"Succeeded", "Failed"}


class Moment(Protocol):
    """What is known of one moment of a world."""

    @property
    def api(self) -> Api:
        """All objects."""

    @property
    def late(self) -> tuple[str, tuple[Event, ...]] | None:
        """The kind of the extender's watch that is behind, and what it has not told."""

    @property
    def extender(self) -> At:
        """The requests of the extender that are not answered."""

    @property
    def done(self) -> Collection[tuple[str, Slot | None]]:
        """PodGroup's UID and slot of each deleted pod that had succeeded, where a Job deletes such pods."""


def safe(before: World, step: Step, after: World) -> str | None:
    """A sentence if this step has broken something that must always hold."""
    del step
    for check in ALWAYS:
        if why := check(before, after):
            return why
    for request, _ in after.extender.open:
        if all(request != known for known, _ in before.extender.open):
            for of_request in OF_REQUESTS:
                if why := of_request(after, request):
                    return why
    return None


def at_rest(world: Moment) -> str | None:
    """A sentence if something is unfinished here, where nothing happens before time passes."""
    for placement in _placements(world.api):
        namespace, name = placement.metadata.namespace, placement.metadata.name
        group = world.api.find(POD_GROUPS, namespace, name)
        if group is None or placement.status.started:
            continue
        mine = [pod for pod in of_gang(world.api, namespace, name) if pod.status.get("phase") not in _OVER]
        bound = [pod for pod in mine if pod.spec.get("nodeName")]
        if bound and len(bound) < min(group.spec["minMember"], len(mine)):
            return f"gang {name} is bound in part: {', '.join(pod.meta['name'] for pod in bound)}"
    return None


def done(world: World, gangs: Iterable[str]) -> str | None:
    """A sentence if a gang has not ended here, where nothing happens any more."""
    for name in gangs:
        mine = of_gang(world.api, NAMESPACE, name)
        if name in world.deleted:
            if mine:
                return f"gang {name} was deleted, and has pods"
        elif name not in world.ended and not (mine and all(pod.status.get("phase") == "Succeeded" for pod in mine)):
            told = ", ".join(f"{pod.meta['name']} on {pod.spec.get('nodeName') or 'no node'}" for pod in mine)
            return f"gang {name} has not ended: {told}"
    if world.extender.open or not world.extender.may_cycle:
        return "the extender waits for an answer"
    return None


def of_gang(api: Api, namespace: str, name: str) -> list[Stored]:
    """The pods of a gang."""
    return [pod for pod in api.all(PODS) if gang_key(pod) == (namespace, name)]


def gang_key(pod: Stored) -> tuple[str, str] | None:
    """Namespace and name of a pod's gang."""
    found: tuple[str, str] | None = pod.once(_gang_key)
    return found


def _gang_key(pod: Stored) -> tuple[str, str] | None:
    name = gang_of(pod.as_(Pod))
    return (pod.meta.get("namespace", ""), name) if name else None


def slot_in(pod: Stored) -> Slot | None:
    """A pod's slot in its gang."""
    return slot_of(pod.as_(Pod).metadata)


def _amounts(pod: Stored) -> Vector:
    return counted(pod.as_(Pod))


def _has(node: Stored) -> Vector:
    return node_allocatable(node.as_(Node))


def _placements(api: Api) -> Iterator[Placement]:
    """Every placement: objects, and those that are noted in PodGroups."""
    for one in api.all(PLACEMENTS):
        yield one.as_(Placement)
    for group in api.all(POD_GROUPS):
        if (note := group.once(_note)) is not None:
            yield note


def _note(group: Stored) -> Placement | None:
    return noted(group.as_(PodGroup))


def placement_of(api: Api, namespace: str, name: str) -> Placement | None:
    """The placement of a gang: an object, or noted in its PodGroup."""
    found = api.find(PLACEMENTS, namespace, name)
    if found is not None:
        read: Placement = found.as_(Placement)
        return read
    group = api.find(POD_GROUPS, namespace, name)
    note: Placement | None = group and group.once(_note)
    return note


def _over(node: Stored, taken: Vector) -> str:
    """The resource of which more is taken than a node has, or nothing."""
    has: Vector = node.once(_has)
    return next((resource for resource, amount in taken.items() if amount > has.get(resource, 0)), "")


def _overcommitted(_: Moment, world: Moment) -> str | None:
    taken: dict[str, Vector] = {}
    for pod in world.api.all(PODS):
        node = pod.spec.get("nodeName")
        if node and pod.status.get("phase") not in _OVER:
            taken[node] = add(taken.get(node, {}), pod.once(_amounts))
    for node in world.api.all(NODES):
        if resource := _over(node, taken.get(node.meta["name"], {})):
            return f"node {node.meta['name']} is overcommitted: its pods need more {resource} than it has"
    return None


def _planned_twice(_: Moment, world: Moment) -> str | None:
    """What active placements promise on a node, each to one member, is no more than it has.

    A member that has ended has left its place, also after its deletion, and a victim is to leave it.
    """
    active = [each for each in _placements(world.api) if each.status.phase in ACTIVE]
    victims = {victim.uid for placement in active for victim in placement.spec.victims}
    members: dict[tuple[str, str], list[Stored]] = {}
    for pod in world.api.all(PODS) if active else ():
        if key := gang_key(pod):
            members.setdefault(key, []).append(pod)
    promised: dict[str, Vector] = {}
    for placement in active:
        key = placement.metadata.namespace, placement.metadata.name
        group, uid = world.api.find(POD_GROUPS, *key), placement.spec.pod_group_uid
        if group is None or group.meta["uid"] != uid:
            continue
        mine = {pod.once(slot_in): pod for pod in members.get(key, ())}
        alike = {slot.pod_set if slot else DEFAULT_POD_SET: pod for slot, pod in mine.items()}
        for slot, node in slots_of(placement):
            pod = mine.get(slot)
            gone = (uid, slot) in world.done if pod is None else _leaves(pod, victims)
            like = pod or alike.get(slot.pod_set)
            if node and like is not None and not gone:
                promised[node] = add(promised.get(node, {}), like.once(_amounts))
    for node in world.api.all(NODES):
        if resource := _over(node, promised.get(node.meta["name"], {})):
            return f"node {node.meta['name']} is planned for more members than it has {resource} for"
    return None


def _leaves(pod: Stored, victims: Collection[str]) -> bool:
    return pod.status.get("phase") in _OVER or pod.meta["uid"] in victims


def _seats(_: Moment, world: Moment) -> str | None:
    seats = Counter(
        (gang_key(pod), pod.once(slot_in))
        for pod in world.api.all(PODS)
        if pod.spec.get("nodeName")
        and pod.status.get("phase") not in _OVER
        and not pod.meta.get("deletionTimestamp")
        and gang_key(pod) is not None
        and pod.once(slot_in) is not None
    )
    for (gang, slot), count in seats.items():
        if count > 1 and gang is not None and slot is not None:
            return f"seat {slot.pod_set} {slot.rank} of gang {gang[1]} has two owners"
    return None


def _unconditional(_: Moment, request: Request) -> str | None:
    if request.verb in {"delete", "evict", "bind"} and not request.uid:
        return f"a {request.verb} of {request.name} names no UID"
    return None


def _stale(world: Moment, request: Request) -> str | None:
    """A binding is asked for as the placement says that is in force at that moment."""
    if request.verb != "bind":
        return None
    pod = world.api.find(PODS, request.namespace, request.name)
    body = msgspec.json.decode(request.body)
    gang = body["annotations"].get(names.GROUP_NAME)
    if gang is None or pod is None or pod.meta["uid"] != request.uid or (world.late and "placements" in world.late[0]):
        return None
    if pod.spec.get("nodeName") == body["node"]:
        return None  # kube-scheduler has died meanwhile, and asks again: the pod is there already
    placement = placement_of(world.api, request.namespace, gang)
    if placement is None:
        return f"{request.name} is bound without a placement"
    if str(placement.spec.epoch) != body["annotations"][names.EPOCH] or placement.status.phase not in ACTIVE:
        return f"{request.name} is bound by epoch {body['annotations'][names.EPOCH]}, which is over"
    slot = pod.once(slot_in)
    nodes = {node for _, node in slots_of(placement)} if slot is None else {node_of(placement, slot.pod_set, slot.rank)}
    return None if body["node"] in nodes else f"{request.name} is bound to {body['node']}, which is not its node"


def _alone(world: Moment, request: Request) -> str | None:
    """The first members of a gang are bound together, as many as it needs to start."""
    found = world.api.find(PODS, request.namespace, request.name)
    gang = gang_key(found) if found is not None else None
    if request.verb != "bind" or gang is None:
        return None
    group = world.api.find(POD_GROUPS, *gang)
    mine = {pod.meta["name"]: pod for pod in of_gang(world.api, *gang)}
    if group is None or any(pod.spec.get("nodeName") for pod in mine.values()):
        return None
    asked = {other.name for other, _ in world.extender.open if other.verb == "bind"} & mine.keys()
    least = group.spec["minMember"]
    return f"{request.name} is bound, and {len(asked)} of the {least} members are there" if len(asked) < least else None


def _early(world: Moment, request: Request) -> str | None:
    """A gate is lifted by a placement that is written."""
    if request.verb != "patch" or request.resource is not PODS or b"schedulingGates" not in request.body:
        return None
    body = msgspec.json.decode(request.body)
    pod = world.api.find(PODS, request.namespace, request.name)
    if pod is None or (world.late and "placements" in world.late[0]):
        return None
    told, gang = body["metadata"]["annotations"], gang_key(pod)
    placement = placement_of(world.api, *gang) if gang else None
    if placement is None or str(placement.spec.epoch) != told[names.EPOCH]:
        return f"the gate of {request.name} is lifted by epoch {told[names.EPOCH]}, which is not written"
    return None


def _replanned(before: Moment, after: Moment) -> str | None:
    """Another plan has another epoch, and epochs only grow."""
    old = {_identity(each): each for each in _placements(before.api)}
    for new in _placements(after.api):
        was = old.get(_identity(new))
        if was is None or was is new or new.status.phase not in ACTIVE:
            continue
        if new.spec.epoch < was.spec.epoch:
            return f"the epoch of {new.metadata.name} goes back"
        moved = _nodes(new).items() - _nodes(was).items() if was.status.phase in ACTIVE else _nodes(new).items()
        if moved and new.spec.epoch == was.spec.epoch and was.status.phase != "Reserved":
            return f"{new.metadata.name} is planned anew under its old epoch"
    return None


def _identity(placement: Placement) -> tuple[str, str, str]:
    meta = placement.metadata
    return meta.namespace, meta.name, meta.uid


def _nodes(placement: Placement) -> dict[Slot, str]:
    return {slot: node for slot, node in slots_of(placement) if node}


ALWAYS: tuple[Callable[[Moment, Moment], str | None], ...] = (_overcommitted, _planned_twice, _seats, _replanned)
"""What holds after each step."""
OF_REQUESTS: tuple[Callable[[Moment, Request], str | None], ...] = (_unconditional, _stale, _early, _alone)
"""What holds of each new request of the extender, at the moment when it is made."""
