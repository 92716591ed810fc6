"""Builders for the tests of frameworks: a group of four pods named `train`, under each kind of owner."""

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jsonpatch
import msgspec

from muster.api.base import Resource
from muster.api.fields import FieldError
from muster.api.kubeflow.trainer import TrainJob
from muster.api.kubeflow.trainingruntime import ClusterTrainingRuntime
from muster.api.kubernetes.meta import Object, ObjectMeta, OwnerReference
from muster.runtime import registry
from muster.runtime.plan import Compiled
from muster.runtime.train_job import Target, compile_train_job
from webhook.mutate.podreview import PodReview
from webhook.mutate.shape import shape

JSON = dict[str, Any]
FRAMEWORK = registry.framework()
INDEX = "batch.kubernetes.io/job-completion-index"
JOBSET = "jobset.sigs.k8s.io"
LWS = "leaderworkerset.sigs.k8s.io"
RESOURCES: dict[str, JSON] = {
    "8 GPUs, 64 CPUs": {"limits": {"nvidia.com/gpu": 8, "cpu": "64"}},
    "2500m CPU": {"requests": {"cpu": "2500m"}},
    "nothing": {},
}
SECRET = {"muster.dev/ssh-auth-secret": "keys"}


@dataclass
class Group:
    """A pod as it is submitted, and its owner as the API server has it."""

    pod: JSON
    owner: JSON | None = None

    def find(self, source: Resource[Any], _namespace: str, reference: OwnerReference) -> Object | None:
        """See webhook.lookup.Owners."""
        if self.owner is None or self.owner["metadata"]["uid"] != reference.uid:
            return None
        found: Object = msgspec.convert(self.owner, source.type)
        return found


@dataclass
class Shaped:
    """What became of a pod: itself and the errors."""

    pod: JSON
    errors: list[FieldError] = field(default_factory=list)

    @property
    def env(self) -> dict[str, str]:
        """The target's variables: a literal, or the path of a field."""
        return env_of(self.pod["spec"]["containers"][0])


def env_of(container: JSON) -> dict[str, str]:
    """Name → literal or field path."""
    return {
        each["name"]: each.get("value", ((each.get("valueFrom") or {}).get("fieldRef") or {}).get("fieldPath", ""))
        for each in container.get("env") or []
    }


def shaped(group: Group) -> Shaped:
    """The pod as admission leaves it, applied by an independent library."""
    review = PodReview.read_pod(group.pod, msgspec.convert(group.pod["metadata"], ObjectMeta), "team")
    shape(review, group, FRAMEWORK)
    return Shaped(jsonpatch.apply_patch(copy.deepcopy(group.pod), review.patch.operations), review.errors)


def template(framework: str, annotations: Mapping[str, str], resources: JSON, **spec: Any) -> JSON:
    """A pod template that asks for a framework."""
    return {
        "metadata": {"labels": {"muster.dev/framework": framework}, "annotations": dict(annotations)},
        "spec": {"containers": [{"name": "node", "image": "image", "resources": resources}], **spec},
    }


def _pod(pods: JSON, kind: tuple[str, str] | None, *, name: str = "", **metadata: JSON) -> JSON:
    """A pod of the template; `kind` is its owner's, whose name is `train` unless given."""
    pod = copy.deepcopy(pods)
    meta = pod["metadata"]
    meta["namespace"] = "team"
    if name:
        meta["name"] = name
    for key, values in metadata.items():
        meta[key] = {**meta[key], **values}
    if kind:
        owner = {"apiVersion": kind[0], "kind": kind[1], "name": "train", "uid": "uid", "controller": True}
        meta["ownerReferences"] = [owner]
    return pod


def _owner(spec: JSON, **metadata: Any) -> JSON:
    return {"metadata": {"name": "train", "namespace": "team", "uid": "uid", **metadata}, "spec": spec}


def indexed_job(pods: JSON, *, old: bool = False) -> Group:
    """A batch/v1 Job of four."""
    spec = {"completionMode": "Indexed", "completions": 4, "parallelism": 4, "template": pods}
    index = {INDEX: "2"}
    return Group(_pod(pods, ("batch/v1", "Job"), annotations=index, labels={} if old else index), _owner(spec))


def jobset(pods: JSON, *, jobs: int = 1) -> Group:
    """The last Job of a JobSet's replicated job `node`, and its last pod."""
    size = 4 // jobs
    labels = {
        f"{JOBSET}/jobset-name": "train",
        f"{JOBSET}/replicatedjob-name": "node",
        f"{JOBSET}/replicatedjob-replicas": str(jobs),
        f"{JOBSET}/job-index": str(jobs - 1),
    }
    inside = copy.deepcopy(pods)
    inside["spec"]["subdomain"] = "train"
    reference = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "train", "uid": "set"}
    spec = {"completionMode": "Indexed", "completions": size, "parallelism": size, "template": inside}
    owner = _owner(spec, labels=labels, ownerReferences=[{**reference, "controller": True}])
    return Group(_pod(inside, ("batch/v1", "Job"), labels={**labels, INDEX: str(size - 1)}), owner)


def stateful_set(pods: JSON, *, start: int = 0, old: bool = False, **spec: Any) -> Group:
    """The third pod of a StatefulSet."""
    number = start + 2
    labels = {} if old else {"apps.kubernetes.io/pod-index": str(number)}
    pod = _pod(pods, ("apps/v1", "StatefulSet"), name=f"train-{number}", labels=labels)
    pod["spec"]["subdomain"] = "peers"
    ordinals = {"start": start}
    given = {"replicas": 4, "serviceName": "peers", "podManagementPolicy": "Parallel", "ordinals": ordinals, **spec}
    given["template"] = pods
    return Group(pod, _owner(given))


def leader_worker_set(pods: JSON) -> Group:
    """A worker of the second group."""
    labels = {f"{LWS}/name": "train", f"{LWS}/group-index": "1", f"{LWS}/worker-index": "2"}
    pod = _pod(pods, ("apps/v1", "StatefulSet"), name="train-1-2", labels=labels, annotations={f"{LWS}/size": "4"})
    return Group(pod, _owner({"replicas": 3, "serviceName": "train", "template": pods}))


def volcano_job(pods: JSON, *, tasks: Mapping[str, int] | None = None, **spec: Any) -> Group:
    """The last pod of the last task."""
    counts = tasks or {"worker": 4}
    name, count = list(counts.items())[-1]
    slot = {"volcano.sh/task-spec": name, "volcano.sh/task-index": str(count - 1)}
    pod = _pod(pods, ("batch.volcano.sh/v1alpha1", "Job"), name=f"train-{name}-{count - 1}", annotations=slot)
    listed = [{"name": each, "replicas": size, "template": pods} for each, size in counts.items()]
    return Group(pod, _owner({"plugins": {"svc": []}, "tasks": listed, **spec}))


def bare_pod(pods: JSON, **annotations: str) -> Group:
    """A pod without an owner."""
    given = annotations or {"rank": "2", "size": "4", "leader": "train-0.peers"}
    return Group(_pod(pods, None, name="train", annotations={f"muster.dev/{key}": each for key, each in given.items()}))


OWNERS: dict[str, Callable[[JSON], Group]] = {
    "Indexed Job `train`": indexed_job,
    "Indexed Job, Kubernetes before 1.28": lambda pods: indexed_job(pods, old=True),
    "JobSet, one Job of 4 pods": jobset,
    "JobSet, 2 Jobs of 2 pods, the last pod": lambda pods: jobset(pods, jobs=2),
    "StatefulSet": stateful_set,
    "StatefulSet from ordinal 5, pod `train-7`": lambda pods: stateful_set(pods, start=5),
    "StatefulSet, Kubernetes before 1.28, pod `train-2`": lambda pods: stateful_set(pods, old=True),
    "LeaderWorkerSet, second group": leader_worker_set,
    "Volcano Job, task `worker`": volcano_job,
    "Volcano Job, tasks `master` (1) and `worker` (3), pod `worker-2`": lambda pods: volcano_job(
        pods, tasks={"master": 1, "worker": 3}
    ),
    "Pod with annotations `muster.dev/rank`, `size`, `leader`": bare_pod,
}
TRAIN_JOBS: dict[str, Target] = {"TrainJob, run as a Job": "Job", "TrainJob, run as a JobSet": "JobSet"}


def replicated_job(name: str, step: str = "", spec: JSON | None = None, **fields: Any) -> JSON:
    """A replicated job of a runtime; its container is `node` unless the pod's spec is given."""
    pod = spec or {"containers": [{"name": "node", "image": "image"}]}
    metadata = {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": step}} if step else {}
    return {"name": name, "template": {"metadata": metadata, "spec": {"template": {"spec": pod}}}, **fields}


def runtime(policy: JSON | None, *jobs: JSON, name: str = "runtime", **spec: Any) -> ClusterTrainingRuntime:
    """A runtime; one replicated job `node`, the trainer, unless others are given."""
    listed = list(jobs) or [replicated_job("node", "trainer")]
    given = {"mlPolicy": policy, "template": {"spec": {"replicatedJobs": listed, **spec.pop("jobset", {})}}, **spec}
    document = {"kind": "ClusterTrainingRuntime", "metadata": {"name": name}, "spec": given}
    return msgspec.convert(document, ClusterTrainingRuntime)


def mpi_runtime(launcher: JSON | None = None, node: JSON | None = None, **policy: Any) -> ClusterTrainingRuntime:
    """The usual runtime for MPI: the launcher waits until the nodes are ready."""
    waits = [{"name": "node", "status": "Ready"}]
    return runtime(
        {"mpi": policy},
        replicated_job("launcher", "trainer", launcher, dependsOn=waits),
        replicated_job("node", "", node),
    )


def train_job(metadata: JSON | None = None, **spec: Any) -> TrainJob:
    """A TrainJob named `train`."""
    meta = {"name": "train", "namespace": "team", "uid": "uid", **(metadata or {})}
    return msgspec.convert({"metadata": meta, "spec": {"runtimeRef": {"name": "runtime"}, **spec}}, TrainJob)


def compiled(job: TrainJob, on: ClusterTrainingRuntime, target: Target = "JobSet") -> Compiled:
    """What becomes of a TrainJob."""
    return compile_train_job(job, on, FRAMEWORK, target)


def errors_of(result: Compiled) -> list[str]:
    """Each error as people see it."""
    return [str(error) for error in result.errors]


def component(result: Compiled, kind: str) -> JSON:
    """The manifest of a kind."""
    [found] = [each for each in result.components if each.kind == kind]
    return dict(found.manifest)


def pods_of(result: Compiled, pod_set: str = "node") -> JSON:
    """The pod template of a pod set, in a JobSet or a Job."""
    for each in result.components:
        spec = each.manifest.get("spec") or {}
        for job in spec.get("replicatedJobs") or []:
            if job["name"] == pod_set:
                pods: JSON = job["template"]["spec"]["template"]
                return pods
        for task in spec.get("tasks") or []:
            if task["name"] == pod_set:
                inside: JSON = task["template"]
                return inside
    raise AssertionError(f"no pod set {pod_set}")
