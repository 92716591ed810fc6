"""`muster cancel`, `hold`, `release`, `move`, `priority` and `resize` walk over workloads of every kind."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml
from planes import Muster
from verb_walks import NOWHERE, PLAIN, STATEFUL_SETS, WALKS, WORLD, replicas

from muster.api.kubernetes.core import PODS, PRIORITY_CLASSES
from muster.api.volcano.scheduling import POD_GROUPS
from muster.kube.client import Client
from muster.kube.errors import APIError

pytestmark = pytest.mark.plane
JSON = dict[str, Any]
WaitFor = Callable[..., Any]


class Workload:
    """A workload `w` on the plane, with the verbs on it."""

    def __init__(self, kind: str, client: Client, space: str, muster: Muster, queue: str) -> None:
        self.kind, self.walk, self._client, self._space, self._muster = kind, WALKS[kind], client, space, muster
        self._queue = queue

    def create(self, spec: JSON) -> None:
        """Make it, of pods with this in their spec."""
        made = self.walk.made(self._space, spec)
        metadata = {**made.get("metadata", {}), "name": "w", "labels": self.walk.labels or WORLD}
        self._client.create(self.walk.resource, {**made, "metadata": metadata}, self._space)

    def does(self, verb: str, *more: str) -> str:
        """Type a verb; it is refused, with what to do, where the kind does not have it."""
        value = {
            "move": ["--queue", self._queue],
            "priority": ["--class", f"{self._space}-high"],
            "resize": ["--size", "3"],
        }
        refused = verb in self.walk.refuses
        told = self._muster(verb, "w", *value.get(verb, []), *more, f"--namespace={self._space}", code=int(refused))
        assert told.startswith("Error: " if refused else self.kind), told
        assert self.kind in told
        return told

    @property
    def row(self) -> JSON:
        """It, in `muster ps`; empty without a gang."""
        found = json.loads(self._muster("ps", f"--namespace={self._space}", "-o", "json"))["gangs"]
        return next((each for each in found if each["name"] == "w"), {})

    @property
    def shown(self) -> tuple[str, str, str]:
        """Its state, queue and class."""
        row = self.row
        return row.get("state", ""), row.get("queue", ""), row.get("priorityClass", "")

    def pods(self) -> dict[str, str]:
        """Its pods that are not about to go, with their priority class."""
        living = [each for each in self._client.list(PODS, self._space) if not each.metadata.deletion_timestamp]
        return {each.metadata.uid: each.spec.priority_class_name for each in living}

    def worlds(self) -> set[str]:
        """The number of ranks that its pods know."""
        pods = [each for each in self._client.list(PODS, self._space) if not each.metadata.deletion_timestamp]
        env = [var for pod in pods for each in pod.spec.containers for var in each.env]
        return {str(var.value) for var in env if var.name == "PET_NNODES"}


@pytest.fixture
def high(client: Client, namespace: str) -> Iterator[str]:
    """A class with a higher priority than all others."""
    body = {"metadata": {"name": f"{namespace}-high"}, "value": 1000}
    yield client.create(PRIORITY_CLASSES, body).metadata.name
    client.delete(PRIORITY_CLASSES, f"{namespace}-high")


@pytest.fixture(params=WALKS)
def workload(
    request: pytest.FixtureRequest,
    client: Client,
    namespace: str,
    muster: Muster,
    make_queue: Callable[..., Any],
    high: str,
) -> Workload:
    """One of each kind, not made yet, with a queue to move it to and a class to raise it to."""
    assert high == f"{namespace}-high"
    queue = make_queue("other").metadata.name
    return Workload(request.param, client, namespace, muster, queue)


def has(workload: Workload, verb: str) -> bool:
    """Has the kind this verb?"""
    return verb not in workload.walk.refuses


def test_a_workload_that_waits(workload: Workload, namespace: str, wait_for: WaitFor) -> None:
    """It is raised, moved, resized, held, released and cancelled, as far as its kind can be."""
    workload.create(NOWHERE)
    wait_for(lambda: workload.shown[:2] == ("Waiting", "default"), what="it to wait")
    wait_for(workload.pods, what="its pods")
    workload.does("priority")
    if has(workload, "priority"):
        wait_for(lambda: workload.shown[2] == f"{namespace}-high", what="its class")
        wait_for(lambda: set(workload.pods().values()) == {f"{namespace}-high"}, what="the class of its pods")
    workload.does("resize")
    size = 3 if has(workload, "resize") else 1 if workload.kind == "pod" else 2
    wait_for(lambda: len(workload.pods()) == size, what="its pods")
    if workload.walk.labels is not PLAIN and workload.worlds():
        wait_for(lambda: workload.worlds() == {str(size)}, what="one number of ranks in all of them")
    workload.does("move")
    queue = f"{namespace}-other" if has(workload, "move") else "default"
    wait_for(lambda: workload.shown[:2] == ("Waiting", queue), what="its queue")
    if has(workload, "hold"):
        assert "muster release" in workload.does("hold")
        wait_for(lambda: not workload.pods(), what="its pods to go")
        wait_for(lambda: workload.row.get("state") == "Suspended", what="it to leave the queue")
        assert workload.row["reason"] == f"`muster release w -n {namespace}` starts it"
        assert "is held already" in workload.does("hold")
        workload.does("release")
        wait_for(lambda: workload.shown[:2] == ("Waiting", queue), what="it to wait again, where it was moved to")
        wait_for(lambda: len(workload.pods()) == size, what="its pods")
    workload.does("cancel")
    wait_for(lambda: not workload.row, what="it to be gone")


def test_a_workload_that_runs(workload: Workload, namespace: str, wait_for: WaitFor) -> None:
    """A move keeps its pods; held it has none, and released it runs as before."""
    workload.create({})
    size = 1 if workload.kind == "pod" else 2
    wait_for(lambda: (workload.row.get("state"), workload.row.get("running")) == ("Running", size), what="it to run")
    before = workload.pods()
    assert "(dry run)" in workload.does("move", "--dry-run") or not has(workload, "move")
    workload.does("move")
    queue = f"{namespace}-other" if has(workload, "move") else "default"
    wait_for(lambda: workload.shown[:2] == ("Running", queue), what="its queue")
    assert workload.pods() == before
    if has(workload, "hold"):
        workload.does("hold")
        wait_for(lambda: not workload.pods(), what="its pods to end")
        workload.does("release")
        wait_for(lambda: workload.shown[:2] == ("Running", queue), what="it to run again")
    if has(workload, "resize"):
        workload.does("resize")
        wait_for(lambda: workload.row.get("running") == 3, what="three pods to run")
        if workload.walk.labels is not PLAIN and workload.worlds():
            assert workload.worlds() == {"3"}
    workload.does("cancel")
    wait_for(lambda: not workload.pods(), what="its pods to be gone")


def test_a_pod_group_of_somebody_elses_pods(
    client: Client, namespace: str, muster: Muster, make_queue: Callable[..., Any], high: str, wait_for: WaitFor
) -> None:
    """It moves and is raised; what makes its pods does the rest. Several are chosen by their labels."""
    queue, space = make_queue("other").metadata.name, f"--namespace={namespace}"
    body = {"metadata": {"name": "g", "labels": {"sweep": "7"}}, "spec": {"minMember": 2, "queue": "default"}}
    client.create(POD_GROUPS, body, namespace)
    assert muster("move", "-l", "sweep=7", "--queue", queue, space).startswith(
        "podgroup.scheduling.volcano.sh/g is moved"
    )
    found = yaml.safe_load(muster("priority", "podgroup/g", f"--class={high}", "-o", "yaml", space))
    assert (found["spec"]["queue"], found["spec"]["priorityClassName"]) == (queue, high)
    for verb, *more in (("cancel",), ("hold",), ("release",), ("resize", "--size=3")):
        assert "other objects create its pods" in muster(verb, "g", *more, space, code=1)
    assert "no PriorityClass with name nosuch" in muster("priority", "g", "--class=nosuch", space, code=1)
    assert "unable to find job queue" in muster("move", "g", "--queue=nowhere", space, code=1)
    assert "there is no workload h in namespace" in muster("hold", "g", "h", space, code=1)
    client.delete(POD_GROUPS, "g", namespace)
    wait_for(lambda: not client.list(POD_GROUPS, namespace))


def test_edits_by_kubectl_are_answered(client: Client, namespace: str, wait_for: WaitFor, high: str) -> None:
    """The size of a world is refused, also as a scale; a class on a PodGroup that is not its user's, too."""
    made = replicas(namespace, NOWHERE)
    client.create(STATEFUL_SETS, {**made, "metadata": {"name": "w", "labels": WORLD}}, namespace)
    [group] = wait_for(lambda: client.list(POD_GROUPS, namespace), what="its PodGroup")
    wait_for(lambda: len(client.list(PODS, namespace)) == 2, what="its pods")
    for subresource in ("", "scale"):
        with pytest.raises(APIError, match=r"muster resize statefulset\.apps/w --size 3` stops them"):
            client.merge_patch(STATEFUL_SETS, "w", {"spec": {"replicas": 3}}, namespace, subresource=subresource)
    with pytest.raises(APIError, match=r"muster priority statefulset\.apps/w --class"):
        client.merge_patch(POD_GROUPS, group.metadata.name, {"spec": {"priorityClassName": high}}, namespace)
    client.merge_patch(STATEFUL_SETS, "w", {"spec": {"replicas": 0}}, namespace, subresource="scale")
