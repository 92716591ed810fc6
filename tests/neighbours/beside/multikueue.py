"""MultiKueue: a manager cluster that hands TrainJobs to worker clusters, and a record of what ran where."""

import base64
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import yaml
from watching import Watching

from beside.kueue import NAMESPACE, SECRETS
from beside.kueue_objects import CLUSTER_QUEUES, FLAVORS, cluster_kind, make_local_queue
from muster.api.kubernetes.core import PODS, Pod
from muster.kube.client import Client
from muster.kube.reflector import Reflector
from musterctl.plane import install
from musterctl.plane.plane import Plane

JSON = dict[str, Any]
CONTROLLER: Final = "kueue.x-k8s.io/multikueue"
TRAIN_JOB: Final = "jobset.sigs.k8s.io/jobset-name"
"""The label of a TrainJob's pods that has its name."""
FRAMEWORKS: Final = ["batch/job", "trainer.kubeflow.org/trainjob"]
"""The kinds that Kueue looks after: the manager watches each of them on every worker, which must have them all."""
QUOTA: Final = {"cpu": "100", "memory": "100Gi", "nvidia.com/gpu": "32"}
"""Of each worker."""
_CHECKS = cluster_kind("admissionchecks", "AdmissionCheck")
_CONFIGS = cluster_kind("multikueueconfigs", "MultiKueueConfig")
CLUSTERS = cluster_kind("multikueueclusters", "MultiKueueCluster")
_ACCOUNT: Final = "multikueue"
_ALL: Final = ["create", "delete", "get", "list", "patch", "update", "watch"]
_RULES: Final[list[JSON]] = [
    {"apiGroups": ["kueue.x-k8s.io"], "resources": ["workloads"], "verbs": _ALL},
    {"apiGroups": ["kueue.x-k8s.io"], "resources": ["workloads/status"], "verbs": ["get", "patch", "update"]},
    {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": _ALL},
    {"apiGroups": ["trainer.kubeflow.org"], "resources": ["trainjobs"], "verbs": _ALL},
]
"""What the manager does on a worker."""


def settings(**multikueue: Any) -> JSON:
    """More of Kueue's configuration: the frameworks, and how the manager treats workers."""
    found: JSON = {"integrations": {"frameworks": FRAMEWORKS}}
    return found | ({"multiKueue": multikueue} if multikueue else {})


def prepare_manager(manager: Plane, workers: Sequence[Plane], namespace: str) -> None:
    """The manager's queue `team`, which is dispatched to all workers; a worker's name is the folder of its plane."""
    client = manager.client()
    install.runtimes(client)
    made = [worker.root.name for worker in workers]
    for name, worker in zip(made, workers, strict=True):
        data = {"kubeconfig": base64.b64encode(_access(worker).encode()).decode()}
        client.create(SECRETS, {"metadata": {"name": name}, "data": data}, NAMESPACE)
        source = {"kubeConfig": {"location": name, "locationType": "Secret"}}
        client.create(CLUSTERS, {"metadata": {"name": name}, "spec": {"clusterSource": source}})
    client.create(_CONFIGS, {"metadata": {"name": "workers"}, "spec": {"clusters": made}})
    parameters = {"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": "workers"}
    check = {"controllerName": CONTROLLER, "parameters": parameters}
    client.create(_CHECKS, {"metadata": {"name": "workers"}, "spec": check})
    client.create(FLAVORS, {"metadata": {"name": "all"}, "spec": {}})
    resources = [{"name": key, "nominalQuota": "1000Gi"} for key in QUOTA]  # no limit but that of the workers
    spec = {
        "namespaceSelector": {},
        "resourceGroups": [{"coveredResources": list(QUOTA), "flavors": [{"name": "all", "resources": resources}]}],
        "admissionChecksStrategy": {"admissionChecks": [{"name": "workers"}]},
    }
    client.create(CLUSTER_QUEUES, {"metadata": {"name": "all"}, "spec": spec})
    make_local_queue(client, namespace, "team", "all")


def _access(worker: Plane) -> str:
    """A kubeconfig for a worker, with everything in it, of an account that may do what the manager does there."""
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": _ACCOUNT}
    subject = {"kind": "ServiceAccount", "name": _ACCOUNT, "namespace": NAMESPACE}
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": _ACCOUNT, "namespace": NAMESPACE}}
    binding = {**role, "kind": "ClusterRoleBinding", "roleRef": reference, "subjects": [subject]}
    objects = [account, *({**each, "metadata": {"name": _ACCOUNT}} for each in ({**role, "rules": _RULES}, binding))]
    text = msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": objects}).decode()
    _kubectl(worker, "apply", "--server-side", "--validate=false", "--filename=-", stdin=text)
    token = _kubectl(worker, "create", "token", _ACCOUNT, f"--namespace={NAMESPACE}", "--duration=24h").strip()
    content = yaml.safe_load(_kubectl(worker, "config", "view", "--flatten", "--minify"))
    content["users"] = [{"name": each["name"], "user": {"token": token}} for each in content["users"]]
    return yaml.safe_dump(content)


def _kubectl(plane: Plane, *arguments: str, stdin: str = "") -> str:
    result = plane.kubectl(*arguments, stdin=stdin)
    assert not result.returncode, result.stderr
    return result.stdout


@dataclass(slots=True)
class Ran:
    """A pod of a TrainJob that has run."""

    train_job: str
    began_s: float
    ended_s: float | None = None
    succeeded: bool = False


class Runs(Watching):
    """The pods of TrainJobs that ran on one worker, by UID; times are monotonic seconds."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.pods: dict[str, Ran] = {}
        self._lock = threading.Lock()
        pods = Reflector(client, PODS, namespace=namespace)
        pods.add_handler(self._changed)
        super().__init__(pods)

    def of(self, train_job: str) -> list[Ran]:
        """What ran of one TrainJob."""
        with self._lock:
            return [each for each in self.pods.values() if each.train_job == train_job]

    def names(self) -> set[str]:
        """The TrainJobs of which something ran here."""
        with self._lock:
            return {each.train_job for each in self.pods.values()}

    def _changed(self, old: Pod | None, new: Pod | None) -> None:
        pod, now = new or old, time.monotonic()
        assert pod is not None
        with self._lock:
            if pod.status.phase in {"Running", "Succeeded", "Failed"} and pod.metadata.uid not in self.pods:
                self.pods[pod.metadata.uid] = Ran(pod.metadata.labels.get(TRAIN_JOB, ""), now)
            ran = self.pods.get(pod.metadata.uid)
            if ran is not None and (new is None or new.finished):
                ran.ended_s = ran.ended_s or now
                ran.succeeded |= pod.status.phase == "Succeeded"
