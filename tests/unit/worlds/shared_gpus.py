"""Gangs that share GPUs and run, and what placements of such gangs have chosen."""

from gpus_world import CPU1
from victims_world import Cluster

from extender.planner.framework.decisions import Place
from extender.planner.state.podclass import PodClass
from muster.api.muster.placement import devices_of_text


def bound(world: Cluster, key: str, nodes: list[str], devices: list[str], **said: str) -> None:
    """The members of a gang run with these devices of these nodes."""
    for rank, (node, taken) in enumerate(zip(nodes, devices, strict=True)):
        told = annotations(key, rank, taken, **said)
        world.pod(key, "worker", rank, CPU1, node=node, phase="Running", annotations=told)


def annotations(key: str, rank: int, devices: str, **said: str) -> dict[str, str]:
    """Those of a member that has its devices."""
    return {
        "scheduling.k8s.io/group-name": key.partition("/")[2],
        "volcano.sh/task-spec": "worker",
        "volcano.sh/task-index": str(rank),
        "muster.dev/gpu-devices": devices,
        **{name.replace("_", "-"): text for name, text in said.items()},
    }


def taken_by(place: Place) -> list[tuple[tuple[str, tuple[int, ...]], PodClass]]:
    """Node, devices and class of each rank of a placement that shares GPUs."""
    [pod_set] = place.pod_sets
    nodes = [run.node for run in pod_set.runs for _ in range(run.count)]
    cls = place.gang.pod_sets[0].cls
    assert cls is not None
    return [((node, devices_of_text(text)), cls) for node, text in zip(nodes, pod_set.gpus, strict=False)]
