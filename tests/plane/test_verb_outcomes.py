"""Each verb on each kind of workload in each state has the outcome of the table, as a dry run on a plane."""

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from gang_jobs import job
from planes import Muster, drop_workloads
from train_jobs import RUN, train_job
from verb_outcomes import CONDITIONS
from verb_walks import NOWHERE, WALKS, WORLD, contradictions, pods_with

from muster.api import names
from muster.api.kubernetes.core import PODS, PRIORITY_CLASSES
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS
from muster.kube.client import Client
from muster.workloads.verbs import Condition
from musterctl.plane.plane import Plane

pytestmark = [pytest.mark.plane, pytest.mark.alone, pytest.mark.slow]
JSON = dict[str, Any]
WaitFor = Callable[..., Any]
PATIENCE_S = 120.0
GROUP = "podgroup.scheduling.volcano.sh"
KINDS = (*WALKS, GROUP)
REPLICATED = ("statefulset.apps", "deployment.apps")
NEVER: dict[Condition, tuple[str, ...]] = {
    "waiting": (),
    "running": (),
    "evicted": ("pod",),  # it is gone
    "suspended": ("pod", GROUP),
    "ended": REPLICATED,
}
"""State -> the kinds that are never in it."""


class Scene(NamedTuple):
    """A workload of each kind in a namespace, and the verbs on them."""

    client: Client
    muster: Muster
    space: str
    queue: str

    def create(self, kinds: list[str], spec: JSON, notes: JSON) -> None:
        """Make them, of pods with this in their spec, and these annotations."""
        for kind in kinds:
            name = called(kind)
            if kind == GROUP:
                made = {"metadata": {"name": name}, "spec": {"minMember": 1, "queue": self.queue}}
                self.client.create(POD_GROUPS, made, self.space)
                member = {"name": "member", "annotations": {"scheduling.k8s.io/group-name": name, **notes}}
                pods = {"schedulerName": "muster", "restartPolicy": "Never", **pods_with(spec)["spec"]}
                self.client.create(PODS, {"metadata": member, "spec": pods}, self.space)
                continue
            walk = WALKS[kind]
            made = walk.made(self.space, spec)
            labels = {**(walk.labels or WORLD), names.QUEUE: self.queue}
            metadata: JSON = {**made.get("metadata", {}), "name": name, "labels": labels}
            if kind.startswith("trainjob") and notes:
                made = {"spec": train_job(name, nodes=2, run_s=float(notes[RUN]))["spec"]}
            elif kind == "pod":
                metadata["annotations"] = notes
                made["spec"]["restartPolicy"] = "Never"
            elif kind == "job.batch.volcano.sh":
                made["spec"]["queue"] = self.queue
                made["spec"]["tasks"][0]["template"].setdefault("metadata", {})["annotations"] = notes
            elif kind == "job.batch":
                made["spec"]["template"]["metadata"]["annotations"] = notes
            elif kind in REPLICATED:
                made["spec"]["selector"]["matchLabels"] = {"app": name}
                made["spec"]["template"]["metadata"]["labels"] = {"app": name}
            self.client.create(walk.resource, {**made, "metadata": metadata}, self.space)

    def states(self) -> dict[str, str]:
        """The state of each workload, by its name."""
        found = json.loads(self.muster("ps", "-a", f"--namespace={self.space}", "-o", "json"))["gangs"]
        return {each["name"]: each["state"] for each in found}

    def are(self, kinds: list[str], *states: str) -> bool:
        """Are all of these in one of the states?"""
        found = self.states()
        return all(found.get(called(kind)) in states for kind in kinds)


def called(kind: str) -> str:
    """The name of the workload of a kind."""
    return "w-" + kind.replace(".", "")[:12]


@pytest.fixture
def high(client: Client, namespace: str) -> Iterator[str]:
    """A class with a higher priority than all others."""
    body = {"metadata": {"name": f"{namespace}-high"}, "value": 1000}
    yield client.create(PRIORITY_CLASSES, body).metadata.name
    client.delete(PRIORITY_CLASSES, f"{namespace}-high")


@pytest.mark.parametrize("condition", CONDITIONS)
def test_each_verb_has_the_outcome_of_the_table(
    plane: Plane, client: Client, namespace: str, muster: Muster, make_queue: Callable[..., Any], high: str,
    wait_for: WaitFor, condition: Condition,
) -> None:  # fmt: skip
    """Of every kind that can be in this state; one command that is not refused names the workload."""
    kinds = [kind for kind in KINDS if kind not in NEVER[condition]]
    queue = make_queue("tight", capability={"pods": "20"}).metadata.name
    scene = Scene(client, muster, namespace, queue)
    scene.create(kinds, NOWHERE if condition == "waiting" else {}, {RUN: "0.1"} if condition == "ended" else {})
    first = {"waiting": "Waiting", "ended": "Completed"}.get(condition, "Running")
    wait_for(lambda: scene.are(kinds, first), PATIENCE_S, f"all to be {first}")
    if condition == "evicted":
        urgent = job("urgent", namespace, replicas=20, gpus=0)
        urgent["spec"] |= {"queue": queue, "priorityClassName": high}
        client.create(JOBS, urgent, namespace)
        wait_for(lambda: scene.are(kinds, "Waiting"), PATIENCE_S, lambda: f"all to be evicted: {scene.states()}")
    if condition == "suspended":
        muster("hold", *(f"{kind}/{called(kind)}" for kind in kinds), f"--namespace={namespace}")
        wait_for(lambda: scene.are(kinds, "Suspended"), PATIENCE_S, "all to be held")
    wrong = [each for kind in kinds for each in contradictions(muster, kind, called(kind), namespace, condition, high)]
    drop_workloads(plane, namespace)
    assert not wrong
