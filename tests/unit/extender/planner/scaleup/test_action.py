"""Which gangs ask for nodes, and what speaks against it."""

from collections.abc import Mapping
from math import inf
from typing import Any

import pytest
from extender_world import World, of, request_of

from extender.planner.actions.allocate import Allocate
from extender.planner.actions.enqueue import Enqueue
from extender.planner.cycle import run_cycle
from extender.planner.framework.answers import QueueRefusal
from extender.planner.framework.decisions import AdmitGang as LetIn
from extender.planner.framework.decisions import RequestNodes, SetCondition, Unschedulable, WithdrawRequest
from extender.planner.framework.inputs import CycleInputs
from extender.planner.framework.registry import PlainPlugin
from extender.planner.framework.session import Session
from extender.planner.framework.snapshot import take_snapshot
from extender.planner.reasons.scaleup import IN_VAIN, KIND_MISSING, NODES_EXIST
from extender.planner.scaleup.action import MOST_CHECKED, AskForNodes
from extender.planner.scaleup.podwrites import SETTLE_S
from extender.planner.scaleup.requests import BACK_OFF_S
from muster.api.kubernetes.autoscaling import ProvisioningRequest
from muster.api.kubernetes.core import Node
from muster.api.kubernetes.meta import ObjectMeta, ReportedCondition, format_time
from muster.api.muster.placement import (
    NodeRun,
    Notice,
    Placement,
    PlacementSpec,
    PlacementStatus,
    PodSetPlacement,
    Victim,
)
from muster.api.names import SCALE_UP, SCALE_UP_ATTEMPT, SCALE_UP_TIMEOUT
from muster.api.volcano.scheduling import NO_ROOM, Queue, QueueSpec

GPUS = "nvidia.com/gpu"
GPU = {GPUS: 8}
CONDITION = {SCALE_UP: "condition"}
REQUEST = {SCALE_UP: "provisioning-request"}


class Cluster:
    """One node of 8 GPUs, a queue `auto`, and the planner's cycle with this action at its end."""

    def __init__(self, notes: Mapping[str, str], *, served: bool | None = True, **spec: Any) -> None:
        self.world = World(checked=False)
        self.world.node("node-0")
        self.action = AskForNodes()
        self.allocate = Allocate()
        self.requests: dict[str, ProvisioningRequest] = {}
        self.served = served
        self.avoided: dict[str, dict[str, float]] = {}
        self.queue(notes, **spec)

    def queue(self, notes: Mapping[str, str], **spec: Any) -> None:
        """The queue as it is from now on."""
        meta = self.world.meta("auto", namespace="", annotations=dict(notes))
        self.world.state.on_queue(None, Queue(metadata=meta, spec=QueueSpec(**spec)))

    def gang(self, name: str, pods: int, *, created: bool = True, **more: Any) -> str:
        """A gang whose pods need a node each; gated, unless they are not created yet."""
        key = self.world.gang(name, {"w": (pods, GPU)}, queue="auto", **more)
        self.world.members(key, pods if created else 0, GPU, task="w", gated=True)
        return key

    def node_is_gone(self, name: str) -> None:
        """An autoscaler has taken it away."""
        self.world.state.on_node(Node(metadata=self.world.meta(name, namespace="")), None)

    def cycle(self, after_s: float = SETTLE_S) -> Session:
        """What is decided when so much time has passed."""
        self._cycle()
        self.world.now += after_s
        return self._cycle()

    def _cycle(self) -> Session:
        inputs = CycleInputs(snapshot=take_snapshot(self.world.state), now=self.world.now, causes=self.world.causes,
                             provisioning=self.requests, provisioning_served=self.served,
                             avoided=self.avoided)  # fmt: skip
        return run_cycle(inputs, [self.world.progress, Enqueue(), self.allocate, self.action], self.world.plugins)

    def answered(self, wanted: RequestNodes, **conditions: str) -> ProvisioningRequest:
        """The request as if it had been made, with these conditions."""
        now = format_time(self.world.now)
        said = [ReportedCondition(kind, status, last_transition_time=now) for kind, status in conditions.items()]
        attempt = {SCALE_UP_ATTEMPT: str(wanted.attempt)}
        meta = ObjectMeta(name=wanted.name, uid=wanted.name, creation_timestamp=now, annotations=attempt)
        request = request_of(meta, wanted.provisioning_class, said)
        self.requests = {wanted.gang.uid: request}
        return request


def asking(session: Session) -> list[str]:
    """The pods that are told to ask."""
    return [say.pod.name for say in of(session, SetCondition) if say.asks]


def sentence(session: Session, key: str) -> Unschedulable:
    """What is said of a gang that waits."""
    return [each for each in of(session, Unschedulable) if each.gang.key == key][-1]


def test_the_first_gang_of_the_queue_asks_and_the_next_one_does_not() -> None:
    """One after the other: each may get what the one before it leaves."""
    cluster = Cluster(CONDITION)
    cluster.gang("first", 2)
    cluster.gang("second", 2)
    assert asking(cluster.cycle()) == ["first-w-0", "first-w-1"]


def test_a_gang_that_asks_in_vain_rests_ever_longer_while_the_next_one_has_its_turn() -> None:
    """It asks for the time of its queue; nobody loses his turn to it for ever."""
    cluster = Cluster({**CONDITION, SCALE_UP_TIMEOUT: "5m"})
    first = cluster.gang("first", 2)
    assert asking(cluster.cycle()) == ["first-w-0", "first-w-1"]
    cluster.gang("second", 2)
    assert asking(cluster.cycle(150)) == ["first-w-0", "first-w-1"], "its time began with its first cycle"
    session = cluster.cycle(150)
    assert asking(session) == ["second-w-0", "second-w-1"]
    assert sentence(session, first).reason == IN_VAIN
    assert "its next request follows after 60 s" in sentence(session, first).message
    both = ["first-w-0", "first-w-1", "second-w-0", "second-w-1"]
    assert sorted(asking(cluster.cycle(BACK_OFF_S))) == both, "who asks goes on beside one that may never get its nodes"
    session = cluster.cycle(300)
    assert "its next request follows after 120 s" in sentence(session, first).message
    assert asking(cluster.cycle(BACK_OFF_S)) == ["second-w-0", "second-w-1"]


def test_nodes_that_come_and_do_not_hold_the_gang_end_its_try() -> None:
    """Else they would come and go again and again, at the pace of the autoscaler, and never be of use."""
    cluster = Cluster(CONDITION)
    key = cluster.gang("g", 2)
    assert asking(cluster.cycle()) == ["g-w-0", "g-w-1"]
    cluster.world.node("node-1")
    cluster.avoided = {key: {"node-1": inf}}
    assert sentence(cluster.cycle(0), key).reason == IN_VAIN
    cluster.node_is_gone("node-1")
    session = cluster.cycle()
    assert (asking(session), sentence(session, key).reason) == ([], IN_VAIN)
    assert asking(cluster.cycle(BACK_OFF_S)) == ["g-w-0", "g-w-1"]


def test_many_gangs_that_rest_do_not_hide_the_next_one() -> None:
    """Only some gangs of a queue are looked at in each cycle, and those that rest are not among them."""
    cluster = Cluster({**CONDITION, SCALE_UP_TIMEOUT: "3s"})
    for number in range(MOST_CHECKED):
        cluster.gang(f"never-{number}", 2)
        cluster.cycle(3)
    cluster.gang("next", 2)
    assert asking(cluster.cycle()) == ["next-w-0", "next-w-1"]


def test_a_gang_that_has_started_has_not_asked_in_vain() -> None:
    """When it waits again for other reasons, it asks at once."""
    cluster = Cluster({**CONDITION, SCALE_UP_TIMEOUT: "5m"})
    cluster.gang("g", 2)
    cluster.cycle(300)
    cluster.world.node("node-1")
    assert asking(cluster.cycle()) == []
    cluster.node_is_gone("node-1")
    assert asking(cluster.cycle()) == ["g-w-0", "g-w-1"]


@pytest.mark.parametrize("notes", [{}, {SCALE_UP: "none"}])
def test_nobody_asks_who_is_not_told_to(notes: dict[str, str]) -> None:
    """Nodes cost money."""
    cluster = Cluster(notes)
    cluster.gang("g", 2)
    session = cluster.cycle()
    assert asking(session) == []
    assert [say.message for say in of(session, SetCondition)] == [sentence(session, "ns/g").message]


def test_a_gang_that_not_even_the_empty_cluster_holds_is_let_in_so_that_its_pods_exist() -> None:
    """Only the one whose turn it is."""
    cluster = Cluster(CONDITION)
    for name in ("first", "second"):
        cluster.gang(name, 3, created=False, phase="Pending")
    session = cluster.cycle()
    assert [each.gang.key for each in of(session, LetIn)] == ["ns/first"]
    assert asking(session) == []


def test_a_gang_of_which_some_pods_are_not_there_yet_does_not_ask() -> None:
    """Half of it would grow the cluster in vain."""
    cluster = Cluster(CONDITION)
    cluster.world.pod(cluster.gang("g", 3, created=False), "w", 0, GPU, gated=True)
    assert asking(cluster.cycle()) == []


def test_a_gang_that_waits_for_something_else_is_passed_over() -> None:
    """Nodes would not help it."""
    cluster = Cluster(CONDITION)
    key = cluster.world.gang("held", {"w": (2, GPU)}, queue="auto")
    cluster.world.members(key, 2, GPU, task="w", gated=True, other_gates=("theirs",))
    cluster.gang("free", 2)
    assert asking(cluster.cycle()) == ["free-w-0", "free-w-1"]


def test_the_queues_capability_bounds_what_is_asked_for() -> None:
    """What runs counts; the next gang that may have its nodes asks."""
    cluster = Cluster(CONDITION, capability={"nvidia.com/gpu": 16})
    cluster.world.pod(cluster.gang("runs", 1, created=False), "w", 0, GPU, node="node-0", phase="Running")
    cluster.gang("large", 2)
    cluster.gang("small", 1)
    session = cluster.cycle()
    assert asking(session) == ["small-w-0"]
    words = (
        "no nodes are requested: queue auto may use 16 nvidia.com/gpu (capability), uses 8, and 16 more are requested"
    )
    assert sentence(session, "ns/large").message.endswith(words)


@pytest.mark.parametrize(("cluster", "reason", "words"), [
    (Cluster(CONDITION, capability={GPUS: "many"}), NO_ROOM, f"the capability of queue auto cannot be read: {GPUS}"),
    (Cluster({SCALE_UP: "please"}), NO_ROOM, "muster.dev/scale-up is 'please'"),
    (Cluster(REQUEST, served=False), "ProvisioningNotServed", str(KIND_MISSING)),
], ids=["capability", "annotation", "kind"])  # fmt: skip
def test_what_cannot_be_read_or_is_not_there_asks_for_nothing(cluster: Cluster, reason: str, words: str) -> None:
    """Admission may have been bypassed, and somebody has to install the kind; the gang is not set aside for it."""
    cluster.gang("g", 2)
    session = cluster.cycle()
    assert (asking(session), of(session, RequestNodes)) == ([], [])
    assert sentence(session, "ns/g").reason == reason
    assert words in sentence(session, "ns/g").message


def test_what_a_plugin_refuses_is_not_asked_for() -> None:
    """The hook is_job_over_queue_capacity."""
    cluster = Cluster(CONDITION)
    cluster.gang("g", 2)

    refusal = QueueRefusal("QueueCapacity", "default", "cpu", 1, 1, 1, "no more for this queue")

    class Refuses(PlainPlugin):
        name = "refuses"

        def on_session_open(self, session: Session) -> None:
            session.hooks.is_job_over_queue_capacity.add(lambda *_: refusal)

    cluster.world.plugins.append(Refuses({}))
    session = cluster.cycle()
    assert asking(session) == []
    assert sentence(session, "ns/g").message.endswith("no more for this queue")


def test_where_free_nodes_would_satisfy_the_autoscaler_it_is_not_asked() -> None:
    """It packs pods one by one, and knows nothing of who was refused where."""
    cluster = Cluster(CONDITION)
    key = cluster.gang("g", 1)
    cluster.avoided = {key: {"node-0": inf}}
    session = cluster.cycle()
    assert (asking(session), sentence(session, key).message.endswith(str(NODES_EXIST))) == ([], True)


# -- ProvisioningRequests -------------------------------------------------------------------------------------------


def test_a_request_is_for_the_whole_minimum_and_is_made_once() -> None:
    """Its pods ask for nothing themselves."""
    cluster = Cluster(REQUEST)
    cluster.gang("g", 3)
    session = cluster.cycle()
    [wanted] = of(session, RequestNodes)
    assert [(name, count, pod.name) for name, count, pod in wanted.pods] == [("w", 3, "g-w-0")]
    assert asking(session) == []
    cluster.answered(wanted)
    session = cluster.cycle()
    assert of(session, RequestNodes) == of(session, WithdrawRequest) == []
    assert sentence(session, "ns/g").message.endswith("is not accepted yet")


def test_before_it_is_known_whether_the_kind_is_served_no_request_is_made() -> None:
    """It is asked for because a gang wants it; the queue's next gang waits for that, too."""
    cluster = Cluster(REQUEST, served=None)
    for name in ("first", "second"):
        cluster.gang(name, 2)
    session = cluster.cycle()
    assert (of(session, RequestNodes), session.provisioning_wanted) == ([], True)
    assert not Cluster(CONDITION).cycle().provisioning_wanted


def test_a_gang_of_more_pod_sets_than_a_request_takes_says_so() -> None:
    """Cluster-autoscaler takes 32."""
    cluster = Cluster(REQUEST)
    key = cluster.world.gang("g", {f"w{number}": (1, GPU) for number in range(33)}, queue="auto")
    assert sentence(cluster.cycle(), key).message.endswith(
        "the gang has 33 pod sets, but a ProvisioningRequest can have at most 32"
    )


def test_a_failed_request_gives_the_turn_away_and_is_made_again_later() -> None:
    """The next attempt has another name, and the old one goes."""
    cluster = Cluster(REQUEST)
    key = cluster.gang("g", 2)
    [wanted] = of(cluster.cycle(), RequestNodes)
    failed = cluster.answered(wanted, Failed="True")
    cluster.gang("next", 2)
    session = cluster.cycle()
    assert sentence(session, key).reason == "ProvisioningFailed"
    assert [each.gang.key for each in of(session, RequestNodes)] == ["ns/next"]
    session = cluster.cycle(after_s=61)
    again = next(each for each in of(session, RequestNodes) if each.gang.key == key)
    assert (again.attempt, again.name != wanted.name) == (2, True)
    assert [each.request for each in of(session, WithdrawRequest)] == [failed]


def test_a_gang_that_does_not_start_on_provisioned_nodes_lets_others_ask() -> None:
    """Its request stays, because its nodes may exist; otherwise one gang could block its queue's requests for years."""
    cluster = Cluster(REQUEST | {SCALE_UP_TIMEOUT: "5m"})
    cluster.gang("first", 2)
    [wanted] = of(cluster.cycle(), RequestNodes)
    cluster.answered(wanted, Provisioned="True")
    cluster.gang("second", 2)
    assert not of(cluster.cycle(), RequestNodes)
    session = cluster.cycle(300)
    assert [each.gang.key for each in of(session, RequestNodes)] == ["ns/second"]
    assert not of(session, WithdrawRequest)


def test_a_request_for_something_else_than_is_wanted_now_is_replaced() -> None:
    """Its spec cannot be changed."""
    cluster = Cluster(REQUEST)
    cluster.gang("g", 2)
    [wanted] = of(cluster.cycle(), RequestNodes)
    old = cluster.answered(wanted, Provisioned="True")
    cluster.queue(REQUEST | {"muster.dev/scale-up-class": "check-capacity.autoscaling.x-k8s.io"})
    session = cluster.cycle()
    assert [each.request for each in of(session, WithdrawRequest)] == [old]
    assert [each.provisioning_class for each in of(session, RequestNodes)] == ["check-capacity.autoscaling.x-k8s.io"]


def test_a_request_is_withdrawn_when_its_gang_has_started_or_may_not_ask() -> None:
    """Until then it stays, also while its slots are placed."""
    cluster = Cluster(REQUEST)
    key = cluster.gang("g", 2)
    [wanted] = of(cluster.cycle(), RequestNodes)
    request = cluster.answered(wanted, Provisioned="True")
    assert of(cluster.cycle(), WithdrawRequest) == []
    cluster.queue({SCALE_UP: "none"})
    assert [each.request for each in of(cluster.cycle(), WithdrawRequest)] == [request]
    cluster.queue(REQUEST)
    cluster.world.node("node-1")
    assert of(cluster.cycle(), WithdrawRequest) == []
    cluster.world.members(key, 2, GPU, task="w", node="node-{}", phase="Running")
    assert [each.request for each in of(cluster.cycle(), WithdrawRequest)] == [request]


def waits_for_victims(cluster: Cluster, name: str) -> None:
    """Another gang is to go for this one, which has a placement until then."""
    world = cluster.world
    victim = world.gang("victim", {"w": (1, GPU)}, queue="auto", phase="Running")
    world.pod(victim, "w", 0, GPU, node="node-0", phase="Running")
    until = format_time(world.now + 600)
    spec = PlacementSpec(
        pod_group_uid=world.state.groups[f"ns/{name}"].metadata.uid,
        epoch=1,
        deadline=until,
        pod_sets=[PodSetPlacement("w", [NodeRun("node-0", 1)], held=True)],
        victims=[Victim("victim-w-0", uid="uid-victim-w-0", gang="victim")],
        notices=[Notice(gang="victim", told_at=format_time(world.now), evict_at=until)],
    )
    status = PlacementStatus(phase="Planned", message="waits until 1 pod has left its nodes")
    world.state.on_placement(None, Placement(metadata=world.meta(name), spec=spec, status=status))


def asks_already(cluster: Cluster, name: str) -> None:
    """The pod of a gang says that it asks, as was decided."""
    world = cluster.world
    says = ReportedCondition(type="PodScheduled", status="False", reason="Unschedulable", message="Muster: no room")
    world.change(world.state.pod_objects[f"uid-{name}-w-0"], status={"phase": "Pending", "conditions": [says]})


def test_a_gang_for_which_victims_are_to_go_ends_to_ask() -> None:
    """An autoscaler would add nodes for it for as long as the notice lasts; the next gang of the queue asks."""
    cluster = Cluster(CONDITION)
    cluster.gang("first", 1)
    waits_for_victims(cluster, "first")
    asks_already(cluster, "first")
    cluster.gang("second", 1)
    session = cluster.cycle()
    said = {say.pod.name: (say.asks, say.message) for say in of(session, SetCondition)}
    assert said["first-w-0"] == (False, "waits until 1 pod has left its nodes")
    assert asking(session) == ["second-w-0"]


@pytest.mark.parametrize(("answer", "withdrawn"), [({}, True), ({"Provisioned": "True"}, False)])
def test_the_request_of_such_a_gang_stays_only_if_it_has_nodes(*, answer: dict[str, str], withdrawn: bool) -> None:
    """They are used before anybody is evicted."""
    cluster = Cluster(REQUEST)
    cluster.gang("in-the-way", 1)
    cluster.gang("first", 2)
    [wanted] = of(cluster.cycle(), RequestNodes)
    assert wanted.gang.key == "ns/first"
    cluster.answered(wanted, **answer)
    waits_for_victims(cluster, "first")
    assert [each.gang.key for each in of(cluster.cycle(), WithdrawRequest)] == (["ns/first"] if withdrawn else [])
