"""Gangs whose pods share GPUs."""

from typing import Any

from extender_world import World
from msgspec import structs

from muster.api.kubernetes.core import NodeStatus

CPU1 = {"cpu": 1}


def shares(world: World, name: str, pods: int, queue: str = "default", priority: str = "", **said: str) -> str:
    """A gang of pods with these annotations (`gpu_fraction="0.5"`); its key."""
    notes = {key.replace("_", "-"): text for key, text in said.items()}
    tasks = {"worker": (pods, CPU1)}
    return world.gang(name, tasks, min_task_member={}, queue=queue, priority_class=priority, notes=notes)


def divided(world: World, name: str, gpus: dict[str, int], labels: dict[str, str] | None = None) -> None:
    """A node with these GPUs."""
    node = world.node(name, labels=labels)
    allocatable: dict[str, Any] = {"cpu": 32, "memory": "256Gi", "pods": 110, **gpus}
    world.state.on_node(node, structs.replace(node, status=NodeStatus(allocatable=allocatable)))
