"""What must hold in every world, after every step, and where nothing happens any more."""

from collections import Counter
from collections.abc import Callable, Iterable

import msgspec

from extender.planner.state.gangs import ACTIVE
from interleavings.api import Request, Stored
from interleavings.world import GPU, Step, World, used
from muster.api import names
from muster.api.kubernetes.core import NODES, PODS
from muster.api.muster.gang import Slot
from muster.api.muster.placement import PLACEMENTS, Placement, node_of, slots_of
from muster.api.volcano.scheduling import POD_GROUPS

_OVER = {"Succeeded", "Failed"}


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


def at_rest(world: World) -> str | None:
    """A sentence if something is unfinished here, where nothing happens before time passes."""
    for placement in world.api.all(PLACEMENTS):
        read: Placement = placement.as_(Placement)
        group = world.api.find(POD_GROUPS, "ns", read.metadata.name)
        if group is None or read.status.started:
            continue
        mine = [pod for pod in _of_gang(world, read.metadata.name) if pod.status.get("phase") not in _OVER]
        bound = [pod for pod in mine if pod.spec.get("nodeName")]
        if bound and len(bound) < min(group.spec["minMember"], len(mine)):
            return f"gang {read.metadata.name} is bound in part: {', '.join(pod.meta['name'] for pod in bound)}"
    return None


def done(world: World, gangs: Iterable[str]) -> str | None:
    """A sentence if a gang has not ended here, where nothing happens any more."""
    for name in gangs:
        mine = _of_gang(world, name)
        if name in world.deleted:
            if mine:
                return f"gang {name} was deleted, and has pods"
        elif any(pod.status.get("phase") != "Succeeded" for pod in mine) or not mine:
            told = ", ".join(f"{pod.meta['name']} on {pod.spec.get('nodeName') or 'no node'}" for pod in mine)
            return f"gang {name} has not ended: {told}"
    if world.extender.open or not world.extender.may_cycle:
        return "the extender waits for an answer"
    return None


def _of_gang(world: World, name: str) -> list[Stored]:
    return [pod for pod in world.api.all(PODS) if pod.meta["annotations"].get(names.GROUP_NAME) == name]


def _overcommitted(_: World, world: World) -> str | None:
    pods = world.api.all(PODS)
    for node in world.api.all(NODES):
        if used(pods, node.meta["name"]) > int(node.status["allocatable"][GPU]):
            return f"node {node.meta['name']} is overcommitted"
    return None


def _planned_twice(_: World, world: World) -> str | None:
    """Each node takes one member; two active placements that name it promise it twice."""
    planned: Counter[str] = Counter()
    for placement in world.api.all(PLACEMENTS):
        read: Placement = placement.as_(Placement)
        if read.status.phase in ACTIVE and world.api.find(POD_GROUPS, "ns", read.metadata.name) is not None:
            planned.update(node for _, node in slots_of(read) if node)
    twice = [node for node, count in planned.items() if count > 1]
    return f"node {twice[0]} is planned for two members" if twice else None


def _seats(_: World, world: World) -> str | None:
    seats = Counter(
        (pod.meta["annotations"][names.GROUP_NAME], pod.meta["annotations"].get(names.MEMBER_INDEX) or pod.meta["name"])
        for pod in world.api.all(PODS)
        if pod.spec.get("nodeName")
        and pod.status.get("phase") not in _OVER
        and not pod.meta.get("deletionTimestamp")
        and names.MEMBER_INDEX in pod.meta["annotations"]
    )
    twice = [seat for seat, count in seats.items() if count > 1]
    return f"seat {twice[0]} has two owners" if twice else None


def _unconditional(_: World, request: Request) -> str | None:
    if request.verb in {"delete", "evict", "bind"} and not request.uid:
        return f"a {request.verb} of {request.name} names no UID"
    return None


def _stale(world: World, request: Request) -> str | None:
    """A binding is asked for as the placement says that is in force at that moment."""
    if request.verb != "bind":
        return None
    pod = world.api.find(PODS, request.namespace, request.name)
    body = msgspec.json.decode(request.body)
    gang = body["annotations"].get(names.GROUP_NAME)
    found = world.api.find(PLACEMENTS, "ns", gang or "")
    if gang is None or pod is None or pod.meta["uid"] != request.uid or (world.late and "placements" in world.late[0]):
        return None
    if found is None:
        return f"{request.name} is bound without a placement"
    placement: Placement = found.as_(Placement)
    if str(placement.spec.epoch) != body["annotations"][names.EPOCH] or placement.status.phase not in ACTIVE:
        return f"{request.name} is bound by epoch {body['annotations'][names.EPOCH]}, which is over"
    rank = pod.meta["annotations"].get(names.MEMBER_INDEX)
    slot = next((slot for slot, _ in slots_of(placement) if str(slot.rank) == rank), None)
    nodes = {node for _, node in slots_of(placement)} if slot is None else {node_of(placement, slot.pod_set, slot.rank)}
    return None if body["node"] in nodes else f"{request.name} is bound to {body['node']}, which is not its node"


def _alone(world: World, request: Request) -> str | None:
    """The first members of a gang are bound together, as many as it needs to start."""
    found = world.api.find(PODS, request.namespace, request.name)
    if request.verb != "bind" or found is None:
        return None
    name = found.meta["annotations"][names.GROUP_NAME]
    group = world.api.find(POD_GROUPS, "ns", name)
    mine = {pod.meta["name"]: pod for pod in _of_gang(world, name)}
    if group is None or any(pod.spec.get("nodeName") for pod in mine.values()):
        return None
    asked = {other.name for other, _ in world.extender.open if other.verb == "bind"} & mine.keys()
    least = group.spec["minMember"]
    return f"{request.name} is bound, and {len(asked)} of the {least} members are there" if len(asked) < least else None


def _early(world: World, request: Request) -> str | None:
    """A gate is lifted by a placement that is written."""
    if request.verb != "patch" or request.resource is not PODS or b"schedulingGates" not in request.body:
        return None
    body = msgspec.json.decode(request.body)
    pod = world.api.find(PODS, request.namespace, request.name)
    if pod is None or (world.late and "placements" in world.late[0]):
        return None
    told = body["metadata"]["annotations"]
    found = world.api.find(PLACEMENTS, "ns", pod.meta["annotations"][names.GROUP_NAME])
    if found is None or str(found.spec["epoch"]) != told[names.EPOCH]:
        return f"the gate of {request.name} is lifted by epoch {told[names.EPOCH]}, which is not written"
    return None


def _replanned(before: World, after: World) -> str | None:
    """Another plan has another epoch, and epochs only grow."""
    for placement in after.api.all(PLACEMENTS):
        old, new = before.api.find(PLACEMENTS, "ns", placement.meta["name"]), placement.as_(Placement)
        if old is None or old.meta["uid"] != placement.meta["uid"] or new.status.phase not in ACTIVE:
            continue
        was: Placement = old.as_(Placement)
        if new.spec.epoch < was.spec.epoch:
            return f"the epoch of {new.metadata.name} goes back"
        moved = _nodes(new).items() - _nodes(was).items() if was.status.phase in ACTIVE else _nodes(new).items()
        if moved and new.spec.epoch == was.spec.epoch and was.status.phase != "Reserved":
            return f"{new.metadata.name} is planned anew under its old epoch"
    return None


def _nodes(placement: Placement) -> dict[Slot, str]:
    return {slot: node for slot, node in slots_of(placement) if node}


ALWAYS: tuple[Callable[[World, World], str | None], ...] = (_overcommitted, _planned_twice, _seats, _replanned)
"""What holds after each step."""
OF_REQUESTS: tuple[Callable[[World, Request], str | None], ...] = (_unconditional, _stale, _early, _alone)
"""What holds of each new request of the extender, at the moment when it is made."""
