"""The verbs on JobSets and LeaderWorkerSets, waiting, running and suspended; their controllers are played."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner
from gang_jobs import job as volcano_job
from job_sets import JOBSETS, install, make_jobs, tell
from planes import Muster, drop_queue
from verb_walks import contradictions

from muster.api import names
from muster.api.base import Resource
from muster.api.kubernetes.core import INDEXED_JOBS, PODS, PRIORITY_CLASSES
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import QUEUES
from muster.kube.client import Client
from muster.kube.errors import APIError
from muster.workloads.verbs import Condition
from musterctl.app import main
from musterctl.plane.plane import Plane

pytestmark = [pytest.mark.plane, pytest.mark.slow]
JSON = dict[str, Any]
WaitFor = Callable[..., Any]
SPACE = "default"
LWS = "leaderworkerset.sigs.k8s.io"
SETS: Resource[JSON] = Resource("leaderworkerset.x-k8s.io", "v1", "leaderworkersets", "LeaderWorkerSet", JSON)
STATEFUL_SETS: Resource[JSON] = Resource("apps", "v1", "statefulsets", "StatefulSet", JSON)
NOWHERE = {"nodeSelector": {"tests.muster.dev/no": "node"}}


def pods_with(spec: JSON, **more: Any) -> JSON:
    """A pod template."""
    return {
        "metadata": {"labels": {"app": "w"}},
        "spec": {"containers": [{"name": "main", "image": "none"}], **spec, **more},
    }


def job_set(spec: JSON) -> JSON:
    """One replicated job of two ranks."""
    job = {"parallelism": 2, "completions": 2, "template": pods_with(spec, restartPolicy="Never")}
    labels = {names.QUEUE: "default", names.FRAMEWORK: "torch"}
    replicated = [{"name": "node", "replicas": 1, "template": {"spec": job}}]
    return {"metadata": {"name": "w", "labels": labels}, "spec": {"suspend": False, "replicatedJobs": replicated}}


def worker_set(spec: JSON) -> JSON:
    """Two groups of one pod."""
    template = {"size": 1, "workerTemplate": pods_with(spec)}
    metadata = {"name": "w", "labels": {names.QUEUE: "default"}}
    return {"metadata": metadata, "spec": {"replicas": 2, "leaderWorkerTemplate": template}}


class Played:
    """What the controllers of both kinds do: Jobs of a JobSet that is not suspended, a StatefulSet of each group."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._play, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End it."""
        self._over.set()
        self._thread.join()

    def _play(self) -> None:
        while not self._over.wait(0.2):
            with suppress(APIError):  # what has just changed is seen the next time
                for each in self._client.list(JOBSETS, SPACE):
                    self._job_set(each)
                for each in self._client.list(SETS, SPACE):
                    self._worker_set(each)

    def _job_set(self, made: JSON) -> None:
        uid = made["metadata"]["uid"]
        own = [
            job
            for job in self._client.list(INDEXED_JOBS, SPACE)
            if (owner := job.metadata.controller) and owner.uid == uid
        ]
        if not own:
            make_jobs(self._client, made)
        for job in own:
            if job.spec.suspend != made["spec"]["suspend"]:
                patch = {"spec": {"suspend": made["spec"]["suspend"]}}
                self._client.merge_patch(INDEXED_JOBS, job.metadata.name, patch, SPACE)

    def _worker_set(self, made: JSON) -> None:
        meta, spec = made["metadata"], made["spec"]
        there = {each["metadata"]["name"]: each for each in self._client.list(STATEFUL_SETS, SPACE)}
        template = spec["leaderWorkerTemplate"]["workerTemplate"]
        marks = {f"{LWS}/name": meta["name"], f"{LWS}/group-index": "0"}
        pods = {**template, "metadata": {**template["metadata"], "labels": {**template["metadata"]["labels"], **marks}}}
        owner = {"apiVersion": SETS.api_version, "kind": SETS.kind, "name": meta["name"], "uid": meta["uid"]}
        wanted = {"replicas": spec["replicas"], "selector": {"matchLabels": {"app": "w"}}, "template": pods}
        metadata = {"name": meta["name"], "ownerReferences": [{**owner, "controller": True}]}
        if meta["name"] not in there:
            more = {"serviceName": "w", "podManagementPolicy": "Parallel"}
            self._client.create(STATEFUL_SETS, {"metadata": metadata, "spec": {**wanted, **more}}, SPACE)
        else:
            self._client.merge_patch(STATEFUL_SETS, meta["name"], {"spec": wanted}, SPACE)
            replicas = there[meta["name"]].get("status", {}).get("replicas", 0)
            self._client.merge_patch(
                SETS, meta["name"], {"status": {"replicas": replicas}}, SPACE, subresource="status"
            )


class Kind(NamedTuple):
    """A kind, its workload of two pods, and the verbs that it refuses."""

    resource: Resource[JSON]
    made: Callable[[JSON], JSON]
    refuses: frozenset[str] = frozenset()


KINDS = {
    "jobset.jobset.x-k8s.io": Kind(JOBSETS, job_set, frozenset({"resize", "priority"})),
    "leaderworkerset.leaderworkerset.x-k8s.io": Kind(SETS, worker_set),
}


class World(NamedTuple):
    """The plane, and a workload `w` on it."""

    client: Client
    muster: Muster
    kubeconfig: Path
    name: str

    @property
    def kind(self) -> Kind:
        """Its kind."""
        return KINDS[self.name]

    def does(self, verb: str, *, refused: bool = False) -> str:
        """Type a verb, which is done or refused."""
        value = {"move": ["--queue=other"], "priority": ["--class=high"], "resize": ["--size=3"]}
        refused = refused or verb in self.kind.refuses
        told = self.muster(verb, f"{self.name}/w", *value.get(verb, []), f"--namespace={SPACE}", code=int(refused))
        assert told.startswith("Error: " if refused else self.name), told
        return told

    def explained(self) -> str:
        """What `muster explain job` prints, on standard output and error."""
        arguments = ["explain", "job", "w", f"--namespace={SPACE}", f"--kubeconfig={self.kubeconfig}"]
        return CliRunner().invoke(main, arguments).output

    @property
    def rows(self) -> list[tuple[str, str]]:
        """State and queue of each of its gangs."""
        found = json.loads(self.muster("ps", f"--namespace={SPACE}", "-o", "json"))["gangs"]
        return [(each["state"], each["queue"]) for each in found]

    def pods(self) -> dict[str, str]:
        """Its pods that stay, with their class."""
        living = [each for each in self.client.list(PODS, SPACE) if not each.metadata.deletion_timestamp]
        return {each.metadata.uid: each.spec.priority_class_name for each in living}


@pytest.fixture(scope="module")
def plane(module_plane: Callable[..., Plane], wait_for: WaitFor) -> Iterator[Plane]:
    """A plane with both kinds, a second queue and a class."""
    made = module_plane()
    with closing(made.client()) as client:
        install(client, wait_for)
        install(client, wait_for, SETS)
        client.create(QUEUES, {"metadata": {"name": "other"}, "spec": {}})
        client.create(PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 1000})
        played = Played(client)
        yield made
        played.stop()


@pytest.fixture(params=KINDS)
def world(request: pytest.FixtureRequest, plane: Plane, wait_for: WaitFor) -> Iterator[World]:
    """A workload of each kind, which is cancelled at the end."""
    with closing(plane.client()) as client:
        one = World(client, Muster(plane.kubeconfig), plane.kubeconfig, request.param)
        yield one
        if one.rows:
            one.does("cancel")
        wait_for(lambda: not one.rows and not one.pods(), what="it to be gone")


def check(world: World, condition: Condition) -> None:
    """Compare the outcome of each verb with the table."""
    assert [*contradictions(world.muster, world.name, "w", SPACE, condition, "high")] == []


def all_are(world: World, state: str, queue: str, pods: int = 2) -> bool:
    """Are all of its gangs like this?"""
    return bool(world.rows) and {*world.rows} == {(state, queue)} and len(world.pods()) == pods


def test_waiting(world: World, wait_for: WaitFor) -> None:
    """It is raised, moved and resized as far as its kind can be."""
    world.client.create(world.kind.resource, world.kind.made(NOWHERE), SPACE)
    wait_for(lambda: all_are(world, "Waiting", "default"), what="it to wait")
    check(world, "waiting")
    world.does("priority")
    if "priority" not in world.kind.refuses:
        wait_for(lambda: list(world.pods().values()) == ["high", "high"], what="the class of its pods")
    world.does("move")
    wait_for(lambda: all_are(world, "Waiting", "other"), what="its queue")
    world.does("resize")
    size = 2 if "resize" in world.kind.refuses else 3
    wait_for(lambda: all_are(world, "Waiting", "other", size), what="its pods")
    assert "is not held" in world.does("release")


def test_running(world: World, wait_for: WaitFor) -> None:
    """A move keeps its pods; the class of running groups stays."""
    world.client.create(world.kind.resource, world.kind.made({}), SPACE)
    wait_for(lambda: all_are(world, "Running", "default"), what="it to run")
    check(world, "running")
    before = world.pods()
    world.does("move")
    wait_for(lambda: all_are(world, "Running", "other"), what="its queue")
    world.does("priority", refused=True)
    assert world.pods() == before
    world.does("resize")
    size = 2 if "resize" in world.kind.refuses else 3
    wait_for(lambda: all_are(world, "Running", "other", size), what="its pods")


def test_suspended(world: World, wait_for: WaitFor) -> None:
    """It has no pods; what is changed counts once it is released."""
    world.client.create(world.kind.resource, world.kind.made({}), SPACE)
    wait_for(lambda: all_are(world, "Running", "default"), what="it to run")
    assert "muster release" in world.does("hold")
    wait_for(lambda: not world.pods(), what="its pods to end")
    wait_for(lambda: world.rows == [("Suspended", "default")], what="its row")
    check(world, "suspended")
    assert "is held already" in world.does("hold")
    assert "once it is released" in world.does("move")
    assert world.rows == [("Suspended", "other")]
    assert f"it is suspended (held): `muster release w -n {SPACE}` starts it" in world.explained()
    assert ("once it is released" in world.does("priority")) == ("priority" not in world.kind.refuses)
    world.does("release")
    wait_for(lambda: all_are(world, "Running", "other"), what="it to run where it was moved to")


def test_evicted(world: World, wait_for: WaitFor) -> None:
    """It waits again, as a gang of a higher priority has its share of the queue."""
    world.client.create(QUEUES, {"metadata": {"name": "tight"}, "spec": {"capability": {"pods": "3"}}})
    made = world.kind.made({})
    made["metadata"]["labels"][names.QUEUE] = "tight"
    world.client.create(world.kind.resource, made, SPACE)
    wait_for(lambda: all_are(world, "Running", "tight"), what="it to run")
    urgent = volcano_job("urgent", SPACE, replicas=3, gpus=0)
    urgent["spec"] |= {"queue": "tight", "priorityClassName": "high"}
    world.client.create(JOBS, urgent, SPACE)
    try:
        wait_for(lambda: {*world.rows} == {("Waiting", "tight"), ("Running", "tight")}, what="it to be evicted")
        wait_for(lambda: len(world.pods()) == 5, what="its pods to come back")
        check(world, "evicted")
    finally:
        world.client.delete(JOBS, "urgent", SPACE)
        world.does("cancel")
        wait_for(lambda: not world.rows and not world.pods(), what="both to be gone")
        drop_queue(world.client, "tight")


def test_ended(plane: Plane, wait_for: WaitFor) -> None:
    """A JobSet that has completed can only be deleted; a LeaderWorkerSet has no end."""
    with closing(plane.client()) as client:
        world = World(client, Muster(plane.kubeconfig), plane.kubeconfig, "jobset.jobset.x-k8s.io")
        made = client.create(JOBSETS, job_set({}), SPACE)
        tell(client, made, counts={}, condition={"type": "Completed", "reason": "x", "message": "x"})
        check(world, "ended")
        world.does("cancel")
        wait_for(lambda: not world.rows and not world.pods(), what="it to be gone")


def test_a_job_set_without_a_framework(plane: Plane, wait_for: WaitFor) -> None:
    """Each of its Jobs is a gang, with the name of the JobSet, which verbs and `explain` take."""
    made = job_set({})
    del made["metadata"]["labels"][names.FRAMEWORK]
    made["spec"]["replicatedJobs"][0]["replicas"] = 2
    with closing(plane.client()) as client:
        world = World(client, Muster(plane.kubeconfig), plane.kubeconfig, "jobset.jobset.x-k8s.io")
        client.create(JOBSETS, made, SPACE)
        wait_for(lambda: all_are(world, "Running", "default", 4), what="it to run")
        shown = world.muster("ps", f"--namespace={SPACE}")
        assert "JobSet w (node-0)" in shown
        assert "JobSet w (node-1)" in shown
        assert world.explained().startswith(f"JobSet {SPACE}/w\nit runs")
        world.does("move")
        wait_for(lambda: all_are(world, "Running", "other", 4), what="its queue")
        world.does("hold")
        wait_for(lambda: world.rows == [("Suspended", "other")], what="its row")
        world.does("release")
        wait_for(lambda: all_are(world, "Running", "other", 4), what="it to run again")
        world.does("cancel")
        wait_for(lambda: not world.rows and not world.pods(), what="it to be gone")
