"""What a controller makes of an admitted workload is admitted: its mistakes were refused when it was sent, or never.

Each kind with each label and annotation that Muster reads, on the workload and on its templates; the children are as
the kind's own controller makes them.
"""

import copy
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import pytest
from webhook_world import FRAMEWORK

from muster.api import names
from muster.api.kubeflow.trainer import ANCESTOR, TRAIN_JOBS, TrainJob
from muster.api.kubeflow.trainingruntime import TRAINING_RUNTIMES as RUNTIMES
from muster.runtime.train_job import Target, compile_train_job
from webhook.offline.admission import Admitted, OfflineAdmission, sample_pods
from webhook.offline.lookups import Documents

JSON = dict[str, Any]
QUEUE = {names.QUEUE: "default"}
_RACK = "example.com/rack"
KEYS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys((*names.TOPOLOGY_LEVEL_KEYS, *names.KUEUE_TOPOLOGY_LEVEL_KEYS), (_RACK, "no label")),
    **dict.fromkeys((names.TOPOLOGY_SLICE_KEYS[1], names.KUEUE_SLICE_KEYS[1]), ("2", "3", "x")),
    **dict.fromkeys((names.JDB_MIN_AVAILABLE, names.JDB_MAX_UNAVAILABLE), ("1", "50%", "x")),
    **dict.fromkeys((names.MIN_MEMBER, names.VOLCANO_GROUP_MIN_MEMBER), ("2", "4", "99", "x")),
    names.KUEUE_SLICE_LAYERS: (f'[{{"topology": "{_RACK}", "size": 2}}]', "x"),
    names.KUEUE_UNCONSTRAINED: ("true", "x"),
    names.TOPOLOGY: ("default", "No Name"),
    names.GPU_FRACTION: ("0.5", "2"),
    names.GPU_SHARE_MEMORY: ("2Gi", "x"),
    names.SPARES: ("1", "worker=1", "x"),
    names.BORROWS: ("true", "x"),
    names.EVICT_NOTICE: ("300s", "x"),
    names.ON_NODE_FAULT: ("wait", "x"),
    names.NODE_FAULT_GRACE: ("30s", "x"),
    names.AVOID_FAILED_NODE: ("10m", "x"),
    names.EXPECTED_RUNTIME: ("1h", "x"),
    names.ELASTIC: ("1:4", "x"),
    names.QUEUE_ALLOCATION_GATE: ("true", "x"),
    names.COSCHEDULING_GROUP: ("group",),
    names.GROUP_NAME: ("group",),
    names.VOLCANO_QUEUE: ("default", "nobodys"),
    names.TASK_INDEX: ("0", "x"),
    names.PREEMPTABLE: ("false", "x"),
}
"""Annotations with values, right and wrong."""
TOGETHER: tuple[JSON, ...] = (
    {names.TOPOLOGY_GROUP[0]: "g", names.TOPOLOGY_REQUIRED: _RACK},
    {names.TOPOLOGY_GROUP[1]: "g", names.KUEUE_REQUIRED: _RACK},
    {names.TOPOLOGY_SLICE_KEYS[0]: _RACK, names.TOPOLOGY_SLICE_KEYS[1]: "2"},
    {names.KUEUE_SLICE_KEYS[0]: _RACK, names.KUEUE_SLICE_KEYS[1]: "2"},
)
ASKED = [*({key: value} for key, values in KEYS.items() for value in values), *TOGETHER]


def _pods(annotations: JSON, **labels: str) -> JSON:
    limits = {"cpu": 1}
    pods = {"containers": [{"name": "main", "image": "i", "resources": {"limits": limits}}], "restartPolicy": "Never"}
    return {"metadata": {"annotations": dict(annotations), "labels": {"app": "x", **labels}}, "spec": pods}


def _parents(annotations: JSON) -> dict[str, JSON]:
    """The spec of a workload of four pods of each kind, with these annotations on its templates."""
    pods = _pods(annotations)
    job = {"completions": 4, "parallelism": 4, "completionMode": "Indexed", "template": pods}
    part = {"name": "w", "replicas": 1, "template": {"spec": job}}
    selector = {"matchLabels": {"app": "x"}}
    one = {**job, "parallelism": 1, "completions": 1}
    lws = {"size": 4, "leaderTemplate": pods, "workerTemplate": pods}
    volcano = {"minAvailable": 4, "queue": "default", "tasks": [{"name": "w", "replicas": 4, "template": pods}]}
    return {
        "batch/v1 Job": job,
        "batch/v1 CronJob": {"schedule": "* * * * *", "jobTemplate": {"spec": job}},
        "jobset.x-k8s.io/v1alpha2 JobSet": {
            "replicatedJobs": [part, {"name": "l", "replicas": 1, "template": {"spec": one}}]
        },
        "apps/v1 StatefulSet": {
            "replicas": 4, "serviceName": "s", "podManagementPolicy": "Parallel", "selector": selector,
            "template": pods,
        },
        "leaderworkerset.x-k8s.io/v1 LeaderWorkerSet": {"replicas": 2, "leaderWorkerTemplate": lws},
        "apps/v1 Deployment": {"replicas": 4, "selector": selector, "template": pods},
        "apps/v1 ReplicaSet": {"replicas": 4, "selector": selector, "template": pods},
        "apps/v1 DaemonSet": {"selector": selector, "template": pods},
        "v1 ReplicationController": {"replicas": 4, "selector": {"app": "x"}, "template": pods},
        "batch.volcano.sh/v1alpha1 Job": volcano,
        "batch.volcano.sh/v1alpha1 CronJob": {"schedule": "* * * * *", "jobTemplate": {"spec": volcano}},
    }  # fmt: skip


def children(workload: JSON) -> Iterator[JSON]:
    """The objects between a workload and its pods, with the metadata that its controller gives them, and the pods."""
    if workload["apiVersion"] == "batch.volcano.sh/v1alpha1" and workload["kind"] == "CronJob":
        template = workload["spec"]["jobTemplate"]
        metadata = {**(template.get("metadata") or {}), "name": "train-1", "namespace": "team"}
        yield {**workload, "kind": "Job", "metadata": metadata, "spec": template["spec"]}
    for sample in sample_pods(workload):
        if sample.owner:
            yield copied(workload, sample.owner)
        yield sample.pod


def copied(workload: JSON, child: JSON) -> JSON:
    """A child with the labels and annotations that its controller copies to it."""
    child, spec = copy.deepcopy(child), workload["spec"]
    source: Mapping[str, Any] = {}
    match workload["kind"]:
        case "Deployment":
            labels = spec["template"]["metadata"].get("labels", {})
            source = {"annotations": workload["metadata"].get("annotations", {}), "labels": labels}
        case "CronJob":
            source = spec["jobTemplate"].get("metadata") or {}
        case "JobSet":
            name = child["metadata"]["labels"][names.REPLICATED_JOB]
            source = (
                next(each["template"] for each in spec["replicatedJobs"] if each["name"] == name).get("metadata") or {}
            )
    for key in ("labels", "annotations"):
        child["metadata"][key] = {**(source.get(key) or {}), **(child["metadata"].get(key) or {})}
    return child


def workload(kind: str, metadata: JSON, annotations: JSON) -> JSON:
    """A workload with this metadata, and these annotations on its templates."""
    api_version, _, name = kind.rpartition(" ")
    return {"apiVersion": api_version, "kind": name, "metadata": metadata, "spec": _parents(annotations)[kind]}


def is_right(asked: JSON) -> bool:
    """Whether a pod alone is admitted with this: the workload of a namespace's pods is not sent before them."""
    pod = {"apiVersion": "v1", "kind": "Pod", **_pods(asked, **QUEUE)}
    return not OfflineAdmission(Documents([], "team"), FRAMEWORK).admit(pod).errors


def refused(parent: JSON) -> list[str]:
    """The errors of children of an admitted workload."""
    namespace = {"kind": "Namespace", "metadata": {"name": "team", "labels": {names.QUEUE: "default"}}}
    admission = OfflineAdmission(Documents([namespace], "team"), FRAMEWORK)
    labels = parent["metadata"]["labels"] or parent["apiVersion"].startswith("batch")  # others are not sent
    admitted = admission.admit(parent) if labels else Admitted(parent, parent)
    if admitted.errors:
        return []
    admission.documents.add(admitted.after)
    errors: list[str] = []
    for child in children(admitted.after):
        made = admission.admit(child)
        admission.documents.add(made.after)
        errors += [f"{made.title}: {error}" for error in made.errors]
    return errors


@pytest.mark.parametrize("labels", [{}, QUEUE, QUEUE | {names.FRAMEWORK: "torch"}], ids=["namespace", "queue", "torch"])
@pytest.mark.parametrize("kind", _parents({}))
def test_children_of_an_admitted_workload_are_admitted(kind: str, labels: JSON) -> None:
    """With any annotation, on the workload or its templates; without a label the queue is that of the namespace."""
    wrong: dict[str, list[str]] = {}
    for asked in ASKED if labels else filter(is_right, ASKED):
        for of_workload, of_templates in ((asked, {}), ({}, asked)):
            metadata = {"name": "train", "namespace": "team", "labels": labels, "annotations": of_workload}
            if errors := refused(workload(kind, metadata, of_templates)):
                wrong[f"{asked} on {'the workload' if of_workload else 'templates'}"] = errors
    assert not wrong


def train_job(asked: JSON, place: str) -> tuple[JSON, JSON]:
    """A TrainJob and its runtime; the annotations are on one of them, or on a template of the runtime."""

    def at(name: str) -> JSON:
        return {"annotations": asked if place == name else {}}

    pods = _pods(at("template")["annotations"])
    pods["spec"]["containers"][0]["name"] = "node"
    job = {"metadata": {"labels": {ANCESTOR: "trainer"}, **at("Job")}, "spec": {"template": pods}}
    template = {"spec": {"replicatedJobs": [{"name": "node", "template": job}]}}
    runtime = {
        "apiVersion": RUNTIMES.api_version, "kind": RUNTIMES.kind,
        "metadata": {"name": "of-tests", "namespace": "team", **at("runtime")},
        "spec": {"mlPolicy": {"numNodes": 4, "torch": {}}, "template": template},
    }  # fmt: skip
    train = {
        "apiVersion": TRAIN_JOBS.api_version, "kind": TRAIN_JOBS.kind,
        "metadata": {"name": "train", "namespace": "team", "labels": {names.QUEUE: "default"}, **at("TrainJob")},
        "spec": {"runtimeRef": {"name": "of-tests", "kind": RUNTIMES.kind}},
    }  # fmt: skip
    return train, runtime


@pytest.mark.parametrize("target", ["Job", "JobSet"])
def test_objects_of_an_admitted_train_job_are_admitted(target: Target) -> None:
    """With any annotation on the TrainJob, its runtime, or the runtime's templates."""
    wrong: dict[str, list[str]] = {}
    for asked in ASKED:
        for place in ("TrainJob", "runtime", "Job", "template"):
            train, runtime = train_job(asked, place)
            admission = OfflineAdmission(Documents([runtime], "team"), FRAMEWORK)
            if admission.admit(runtime).errors or admission.admit(train).errors:
                continue
            given = msgspec.convert(train, TrainJob), msgspec.convert(runtime, RUNTIMES.type)
            components = compile_train_job(*given, FRAMEWORK, target).components
            made = [msgspec.to_builtins(each.manifest) for each in components]
            if errors := [str(error) for each in made for error in admission.admit(each).errors]:
                wrong[f"{asked} on the {place}"] = errors
    assert not wrong
