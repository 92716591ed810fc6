"""ProvisioningRequests: listed when their answer is needed, made of pods as they are, and taken back; conditions."""

from collections.abc import Iterator
from typing import Any

import pytest
from guarded_extender import Process
from victims_world import Cluster as VictimsWorld

from extender.planner.framework import decisions
from extender.scaling import CHECK_INTERVAL_S, GATED, LIST_TIMEOUT_S, POLL_S, Scaling
from muster.api import names
from muster.api.kubernetes.autoscaling import PROVISIONING_REQUESTS, ProvisioningRequest
from muster.api.kubernetes.core import PODS
from muster.api.muster.native import reference
from muster.api.muster.safetoevict import annotations_for
from muster.kube.errors import APIError, NotFound, ServerError

TEMPLATES = "/podtemplates"


@pytest.fixture
def process() -> Iterator[Process]:
    """The writers over a cluster in which a gang of two waits, its pods gated."""
    world = VictimsWorld(2)
    world.runs("low", 2)
    world.asks("high", 2)
    made = Process(world)
    yield made
    made.stop()


class Listed:
    """The API server as far as requests are listed, and the times of the lists."""

    def __init__(self, scaling: Scaling, world: VictimsWorld) -> None:
        self.scaling, self.now = scaling, 1_000.0
        self.found: list[ProvisioningRequest] | APIError = []
        self.world = world
        self.lists = 0
        scaling._client.list = self.list  # type: ignore[method-assign,assignment]

    def list(self, kind: Any, *, label_selector: str, timeout_s: float) -> list[ProvisioningRequest]:
        """As Client."""
        assert (kind, label_selector, timeout_s) == (
            PROVISIONING_REQUESTS,
            f"{names.MANAGED_BY}=muster",
            LIST_TIMEOUT_S,
        )
        self.lists += 1
        if isinstance(self.found, APIError):
            raise self.found
        return self.found

    def after(self, seconds: float) -> int:
        """How often they were listed, so many seconds later."""
        self.now += seconds
        self.scaling.refresh(self.now)
        return self.lists


def test_requests_are_listed_often_only_while_a_gang_needs_the_answer(process: Process) -> None:
    """Where the kind is not served there are none; without an answer those that are known stay."""
    scaling = process.committer.scaling
    listed, session = Listed(scaling, process.world), process.world.session()  # type: ignore[arg-type]
    assert scaling.served is None
    listed.found = NotFound("no such kind")
    assert [listed.after(0.0), listed.after(0.0)] == [1, 1]
    assert (scaling.requests, scaling.served) == ({}, False)
    owner = process.world.state.groups["ns/high"]
    known = ProvisioningRequest(metadata=process.world.meta("r-1", owner_references=[reference(owner)]))
    listed.found = [known]
    assert [listed.after(CHECK_INTERVAL_S - 0.1), listed.after(0.1)] == [1, 2]
    assert (scaling.requests, scaling.served) == ({owner.metadata.uid: known}, True)
    listed.found = ServerError("broken")
    assert [listed.after(POLL_S - 0.1), listed.after(0.1)] == [2, 3]
    assert (scaling.requests, scaling.served) == ({owner.metadata.uid: known}, True)
    listed.found = []
    assert listed.after(POLL_S) == 4
    assert [listed.after(POLL_S), scaling.requests] == [4, {}]
    session.provisioning_wanted = True
    scaling.follow(session)
    assert listed.after(0.0) == 5
    assert listed.after(-0.5) == 6


def test_a_request_is_made_of_the_pods_as_they_are_and_goes_with_its_templates(process: Process) -> None:
    """Without their node and their gates; each has the gang as its owner."""
    world = process.world
    gang = world.view("ns/high")
    pod = world.state.pod_objects[gang.pods[0].uid]
    process.api.change(PODS, pod.metadata.name, {"metadata": {"labels": {"app": "x"}}, "spec": {"nodeName": "n"}}, "ns")
    wanted = decisions.RequestNodes(gang, "r-1", 3, "best-effort", (("key", "value"),), (("worker", 2, gang.pods[0]),))
    create, bodies = process.api.create, []

    def created(kind: Any, body: Any, namespace: str) -> Any:
        bodies.append(body)
        return create(kind, body, namespace)

    process.api.create = created  # type: ignore[method-assign]
    process.committer.scaling.request(wanted)
    made = bodies[0]["template"]
    assert (made["metadata"], made["spec"]["schedulerName"]) == ({"labels": {"app": "x"}}, "muster")
    assert not {"nodeName", "schedulingGates"} & made["spec"].keys()
    [template] = process.api.objects[TEMPLATES].values()
    [request] = process.api.all(PROVISIONING_REQUESTS)
    for each in (template, request):
        assert (each.metadata.namespace, each.metadata.labels) == ("ns", {names.MANAGED_BY: "muster"})
        [owner] = each.metadata.owner_references
        assert (owner.name, owner.uid) == ("high", gang.uid)
    assert (template.metadata.name, request.metadata.name) == ("r-1-worker", "r-1")
    assert request.metadata.annotations == {names.SCALE_UP_ATTEMPT: "3"}
    assert (request.spec.provisioning_class_name, request.spec.parameters) == ("best-effort", {"key": "value"})
    assert [(each.pod_template_ref.name, each.count) for each in request.spec.pod_sets] == [("r-1-worker", 2)]
    assert process.committer.scaling.requests == {gang.uid: request}
    process.committer.scaling.withdraw(decisions.WithdrawRequest(gang, request, "it is here"))
    assert (process.done("delete"), process.committer.scaling.requests) == (["r-1", "r-1-worker"], {})


@pytest.mark.parametrize(("asks", "message", "said"), [
    (True, "no room", ("Unschedulable", f"{names.MESSAGE_PREFIX}no room")),
    (False, "no room", ("SchedulingGated", f"{names.MESSAGE_PREFIX}no room")),
    (False, "", ("SchedulingGated", GATED)),
])  # fmt: skip
def test_pods_say_what_autoscalers_read(process: Process, message: str, said: tuple[str, str], *, asks: bool) -> None:
    """Or what the API server has said of its gate."""
    gang = process.world.view("ns/high")
    process.committer.scaling.report(decisions.SetCondition(gang, gang.pods[0], asks=asks, message=message))
    written = process.api.find(PODS, gang.pods[0].name, "ns")
    [condition] = written.status.conditions
    assert process.world.state.pods[gang.pods[0].uid].resource_version == written.metadata.resource_version
    assert (condition.type, condition.status) == ("PodScheduled", "False")
    assert (condition.reason, condition.message) == said


@pytest.mark.parametrize("gone", [False, True])
def test_autoscalers_read_whether_they_may_evict_a_pod(process: Process, *, gone: bool) -> None:
    """In the annotations of each of them, and the state at once; of a pod that is gone nobody needs to."""
    pod = process.world.view("ns/low").pods[0]
    tell = decisions.AnnotateEviction(process.world.view("ns/low"), pod, "true")
    if gone:
        process.api.kind(PODS).pop(f"ns/{pod.name}")
    process.committer.scaling.report_eviction(tell)
    if not gone:
        written = process.api.find(PODS, pod.name, "ns").metadata
        said = {key: text for key, text in annotations_for("true").items() if text is not None}
        assert said.items() <= written.annotations.items()
        assert process.world.state.pods[pod.uid].resource_version == written.resource_version
