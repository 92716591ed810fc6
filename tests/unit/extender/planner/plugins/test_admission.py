"""Who is let in and who goes first, by overcommit, sla and drf; and who is nobody's victim."""

from typing import Any

import pytest
from extender_world import World, of, waiting
from msgspec import structs

from extender.planner.actions.enqueue import Enqueue
from extender.planner.framework import decisions
from extender.planner.framework.registry import PlannerPlugin
from extender.planner.plugins.admission import Drf, Overcommit, QuotaRoom, Sla
from extender.planner.plugins.proportion import Proportion
from extender.planner.plugins.protection import Conformance, needed_by_the_cluster
from muster.api.kubernetes.quota import ResourceQuota, ResourceQuotaSpec, ResourceQuotaStatus

GPU1, GPU8 = {"nvidia.com/gpu": 1}, {"nvidia.com/gpu": 8}


def world_of(*plugins: PlannerPlugin, nodes: int = 1) -> World:
    """Nodes of 8 GPUs, and these plugins beside the usual ones."""
    world = World().nodes(nodes)
    world.plugins += plugins
    return world


def wanting(world: World, name: str, gpus: int, *, phase: str = "Pending", **annotations: str) -> str:
    """A gang of pods with a GPU each that says so in minResources."""
    key = world.gang(name, {"worker": (gpus, GPU1)}, phase=phase)
    notes = {each.replace("_", "-"): text for each, text in annotations.items()}
    world.change(world.state.groups[key], spec={"min_resources": {"nvidia.com/gpu": gpus}}, annotations=notes)
    return key


def let_in(world: World) -> list[str]:
    """The gangs that a cycle of enqueue lets in, in order."""
    return [enqueue.gang.group.metadata.name for enqueue in of(world.session(Enqueue()), decisions.AdmitGang)]


@pytest.mark.parametrize(
    ("factor", "names"), [(None, ["a", "c"]), (1, ["a"]), ("1.5", ["a", "b"]), (0.5, ["a", "c"]), (9, ["a", "b", "c"])]
)
def test_overcommit_promises_a_multiple_of_what_nodes_have(factor: Any, names: list[str]) -> None:
    """Eight GPUs, gangs that want 7, 4 and 2; a refused one blocks nobody. A factor below 1 is Volcano's 1.2."""
    world = world_of(Overcommit({} if factor is None else {"overcommit-factor": factor}))
    for name, gpus in (("a", 7), ("b", 4), ("c", 2)):
        wanting(world, name, gpus)
    assert let_in(world) == names


def test_overcommit_counts_what_was_let_in_before_and_what_is_used() -> None:
    """A gang that was let in in an earlier cycle counts, and its pods that run count once."""
    world = world_of(Overcommit({"overcommit-factor": 1}))
    old = wanting(world, "old", 4, phase="Inqueue")
    wanting(world, "fits", 4)
    wanting(world, "too-large", 5)
    assert let_in(world) == ["fits"]
    world.members(old, 2, GPU1, node="node-0", phase="Running")
    assert let_in(world) == ["fits"]
    reason, message = waiting(world.session(Enqueue()))["too-large"]
    assert (reason, "nvidia.com/gpu" in message) == ("Overcommitted", True)


def test_overcommit_compares_what_the_gang_needs() -> None:
    """All cpu is promised: who needs none of it is let in, and who needs some is told so."""
    world = world_of(Overcommit({}))
    key = wanting(world, "promised", 1, phase="Inqueue")
    world.change(world.state.groups[key], spec={"min_resources": {"cpu": 39}})
    wanting(world, "gpus", 8)
    key = wanting(world, "cpus", 1)
    world.change(world.state.groups[key], spec={"min_resources": {"cpu": 1}})
    session = world.session(Enqueue())
    assert [each.gang.key for each in of(session, decisions.AdmitGang)] == ["ns/gpus"]
    assert waiting(session)["cpus"][1].startswith("the gangs admitted earlier need all cpu that admission may promise")
    world.change(world.state.groups["ns/cpus"], spec={"min_resources": {"cpu": "0.4"}})
    assert let_in(world) == ["gpus"]
    world.change(world.state.groups["ns/promised"], spec={"min_resources": {"cpu": 38}})
    assert let_in(world) == ["gpus", "cpus"]


def test_overcommit_lets_gangs_in_that_do_not_say_what_they_need() -> None:
    """As Volcano does; and one whose amounts nobody can read keeps no other out."""
    world = world_of(Overcommit({}))
    world.gang("silent", {"worker": (8, GPU1)}, phase="Pending")
    key = wanting(world, "broken", 1, phase="Inqueue")
    world.change(world.state.groups[key], spec={"min_resources": {"nvidia.com/gpu": "many"}})
    wanting(world, "other", 8)
    assert let_in(world) == ["silent", "other"]


def test_sla_puts_gangs_first_whose_time_ends_first() -> None:
    """Those without a time come last, and what is no time is none."""
    world = world_of(Sla({}))
    wanting(world, "none", 1)
    wanting(world, "nonsense", 1, sla_waiting_time="soon")
    wanting(world, "hour", 1, sla_waiting_time="1h")
    world.now += 60
    wanting(world, "minute", 1, **{"volcano.sh/sla_waiting_time": "1m"})
    assert let_in(world) == ["minute", "hour", "none", "nonsense"]


@pytest.mark.parametrize(("sla_first", "names"), [(True, ["a", "b"]), (False, ["a"])])
def test_an_overdue_gang_passes_the_plugins_after_sla(sla_first: bool, names: list[str]) -> None:  # noqa: FBT001 - a case
    """Not those before it; and not before its time."""
    overcommit, sla = Overcommit({"overcommit-factor": 1}), Sla({"sla-waiting-time": "5m"})
    world = world_of(*([sla, overcommit] if sla_first else [overcommit, sla]))
    wanting(world, "a", 8)
    wanting(world, "b", 8)
    assert let_in(world) == ["a"]
    world.now += 301
    assert let_in(world) == names


def test_an_overdue_gang_is_let_in_even_if_it_is_larger_than_the_cluster() -> None:
    """Its pods exist then, behind their gates, so that autoscalers see them; never beyond its queue's capability."""
    world = world_of(Sla({"sla-waiting-time": "5m"}), Proportion({}))
    world.queue("small", capability={"nvidia.com/gpu": "8"})
    wanting(world, "large", 99)
    world.gang("beyond", {"worker": (99, GPU1)}, phase="Pending", queue="small")
    assert let_in(world) == []
    world.now += 301
    assert let_in(world) == ["large"]


def test_drf_puts_gangs_first_that_hold_less() -> None:
    """By the largest part of any resource."""
    world = world_of(Drf({}), nodes=2)
    keys = [world.gang(name, {"worker": (4, GPU1)}, min_member=1, min_task_member={}) for name in ("much", "some")]
    world.gang("nothing", {"worker": (1, GPU1)})
    world.pod(keys[0], "worker", 0, {"cpu": 32}, node="node-0", phase="Running")
    world.pod(keys[1], "worker", 0, {"nvidia.com/gpu": 2}, node="node-1", phase="Running")
    session = world.session()
    order = [gang.group.metadata.name for gang in session.ordered_gangs(session.snapshot.gangs)]
    assert order == ["nothing", "some", "much"]


@pytest.mark.parametrize(("hard", "used", "names"), [
    ({"requests.nvidia.com/gpu": "8"}, {"requests.nvidia.com/gpu": "2"}, ["a"]),
    ({"requests.nvidia.com/gpu": "8"}, {}, ["a", "b"]),
    ({"count/pods": "5"}, {"count/pods": "1"}, ["a"]),
    ({"pods": "3"}, {"pods": "0"}, []),
    ({"requests.cpu": "1", "services": "0"}, {}, ["a", "b"]),
    ({"requests.nvidia.com/gpu": "many"}, {}, ["a", "b"]),
])  # fmt: skip
def test_quotas_keep_out_what_finds_no_room(hard: dict[str, str], used: dict[str, str], names: list[str]) -> None:
    """Two gangs of four pods with a GPU each; what the first gets counts for the second."""
    world = world_of(QuotaRoom({}))
    quota = ResourceQuota(metadata=world.meta("q"), status=ResourceQuotaStatus(hard=hard, used=used))
    world.state.on_resource_quota(None, quota)
    wanting(world, "a", 4)
    wanting(world, "b", 4)
    assert let_in(world) == names
    if "a" in names and "b" not in names:
        reason, message = waiting(world.session(Enqueue()))["b"]
        assert (reason, next(iter(hard)) in message) == ("QuotaExceeded", True)
    world.state.on_resource_quota(quota, structs.replace(quota, spec=ResourceQuotaSpec(scopes=["BestEffort"])))
    assert let_in(world) == ["a", "b"]
    world.state.on_resource_quota(quota, None)
    assert world.state.quotas == {}


def test_a_gang_that_was_let_in_and_has_no_pods_counts_against_its_quota() -> None:
    """The API server does not know of it yet; once it has pods, the API server counts."""
    world = world_of(QuotaRoom({}))
    status = ResourceQuotaStatus(hard={"requests.nvidia.com/gpu": 8}, used={})
    world.state.on_resource_quota(None, ResourceQuota(metadata=world.meta("q"), status=status))
    old = wanting(world, "old", 5, phase="Inqueue")
    wanting(world, "new", 4)
    assert let_in(world) == []
    world.pod(old, "worker", 0, GPU1, gated=True)
    assert let_in(world) == ["new"]


def test_pods_of_the_system_are_nobodys_victims() -> None:
    """By namespace, class or value; the filter is registered wherever one is asked for."""
    world = world_of(Conformance({}))
    keys = [world.gang(name, {"worker": (1, GPU8)}) for name in ("mine", "critical", "system")]
    mine, critical, system = (world.view(key) for key in keys)
    critical.group.spec.priority_class_name = "system-node-critical"
    assert not needed_by_the_cluster(critical), "anybody can write that into a PodGroup"
    world.pod(critical.key, "worker", 0, GPU8, priority_class="system-node-critical")
    critical = world.view(critical.key)
    system.group.metadata.namespace = "kube-system"
    assert [needed_by_the_cluster(gang) for gang in (mine, critical, system)] == [False, True, True]
    mine.priority = 2_000_001_000
    assert needed_by_the_cluster(mine)
    world.session()
