"""What users submit: the manifests of this folder, and how they end."""

from pathlib import Path
from typing import Any, Final

from installed.cluster import Cluster

MANIFESTS: Final = Path(__file__).parents[1] / "manifests"
"""What can be submitted, by name."""
_ENDS: Final = frozenset({"Complete", "Failed", "Completed", "Terminated", "Aborted"})
_END_S: Final = 120.0


class SubmitError(Exception):
    """The cluster did not take what was submitted; the message is kubectl's."""


class Work:
    """Workloads in one namespace, which is made now; `level` is the Pod Security level that it enforces."""

    def __init__(self, cluster: Cluster, namespace: str, level: str = "restricted") -> None:
        self.namespace = namespace
        self._cluster = cluster
        self._kubectl("create", "namespace", namespace)
        self._kubectl("label", "namespace", namespace, f"pod-security.kubernetes.io/enforce={level}")

    def submit(self, *manifests: str) -> None:
        """Creates what the manifests of these names hold."""
        for name in manifests:
            self._kubectl("create", f"--namespace={self.namespace}", f"--filename={MANIFESTS / name}.yaml")

    def end(self, kind: str, name: str) -> str:
        """How a workload ends: Complete or Failed, or the phase of a Volcano Job that has stopped."""
        self._cluster.wait(f"{kind} {name} ends", lambda: bool(self._word(kind, name)), _END_S)
        return self._word(kind, name)

    def ends(self, kind: str) -> dict[str, str]:
        """How each workload of a kind has ended so far; empty for one that has not."""
        names = (each["metadata"]["name"] for each in self._cluster.objects(kind, self.namespace))
        return {name: self._word(kind, name) for name in names}

    def log(self, pod: str) -> str:
        """What a pod said."""
        return self._kubectl("logs", f"--namespace={self.namespace}", pod)

    def pods(self, prefix: str = "") -> list[dict[str, Any]]:
        """The pods whose names begin so."""
        found = self._cluster.objects("pods", self.namespace)
        return [pod for pod in found if pod["metadata"]["name"].startswith(prefix)]

    def remove(self) -> None:
        """Deletes the namespace, and does not wait for its end."""
        self._kubectl("delete", "namespace", self.namespace, "--wait=false")

    def _word(self, kind: str, name: str) -> str:
        found = (each for each in self._cluster.objects(kind, self.namespace) if each["metadata"]["name"] == name)
        status: dict[str, Any] = next(found, {}).get("status", {})
        told = {each["type"] for each in status.get("conditions", ()) if each.get("status") == "True"}
        return next(iter(_ENDS & (told | {status.get("state", {}).get("phase", "")})), "")

    def _kubectl(self, *arguments: str) -> str:
        done = self._cluster.plane.kubectl(*arguments)
        if done.returncode:
            raise SubmitError(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout
