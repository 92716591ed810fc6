"""The demands of one pod cost what they concern, and whoever asks for much waits for it himself."""

import sys
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from extender_world import World, of

from extender.planner.framework import decisions
from extender.planner.state.pods import PodRecord
from extender.planner.state.queries import Labels, Query
from muster.api.kubernetes.core import Pod, PodSpec
from muster.api.kubernetes.devices import ResourceClaim
from muster.api.limits import NODE_CONDITIONS, OWN_QUERIES, TERMS, TOLERATIONS, TOPOLOGY_KEYS, WIDE_QUERIES, Limit
from webhook.validate.pod import check_pod

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
PODS = 100
JSON = dict[str, Any]


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The namespaces of pods that are compared with a query, once for each."""
    seen: list[str] = []
    matches = Query.matches

    def counted(self: Query, namespace: str, labels: Labels, namespace_labels: Labels) -> bool:
        seen.append(namespace)
        return matches(self, namespace, labels, namespace_labels)

    monkeypatch.setattr(Query, "matches", counted)
    return seen


def term(number: int, *, key: str = "zone", everywhere: bool = False) -> JSON:
    """One of many different terms that match all pods."""
    expressions = [{"key": "app", "operator": "NotIn", "values": [f"none-{number}"]}]
    more = {"namespaceSelector": {}} if everywhere else {}
    return {"topologyKey": key, "labelSelector": {"matchExpressions": expressions}, **more}


def node_affinity(conditions: list[JSON]) -> JSON:
    """Conditions in required and in preferred terms, alternately."""
    required = {"nodeSelectorTerms": [{"matchExpressions": conditions[::2]}]}
    preferred = [{"weight": 1, "preference": {"matchExpressions": [each]}} for each in conditions[1::2]]
    return {"affinity": {"nodeAffinity": {REQUIRED: required, PREFERRED: preferred}}}


def terms(count: int, *, first: int = 0, everywhere: bool = False) -> list[JSON]:
    """So many different terms that match all pods."""
    return [term(first + number, everywhere=everywhere) for number in range(count)]


def pod(
    world: World, name: str, namespace: str = "ns", *, far: list[JSON] | None = None, near: list[JSON] | None = None,
    node: str = "", scheduler: str = "muster", **labels: str,
) -> PodRecord | None:  # fmt: skip
    """A pod without a gang, with required (anti-)affinity terms; None if it is set aside."""
    affinity = {"podAntiAffinity": {REQUIRED: far or []}, "podAffinity": {REQUIRED: near or []}}
    body = {
        "metadata": msgspec.to_builtins(world.meta(name, uid=f"uid-{name}", namespace=namespace, labels=labels)),
        "spec": {**world.pod_spec({"cpu": 1}), "affinity": affinity, "schedulerName": scheduler, "nodeName": node},
    }
    world.state.on_pod(None, msgspec.convert(body, Pod))
    return world.state.pods.get(f"uid-{name}")


def crowd(world: World, *namespaces: str) -> None:
    """Pods without demands."""
    for namespace in namespaces:
        for number in range(PODS):
            pod(world, f"{namespace}-{number}", namespace, app=f"app-{number}")


def test_new_terms_are_compared_once_with_each_pod_of_their_namespaces(looks: list[str]) -> None:
    """Not with those of other namespaces, and not with each other for each pod."""
    world = World(checked=False)
    crowd(world, "ns", "other")
    pod(world, "asks", far=terms(50))
    assert looks.count("ns") <= 50 * (PODS + 2)
    assert looks.count("other") == 0
    assert len(world.state.pods["uid-ns-0"].cls.matched) == 50


def test_a_term_with_a_label_is_not_compared_with_pods_that_lack_it(looks: list[str]) -> None:
    """With its value, if it says one."""
    world = World(checked=False)
    crowd(world, "ns")
    selectors = [{"matchLabels": {"app": "app-7"}}, {"matchExpressions": [{"key": "other", "operator": "Exists"}]}]
    pod(world, "asks", far=[{"topologyKey": "zone", "labelSelector": each} for each in selectors])
    assert (len(looks), len(world.state.pods["uid-ns-7"].cls.matched)) == (1, 1)


def test_only_what_a_pod_of_another_scheduler_keeps_away_counts(looks: list[str]) -> None:
    """And that once it is on a node: until then nobody knows where."""
    world = World(checked=False)
    crowd(world, "ns")
    waiting = pod(world, "other", far=terms(3), near=terms(3, first=10), scheduler="default-scheduler")
    assert not waiting.cls.neighbours
    assert looks == []
    bound = pod(world, "other", far=terms(3), near=terms(3, first=10), scheduler="default-scheduler", node="node-0")
    assert (len(bound.cls.neighbours.apart), bound.cls.neighbours.together) == (3, None)


def test_a_pod_with_too_many_terms_is_set_aside_until_it_is_on_a_node() -> None:
    """There its room is used, and as many of its terms count as are allowed."""
    world = World(checked=False).nodes(1)
    assert pod(world, "greedy", far=terms(TERMS.value + 1)) is None
    assert "at most 64 are allowed" in world.state.exclusions.pods["uid-greedy"]
    assert len(pod(world, "greedy", far=terms(TERMS.value + 1), node="node-0").cls.neighbours.apart) == TERMS.value
    assert world.state.nodes.used[world.state.nodes.axis["cpu"], 0] == 1000
    assert not world.state.exclusions.pods


@pytest.mark.parametrize(("limit", "spec"), [
    (NODE_CONDITIONS, lambda count: {"nodeSelector": {f"key-{number}": "x" for number in range(count)}}),
    (NODE_CONDITIONS, lambda count: node_affinity([{"key": "a", "operator": "Exists"}] * count)),
    (TOLERATIONS, lambda count: {"tolerations": [{"operator": "Exists"}] * count}),
])  # fmt: skip
def test_a_pod_with_too_many_conditions_about_nodes_is_set_aside(limit: Limit, spec: Callable[[int], JSON]) -> None:
    """On a node its requests count; admission names the field and the limit."""
    world = World(checked=False).nodes(1)
    for name, count, node in (("fits", 0, ""), ("greedy", 1, ""), ("bound", 1, "node-0")):
        body = world.pod_spec({"cpu": 1}) | {"schedulerName": "muster", "nodeName": node} | spec(limit.value + count)
        meta = msgspec.to_builtins(world.meta(name, uid=f"uid-{name}"))
        world.state.on_pod(None, msgspec.convert({"metadata": meta, "spec": body}, Pod))
        errors = [*check_pod({}, msgspec.convert(body, PodSpec))]
        assert [limit.name in str(error) for error in errors] == [True] * count
    assert [*world.state.exclusions.pods] == ["uid-greedy"]
    assert f"at most {limit.value} {limit.unit}" in world.state.exclusions.pods["uid-greedy"]


def test_a_pod_with_too_many_conditions_is_set_aside() -> None:
    """Each may be looked at for each pod."""
    world = World(checked=False)
    labels = {f"key-{number}": "x" for number in range(300)}
    assert pod(world, "greedy", near=[{"topologyKey": "zone", "labelSelector": {"matchLabels": labels}}]) is None
    assert "conditions; at most 256" in world.state.exclusions.pods["uid-greedy"]


@pytest.mark.parametrize(("everywhere", "limit"), [(True, WIDE_QUERIES.value), (False, OWN_QUERIES.value)])
def test_the_terms_of_a_namespace_are_limited(*, everywhere: bool, limit: int) -> None:
    """Further ones are left to kube-scheduler; they count again when others are gone."""
    world = World(checked=False)
    victim = pod(world, "victim", "other" if everywhere else "ns")
    for number in range(limit // TERMS.value + 1):
        pod(world, f"greedy-{number}", far=terms(TERMS.value, first=100 * number, everywhere=everywhere))
    victim = world.state.pods["uid-victim"]
    assert len(victim.cls.matched) == limit
    assert not world.state.pods[f"uid-greedy-{number}"].cls.neighbours
    assert pod(world, "modest", "third", far=terms(1, everywhere=True)).cls.neighbours
    for each in range(number):
        world.state.on_pod(Pod(metadata=world.meta(f"greedy-{each}", uid=f"uid-greedy-{each}")), None)
    world.state.settle()
    assert len(pod(world, "greedy", far=terms(1, first=10_000, everywhere=everywhere)).cls.neighbours.apart) == 1
    assert len(world.state.pods["uid-victim"].cls.matched) == 2, "it forgets those that are gone"


def test_equal_terms_have_a_limit_of_topology_keys() -> None:
    """Pods are counted for each on every node."""
    record = pod(World(checked=False), "greedy", far=[term(0, key=f"key-{number}") for number in range(20)])
    assert len(record.cls.neighbours.apart) == TOPOLOGY_KEYS.value


def test_a_gang_waits_until_its_terms_are_compared_and_others_do_not() -> None:
    """Whoever asks for much is compared in turns with who asks for little."""
    world = World(checked=False, looks=1).nodes(2)
    crowd(world, "ns", "greedy")
    pod(world, "asks", "greedy", far=terms(50, everywhere=True))
    asks = world.gang("asks", {"worker": (1, {"cpu": 1})}, spec={"affinity": {"podAntiAffinity": {REQUIRED: terms(1)}}})
    silent = world.gang("silent", {"worker": (1, {"cpu": 1})})
    session = world.plan()
    assert [place.gang.key for place in of(session, decisions.Place)] == [silent]
    assert [(each.gang.key, each.reason) for each in of(session, decisions.Unschedulable)] == [(asks, "NotComparedYet")]
    while not world.view(asks).compared:
        world.state.compare(500)
    assert world.state.comparisons.pending, "the greedy one is not done"
    assert [place.gang.key for place in of(world.plan(), decisions.Place)] == [asks]


def test_terms_that_come_while_others_of_their_namespace_are_compared_wait_their_turn() -> None:
    """Neither are those forgotten that are under way."""
    world = World(checked=False, looks=1).nodes(2)
    crowd(world, "ns")
    pod(world, "first", far=terms(30))
    assert world.state.comparisons.pending
    pod(world, "second", far=terms(30, first=30))
    world.state.compare(1)
    while world.state.comparisons.pending:
        world.state.compare(100)
    assert len(world.state.pods["uid-ns-0"].cls.matched) == 60


def test_an_event_does_not_do_more_than_its_share(looks: list[str]) -> None:
    """The rest is done later, a little at a time."""
    told: list[bool] = []
    world = World(checked=False, looks=100)
    world.state._later = lambda: told.append(True)
    crowd(world, "ns")
    pod(world, "asks", far=terms(50))
    assert len(looks) <= 300
    assert told
    while world.state.comparisons.pending:
        looks.clear()
        world.state.compare(100)
        assert len(looks) <= 300
    assert len(world.state.pods["uid-ns-0"].cls.matched) == 50


def test_many_who_ask_for_little_wait_their_turn_too() -> None:
    """A round that ends costs a look, so that no event does all of them."""
    world = World(checked=False, looks=0)
    for number in range(20):
        pod(world, f"asks-{number}", f"ns-{number}", far=terms(1))
    steps = 0
    while world.state.comparisons.pending:
        world.state.compare(1)
        steps += 1
    assert steps >= 20


def test_marks_take_little_memory() -> None:
    """Ten thousand pods that a thousand terms match, each by other ones, take some hundred megabytes at most."""
    world = World(checked=False)
    count = OWN_QUERIES.value
    for number in range(count // TERMS.value):
        pod(world, f"greedy-{number}", far=terms(TERMS.value, first=TERMS.value * number))
    first, other = (pod(world, f"none-{number}", app=f"none-{number}") for number in range(2))
    for cls, lacks in ((first.cls, 1), (other.cls, 2)):
        assert len(cls.matched) == count - 1
        assert ("all", lacks) not in cls.matched
        assert all(("all", number) in cls.matched for number in range(1, count + 1) if number != lacks)
        assert cls.marks is cls.matched
        assert sys.getsizeof(cls.marks) + sys.getsizeof(cls.key) < 10_000


def test_a_claim_of_many_pods_is_looked_at_in_steps() -> None:
    """And their gang waits meanwhile."""
    world = World(checked=False, looks=20).nodes(1)
    uses = {"resourceClaims": [{"name": "c", "resourceClaimName": "claim"}]}
    key = world.gang("asks", {"worker": (1, {"cpu": 1})})
    for number in range(PODS):
        meta = world.meta(f"p{number}", uid=f"p{number}", annotations={"scheduling.k8s.io/group-name": "asks"})
        spec = {**world.pod_spec({"cpu": 1}), "schedulerName": "muster", **uses}
        world.state.on_pod(None, msgspec.convert({"metadata": msgspec.to_builtins(meta), "spec": spec}, Pod))
    world.state.settle()
    before = {uid: record.cls for uid, record in world.state.pods.items()}
    requests = [{"name": "r", "exactly": {"deviceClassName": "gpus", "count": 1}}]
    claim = {"metadata": msgspec.to_builtins(world.meta("claim")), "spec": {"devices": {"requests": requests}}}
    world.state.claimants.on_claim(None, msgspec.convert(claim, ResourceClaim))
    assert sum(record.cls is not before[uid] for uid, record in world.state.pods.items()) < PODS // 4
    assert not world.view(key).compared
    world.state.settle()
    assert all(record.cls is not before[uid] for uid, record in world.state.pods.items())
    assert world.view(key).compared
