"""Nodes and pods that cannot be evaluated, and gangs with such pods: each is excluded alone.

An object with unexpected content must not harm any gang but its own. The state is then as if the object did not exist,
and its owner can read the reason.
"""

from extender.planner import reasons
from muster.api.kubernetes.core import Pod
from muster.workloads.table import gang_of


class Aside:
    """The reason why each of them is excluded, in sentences."""

    def __init__(self) -> None:
        self.nodes: dict[str, str] = {}
        """By name."""
        self.pods: dict[str, str] = {}
        """By UID."""
        self.gangs: dict[str, str] = {}
        """By key; of gangs that cannot be evaluated, with any pods."""
        self._gang_of: dict[str, str] = {}
        self._of_gang: dict[str, dict[str, str]] = {}

    def add_pod(self, pod: Pod, reason: str) -> str | None:
        """Set a pod aside; return the key of its gang, which cannot be evaluated without it."""
        meta = pod.metadata
        self.pods[meta.uid] = reasons.aside.pod(pod=meta.name, why=reason)
        gang = gang_of(pod)
        if gang is None:
            return None
        key = self._gang_of[meta.uid] = f"{meta.namespace}/{gang}"
        self._of_gang.setdefault(key, {})[meta.uid] = self.pods[meta.uid]
        return key

    def forget_pod(self, uid: str) -> str | None:
        """Drop a pod that is gone or is evaluated again; return the key of its gang."""
        if self.pods.pop(uid, None) is None:
            return None
        key = self._gang_of.pop(uid, None)
        if key is not None:
            del self._of_gang[key][uid]
            if not self._of_gang[key]:
                del self._of_gang[key]
        return key

    def of_gang(self, key: str) -> str:
        """Return the reason of the gang itself, else of the first of its pods that is excluded; empty if none is."""
        return self.gangs.get(key) or next(iter(self._of_gang.get(key, {}).values()), "")
