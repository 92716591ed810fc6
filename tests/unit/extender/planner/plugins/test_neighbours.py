"""What the pods that are there decide: ports, claims, affinity, anti-affinity, topology spread."""

from collections import Counter
from typing import Any

import msgspec
import pytest
from extender_world import World, of, slots, waiting, where

from extender.planner.framework import decisions
from extender.planner.framework.statement import Statement
from extender.planner.plugins.interpodaffinity import NAMED, InterPodAffinity, Mask
from extender.planner.state.podcounts import Counts
from muster.api.kubernetes.core import Namespace, Pod, Taint
from muster.api.kubernetes.storage import PersistentVolumeClaim, StorageClass

ZONE, HOST = "zone", "kubernetes.io/hostname"
SMALL = {"cpu": 1}
JOB = "volcano.sh/job-name"


def zones(*names: str, gpus: int = 8) -> World:
    """One node per name, in the zone of that name."""
    world = World()
    for index, zone in enumerate(names):
        world.node(f"node-{index}", gpus=gpus, labels={HOST: f"node-{index}"} | ({ZONE: zone} if zone else {}))
    return world


def stand(
    world: World, name: str, node: str, *, namespace: str = "ns", labels: dict[str, str] | None = None, **spec: Any
) -> Pod:
    """A pod of somebody else that runs on a node."""
    meta = msgspec.to_builtins(world.meta(name, uid=f"uid-{name}", namespace=namespace, labels=labels or {}))
    deleted = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if spec.pop("leaving", False) else {}
    body = {"metadata": meta | deleted, "spec": {**world.pod_spec(SMALL), "nodeName": node, **spec}}
    pod = msgspec.convert(body, Pod)
    world.state.on_pod(None, pod)
    return pod


def term(key: str, **labels: str) -> dict[str, Any]:
    """An affinity term."""
    return {"topologyKey": key, "labelSelector": {"matchLabels": labels}}


def affinity(kind: str, *terms: dict[str, Any]) -> dict[str, Any]:
    """Required podAffinity or podAntiAffinity."""
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [*terms]}}}


def port(number: int = 80, address: str = "", protocol: str = "TCP") -> dict[str, Any]:
    """A container with a host port."""
    ports = [{"containerPort": number, "hostPort": number, "hostIP": address, "protocol": protocol}]
    return {"containers": [{"name": "main", "resources": {"requests": SMALL}, "ports": ports}]}


@pytest.mark.parametrize(("taken", "wanted", "free"), [
    (("", "TCP"), ("", "TCP"), False),
    (("", "TCP"), ("10.0.0.1", "TCP"), False),
    (("10.0.0.1", "TCP"), ("", "TCP"), False),
    (("10.0.0.1", "TCP"), ("10.0.0.2", "TCP"), True),
    (("10.0.0.1", "TCP"), ("10.0.0.1", "TCP"), False),
    (("", "UDP"), ("", "TCP"), True),
])  # fmt: skip
def test_a_host_port_is_taken_per_protocol_and_address(
    taken: tuple[str, str], wanted: tuple[str, str], *, free: bool
) -> None:
    """No address means all of them."""
    world = zones("a")
    stand(world, "other", "node-0", **port(80, *taken))
    world.gang("a", {"worker": (1, SMALL)}, spec=port(80, *wanted))
    if free:
        assert where(world.plan())["a"] == ["node-0"]
    else:
        assert "1 host port 80 is in use" in waiting(world.plan())["a"][1]


def test_pods_with_a_host_port_never_share_a_node_and_hold_it_before_they_run() -> None:
    """Neither those of one gang nor those of two that are planned in one cycle or in two."""
    world = zones("a", "a", "a", "a")
    world.gang("a", {"worker": (2, SMALL)}, spec=port())
    assert where(world.plan())["a"] == ["node-0", "node-1"]
    world.now += 1
    world.gang("b", {"worker": (1, SMALL)}, spec=port())
    world.gang("c", {"worker": (1, SMALL)}, spec=port())
    assert where(world.plan()) in ({"b": ["node-2"], "c": ["node-3"]}, {"b": ["node-3"], "c": ["node-2"]})


@pytest.mark.parametrize(("there", "nodes", "words"), [
    (("a", "a", "b", "c"), ["node-0", "node-2", "node-3"], ""),
    (("a", "a", "b"), [], "room is missing for 3 pods of 1 cpu each: 2 fit now"),
])  # fmt: skip
def test_pods_of_a_gang_that_avoid_each_other_get_a_domain_each(
    there: tuple[str], nodes: list[str], words: str
) -> None:
    """Anti-affinity with its own kind; the last one may find none."""
    world = zones(*there)
    world.gang("a", {"worker": (3, SMALL)}, spec=affinity("podAntiAffinity", term(ZONE, **{JOB: "a"})))
    session = world.plan()
    assert where(session).get("a", []) == nodes
    assert words in waiting(session).get("a", ("", ""))[1]


def test_pods_that_run_keep_away_whom_they_do_not_want() -> None:
    """The other direction: their anti-affinity, in their own namespace unless they say another."""
    world = zones("a", "b")
    stand(world, "loner", "node-0", **affinity("podAntiAffinity", term(ZONE, **{JOB: "a"})))
    stand(world, "foreign", "node-1", namespace="other", **affinity("podAntiAffinity", term(ZONE, **{JOB: "a"})))
    world.gang("a", {"worker": (1, SMALL)})
    assert where(world.plan())["a"] == ["node-1"]


def test_two_gangs_planned_in_one_cycle_respect_each_other() -> None:
    """What the first one gets counts at once; what a rollback takes back does not."""
    world = zones("a", "b")
    world.gang("a", {"worker": (1, SMALL)}, spec=affinity("podAntiAffinity", term(ZONE, **{JOB: "b"})))
    world.now += 1
    world.gang("b", {"worker": (1, SMALL)})
    assert where(world.plan()) == {"a": ["node-0"], "b": ["node-1"]}


def test_affinity_leads_to_the_domain_of_the_pods_it_names() -> None:
    """Nodes without the label are out; pods of other namespaces count only if they are named."""
    world = zones("", "a", "b")
    stand(world, "cache", "node-2", labels={"app": "cache"})
    stand(world, "elsewhere", "node-1", namespace="other", labels={"app": "cache"})
    world.gang("a", {"worker": (2, SMALL)}, spec=affinity("podAffinity", term(ZONE, app="cache")))
    assert where(world.plan())["a"] == ["node-2", "node-2"]


def test_the_first_pod_of_a_group_may_go_anywhere_and_the_others_follow_into_a_domain_that_holds_all() -> None:
    """Zone a has the best node but only one; so the gang begins in zone b."""
    world = zones("a", "b", "b", gpus=1)
    world.gang("a", {"worker": (2, {"nvidia.com/gpu": 1})}, spec=affinity("podAffinity", term(ZONE, **{JOB: "a"})))
    assert where(world.plan())["a"] == ["node-1", "node-2"]


def test_pods_that_follow_another_pod_set_of_their_gang_are_placed_after_it() -> None:
    """Although they are written first and ask for more."""
    world = zones("a", "a", "b")
    key = world.gang("a", {"worker": (2, {"cpu": 20}), "master": (1, SMALL)})
    follow = affinity("podAffinity", term(ZONE, **{"volcano.sh/task-spec": "master"}))
    world.job_of(key).spec.tasks[0].template["spec"] |= follow
    world.notify(None, world.job_of(key))
    [place] = of(world.plan(), decisions.Place)
    assert place.gang.key == key
    assert slots(place) == {"master": ["node-0"], "worker": ["node-0", "node-1"]}


def test_affinity_to_nobody_waits_and_says_so() -> None:
    """A pod that is not of the group itself must find it there."""
    world = zones("a")
    world.gang("a", {"worker": (1, SMALL)}, spec=affinity("podAffinity", term(ZONE, app="none")))
    assert "1 affinity: no pod with app=none in the same zone" in waiting(world.plan())["a"][1]


def test_namespaces_are_chosen_by_their_labels() -> None:
    """And chosen anew when the labels change."""
    world = zones("a", "b")
    stand(world, "there", "node-0", namespace="other", labels={"app": "x"})
    red = term(ZONE, app="x") | {"namespaceSelector": {"matchLabels": {"team": "red"}}}
    key = world.gang("a", {"worker": (1, SMALL)}, spec=affinity("podAntiAffinity", red))
    fits = []
    for team in ("red", "blue"):
        world.state.on_namespace(None, Namespace(metadata=world.meta("other", namespace="", labels={"team": team})))
        fits.append([cause == "fits" for cause in world.causes_of(key, 2)])
    assert fits == [[False, True], [True, True]]


def test_pods_are_spread_with_at_most_max_skew() -> None:
    """Over the zones that there are, counting those that run; pods that are being deleted do not count."""
    world = zones("a", "b", "c")
    stand(world, "old", "node-0", labels={JOB: "a"})
    stand(world, "going", "node-1", labels={JOB: "a"}, leaving=True)
    spread = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    spread["labelSelector"] = {"matchLabels": {JOB: "a"}}
    world.gang("a", {"worker": (5, SMALL)}, spec={"topologySpreadConstraints": [spread]})
    assert Counter(where(world.plan())["a"]) == {"node-0": 1, "node-1": 2, "node-2": 2}


TAINT = Taint(key="sick", effect="NoSchedule")
SELECTS = {"nodeSelector": {"pool": "x"}}


@pytest.mark.parametrize(("first", "second", "spec", "policies", "nodes"), [
    pytest.param({}, {"labels": {ZONE: "a"}}, {}, {}, ["node-1"] * 3, id="a node without the label takes none"),
    pytest.param({"labels": {ZONE: "a", "pool": "x"}}, {"labels": {ZONE: "b"}}, SELECTS, {}, ["node-0"] * 3,
                 id="a zone whose nodes the pods may not have does not count"),
    pytest.param({"labels": {ZONE: "a", "pool": "x"}}, {"labels": {ZONE: "b"}}, SELECTS,
                 {"nodeAffinityPolicy": "Ignore"}, [], id="it does by its policy"),
    pytest.param({"labels": {ZONE: "a"}}, {"labels": {ZONE: "b"}, "taints": [TAINT]}, {}, {}, [],
                 id="a zone whose nodes are tainted counts"),
    pytest.param({"labels": {ZONE: "a"}}, {"labels": {ZONE: "b"}, "taints": [TAINT]}, {}, {"nodeTaintsPolicy": "Honor"},
                 ["node-0"] * 3, id="it does not by its policy"),
    pytest.param({"labels": {ZONE: "a"}}, {"labels": {ZONE: "b"}}, {}, {}, ["node-0", "node-0", "node-1"],
                 id="two zones"),
    pytest.param({"labels": {ZONE: "a"}}, {"labels": {ZONE: "b"}}, {}, {"minDomains": 3}, [],
                 id="a zone that is missing"),
])  # fmt: skip
def test_zones_that_pods_are_spread_over(
    first: dict[str, Any], second: dict[str, Any], spec: dict[str, Any], policies: dict[str, Any], nodes: list[str]
) -> None:
    """Those of nodes that have the label and, by the policies of the constraint, that the pods may have."""
    world = World()
    for number, each in enumerate((first, second)):
        world.node(f"node-{number}", **each)
    spread = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", **policies}
    spread["labelSelector"] = {"matchLabels": {JOB: "a"}}
    world.gang("a", {"worker": (3, SMALL)}, spec={"topologySpreadConstraints": [spread], **spec})
    assert sorted(where(world.plan()).get("a", [])) == nodes


def test_a_full_zone_stops_the_spread_and_the_cause_names_it() -> None:
    """Zone b has no room, so zone a may be only one ahead; with minDomains 3 the missing zone counts as empty."""
    world = World().nodes(1, labels={ZONE: "a"})
    world.node("node-1", labels={ZONE: "b"}, gpus=0)
    spread = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    spread["labelSelector"] = {"matchLabels": {JOB: "a"}}
    tasks = {"worker": (2, {"nvidia.com/gpu": 1})}
    key = world.gang("a", tasks, min_member=1, spec={"topologySpreadConstraints": [spread]})
    assert where(world.plan())["a"] == ["node-0"]
    assert world.causes_of(key, 2) == ["spread over zone would exceed maxSkew 1", "fits"]


@pytest.mark.parametrize("used", [False, True])
def test_a_claim_for_one_pod_is_used_by_one_pod(*, used: bool) -> None:
    """ReadWriteOncePod: not by two pods of a gang, nor while another pod has it."""
    world = zones("a", "b")
    metadata = {"name": "data", "namespace": "ns", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
    claim = {"metadata": metadata, "spec": {"accessModes": ["ReadWriteOncePod"], "storageClassName": "later"}}
    world.state.on_claim(None, msgspec.convert(claim, PersistentVolumeClaim))
    later = {"metadata": {"name": "later"}, "volumeBindingMode": "WaitForFirstConsumer"}
    world.state.on_storage_class(None, msgspec.convert(later, StorageClass))
    mounts = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}
    if used:
        stand(world, "user", "node-0", **mounts)
    world.gang("a", {"worker": (2, SMALL)}, min_member=1, spec=mounts)
    session = world.plan()
    assert where(session) == ({} if used else {"a": ["node-0"]})
    assert not used or "2 claim ns/data is used by another pod" in waiting(session)["a"][1]


def test_a_placement_being_carried_out_is_not_refused_by_its_own_members() -> None:
    """Each held slot keeps the others away from its node, but not itself."""
    world = zones("a", "b")
    world.gang("a", {"worker": (2, SMALL)}, spec=affinity("podAntiAffinity", term(HOST, **{JOB: "a"})) | port())
    assert where(world.plan())["a"] == ["node-0", "node-1"]
    assert not of(world.plan(), (decisions.ClosePlacement, decisions.Place))


def test_pods_with_a_claim_each_go_where_their_own_volume_is() -> None:
    """Slots of one pod set may differ once their pods exist."""
    world = zones("a", "b")
    key = world.gang("a", {"worker": (2, SMALL)})
    for rank, node in ((0, "node-1"), (1, "node-0")):
        world.change(world.pod(key, "worker", rank, SMALL, gated=True), spec={"node_selector": {HOST: node}})
    assert where(world.plan())["a"] == ["node-1", "node-0"]


def test_many_anti_affinities_of_others_are_looked_at_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Anybody's pod may have dozens that match all pods: each would be a look at all nodes, for every kind of pods."""
    world = zones("a", "b", "b")
    expressions = [[{"key": "app", "operator": "NotIn", "values": [f"none-{number}"]}] for number in range(60)]
    terms = [{"topologyKey": ZONE, "labelSelector": {"matchExpressions": each}} for each in expressions]
    stand(world, "hater", "node-1", **affinity("podAntiAffinity", *terms))
    world.gang("a", {"worker": (1, SMALL)})
    looks: list[str] = []
    look = InterPodAffinity._domains_with

    def counted(self: InterPodAffinity, key: str, counts: Counts | None) -> Mask:
        looks.append(key)
        return look(self, key, counts)

    monkeypatch.setattr(InterPodAffinity, "_domains_with", counted)
    assert where(world.plan())["a"] == ["node-0"]
    assert len(looks) <= NAMED + 1


def test_none_of_many_anti_affinities_is_left_out() -> None:
    """Each keeps pods away from its own node."""
    world = zones(*(f"z{number}" for number in range(20)))
    for number in range(19):
        expression = {"key": "app", "operator": "NotIn", "values": [f"none-{number}"]}
        term = {"topologyKey": ZONE, "labelSelector": {"matchExpressions": [expression]}}
        stand(world, f"hater-{number}", f"node-{number}", **affinity("podAntiAffinity", term))
    world.gang("a", {"worker": (1, SMALL)})
    assert where(world.plan())["a"] == ["node-19"]


def test_a_trial_changes_no_count_of_the_snapshot() -> None:
    """The state uses the same counts for the next cycle."""
    world = zones("a", "b")
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {JOB: "a"}}}
    spec = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
    key = world.gang("a", {"worker": (2, SMALL)}, spec=spec, min_member=1, min_task_member={})
    world.pod(key, "worker", 0, SMALL, node="node-0", phase="Running", labels={JOB: "a"})
    session = world.session()
    before = {mark: list(counts) for mark, counts in session.snapshot.pod_counts.items()}
    assert before
    Statement(session).allocate(world.view(key), "worker", [1], 1, world.view(key).pods[0].cls)
    assert {mark: list(counts) for mark, counts in session.snapshot.pod_counts.items()} == before
