"""What cannot be evaluated is set aside alone: nodes, pods, and gangs because of their pods.

An object may hold what nobody foresaw. It must cost its owner his gang and nobody else anything: the state is then as
if the object were not there, all of it or nothing, and its owner can read the reason.
"""

from extender.planner import reasons
from muster.api.kubernetes.core import Pod
from muster.api.muster.gang import gang_of


class Aside:
    """Why each of them is set aside, in sentences."""

    def __init__(self) -> None:
        self.nodes: dict[str, str] = {}
        """By name."""
        self.pods: dict[str, str] = {}
        """By UID."""
        self._gang_of: dict[str, str] = {}
        self._of_gang: dict[str, dict[str, str]] = {}

    def add_pod(self, pod: Pod, reason: str) -> str | None:
        """Sets a pod aside; returns the key of its gang, which cannot be evaluated without it."""
        meta = pod.metadata
        self.pods[meta.uid] = reasons.aside.pod(pod=meta.name, why=reason)
        gang = gang_of(meta)
        if gang is None:
            return None
        key = self._gang_of[meta.uid] = f"{meta.namespace}/{gang}"
        self._of_gang.setdefault(key, {})[meta.uid] = self.pods[meta.uid]
        return key

    def forget_pod(self, uid: str) -> str | None:
        """Forgets a pod that is gone, or is looked at again; returns the key of the gang that it held up."""
        if self.pods.pop(uid, None) is None:
            return None
        key = self._gang_of.pop(uid, None)
        if key is not None:
            del self._of_gang[key][uid]
            if not self._of_gang[key]:
                del self._of_gang[key]
        return key

    def of_gang(self, key: str) -> str:
        """Why a gang is set aside because of its pods, as the first of them says; empty if it is not."""
        return next(iter(self._of_gang.get(key, {}).values()), "")
