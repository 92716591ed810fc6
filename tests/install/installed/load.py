"""Submissions all the time, as many users would make them: what is refused meanwhile is counted."""

import json
import threading
import time
from collections.abc import Mapping
from itertools import count
from types import TracebackType
from typing import Any, Final, Self

from installed import images
from installed.cluster import Cluster

EVERY_S: Final = 1.0
_REAL: Final = 8
"""One submission of so many is kept and runs; the others are admitted like it (`--dry-run=server`) and cost no pods."""
_UNREACHED: Final = "failed calling webhook"
"""The API server's words where no replica has answered it."""
_SLOW_S: Final = 2.0
_DRY: Final = {True: "none", False: "server"}
_SAFE: Final = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
_POD: Final[Mapping[str, Any]] = {
    "spec": {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "securityContext": {"runAsNonRoot": True, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [
            {
                "name": "main",
                "image": images.BUSYBOX,
                "command": ["sleep", "1"],
                "securityContext": _SAFE,
                "resources": {"requests": {"cpu": "20m", "memory": "8Mi"}},
            }
        ],
    }
}


class Load:
    """A thread for each submission, as long as the `with` statement lasts; a gang of two and a labelled Job in turn.

    The workloads are called `name` and a number. A user submits up to `tries` times, a second apart, as long as no
    replica of the webhook answers.
    """

    def __init__(self, cluster: Cluster, namespace: str, name: str, tries: int = 1) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._name = name
        self._tries = tries
        self._end = threading.Event()
        self._lock = threading.Lock()
        self._submissions: list[threading.Thread] = []
        self._runner = threading.Thread(target=self._run)
        self.made = 0
        """What the API server took."""
        self.slow = 0
        """Of these, those that it took more than two seconds for."""
        self.again = 0
        """How many submissions were tries after the first."""
        self.refused: dict[int, str] = {}
        """Its words about what it did not take, by number."""

    @property
    def next(self) -> int:
        """The number of the next submission."""
        return len(self._submissions)

    def __enter__(self) -> Self:
        self._runner.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        self._runner.join()
        for each in self._submissions:
            each.join()

    def __str__(self) -> str:
        again = f"{self.again} tried again, " if self._tries > 1 else ""
        return f"{self.made} submissions, {again}{len(self.refused)} refused, {self.slow} slower than {_SLOW_S:.0f} s"

    def _run(self) -> None:
        for number in count():
            thread = threading.Thread(target=self._submit, args=(number,))
            self._submissions.append(thread)
            thread.start()
            if self._end.wait(EVERY_S):
                return

    def _submit(self, number: int) -> None:
        name, real = f"{self._name}-{number}", number // 2 % _REAL == 0  # both kinds in turn
        workload = _gang(name) if number % 2 else _job(name)
        start = time.monotonic()
        arguments = ["create", f"--namespace={self._namespace}", "--filename=-", f"--dry-run={_DRY[real]}"]
        done = self._cluster.plane.kubectl(*arguments, stdin=json.dumps(workload))
        tried = 1
        while _UNREACHED in done.stderr and tried < self._tries:
            self._end.wait(EVERY_S)
            done = self._cluster.plane.kubectl(*arguments, stdin=json.dumps(workload))
            tried += 1
        took = time.monotonic() - start
        with self._lock:
            self.again += tried - 1
            if done.returncode:
                self.refused[number] = f"{workload['metadata']['name']} after {took:.1f} s: {done.stderr.strip()}"
            else:
                self.made += 1
                self.slow += took > _SLOW_S


def _gang(name: str) -> dict[str, Any]:
    spec = {"minAvailable": 2, "tasks": [{"name": "task", "replicas": 2, "template": _POD}]}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


def _job(name: str) -> dict[str, Any]:
    spec = {"completionMode": "Indexed", "completions": 2, "parallelism": 2, "backoffLimit": 0, "template": _POD}
    metadata = {"name": name, "labels": {"muster.dev/queue": "default"}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}
