"""Manifests of objects, as JSON: what users, controllers and kube-scheduler send to the API server."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from muster.api.names import GROUP_NAME, TASK_INDEX, TASK_SPEC

JSON = dict[str, Any]
_METADATA: Final = {
    "uid": "uid", "labels": "labels", "annotations": "annotations", "version": "resourceVersion",
    "created": "creationTimestamp", "deleted": "deletionTimestamp", "generate_name": "generateName",
    "finalizers": "finalizers"
}  # fmt: skip
"""Argument → field of the metadata; all other arguments are fields of the spec."""


def camel(name: str) -> str:
    """Return the name of a field in JSON: `min_available` is `minAvailable`."""
    first, *more = name.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in more)


def manifest(
    api_version: str, kind: str, name: str, namespace: str = "", /, *, spec: JSON | None = None,
    status: Any = None, owner: JSON | None = None, **more: Any,
) -> JSON:  # fmt: skip
    """Return an object of any kind; empty fields of the metadata, and an empty status, are left out."""
    meta = {"name": name, "namespace": namespace, "ownerReferences": [owner] if owner else []}
    meta |= {field: more.pop(word, None) for word, field in _METADATA.items()}
    fields = {**(spec or {}), **{camel(field): value for field, value in more.items()}}
    body: JSON = {"apiVersion": api_version, "kind": kind, "metadata": {key: one for key, one in meta.items() if one}}
    return body | ({"spec": fields} if fields else {}) | ({"status": status} if status else {})


def owner(name: str = "train", kind: str = "Job", api_version: str = "batch/v1", uid: str = "") -> JSON:
    """Return the owner reference of a controller; its UID is `uid-<name>` unless it is given."""
    return {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid or f"uid-{name}", "controller": True}


def job_owner(name: str = "train", uid: str = "") -> JSON:
    """Return the owner reference of a Volcano Job."""
    return owner(name, "Job", "batch.volcano.sh/v1alpha1", uid)


def container(
    name: str = "main", *, requests: Mapping[str, Any] | None = None, limits: Mapping[str, Any] | None = None,
    **more: Any,
) -> JSON:  # fmt: skip
    """Return a container; resources are left out where it has none."""
    resources = {"requests": dict(requests or {}), "limits": dict(limits or {})}
    given = {"resources": {key: each for key, each in resources.items() if each}} if requests or limits else {}
    return {"name": name, **given, **{camel(field): value for field, value in more.items()}}


def pod_spec(
    *, requests: Mapping[str, Any] | None = None, limits: Mapping[str, Any] | None = None, image: str = "", **spec: Any
) -> JSON:
    """Return the spec of a pod, of one container `main` unless there are others."""
    main = container(requests=requests, limits=limits, **({"image": image} if image else {}))
    return {"containers": [main], **{camel(field): value for field, value in spec.items()}}


def template(*, labels: JSON | None = None, annotations: JSON | None = None, **spec: Any) -> JSON:
    """Return the template of pods."""
    meta = {key: each for key, each in (("labels", labels), ("annotations", annotations)) if each}
    return ({"metadata": meta} if meta else {}) | {"spec": pod_spec(**spec)}


def node(
    name: str = "node-0", *, gpus: int = 8, cpu: Any = 32, memory: str = "256Gi", pods: int = 110,
    ready: bool = True, conditions: Sequence[JSON] = (), **more: Any,
) -> JSON:  # fmt: skip
    """Return a node that has these amounts; `conditions` come after that it is ready, or not."""
    amounts = {"cpu": cpu, "memory": memory, "pods": pods} | ({"nvidia.com/gpu": gpus} if gpus else {})
    known = [{"type": "Ready", "status": str(ready)}, *conditions]
    status = {"allocatable": {key: str(each) for key, each in amounts.items()}, "conditions": known}
    return manifest("v1", "Node", name, status=status, **more)


def queue(name: str = "q", *, state: str = "Open", **more: Any) -> JSON:
    """Return a queue, below the root unless it names another parent."""
    parent = {} if name == "root" else {"parent": "root"}
    spec = {"weight": 1, **parent}
    return manifest("scheduling.volcano.sh/v1beta1", "Queue", name, spec=spec, status={"state": state}, **more)


def pod(
    name: str = "pod", namespace: str = "ns", *, node: str = "", phase: str = "", gang: str = "", task: str = "",
    index: int | None = None, scheduler: str = "muster", requests: Mapping[str, Any] | None = None,
    limits: Mapping[str, Any] | None = None, status: JSON | None = None, annotations: JSON | None = None, **more: Any,
) -> JSON:  # fmt: skip
    """Return a pod, Running if it has a node, else Pending; a member of a gang names it, its task and its index."""
    member = {GROUP_NAME: gang, TASK_SPEC: task, TASK_INDEX: "" if index is None else str(index)}
    notes = {key: text for key, text in member.items() if text} | (annotations or {})
    spec = pod_spec(requests=requests, limits=limits, scheduler_name=scheduler) | ({"nodeName": node} if node else {})
    said = {"phase": phase or ("Running" if node else "Pending"), **(status or {})}
    return manifest("v1", "Pod", name, namespace, spec=spec, status=said, annotations=notes, **more)


def pod_group(
    name: str = "train", size: int = 1, namespace: str = "ns", *, queue: str = "default", phase: str = "Inqueue",
    status: JSON | None = None, **more: Any,
) -> JSON:  # fmt: skip
    """Return a PodGroup of Muster whose `size` members start together."""
    spec = {"minMember": size, "queue": queue}
    said = {"phase": phase, **(status or {})}
    return manifest("scheduling.volcano.sh/v1beta1", "PodGroup", name, namespace, spec=spec, status=said, **more)


def members(gang: str, nodes: Iterable[str], namespace: str = "ns", *, task: str = "worker", **more: Any) -> list[JSON]:
    """Return the pods of a gang, one on each node by rank; an empty name: not bound yet."""
    return [
        pod(f"{gang}-{task}-{rank}", namespace, node=node, gang=gang, task=task, index=rank, **more)
        for rank, node in enumerate(nodes)
    ]


def task(name: str = "worker", replicas: int = 1, *, template: JSON | None = None, **more: Any) -> JSON:
    """Return a task of a Volcano Job; its pods have one container unless their template is given."""
    pods = {"spec": pod_spec()} if template is None else template
    return {"name": name, "replicas": replicas, "template": pods, **{camel(key): each for key, each in more.items()}}


def job(
    name: str = "train", tasks: Mapping[str, int] | Sequence[Any] = (), namespace: str = "ns", *, phase: str = "",
    status: Any = None, **more: Any,
) -> JSON:  # fmt: skip
    """Return a Volcano Job of tasks (name → replicas, or whole ones): by default one `worker`."""
    given = [task(key, number) for key, number in tasks.items()] if isinstance(tasks, Mapping) else [*tasks]
    said = {"state": {"phase": phase}} if phase else status
    spec = {"tasks": given or [task()]}
    return manifest("batch.volcano.sh/v1alpha1", "Job", name, namespace, spec=spec, status=said, **more)


def batch_job(
    name: str = "train", size: int = 1, namespace: str = "ns", *, template: JSON | None = None, **more: Any
) -> JSON:
    """Return an Indexed Job of `size` pods that run side by side."""
    pods = {"spec": pod_spec()} if template is None else template
    spec = {"completionMode": "Indexed", "completions": size, "parallelism": size, "template": pods}
    return manifest("batch/v1", "Job", name, namespace, spec=spec, **more)


def train_job(
    name: str = "train", runtime: str = "torch-distributed", namespace: str = "ns", *, nodes: int | None = None,
    trainer: JSON | None = None, **more: Any,
) -> JSON:  # fmt: skip
    """Return a TrainJob of a ClusterTrainingRuntime, with so many nodes if that is given."""
    given = ({} if nodes is None else {"numNodes": nodes}) | (trainer or {})
    spec: JSON = {"runtimeRef": {"name": runtime, "kind": "ClusterTrainingRuntime"}}
    spec |= {"trainer": given} if given else {}
    return manifest("trainer.kubeflow.org/v1alpha1", "TrainJob", name, namespace, spec=spec, **more)


def placement(
    name: str = "train", pod_sets: Mapping[str, Sequence[str]] | None = None, namespace: str = "ns", *, epoch: int = 1,
    gang_uid: str = "", phase: str = "", status: JSON | None = None, **more: Any,
) -> JSON:  # fmt: skip
    """Return the placement of a gang: pod set → node of each rank."""
    sets = [
        {"name": key, "runs": [{"node": node, "count": 1} for node in nodes]} for key, nodes in (pod_sets or {}).items()
    ]
    spec = {"epoch": epoch, "podGroupUID": gang_uid or f"uid-{name}", "podSets": sets}
    said = ({"phase": phase} if phase else {}) | (status or {})
    return manifest("muster.dev/v1alpha1", "Placement", name, namespace, spec=spec, status=said, **more)
