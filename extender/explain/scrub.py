"""What of an object goes into a snapshot file: only what the planner reads.

Environment, commands, images, secrets' and config maps' names stay behind, and with them what kubelet says of
containers beyond its reason. So do the annotations of others (kubectl keeps a copy of whole manifests in one).
"""

from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from muster.api.kubernetes.core import Container, ContainerStatus, Pod, PodSpec, PodStatus
from muster.api.kubernetes.meta import Object, ObjectMeta
from muster.api.volcano.batch import Job, JobStatus, TaskSpec

T = TypeVar("T", bound=Object)
READ_DOMAINS = (
    "muster.dev",
    "volcano.sh",
    "sla-waiting-time",
    "scheduling.k8s.io",
    "scheduling.x-k8s.io",
    "batch.kubernetes.io",
    "pv.kubernetes.io",
    "volume.kubernetes.io",
    "volume.beta.kubernetes.io",
)
"""Annotations of these domains, and of their sub-domains, say something to the planner."""
CLAIMS = ("name", "persistentVolumeClaim", "ephemeral")


def scrubbed(item: T) -> T:
    """A copy without what the planner does not read."""
    meta = _metadata(item.metadata)
    if isinstance(item, Pod):
        return replace(item, metadata=meta, spec=_spec(item.spec), status=_status(item.status))
    if isinstance(item, Job):
        tasks = [replace(task, template=_template(task)) for task in item.spec.tasks]
        volumes = [replace(volume, volume_claim=None) for volume in item.spec.volumes]
        spec = replace(item.spec, tasks=tasks, plugins={}, volumes=volumes)
        return replace(item, metadata=meta, spec=spec, status=_job_status(item.status))
    return replace(item, metadata=meta)


def _metadata(meta: ObjectMeta) -> ObjectMeta:
    return replace(meta, annotations={key: value for key, value in meta.annotations.items() if _is_read(key)})


def _is_read(key: str) -> bool:
    domain = key.partition("/")[0]
    return any(domain == known or domain.endswith(f".{known}") for known in READ_DOMAINS)


def _template(task: TaskSpec) -> dict[str, Any]:
    meta = _metadata(msgspec.convert(task.template.get("metadata") or {}, ObjectMeta))
    spec = _spec(msgspec.convert(task.template.get("spec") or {}, PodSpec))
    return {"metadata": msgspec.to_builtins(meta), "spec": msgspec.to_builtins(spec)}


def _spec(spec: PodSpec) -> PodSpec:
    volumes = [
        {key: value for key, value in volume.items() if key in CLAIMS} for volume in spec.volumes if _claims(volume)
    ]
    return replace(
        spec,
        containers=[_container(container) for container in spec.containers],
        init_containers=[_container(container) for container in spec.init_containers],
        volumes=volumes,
    )


def _status(status: PodStatus) -> PodStatus:
    """Messages about containers name images and commands."""
    return replace(
        status,
        container_statuses=[_container_status(each) for each in status.container_statuses],
        init_container_statuses=[_container_status(each) for each in status.init_container_statuses],
    )


def _container_status(status: ContainerStatus) -> ContainerStatus:
    waiting = status.state.waiting
    if waiting is None:
        return status
    return replace(status, state=replace(status.state, waiting=replace(waiting, message="")))


def _job_status(status: JobStatus) -> JobStatus:
    """The message of a Job that goes on may be one about a container."""
    going_on = status.state.phase in {"Pending", "Running"}
    return replace(status, state=replace(status.state, message="")) if going_on else status


def _claims(volume: dict[str, Any]) -> bool:
    return "persistentVolumeClaim" in volume or "ephemeral" in volume


def _container(container: Container) -> Container:
    return replace(container, image="", command=[], args=[], env=[])
