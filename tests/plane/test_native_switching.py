"""The gates of Kubernetes' own gangs are switched off and on again while gangs of each kind run and wait."""

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from gang_jobs import RECOVERY_S, History, job
from making import SERVES_NATIVE_GROUPS
from native_gates import ARGUMENTS
from native_groups import Scene, scheduled_job

from muster.api import names
from muster.api.kubernetes.core import INDEXED_JOBS, NAMESPACES, PODS, Pod
from muster.api.kubernetes.scheduling import INITIALLY_SCHEDULED, NATIVE_POD_GROUPS
from muster.api.muster.native import PHASE
from muster.api.volcano.batch import JOBS
from muster.kube.errors import NotFound
from muster.workloads.table import gang_of
from musterctl.plane.plane import Plane
from musterctl.plane.state import API_SERVER, CONTROLLER_MANAGER, SCHEDULER

pytestmark = [
    pytest.mark.plane,
    pytest.mark.long,
    pytest.mark.skipif(not SERVES_NATIVE_GROUPS, reason="this Kubernetes has no scheduling.k8s.io/v1beta1"),
]
WaitFor = Callable[..., Any]
GANG: dict[str, Any] = {"schedulingPolicy": {"gang": {}}}
GATED = (API_SERVER, CONTROLLER_MANAGER, SCHEDULER)
"""The parts with the gates, each of which needs those before it."""
Lives = dict[str, tuple[str, str]]
"""Pods by name: their UIDs and nodes."""


@pytest.fixture
def scene(fresh_plane: Callable[..., Plane], wait_for: WaitFor) -> Scene:
    """A namespace on a plane of its own, of 8 nodes, with all gates."""
    plane, name = fresh_plane(arguments=ARGUMENTS), f"test-{uuid.uuid4().hex[:8]}"
    client = plane.client()
    client.create(NAMESPACES, {"metadata": {"name": name}})
    return Scene(plane, client, name, wait_for)


def switch(plane: Plane, *, on: bool) -> None:
    """Starts the parts of the cluster anew, with the gates or without."""
    for part in GATED if on else reversed(GATED):
        kept = [each for each in plane.arguments.get(part, ()) if each not in ARGUMENTS[part]]
        plane.arguments[part] = [*kept, *(ARGUMENTS[part] if on else ())]
        plane.restart(part)
    plane.start()


def lives(scene: Scene) -> Lives:
    """The pods that are on a node."""
    return {pod.metadata.name: (pod.metadata.uid, pod.spec.node_name) for pod in scene.bound()}


def of_job(scene: Scene, name: str) -> list[Pod]:
    """The pods of a batch Job."""
    return [pod for pod in scene.pods() if pod.metadata.labels.get(names.BATCH_JOB_NAME) == name]


def placed(scene: Scene, gang: str) -> int:
    """The number of pods on nodes whose names begin with that of their gang."""
    return sum(name.startswith(f"{gang}-") for name in lives(scene))


def explained(scene: Scene, *what: str) -> str:
    """What `muster explain` says, in one line."""
    return " ".join(scene.muster("explain", *what).split())


def fill(scene: Scene) -> Lives:
    """Starts a gang of each kind, each on two of the nodes, and lets two more wait that are native."""
    scene.job("theirs", 2, GANG)
    scene.group("bare", 2)
    scene.members("bare", range(2))
    scene.client.create(INDEXED_JOBS, scheduled_job("ours", 2, None, min_member="2"), scene.namespace)
    scene.client.create(JOBS, job("volcano", scene.namespace, replicas=2), scene.namespace)
    scene.starts(8)
    scene.job("later", 2, GANG)
    scene.group("late", 2)
    scene.members("late", range(2))
    scene.wait_for(lambda: len(scene.pods()) == 12, 30, "the pods that wait")
    scene.wait_for(lambda: scene.says("late", INITIALLY_SCHEDULED)[0] == "False", 30, "the group to wait")
    scene.wait_for(lambda: scene.says("bare", PHASE)[1] == "Running", 30, "the other one to run")
    return lives(scene)


def test_gangs_outlive_the_gates(scene: Scene) -> None:
    """None that runs is evicted, moved or bound again; one that waits says why, and starts once the gates are back."""
    before = fill(scene)
    with History(scene.client, scene.namespace) as history:
        switch(scene.plane, on=False)
        with pytest.raises(NotFound):
            scene.client.list(NATIVE_POD_GROUPS, scene.namespace)
        assert "GenericWorkload" in explained(scene, "pod", "late-0")
        scene.client.create(JOBS, job("meanwhile", scene.namespace, replicas=2, gpus=0), scene.namespace)
        scene.starts(10)
        assert before.items() <= lives(scene).items()

        lost = of_job(scene, "theirs")[0]
        gang = gang_of(lost)
        scene.client.delete(PODS, lost.metadata.name, scene.namespace, uid=lost.metadata.uid)

        def anew() -> Pod | None:
            """The pod that the Job controller has made in its place, in the gang of the other one."""
            known = {uid for uid, _ in before.values()}
            return next((pod for pod in of_job(scene, "theirs") if pod.metadata.uid not in known), None)

        scene.wait_for(lambda: (pod := anew()) and gang_of(pod) == gang, RECOVERY_S, "the lost pod in its gang again")
        new = anew()
        assert new
        assert new.spec.scheduling_group is None
        assert not new.spec.node_name

        switch(scene.plane, on=True)
        scene.wait_for(lambda: (pod := anew()) and pod.spec.node_name, 2 * RECOVERY_S, "the lost pod to have a node")
        kept = {name: life for name, life in before.items() if name != lost.metadata.name}
        assert kept.items() <= lives(scene).items()
        assert scene.placement("bare") is not None
        scene.wait_for(lambda: scene.says("bare", PHASE)[1] == "Running", 30, "what runs to be known to run")
        published = f"{names.MANAGED_BY}={names.MANAGER}"
        scene.wait_for(
            lambda: len(scene.client.list(NATIVE_POD_GROUPS, scene.namespace, label_selector=published)) == 3,
            RECOVERY_S,
            "the gang that came meanwhile to be published",
        )

        scene.client.delete(JOBS, "volcano", scene.namespace)
        scene.client.delete(INDEXED_JOBS, "ours", scene.namespace, propagation="Background")
        scene.wait_for(lambda: placed(scene, "late") == placed(scene, "later") == 2, 2 * RECOVERY_S, "the gangs")
        assert all(len(life.nodes) <= 1 for life in history.pods.values())
        running = {uid for name, (uid, _) in kept.items() if not name.startswith(("ours", "volcano"))}
        assert running <= {pod.metadata.uid for pod in scene.bound()}
