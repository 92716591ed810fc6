"""TrainJobs as the SDK sends them, and the story of each as a watch tells it."""

import threading
from typing import Any

from jobs import VOLUMES
from watching import Watching

from muster.api.base import Resource
from muster.api.kubeflow.jobset import ReplicatedJobStatus
from muster.api.kubeflow.trainer import ANCESTOR, RUNTIME_FRAMEWORK, TRAIN_JOBS, TrainJob
from muster.api.kubeflow.trainingruntime import TRAINING_RUNTIMES
from muster.api.kubernetes.core import EVENTS
from muster.api.kubernetes.meta import Condition
from muster.kube.client import Client
from muster.kube.reflector import Reflector

JSON = dict[str, Any]
RUN = "kwok.muster.dev/run-seconds"
RAW_MAPS: Resource[JSON] = Resource("", "v1", "configmaps", "ConfigMap", JSON)
EXIT = "kwok.muster.dev/exit-code"


def patch(manager: str, job: str = "node", annotations: JSON | None = None, **spec: Any) -> JSON:
    """One manager's patch of the pods of a replicated job."""
    template: JSON = {"spec": spec} if spec else {}
    if annotations:
        template["metadata"] = {"annotations": annotations}
    entry = {"name": job, "template": {"spec": {"template": template}}}
    return {"manager": manager, "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [entry]}}}}


def train_job(
    name: str,
    runtime: str = "torch-distributed",
    *,
    nodes: int | None = None,
    run_s: float | None = None,
    exit_code: int = 0,
    kind: str = "ClusterTrainingRuntime",
    **spec: Any,
) -> JSON:
    """A TrainJob whose pods end with `exit_code` after `run_s`, or never."""
    annotations = {} if run_s is None else {RUN: str(run_s)}
    if exit_code:
        annotations[EXIT] = str(exit_code)
    patches = [patch("tests.muster.dev/kwok", annotations=annotations)] if annotations else []
    trainer: JSON = {"resourcesPerNode": {"requests": {"cpu": "100m"}}}
    if nodes is not None:
        trainer["numNodes"] = nodes
    body = {
        "runtimeRef": {"name": runtime, "kind": kind},
        "trainer": {**trainer, **spec.pop("trainer", {})},
        "runtimePatches": [*patches, *spec.pop("runtimePatches", [])],
        **spec,
    }
    return {"metadata": {"name": name}, "spec": body}


def runtime(name: str, *, image: str = "train:1", **jobset: Any) -> JSON:
    """A TrainingRuntime for torch with one replicated job; `jobset` are more fields of its template."""
    pods = {"spec": {"containers": [{"name": "node", "image": image}]}}
    job = {"metadata": {"labels": {ANCESTOR: "trainer"}}, "spec": {"template": pods}}
    template = {"spec": {"replicatedJobs": [{"name": "node", "template": job}], **jobset}}
    return {
        "apiVersion": TRAINING_RUNTIMES.api_version,
        "kind": TRAINING_RUNTIMES.kind,
        "metadata": {"name": name, "labels": {RUNTIME_FRAMEWORK: "torch"}},
        "spec": {"mlPolicy": {"numNodes": 1, "torch": {}}, "template": template},
    }


def make_volume(client: Client, namespace: str, size: str) -> None:
    """A volume for whatever claim of this namespace comes first: no provisioner makes any here."""
    spec = {
        "capacity": {"storage": size},
        "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": "/nowhere"},
        "persistentVolumeReclaimPolicy": "Delete",
    }
    client.create(VOLUMES, {"metadata": {"name": namespace}, "spec": spec})


class TrainStory(Watching):
    """Every status that the TrainJobs of a namespace had: their conditions, and their counts."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.client = client
        self.namespace = namespace
        self.statuses: dict[str, list[tuple[list[Condition], list[ReplicatedJobStatus]]]] = {}
        self._lock = threading.Lock()
        train_jobs = Reflector(client, TRAIN_JOBS, namespace=namespace)
        train_jobs.add_handler(self._seen)
        super().__init__(train_jobs)

    def create(self, manifest: JSON) -> TrainJob:
        """Submits a TrainJob."""
        return self.client.create(TRAIN_JOBS, manifest, self.namespace)

    def change(self, name: str, **spec: Any) -> TrainJob:
        """Changes its spec."""
        return self.client.merge_patch(TRAIN_JOBS, name, {"spec": spec}, self.namespace)

    def get(self, name: str) -> TrainJob:
        """The TrainJob as it is."""
        return self.client.get(TRAIN_JOBS, name, self.namespace)

    def conditions(self, name: str) -> list[Condition]:
        """Its conditions, as the watch told last."""
        with self._lock:
            return self.statuses[name][-1][0] if name in self.statuses else []

    def held(self, name: str) -> list[tuple[str, str, str]]:
        """The same as type, status and reason."""
        return [(each.type, each.status, each.reason) for each in self.conditions(name)]

    def all_held(self, name: str) -> list[list[tuple[str, str, str]]]:
        """All that it ever had, in order."""
        with self._lock:
            return [
                [(each.type, each.status, each.reason) for each in conditions]
                for conditions, _ in self.statuses.get(name, [])
            ]

    def counts(self, name: str, replicated_job: str) -> list[dict[str, int]]:
        """The counts that a replicated job had, in order, those that are not 0."""
        with self._lock:
            found = [
                {
                    key: value
                    for key in ("ready", "succeeded", "failed", "active", "suspended")
                    if (value := getattr(each, key))
                }
                for _, jobs in self.statuses.get(name, [])
                for each in jobs
                if each.name == replicated_job
            ]
        return [each for i, each in enumerate(found) if i == 0 or each != found[i - 1]]

    def events(self, reason: str) -> list[str]:
        """The messages of the events of TrainJobs with this reason."""
        found = self.client.list(EVENTS, self.namespace)
        return [
            each.message for each in found if each.reason == reason and each.involved_object.get("kind") == "TrainJob"
        ]

    def _seen(self, old: TrainJob | None, new: TrainJob | None) -> None:
        del old
        if new:
            with self._lock:
                entry = (new.status.conditions, new.status.jobs_status)
                self.statuses.setdefault(new.metadata.name, []).append(entry)
