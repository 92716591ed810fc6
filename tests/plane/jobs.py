"""Manifests of Volcano Jobs with policies, and the story of a Job as a watch tells it."""

import threading
from typing import Any

from builders import manifests
from watching import Watching

from muster.api.base import Resource
from muster.api.kubernetes.core import EVENTS, PODS, Pod
from muster.api.kubernetes.storage import CLAIMS
from muster.api.volcano.batch import JOBS, Job, JobStatus
from muster.kube.client import Client
from muster.kube.errors import NotFound
from muster.kube.reflector import Reflector

VOLUMES: Resource[dict[str, Any]] = Resource(
    "", "v1", "persistentvolumes", "PersistentVolume", dict[str, Any], namespaced=False
)


def task(name: str, replicas: int, *, run_s: float | None = None, exit_code: int = 0, **more: Any) -> dict[str, Any]:
    """A task whose pods end with `exit_code` after `run_s`, or never."""
    annotations = {} if run_s is None else {"kwok.muster.dev/run-seconds": str(run_s)}
    if exit_code:
        annotations["kwok.muster.dev/exit-code"] = str(exit_code)
    annotations |= more.pop("annotations", {})
    requests = {"cpu": more.pop("cpu", "100m")}
    names = more.pop("containers", ["main"])
    containers = [manifests.container(each, requests=requests, image="none") for each in names]
    spec = {"restartPolicy": "Never", "containers": containers}
    return manifests.task(
        name, replicas, **{"template": {"metadata": {"annotations": annotations}, "spec": spec}, **more}
    )


def job(name: str, namespace: str, *tasks: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """A Volcano Job that starts as a whole unless `minAvailable` says otherwise."""
    least = sum(one.get("minAvailable", one["replicas"]) for one in tasks)
    return manifests.job(name, tasks, namespace, **{"schedulerName": "volcano", "minAvailable": least, **spec})


def policy(action: str, *events: str, **more: Any) -> dict[str, Any]:
    """A policy."""
    return {"action": action, **({"events": list(events)} if events else {}), **more}


def command(action: str, target: Job, *, uid: str = "") -> dict[str, Any]:
    """A Command to a Job (`uid`: as if to another one of its name)."""
    return {
        "apiVersion": "bus.volcano.sh/v1alpha1",
        "kind": "Command",
        "metadata": {"generateName": f"{target.metadata.name}-", "namespace": target.metadata.namespace},
        "action": action,
        "target": {
            "apiVersion": JOBS.api_version,
            "kind": "Job",
            "name": target.metadata.name,
            "uid": uid or target.metadata.uid,
        },
    }


class Story(Watching):
    """Every status that the Jobs of a namespace had, and every pod that there was."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.client = client
        self.namespace = namespace
        self.statuses: dict[str, list[JobStatus]] = {}
        self.pods: dict[str, list[str]] = {}  # name → UIDs, in order
        self.ran: dict[str, set[str]] = {}  # the same, of those that had a node
        self._lock = threading.Lock()
        self._jobs = Reflector(client, JOBS, namespace=namespace)
        self._jobs.add_handler(self._job_changed)
        self._pods = Reflector(client, PODS, namespace=namespace)
        self._pods.add_handler(self._pod_changed)
        super().__init__(self._jobs, self._pods)

    def create(self, manifest: dict[str, Any]) -> Job:
        """Submits a Job."""
        return self.client.create(JOBS, manifest, self.namespace)

    def job(self, name: str) -> Job:
        """The Job as it is."""
        return self.client.get(JOBS, name, self.namespace)

    def phase(self, name: str) -> str:
        """Its phase, as the watch told last: so it goes with `phases`."""
        return next(iter(reversed(self.phases(name))), "")

    def gone(self, resource: Resource[Any], name: str) -> bool:
        """Whether there is no such object."""
        try:
            self.client.get(resource, name, self.namespace)
        except NotFound:
            return True
        return False

    def phases(self, name: str) -> list[str]:
        """The phases that it had, in order."""
        with self._lock:
            found = [status.state.phase for status in self.statuses.get(name, [])]
        return [phase for i, phase in enumerate(found) if i == 0 or phase != found[i - 1]]

    def most_terminating(self, name: str, phase: str) -> int:
        """The most pods that were shown as terminating in that phase."""
        with self._lock:
            return max((s.terminating for s in self.statuses.get(name, []) if s.state.phase == phase), default=0)

    def alive(self) -> list[Pod]:
        """The pods that are there and not on their way out."""
        return [pod for pod in self._pods.store.list() if not pod.metadata.deletion_timestamp]

    def events(self, reason: str) -> list[str]:
        """The messages of the events with this reason."""
        return [event.message for event in self.client.list(EVENTS, self.namespace) if event.reason == reason]

    def _job_changed(self, old: Job | None, new: Job | None) -> None:
        del old
        if new:
            with self._lock:
                self.statuses.setdefault(new.metadata.name, []).append(new.status)

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        pod = new or old
        assert pod is not None
        with self._lock:
            uids = self.pods.setdefault(pod.metadata.name, [])
            if pod.metadata.uid not in uids:
                uids.append(pod.metadata.uid)
            if pod.spec.node_name:
                self.ran.setdefault(pod.metadata.name, set()).add(pod.metadata.uid)


def make_claim(story: Story, name: str) -> None:
    """A claim, and the one volume that fits it, named as the namespace."""
    size = {"storage": "1Gi"}
    common = {"accessModes": ["ReadWriteOnce"], "storageClassName": story.namespace}
    volume = {
        "capacity": size,
        "hostPath": {"path": "/nowhere"},
        "claimRef": {"namespace": story.namespace, "name": name},
    }
    story.client.create(VOLUMES, {"metadata": {"name": story.namespace}, "spec": {**common, **volume}})
    claim = {"metadata": {"name": name}, "spec": {**common, "resources": {"requests": size}}}
    story.client.create(CLAIMS, claim, story.namespace)
