"""An upgrade and the way back, under load: the released CRDs, the current CRDs, and the released CRDs again."""

import threading
from collections.abc import Callable
from typing import Any, Self
from uuid import uuid4

import pytest
from gang_jobs import History, job, lone_pod, runs
from released import released_crds
from train_jobs import train_job

from muster.api import names
from muster.api.kubeflow.trainer import TRAIN_JOBS
from muster.api.kubernetes.core import NAMESPACES, PODS
from muster.api.kubernetes.extensions import DEFINITIONS
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import QUEUES
from muster.kube.client import Client
from muster.kube.errors import APIError, Invalid
from musterctl.chart.files import CRDS, document
from musterctl.plane.plane import Plane

pytestmark = [pytest.mark.plane, pytest.mark.long]
WaitFor = Callable[..., Any]
JSON = dict[str, Any]
STARTS_S = 120.0
BARRIER_S = 20.0
PAUSE_S = 0.5
GANG = 4
FURTHER = 12
"""Gangs that are submitted after each step."""


class Submitting:
    """A gang and a single pod twice a second; what is refused is remembered, and not tried again."""

    def __init__(self, client: Client, namespace: str, queue: str) -> None:
        self._client, self._namespace, self._queue = client, namespace, queue
        self.gangs: list[str] = []
        self.refused: list[str] = []
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join()

    def _run(self) -> None:
        number = 0
        while not self._ending.wait(PAUSE_S):
            number += 1
            gang = job(f"gang-{number}", self._namespace, replicas=GANG, gpus=1, run_s=2)
            gang["spec"]["queue"] = self._queue
            pod = lone_pod(f"pod-{number}", self._namespace, names.SCHEDULER)
            pod["metadata"] |= {
                "labels": {names.QUEUE: self._queue},
                "annotations": {"kwok.muster.dev/run-seconds": "1"},
            }
            pod["spec"]["restartPolicy"] = "Never"
            for resource, manifest in ((JOBS, gang), (PODS, pod)):
                try:
                    self._client.create(resource, manifest, self._namespace)  # type: ignore[type-var]
                except APIError as error:
                    self.refused.append(f"{manifest['metadata']['name']}: {error}")
                    continue
                if resource is JOBS:
                    self.gangs.append(gang["metadata"]["name"])


class Upgraded:
    """A namespace with a queue, a gang and a TrainJob that run, and submissions all the time."""

    def __init__(self, plane: Plane, wait_for: WaitFor) -> None:
        self.client, self.wait_for = plane.client(), wait_for
        self.namespace = self.queue = f"upgrade-{uuid4().hex[:8]}"
        self.client.create(NAMESPACES, {"metadata": {"name": self.namespace}})
        self.client.create(QUEUES, {"metadata": {"name": self.queue}, "spec": {"weight": 3, "reclaimable": False}})
        steady = job("steady", self.namespace, replicas=GANG, gpus=1)
        steady["spec"]["queue"] = self.queue
        wait_for(lambda: self.client.get(QUEUES, self.queue).status.state == "Open", 60, "the queue")
        self.client.create(JOBS, steady, self.namespace)
        self.client.create(TRAIN_JOBS, train_job("train", nodes=2), self.namespace)
        wait_for(lambda: runs(self.client, self.namespace, "steady", GANG), STARTS_S, "a gang")
        wait_for(lambda: len(self._running()) == GANG + 2, STARTS_S, "the TrainJob")
        self.submitting = Submitting(plane.client(), self.namespace, self.queue)
        self._before = self._kept()

    def _running(self) -> dict[str, str]:
        """The pods that run for as long as nobody ends them."""
        pods = self.client.list(PODS, self.namespace)
        lasting = [pod for pod in pods if pod.metadata.name.startswith(("steady-", "train-"))]
        return {pod.metadata.name: pod.metadata.uid for pod in lasting if pod.status.phase == "Running"}

    def _kept(self) -> object:
        """What no step may change."""
        return (
            self._running(),
            self.client.get(QUEUES, self.queue).spec,
            self.client.get(JOBS, "steady", self.namespace).spec,
            self.client.get(TRAIN_JOBS, "train", self.namespace).spec,
        )

    def further(self) -> None:
        """Gangs that are submitted from now on, and end."""
        known = len(self.submitting.gangs)
        self.wait_for(
            lambda: len(self.submitting.gangs) > known + FURTHER, STARTS_S, lambda: f"{self.submitting.refused}"
        )
        for name in self.submitting.gangs[known : known + FURTHER]:
            self.wait_for(lambda name=name: self._completed(name), STARTS_S, f"the end of {name}")

    def _completed(self, name: str) -> bool:
        return self.client.get(JOBS, name, self.namespace).status.state.phase == "Completed"

    def check(self, history: History) -> None:
        """Nothing was refused, nothing was half bound, and what ran runs."""
        assert self.submitting.refused == []
        for name in self.submitting.gangs:
            self.wait_for(lambda name=name: self._completed(name), STARTS_S, f"the end of {name}")
            assert history.half_placed_s(f"{name}-", GANG) < BARRIER_S, history.told(f"{name}-")
        assert all(len(life.nodes) <= 1 for life in history.pods.values())
        assert self._kept() == self._before


@pytest.fixture
def released(fresh_plane: Callable[..., Plane]) -> Plane:
    """A plane with the CRDs of the last release."""
    plane = fresh_plane(nodes=16)
    replace_crds(plane.client(), released_crds())
    return plane


def current() -> list[JSON]:
    """The CRDs of this version."""
    return [document(path) for path in sorted(CRDS.glob("*.yaml"))]


def following() -> list[JSON]:
    """The CRDs as the next release has them: kinds with a newer version are stored in it, and the older one warns."""
    found = current()
    for crd in found:
        *older, newest = crd["spec"]["versions"]
        for each in older:
            each |= {"storage": False, "deprecated": True}
        newest["storage"] = True
    return found


def replace_crds(client: Client, definitions: list[dict[str, Any]]) -> None:
    """All of them, one after another, and until the API server has taken each."""
    for each in definitions:
        name = each["metadata"]["name"]
        client.merge_patch(DEFINITIONS, name, {"spec": {"versions": each["spec"]["versions"]}}, timeout_s=STARTS_S)


def test_crds_of_this_release_and_the_way_back(released: Plane, wait_for: WaitFor) -> None:
    """Objects of the last release run on while its CRDs are replaced by this one's, and again when these go."""
    upgraded = Upgraded(released, wait_for)
    with History(released.client(), upgraded.namespace) as history:
        with upgraded.submitting:
            upgraded.further()
            for definitions in (current(), released_crds()):
                replace_crds(upgraded.client, definitions)
                upgraded.further()
        upgraded.check(history)


def test_a_version_that_is_stored_cannot_go(fresh_plane: Callable[..., Plane]) -> None:
    """Which is why no release stores a version that the one before does not serve."""
    client = fresh_plane(nodes=1).client()
    replace_crds(client, following())
    with pytest.raises(Invalid, match="v1beta1"):
        replace_crds(client, released_crds())
