"""Exclusion of nodes and pods that cannot be evaluated, and of gangs with such pods.

An object with unexpected content must not harm other gangs. The state treats an excluded object as if it did not exist;
the object's owner can read the reason.
"""

from extender.planner import reasons
from muster.api.kubernetes.core import Pod
from muster.workloads.table import gang_of


class Exclusions:
    """The excluded nodes, pods and gangs, with the reasons as sentences."""

    def __init__(self) -> None:
        self.nodes: dict[str, str] = {}
        """Maps the name of a node to the reason of its exclusion."""
        self.pods: dict[str, str] = {}
        """Maps the UID of a pod to the reason of its exclusion."""
        self.gangs: dict[str, str] = {}
        """Maps a gang to why it is excluded, for gangs that cannot be evaluated although all pods can."""
        self._gang_of: dict[str, str] = {}
        self._of_gang: dict[str, dict[str, str]] = {}

    def add_pod(self, pod: Pod, reason: str) -> str | None:
        """Exclude a pod; return the key of the pod's gang, which cannot be evaluated without the pod."""
        meta = pod.metadata
        self.pods[meta.uid] = reasons.exclusions.pod(pod=meta.name, why=reason)
        gang = gang_of(pod)
        if gang is None:
            return None
        key = self._gang_of[meta.uid] = f"{meta.namespace}/{gang}"
        self._of_gang.setdefault(key, {})[meta.uid] = self.pods[meta.uid]
        return key

    def forget_pod(self, uid: str) -> str | None:
        """Forget a pod that is gone or can be evaluated again; return the key of the pod's gang."""
        if self.pods.pop(uid, None) is None:
            return None
        key = self._gang_of.pop(uid, None)
        if key is not None:
            del self._of_gang[key][uid]
            if not self._of_gang[key]:
                del self._of_gang[key]
        return key

    def of_gang(self, key: str) -> str:
        """Return why the gang or its first excluded pod is excluded; empty for other gangs."""
        return self.gangs.get(key) or next(iter(self._of_gang.get(key, {}).values()), "")
