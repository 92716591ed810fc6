"""Builders and look-ups for the webhook's tests: plain objects, no API server."""

import copy
from collections.abc import Iterable, Mapping
from typing import Any

import jsonpatch
import msgspec
from builders import manifests

from muster.api.base import Resource
from muster.api.kubeflow.trainer import RuntimeRef
from muster.api.kubeflow.trainingruntime import ClusterTrainingRuntime, TrainingRuntime
from muster.api.kubernetes.admission import AdmissionRequest, GroupVersionKind
from muster.api.kubernetes.meta import Object, ObjectMeta, OwnerReference
from muster.api.names import NAMESPACE_SELECTOR
from muster.api.volcano.scheduling import Queue, QueueSpec, QueueStatus
from muster.kube.errors import Unreachable
from muster.runtime import registry
from webhook.lookup import Lookups, Runtime
from webhook.mutate import job
from webhook.offline.lookups import Documents
from webhook.offline.lookups import lookups as lookups_in
from webhook.patch import Operation
from webhook.review import Handler

JSON = dict[str, Any]
FRAMEWORK = registry.framework()


class QueueTree:
    """`Queues` with whole objects, in place of the cache of queues."""

    def __init__(self, *queues: JSON) -> None:
        self._queues = {each["metadata"]["name"]: msgspec.convert(each, Queue) for each in queues}

    def get(self, name: str) -> Queue | None:
        """See webhook.lookup.QueueTreeView."""
        return self._queues.get(name)

    def live(self, name: str) -> Queue | None:
        """See webhook.lookup.QueueTreeView."""
        return self.get(name)

    def children(self, name: str) -> list[str]:
        """See webhook.lookup.QueueTreeView."""
        return [one.metadata.name for one in self._queues.values() if one.spec.parent == name]

    def names(self) -> list[str]:
        """See webhook.lookup.QueueTreeView."""
        return list(self._queues)


class QueueWorld(QueueTree):
    """`Queues` of a test: name → (parent, state); `selectors` are those of namespaces by the queue that has one."""

    def __init__(self, selectors: Mapping[str, str] | None = None, /, **queues: tuple[str, str]) -> None:
        super().__init__()
        for name, (parent, state) in {"root": ("", "Open"), "default": ("root", "Open"), **queues}.items():
            status: Any = QueueStatus(state=state)  # type: ignore[arg-type] # tests also use states that clients write
            said = {NAMESPACE_SELECTOR: selectors[name]} if selectors and name in selectors else {}
            meta = ObjectMeta(name=name, annotations=said)
            self._queues[name] = Queue(metadata=meta, spec=QueueSpec(parent=parent), status=status)

    def names(self) -> list[str]:
        """See webhook.lookup.QueueTreeView."""
        return [name for name, each in self._queues.items() if name != "root" and each.open]


class OwnerWorld:
    """`Owners` of a test: documents by name."""

    def __init__(self, *owners: JSON) -> None:
        self._owners = {owner["metadata"]["name"]: owner for owner in owners}

    def find(self, source: Resource[Any], _namespace: str, owner: OwnerReference) -> Object | None:
        """See webhook.lookup.Owners."""
        document = self._owners.get(owner.name)
        if document is None or document["metadata"].get("uid") != owner.uid:
            return None
        found: Object = msgspec.convert(document, source.type)
        return found


class NamespaceWorld:
    """`Namespaces` of a test: name → labels."""

    def __init__(self, **labels: dict[str, str]) -> None:
        self._labels = labels

    def metadata(self, name: str, *, with_queue: bool = False) -> ObjectMeta:  # noqa: ARG002 # there is no cache here
        """See webhook.lookup.Namespaces; of namespace `team` the annotations are what a test needs."""
        annotations = {"scheduling.volcano.sh/queue-name": "a"} if name == "team" else {}
        return ObjectMeta(labels=self._labels.get(name, {}), annotations=annotations)


class RuntimeWorld:
    """`Runtimes` of a test: documents of either kind."""

    def __init__(self, *runtimes: JSON) -> None:
        self._runtimes = {
            (each["kind"], each["metadata"]["name"]): msgspec.convert(
                each, TrainingRuntime if each["kind"] == "TrainingRuntime" else ClusterTrainingRuntime
            )
            for each in runtimes
        }

    def find(self, reference: RuntimeRef, _namespace: str) -> Runtime | None:
        """See webhook.lookup.TrainingRuntimes."""
        return self._runtimes.get((reference.kind, reference.name))


def lookups(
    queues: Any = None, owners: Any = None, namespaces: Any = None, runtimes: Any = None, **more: Any
) -> Lookups:
    """All look-ups of handlers, from worlds; those left out are empty."""
    worlds = (queues or QueueWorld(), owners or OwnerWorld(), namespaces or NamespaceWorld())
    return Lookups(*worlds, runtimes or RuntimeWorld(), **more)


class DownWorld:
    """Look-ups while the API server does not answer."""

    def find(self, _source: Resource[Any], _namespace: str, _owner: OwnerReference) -> Object | None:
        """See webhook.lookup.Owners."""
        raise Unreachable("no answer")

    def get(self, _name: str) -> Queue | None:
        """See webhook.lookup.QueueTreeView."""
        raise Unreachable("no answer")

    def live(self, _name: str) -> Queue | None:
        """See webhook.lookup.QueueTreeView."""
        raise Unreachable("no answer")

    def children(self, _name: str) -> list[str]:
        """See webhook.lookup.QueueTreeView."""
        raise Unreachable("no answer")

    def names(self) -> list[str]:
        """See webhook.lookup.QueueTreeView."""
        raise Unreachable("no answer")

    def metadata(self, _name: str, *, with_queue: bool = False) -> ObjectMeta:  # noqa: ARG002 # no answer
        """See webhook.lookup.Namespaces."""
        raise Unreachable("no answer")


def job_defaults(namespaces: Any = None, queues: Any = None, **options: Any) -> Handler:
    """The handler that completes Volcano Jobs, in a namespace without a queue unless namespaces are given."""
    empty = lookups_in(Documents([], "team"))
    world = lookups(queues or empty.queues, namespaces=namespaces or empty.namespaces)
    return job.reviewer(world, **options)


def request(obj: JSON, operation: str = "CREATE", old: JSON | None = None, **fields: Any) -> AdmissionRequest:
    """A review's request for an object."""
    return AdmissionRequest(
        uid="uid-1",
        kind=GroupVersionKind(group=obj.get("apiVersion", "").rpartition("/")[0], kind=obj.get("kind", "")),
        name=obj.get("metadata", {}).get("name", ""),
        namespace="team",
        operation=operation,
        object=msgspec.Raw(msgspec.json.encode(obj)),
        old_object=msgspec.Raw(msgspec.json.encode(old)),
        **fields,
    )


def apply(document: JSON, operations: Iterable[Operation]) -> JSON:
    """The document after the operations, by an independent library; the argument stays as it is."""
    result: JSON = jsonpatch.apply_patch(copy.deepcopy(document), list(operations))
    return result


def task(name: str = "worker", replicas: int = 2, **fields: Any) -> JSON:
    """A task of a Volcano Job."""
    return manifests.task(name, replicas, **fields)


def vcjob(*tasks: JSON, name: str = "train", **spec: Any) -> JSON:
    """A Volcano Job; one task of two pods unless tasks are given."""
    return manifests.job(name, list(tasks) or [task()], "team", **{"queue": "default", **spec})


def container(name: str = "node", env: list[JSON] | None = None, **resources: Any) -> JSON:
    """A container with requests (`cpu="2", nvidia_com_gpu=8`: an underscore stands for dots and slashes)."""
    requests = {key.replace("nvidia_com_gpu", "nvidia.com/gpu"): value for key, value in resources.items()}
    result: JSON = {"name": name, "image": "image", "resources": {"requests": requests}}
    if env is not None:
        result["env"] = env
    return result


def indexed_job(
    *containers: JSON, size: int = 4, labels: JSON | None = None, annotations: JSON | None = None, **spec: Any
) -> JSON:
    """A batch/v1 Indexed Job named `train` whose template has the framework label."""
    wanted = {"muster.dev/framework": "torch"} if labels is None else labels
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train", "namespace": "team", "uid": "job-uid", "labels": wanted},
        "spec": {
            "completionMode": "Indexed",
            "completions": size,
            "parallelism": size,
            "template": {
                "metadata": {"labels": wanted, "annotations": annotations or {}},
                "spec": {"containers": list(containers) or [container()]},
            },
            **spec,
        },
    }


def pod_of(job: JSON, index: int = 0) -> JSON:
    """A pod as the Job controller submits it."""
    template = copy.deepcopy(job["spec"]["template"])
    metadata = template["metadata"]
    labels = {**metadata["labels"], "batch.kubernetes.io/job-completion-index": str(index)}
    spec = {"schedulerName": "default-scheduler", "hostname": f"train-{index}", **template["spec"]}
    meta = {"generateName": f"train-{index}-", "labels": labels, "annotations": metadata["annotations"]}
    meta["ownerReferences"] = [manifests.owner("train", uid="job-uid")]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
