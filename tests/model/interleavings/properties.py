"""What must hold in every world, after every step, and where nothing happens any more."""

from collections import Counter
from collections.abc import Iterable

from interleavings.world import GPU, Step, World, used
from muster.api import names
from muster.api.kubernetes.core import NODES, PODS


def safe(before: World, step: Step, after: World) -> str | None:
    """A sentence if this step has broken something."""
    del before, step
    pods = after.api.all(PODS)
    for node in after.api.all(NODES):
        if used(pods, node.meta["name"]) > int(node.status["allocatable"][GPU]):
            return f"node {node.meta['name']} is overcommitted"
    seats = Counter(
        (pod.meta["annotations"][names.GROUP_NAME], pod.meta["annotations"].get(names.MEMBER_INDEX))
        for pod in pods
        if pod.spec.get("nodeName") and pod.status.get("phase") not in {"Succeeded", "Failed"} and not pod.meta.get("deletionTimestamp")
    )
    twice = [seat for seat, count in seats.items() if count > 1]
    return f"seat {twice[0]} has two owners" if twice else None


def done(world: World, gangs: Iterable[str]) -> str | None:
    """A sentence if a gang that fits has not ended here, where nothing happens any more."""
    pods = world.api.all(PODS)
    for name in gangs:
        mine = [pod for pod in pods if pod.meta["annotations"][names.GROUP_NAME] == name]
        if any(pod.status.get("phase") != "Succeeded" for pod in mine) or not mine:
            told = ", ".join(f"{pod.meta['name']} on {pod.spec.get('nodeName') or 'no node'}" for pod in mine)
            return f"gang {name} has not ended: {told}"
    return None
