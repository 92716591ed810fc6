"""Gangs whose pods share GPUs."""

from typing import Any

from extender_world import World
from msgspec import structs

from muster.api.kubernetes.core import NodeStatus
from muster.api.kubernetes.meta import OwnerReference
from muster.api.volcano.batch import Job, JobSpec, TaskSpec
from muster.api.volcano.scheduling import PodGroup, PodGroupSpec, PodGroupStatus

CPU1 = {"cpu": 1}


def shares(world: World, name: str, pods: int, queue: str = "default", priority: str = "", **said: str) -> str:
    """A gang of pods with these annotations (`gpu_fraction="0.5"`); its key."""
    annotations = {key.replace("_", "-"): text for key, text in said.items()}
    template = {"metadata": {"annotations": annotations}, "spec": world.pod_spec(CPU1)}
    job = Job(
        metadata=world.meta(name),
        spec=JobSpec(priority_class_name=priority, tasks=[TaskSpec(name="worker", replicas=pods, template=template)]),
    )
    owner = OwnerReference(
        api_version="batch.volcano.sh/v1alpha1", kind="Job", name=name, uid=job.metadata.uid, controller=True
    )
    group = PodGroup(
        metadata=world.meta(name, owner_references=[owner]),
        spec=PodGroupSpec(min_member=pods, queue=queue, priority_class_name=priority),
        status=PodGroupStatus(phase="Inqueue"),
    )
    world.state.on_pod_group(None, group)
    world.state.on_job(None, job)
    return group.metadata.key


def divided(world: World, name: str, gpus: dict[str, int], labels: dict[str, str] | None = None) -> None:
    """A node with these GPUs."""
    node = world.node(name, labels=labels)
    allocatable: dict[str, Any] = {"cpu": 32, "memory": "256Gi", "pods": 110, **gpus}
    world.state.on_node(node, structs.replace(node, status=NodeStatus(allocatable=allocatable)))
