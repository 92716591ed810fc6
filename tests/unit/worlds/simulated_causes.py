"""Why the controller may act on a Job: whatever it does must follow from something that happened, and only once.

Something happened to a pod when it failed, succeeded, restarted a container, or went without the controller having
deleted it; and to a gang when it became Unknown. What the controller has been told of when it restarts a Job is dealt
with by that restart, and so is whatever the pods tell that the restart deletes. A controller that has just started may
look at all that is there once more.
"""

from typing import Any

from simulated_api import Api
from simulated_cluster import Cluster

from controller.job.rules.events import restarted
from muster.api.base import Resource
from muster.api.kubernetes.core import PODS, Pod
from muster.api.volcano.batch import JOBS, Job
from muster.api.volcano.scheduling import POD_GROUPS, PodGroup
from muster.kube.errors import NotFound

BY_ACTION = {"Restarting", "Aborting", "Terminating", "Completing"}
_NOTE = "muster.dev/command"


class Causes:
    """Watches one run; `wrong` lists what was done without a cause."""

    def __init__(self) -> None:
        self.wrong: list[str] = []
        self._cluster: Cluster | None = None
        self._fresh: dict[str, dict[str, tuple[str, int]]] = {}  # Job → pod or group → (kind, place in its log)
        self._ever: set[str] = set()  # Jobs to which something has happened

    def watch(self, cluster: Cluster) -> None:
        """Sees the deletions and the restarts of the controller, too."""
        self._cluster = cluster
        api, delete, restart = cluster.api, cluster.api.delete, cluster.restart

        def deleting(res: Resource[Any], name: str, namespace: str | None = None, **more: Any) -> None:
            restarts = res is PODS and self._restarts(api, more.get("uid"))
            before, gone = api.writes, False
            try:
                delete(res, name, namespace, **more)
            except NotFound:
                gone = True
                raise
            finally:
                if restarts and (gone or api.writes != before):
                    self._forget(str(more.get("uid")))

        def restarting() -> None:
            restart()
            for pod in api.all(PODS):
                if pod.finished or restarted(None, pod):
                    self._happened(pod.metadata.controller.uid, pod.metadata.uid, "pods")
            for group in api.all(POD_GROUPS):
                if group.status.phase == "Unknown":
                    self._happened(group.metadata.controller.uid, group.metadata.uid, "podgroups")

        cluster.api.delete = deleting  # type: ignore[method-assign]
        cluster.restart = restarting  # type: ignore[method-assign]

    def __call__(self, res: Resource[Any], old: Any, new: Any) -> None:
        """One change of the API server."""
        if self._cluster is None:
            return
        if res is PODS and old:
            self._pod(old, new)
        elif res is POD_GROUPS and new:
            self._group(old, new)
        elif res is JOBS and old and new:
            self._job(old, new)

    def _pod(self, old: Pod, new: Pod | None) -> None:
        ended = new is not None and new.finished and not old.finished
        evicted = new is None and bool(old.spec.node_name) and old.status.phase != "Succeeded"
        if old.metadata.controller and (ended or evicted or restarted(old, new)):
            self._happened(old.metadata.controller.uid, old.metadata.uid, "pods")

    def _group(self, old: PodGroup | None, new: PodGroup) -> None:
        if new.metadata.controller and new.status.phase == "Unknown" and not (old and old.status.phase == "Unknown"):
            self._happened(new.metadata.controller.uid, new.metadata.uid, "podgroups")

    def _happened(self, job: str, whom: str, kind: str) -> None:
        assert self._cluster
        resource = PODS if kind == "pods" else POD_GROUPS
        self._ever.add(job)
        self._fresh.setdefault(job, {})[whom] = (kind, len(self._cluster.api.changes(resource)) - 1)

    def _forget(self, pod: str) -> None:
        for fresh in self._fresh.values():
            fresh.pop(pod, None)

    def _job(self, old: Job, new: Job) -> None:
        before, after, uid = old.status, new.status, new.metadata.uid
        asked = after.controlled_resources.get(_NOTE, "") not in {"", before.controlled_resources.get(_NOTE, "")}
        policies = [*new.spec.policies, *(policy for task in new.spec.tasks for policy in task.policies)]
        if asked or any(policy.timeout for policy in policies):
            return
        entered = after.state.phase if after.state.phase != before.state.phase else ""
        what = f"{new.metadata.key}: {before.state.phase} → {after.state.phase} ({after.state.message})"
        if entered in BY_ACTION and uid not in self._ever:
            self.wrong.append(f"{what}, and nothing had happened")
        if after.retry_count > before.retry_count:
            if not self._fresh.get(uid):
                self.wrong.append(f"{what}: restart {after.retry_count}, and nothing had happened since the last one")
            self._dealt_with(uid)

    def _dealt_with(self, job: str) -> None:
        assert self._cluster
        fresh, told = self._fresh.get(job, {}), self._cluster.cursors
        self._fresh[job] = {whom: (kind, place) for whom, (kind, place) in fresh.items() if place >= told[kind]}

    def _restarts(self, api: Api, uid: str | None) -> bool:
        """Whether the deletion of this pod is part of a restart, and nobody else has begun it."""
        pod = next((pod for pod in api.all(PODS) if pod.metadata.uid == uid), None)
        owner = (
            pod.metadata.controller.uid if pod else next((job for job in self._fresh if uid in self._fresh[job]), "")
        )
        going = pod is not None and bool(pod.metadata.deletion_timestamp)
        phases = {job.metadata.uid: job.status.state.phase for job in api.all(JOBS)}
        return not going and phases.get(owner) == "Restarting"
