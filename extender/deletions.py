"""Deletes single pods that a cycle wants gone: members that lost their gang, and pods that must be made anew."""

from collections.abc import Callable

import structlog

from extender.evictions import EVICT_AGAIN_S
from extender.live import Live
from extender.planner.framework import decisions
from extender.planner.state.podrecord import PodRecord
from muster.api import names
from muster.api.kubernetes.core import PODS, Pod
from muster.kube.client import Client
from muster.kube.errors import Conflict, NotFound
from muster.kube.events import Recorder

log = structlog.get_logger()


class Deletions:
    """Carries Evict out; `wall_s` is seconds since the epoch."""

    def __init__(self, client: Client, cluster: Live, recorder: Recorder, *, wall_s: Callable[[], float]) -> None:
        self._client = client
        self._cluster = cluster
        self._recorder = recorder
        self._wall_s = wall_s
        self._asked: dict[str, float] = {}
        """UID of a pod that was deleted → until when it is not deleted again."""

    def forget_old(self) -> None:
        """Whoever was told long ago is told again."""
        now = self._wall_s()
        self._asked = {uid: until for uid, until in self._asked.items() if until > now}

    def delete(self, evict: decisions.Evict) -> None:
        """Deletes the pod, as it was seen; nothing if it has changed since: the next cycle decides so again."""
        pod = evict.pod
        if self._asked.get(pod.uid, 0.0) > self._wall_s():
            return
        self._asked[pod.uid] = self._wall_s() + EVICT_AGAIN_S
        try:
            deleted = self._delete_started(pod) if evict.started else self._delete_unbound(pod)
        except NotFound:
            return
        if not deleted:
            log.info("not evicted yet, as it has just changed", pod=f"{pod.namespace}/{pod.name}", uid=pod.uid)
            return
        log.info("evicted", pod=f"{pod.namespace}/{pod.name}", uid=pod.uid, reason=evict.reason, started=evict.started)
        if evict.started:
            self._recorder.event(evict.gang.group, "Normal", "Evict", f"{pod.name}: {evict.reason}")

    def _delete_started(self, pod: PodRecord) -> bool:
        """Deletes a pod that uses a node; False if it uses none any more: what has ended counts for its owner."""
        latest = self._cluster.ask(lambda state: state.pods.get(pod.uid))
        if latest is None or not latest.uses_node:
            return False
        try:
            version = latest.resource_version
            self._client.delete(PODS, pod.name, pod.namespace, uid=pod.uid, resource_version=version)
        except Conflict:
            self._asked.pop(pod.uid, None)
            return False
        return True

    def _delete_unbound(self, pod: PodRecord) -> bool:
        """Deletes a pod that has no node, at once; False if a bind call that was under way has given it one.

        Without grace a pod is gone before its kubelet has ended it, so that it would run beside its successor. Hence
        it is deleted only as it was when it was seen without a node.
        """
        seen = self._mark(pod, "true")  # it never ran, so no policy of its owner may see an eviction
        if not seen.spec.node_name:
            try:
                version = seen.metadata.resource_version
                self._client.delete(
                    PODS, pod.name, pod.namespace, uid=pod.uid, resource_version=version, grace_period_s=0
                )
            except Conflict:
                log.debug("the pod has changed meanwhile", pod=f"{pod.namespace}/{pod.name}", uid=pod.uid)
            else:
                return True
        unmarked = self._mark(pod, None)
        self._cluster.ask(lambda state: state.on_pod_written(unmarked))
        return False

    def _mark(self, pod: PodRecord, value: str | None) -> Pod:
        mark = {"metadata": {"uid": pod.uid, "annotations": {names.OUT_OF_SYNC: value}}}
        return self._client.merge_patch(PODS, pod.name, mark, pod.namespace)
