"""Gangs with members on faulty nodes: who is evicted, when, and where the others stay."""

import pytest
from extender_world import of, only, slots
from msgspec import structs
from repair_world import GPU8, XID, RepairWorld, evicted, says

from extender.planner.actions.allocate import Allocate
from extender.planner.actions.repair import MOST_GANGS, SETTLE_MOST_S, SETTLE_S, Repair, chosen_policy
from extender.planner.framework import decisions
from extender.planner.framework.session import Session
from muster.api import names
from muster.api.kubernetes.meta import OwnerReference


@pytest.fixture
def world() -> RepairWorld:
    """Six nodes."""
    return RepairWorld().nodes(6)


def test_a_member_on_a_suspect_node_gets_another_node_and_the_others_keep_theirs(world: RepairWorld) -> None:
    """The placement is written first, and keeps the room for the one that comes again."""
    world.runs("a", 3)
    world.node("node-1", conditions=XID)
    assert evicted(world.look()) == []
    session = world.look(SETTLE_S)
    [repair], [place] = of(session, decisions.EvictForFaults), of(session, decisions.Place)
    assert (evicted(session), repair.policy, repair.kind) == (["a-worker-1"], "replace", "suspect")
    assert slots(place) == {"worker": ["node-0", "node-3", "node-2"]}
    assert repair.epoch == place.epoch
    assert str(repair.reason) == (
        "repairs: node node-1 is suspect (condition SysLogsXIDError=True): 1 member is replaced,"
        " as no setting requires all its members to restart together"
    )


def test_the_new_node_is_not_given_to_others_meanwhile(world: RepairWorld) -> None:
    """Nor does the gang wait in its queue."""
    key = world.runs("a", 5)
    place = world.replaced("node-1")
    world.pod(key, "worker", 1, GPU8, node="node-1", phase="Running", deletion_timestamp="2027-01-15T08:00:30Z")
    world.gang("b", {"worker": (1, GPU8)})
    assert of(world.session(Allocate()), decisions.Place) == []
    world.state.on_pod(world.state.pod_objects["uid-a-worker-1"], None)
    [there] = of(world.session(world.progress), decisions.RoomIsThere)
    world.room_is_there(world.session(world.progress))
    assert there.gang.key == key
    world.pod(key, "worker", 1, GPU8, gated=True, uid="uid-a-worker-1-again")
    [release] = of(world.session(world.progress), decisions.Release)
    assert (release.node, release.epoch) == ("node-5", place.epoch)


@pytest.mark.parametrize(("api_version", "kind", "longest_s"), [
    ("batch/v1", "Job", 600),
    ("jobset.x-k8s.io/v1alpha2", "JobSet", 600),
    ("trainer.kubeflow.org/v1alpha1", "TrainJob", 600),
    ("batch.volcano.sh/v1alpha1", "Job", 0),
])  # fmt: skip
def test_nodes_are_kept_while_owners_wait(world: RepairWorld, api_version: str, kind: str, longest_s: float) -> None:
    """It makes evicted pods again after up to ten minutes, and the owner reads why nothing happens until then."""
    key = world.runs("a", 2)
    owner = OwnerReference(api_version=api_version, kind=kind, name="a", uid="owner", controller=True)
    world.change(world.state.groups[key], owner_references=[owner])
    world.replaced("node-1")
    world.state.on_pod(world.state.pod_objects["uid-a-worker-1"], None)
    session = world.session(world.progress)
    assert only(session, decisions.RoomIsThere).remade_s == longest_s
    world.room_is_there(session)
    placement = world.state.placements[key]
    assert ("may wait for 600 s before it creates them again" in placement.status.message) is bool(longest_s)
    world.now += 600
    gone = [close.gang.key for close in of(world.session(world.progress), decisions.ClosePlacement)]
    assert gone == ([] if longest_s else [key])


@pytest.mark.parametrize("said", [{}, {"on_node_fault": "replace"}])
def test_a_gang_whose_job_restarts_whole_is_restarted(world: RepairWorld, said: dict[str, str]) -> None:
    """It would do so in any case: so all its members are told, and come again where they were."""
    world.restarts_whole(world.runs("a", 3, **said))
    session = world.faults("node-1")
    repair = only(session, decisions.EvictForFaults)
    assert (repair.policy, len(evicted(session))) == ("restart", 3)
    assert "as its Job restarts as a whole when a pod is evicted" in str(repair.reason)


def test_faults_that_come_one_after_the_other_are_one_repair(world: RepairWorld) -> None:
    """Each new one is waited for again, and the first one no longer than the longest time."""
    world.runs("a", 3)
    world.node("node-0", conditions=XID)
    assert evicted(world.look()) == []
    world.node("node-1", conditions=XID)
    assert evicted(world.look(SETTLE_S - 0.5)) == []
    assert evicted(world.look(SETTLE_S - 0.5)) == []
    session = world.look(0.5)
    assert (evicted(session), len(of(session, decisions.EvictForFaults))) == (["a-worker-0", "a-worker-1"], 1)
    assert "nodes node-0, node-1 are suspect" in str(of(session, decisions.EvictForFaults)[0].reason)


def test_no_more_than_the_longest_time_is_waited_for_more_faults() -> None:
    """A rack whose machines die one a second is repaired all the same."""
    world = RepairWorld().nodes(40)
    world.runs("a", 20)
    for number in range(int(SETTLE_MOST_S)):
        world.node(f"node-{number}", conditions=XID)
        assert evicted(world.look(1.0)) == []
    world.node("node-10", conditions=XID)
    assert len(evicted(world.look(1.0))) == int(SETTLE_MOST_S) + 1


def test_a_node_that_does_not_answer_is_waited_for_and_then_its_members_are_replaced(world: RepairWorld) -> None:
    """It may only have restarted its kubelet; the time counts from its condition, also for a new planner."""
    world.runs("a", 2)
    world.node("node-1", conditions={"Ready": "Unknown"}, since=world.now)
    assert evicted(world.look(29.0)) == []
    assert evicted(world.look(1.0)) == []
    session = world.look(SETTLE_S)
    assert (evicted(session), of(session, decisions.EvictForFaults)[0].kind) == (["a-worker-1"], "not-ready")
    assert "node.kubernetes.io/out-of-service" in str(of(session, decisions.EvictForFaults)[0].reason)
    assert evicted(world.session(Repair())) == ["a-worker-1"]


def test_a_node_that_comes_back_within_its_grace_costs_nothing(world: RepairWorld) -> None:
    """Nodes flap."""
    world.runs("a", 2)
    world.node("node-1", conditions={"Ready": "False"}, since=world.now)
    world.look(20.0)
    world.node("node-1", conditions={"Ready": "True"}, since=world.now)
    assert evicted(world.look(60.0)) == []


def test_a_gang_says_its_own_grace(world: RepairWorld) -> None:
    """0s: at once, but for what comes with it."""
    world.runs("a", 2, node_fault_grace="0s")
    world.runs("b", 2, first=2, node_fault_grace="5m")
    for node in ("node-1", "node-2"):
        world.node(node, conditions={"Ready": "False"}, since=world.now)
    world.look()
    assert evicted(world.look(SETTLE_S)) == ["a-worker-1"]
    world.member("ns/a", 1, "node-4")
    assert evicted(world.look(290.0)) == []
    assert evicted(world.look(10.0)) == ["b-worker-0"]


def test_members_on_a_node_that_is_gone_are_replaced(world: RepairWorld) -> None:
    """No condition says so; the Node is not there any more."""
    world.runs("a", 2)
    world.state.on_node(world.state.nodes.nodes[world.state.nodes.index["node-1"]], None)
    assert world.look().unsure_nodes == {"node-1"}
    assert evicted(world.look(600.0)) == []
    world.gone_nodes = frozenset({"node-1"})
    world.look()
    session = world.look(SETTLE_S)
    [repair] = of(session, decisions.EvictForFaults)
    assert (evicted(session), repair.kind) == (["a-worker-1"], "gone")
    assert "node node-1 is gone" in str(repair.reason)
    assert slots(of(session, decisions.Place)[0]) == {"worker": ["node-0", "node-2"]}


def test_wait_does_nothing(world: RepairWorld) -> None:
    """The members stay until others evict them."""
    world.runs("a", 2, on_node_fault="wait")
    assert world.faults("node-1", after=600.0).decisions == []


def test_a_gang_that_restarts_keeps_its_healthy_nodes(world: RepairWorld) -> None:
    """All its pods go, and all come again in the same placement."""
    world.runs("a", 3, on_node_fault="restart")
    session = world.faults("node-1")
    [place], [repair] = of(session, decisions.Place), of(session, decisions.EvictForFaults)
    assert evicted(session) == ["a-worker-0", "a-worker-1", "a-worker-2"]
    assert [pod.name for _, pod in place.victims] == ["a-worker-0", "a-worker-1", "a-worker-2"]
    assert slots(place) == {"worker": ["node-0", "node-3", "node-2"]}
    assert str(repair.reason) == (
        "repairs: node node-1 is suspect (condition SysLogsXIDError=True): the gang restarts in place,"
        " 1 of its 3 members on other nodes, as its annotation muster.dev/on-node-fault says"
    )


def one_has_ended(world: RepairWorld, others: int) -> tuple[str, Session]:
    """A gang of three whose last member has ended, others from its node on, and a fault of the second member's node."""
    key = world.runs("a", 3)
    world.restarts_whole(key)
    world.pod(key, "worker", 2, GPU8, node="node-2", phase="Succeeded")
    world.runs("b", others, 2)
    return key, world.faults("node-1")


def test_members_that_have_ended_come_again_where_there_is_room(world: RepairWorld) -> None:
    """Their Job restarts as a whole, and another gang has got the node of one: nobody else gets its new one."""
    key, session = one_has_ended(world, others=1)
    [place] = of(session, decisions.Place)
    assert evicted(session) == ["a-worker-0", "a-worker-1"]
    assert slots(place) == {"worker": ["node-0", "node-3", "node-4"]}
    world.place(place)
    world.gang("c", {"worker": (2, GPU8)})
    assert of(world.session(Allocate()), decisions.Place) == []
    for rank in range(3):
        world.state.on_pod(world.state.pod_objects[f"uid-a-worker-{rank}"], None)
    world.room_is_there(world.session(world.progress))
    for rank in range(3):
        world.pod(key, "worker", rank, GPU8, gated=True, uid=f"uid-a-worker-{rank}-again")
    releases = of(world.session(world.progress), decisions.Release)
    assert {each.pod.name: each.node for each in releases} == {
        "a-worker-0": "node-0",
        "a-worker-1": "node-3",
        "a-worker-2": "node-4",
    }


def test_a_gang_whose_ended_members_have_no_room_any_more_runs_on(world: RepairWorld) -> None:
    """It would not come again as a whole."""
    _, session = one_has_ended(world, others=3)
    assert (evicted(session), len(says(session))) == ([], 1)


def test_a_gang_that_restarts_leaves_a_cordoned_node_too(world: RepairWorld) -> None:
    """Its pods would not be let back there."""
    world.runs("a", 3, on_node_fault="restart")
    world.node("node-2", unschedulable=True)
    assert slots(only(world.faults("node-1"), decisions.Place)) == {"worker": ["node-0", "node-3", "node-4"]}


def test_a_static_framework_restarts_and_one_with_enough_others_does_not(world: RepairWorld) -> None:
    """The default, with its reason."""
    world.runs("a", 2, labels={names.FRAMEWORK: "torch"})
    world.runs("b", 2, first=2, least=1, labels={names.FRAMEWORK: "torch"})
    of_a, of_b = of(world.faults("node-1", "node-3"), decisions.EvictForFaults)
    assert (of_a.policy, len(of_a.pods)) == ("restart", 2)
    assert str(of_a.reason).endswith("as the ranks of torch start together or not at all")
    assert (of_b.policy, len(of_b.pods)) == ("replace", 1)
    assert str(of_b.reason).endswith("as the others are enough to continue")


def test_members_of_mpi_are_replaced(world: RepairWorld) -> None:
    """With ULFM the others take one back."""
    world.runs("a", 2, labels={names.FRAMEWORK: "mpi"})
    assert evicted(world.faults("node-1")) == ["a-worker-1"]


def test_members_on_a_suspect_node_run_on_where_no_other_takes_them(world: RepairWorld) -> None:
    """They still run, and would not somewhere else."""
    world.runs("a", 6)
    session = world.faults("node-1", after=600.0)
    assert evicted(session) == []
    [told] = says(session)
    assert told.startswith(
        "node node-1 is suspect (condition SysLogsXIDError=True), and its 1 member there has to stay"
    )
    world.node("node-6")
    assert evicted(world.look()) == ["a-worker-1"]


def test_members_on_a_dead_node_are_evicted_also_where_no_other_takes_them(world: RepairWorld) -> None:
    """They do not run; their gang has a time to be completed, and is evicted then as ever."""
    world.runs("a", 6)
    world.node("node-1", conditions={"Ready": "Unknown"}, since=world.now - 60)
    world.look()
    session = world.look(SETTLE_S)
    assert (evicted(session), of(session, decisions.Place)) == (["a-worker-1"], [])


def test_a_gang_that_cannot_restart_in_place_keeps_its_nodes_for_a_while_and_then_goes(world: RepairWorld) -> None:
    """It queues again; until then it is told why."""
    world.runs("a", 6, on_node_fault="restart")
    world.node("node-1", conditions={"Ready": "Unknown"}, since=world.now)
    session = world.look(32.0)
    assert (evicted(session), len(says(session))) == ([], 1)
    session = world.look(58.0)
    assert len(evicted(session)) == 6
    assert str(of(session, decisions.EvictForFaults)[0].reason).endswith("the gang is evicted, and waits as a whole")


def test_nothing_is_repaired_while_most_nodes_are_faulty_at_once(world: RepairWorld) -> None:
    """A network that is down, or a monitor that is wrong, must not end every gang."""
    world.runs("a", 2)
    session = world.faults(*(f"node-{number}" for number in range(4)))
    told = "4 of 6 nodes are suspect or not ready at once: nothing is repaired until fewer are"
    assert (evicted(session), says(session)) == ([], [told])
    world.node("node-3")
    assert evicted(world.look()) == ["a-worker-0", "a-worker-1"]


def test_few_gangs_are_repaired_in_one_cycle_and_the_others_in_the_next() -> None:
    """A rack that dies does not hold up a cycle for its hundred gangs."""
    world = RepairWorld().nodes(100)
    for number in range(MOST_GANGS + 3):
        world.runs(f"g{number}", 1, first=number)
    session = world.faults(*(f"node-{number}" for number in range(MOST_GANGS + 3)))
    assert len(of(session, decisions.EvictForFaults)) == MOST_GANGS
    for place in of(session, decisions.Place):
        world.place(place)
    assert len([repair for repair in of(world.look(), decisions.EvictForFaults) if not repair.again]) == 3


def test_another_planner_goes_on_with_a_repair(world: RepairWorld) -> None:
    """The placement says which members go, and why."""
    world.runs("a", 2)
    place = world.replaced("node-1")
    [repair] = of(world.session(Repair()), decisions.EvictForFaults)
    assert (repair.again, repair.epoch, evicted(world.look())) == (True, place.epoch, ["a-worker-1"])


def test_a_successor_elsewhere_does_not_wait_for_a_dead_node(world: RepairWorld) -> None:
    """Nobody says there that the old pod has ended, and the new one's room is not there."""
    key = world.runs("a", 2)
    world.node("node-1", conditions={"Ready": "Unknown"}, since=world.now - 60)
    world.look()
    [place] = of(world.look(SETTLE_S), decisions.Place)
    world.place(place)
    world.pod(key, "worker", 1, GPU8, node="node-1", phase="Running", deletion_timestamp="2027-01-15T08:00:30Z")
    assert only(world.session(world.progress), decisions.RoomIsThere).gang.key == key


def test_a_pod_that_nobody_makes_again_is_left_where_it_is(world: RepairWorld) -> None:
    """Its end would be the end of the work."""
    world.change(world.state.groups[world.runs("a", 1)], owner_references=[])
    assert evicted(world.faults("node-0", after=600.0)) == []


def test_the_pods_of_a_daemon_set_stay_on_their_node(world: RepairWorld) -> None:
    """Also where they ask to be replaced: a network plugin that is evicted from a node keeps it from getting ready."""
    key = world.runs("a", 2, least=1, independent_pods="true", on_node_fault="replace")
    owner = OwnerReference(api_version="apps/v1", kind="DaemonSet", name="cni", uid="uid-cni", controller=True)
    world.change(world.state.groups[key], owner_references=[owner])
    world.node("node-0", conditions={"Ready": "False"})
    world.look()
    assert evicted(world.look(600.0)) == []


def test_pods_that_run_alone_come_again_by_themselves_where_there_is_room(world: RepairWorld) -> None:
    """Their successors have other names, so no placement waits for them."""
    world.runs("a", 3, least=1, independent_pods="true")
    world.runs("b", 2, first=3)
    session = world.faults("node-1")
    [repair] = of(session, decisions.EvictForFaults)
    assert (evicted(session), repair.epoch, of(session, decisions.Place)) == (["a-worker-1"], None, [])
    world.node("node-2", conditions=XID)
    world.look()
    world.node("node-5", unschedulable=True)
    assert evicted(world.look(SETTLE_S)) == []


def test_pods_say_the_policy_of_a_group_that_does_not(world: RepairWorld) -> None:
    """As those of a Job whose gang is a native PodGroup; what the group says wins."""
    key = world.runs("a", 2)
    other = world.runs("b", 2, first=2, on_node_fault="replace")
    for pod in list(world.state.pod_objects.values()):
        world.change(pod, annotations={**pod.metadata.annotations, names.ON_NODE_FAULT: "wait"})
    assert [world.view(each).options[names.ON_NODE_FAULT] for each in (key, other)] == ["wait", "replace"]
    assert evicted(world.faults("node-1", "node-3", after=600.0)) == ["b-worker-1"]


def test_pods_that_may_only_be_disrupted_together_restart(world: RepairWorld) -> None:
    """As the disruption mode of their native PodGroup says, also if the others would be enough."""
    gang = world.view(world.runs("a", 2, least=1))
    meta = structs.replace(gang.group.metadata, annotations={names.INDIVISIBLE: "true", names.NATIVE_GROUP: "a"})
    gang.group = structs.replace(gang.group, metadata=meta, api_version="scheduling.k8s.io/v1beta1")
    assert chosen_policy(gang, gang.pods[:1]) == ("restart", "its pods may only be disrupted together")
