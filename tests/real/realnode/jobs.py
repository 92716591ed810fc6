"""The jobs of one test: submitted from manifests, watched, released."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from planes import Kubectl

from musterctl.app import main

JSON = dict[str, Any]
_MANIFESTS = Path(__file__).parents[1] / "manifests"
_ENDS = frozenset({"Complete", "Failed", "Completed", "Terminated", "Aborted"})
_START_S = 120.0
_END_S = 180.0
_RELEASE = "/tmp/go"  # noqa: S108 - in a container
"""What pods of the manifests wait for, where the test is to say when they end."""


class Jobs:
    """What is submitted to one namespace; `kind` is kubectl's name for a kind, `job` or `vcjob`."""

    def __init__(self, kubectl: Kubectl, kubeconfig: Path, namespace: str, wait_for: Callable[..., Any]) -> None:
        self._kubectl = kubectl
        self._kubeconfig = kubeconfig
        self._namespace = namespace
        self._wait_for = wait_for

    def submit(self, *manifests: str) -> None:
        """Creates what the manifests of these names hold."""
        for name in manifests:
            self._run("create", f"--filename={_MANIFESTS / name}.yaml")

    def status(self, kind: str, name: str) -> JSON:
        """The status of a job."""
        status: JSON = self._json("get", kind, name).get("status", {})
        return status

    def pods(self, job: str) -> list[JSON]:
        """The pods of a job that are not on their way out, by name."""
        found = (pod for pod in self._json("get", "pods")["items"] if pod["metadata"]["name"].startswith(f"{job}-"))
        return sorted(
            (pod for pod in found if "deletionTimestamp" not in pod["metadata"]),
            key=lambda pod: pod["metadata"]["name"],
        )

    def running(self, job: str, count: int, *, but: frozenset[str] = frozenset(), restarts: int = 0) -> list[JSON]:
        """The job's pods as soon as that many of them run, all together after so many restarts of containers.

        `but` are UIDs of pods that do not count.
        """

        def found() -> list[JSON]:
            pods = [pod for pod in self.pods(job) if pod["metadata"]["uid"] not in but and _runs(pod)]
            restarted = sum(container(pod)["restartCount"] for pod in pods)
            return pods if len(pods) == count and restarted >= restarts else []

        pods: list[JSON] = self._wait_for(found, timeout_s=_START_S, what=f"{count} pods of {job} run")
        return pods

    def release(self, job: str) -> None:
        """Lets the running pods of a job end."""
        for pod in self.pods(job):
            self._run("exec", pod["metadata"]["name"], "--", "touch", _RELEASE)

    def end(self, kind: str, name: str) -> str:
        """How the job ends: Complete or Failed, or the phase of a Volcano Job that has stopped."""

        def word() -> str:
            status = self.status(kind, name)
            told = {one["type"] for one in status.get("conditions", []) if one.get("status") == "True"}
            return next(iter(_ENDS & (told | {status.get("state", {}).get("phase", "")})), "")

        ended: str = self._wait_for(word, timeout_s=_END_S, what=f"{kind} {name} ends")
        return ended

    def log(self, pod: str) -> str:
        """What a pod said."""
        return self._run("logs", pod)

    def explain(self, job: str) -> str:
        """What `muster explain job` says; of a job that has no gang yet, that there is none."""
        where = [f"--namespace={self._namespace}", f"--kubeconfig={self._kubeconfig}"]
        return CliRunner().invoke(main, ["explain", "job", job, *where]).output

    def explained(self, job: str, word: str) -> str:
        """What `muster explain job` says as soon as that holds the word."""

        def told() -> str:
            text = self.explain(job)
            return text if word in text else ""

        text: str = self._wait_for(told, what=f"{word!r} in what explain says of {job}")
        return text

    def waits(self, job: str, reason: str) -> bool:
        """Whether a container of the job waits for that reason, as kubelet says."""
        told = (pod["status"].get("containerStatuses", []) for pod in self.pods(job))
        return any(one["state"].get("waiting", {}).get("reason") == reason for statuses in told for one in statuses)

    def _run(self, *arguments: str) -> str:
        return self._kubectl(f"--namespace={self._namespace}", *arguments)

    def _json(self, *arguments: str) -> Any:
        return self._kubectl.json(f"--namespace={self._namespace}", *arguments)


def container(pod: JSON) -> JSON:
    """The status of a pod's only container."""
    (one,) = pod["status"]["containerStatuses"]
    status: JSON = one
    return status


def _runs(pod: JSON) -> bool:
    return bool(pod["status"].get("containerStatuses")) and "running" in container(pod)["state"]
