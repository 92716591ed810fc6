"""Queues and PodGroups that could not work are refused, in words of Volcano's webhook, which tools look for."""

from itertools import product
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from webhook_world import JSON, DownWorld, OwnerWorld, QueueTree, QueueWorld, apply, lookups, request

from muster.api import names
from muster.api.kubernetes.admission import UserInfo
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.muster.placement import Placement
from muster.api.volcano.scheduling import Queue, QueueSpec
from muster.kube.client import Client
from muster.kube.config import ClientConfig
from webhook.caches import QueueLookup
from webhook.mutate import queues as mutate_queues
from webhook.validate import podgroup, queue

MINE = "system:serviceaccount:team:robot"
CONTROLLER = "system:serviceaccount:muster-system:muster-controller"
SIZED = QueueTree({"metadata": {"name": "root"}, "spec": {"deserved": {"other.org/x": 1}}, "status": {
    "largestNode": {"nvidia.com/gpu": 8}}})  # fmt: skip
QUEUES = QueueWorld(a=("root", "Open"), b=("a", "Open"), c=("b", ""), d=("c", ""), e=("d", ""), shut=("root", "Closed"),
                    closing=("root", "Closing"), parent=("root", "Closing"), leaf=("parent", "Closing"))  # fmt: skip


def a_queue(name: str = "new", parent: str = "root", annotations: JSON | None = None, **spec: Any) -> JSON:
    """A queue."""
    return {"metadata": {"name": name, "annotations": annotations or {}}, "spec": {"parent": parent, **spec}}


BAD = {
    "bad quantity": (a_queue(capability={"cpu": "many"}), "spec.capability[cpu]", "is not a quantity"),
    "negative": (a_queue(deserved={"cpu": "-1"}), "spec.deserved[cpu]", "must not be negative"),
    "guarantee over deserved": (a_queue(deserved={"cpu": "1"}, guarantee={"resource": {"cpu": "1500m"}}),
        "spec.guarantee.resource[cpu]", '"1500m": deserved[cpu]=1000m must be >= guarantee[cpu]=1500m'),
    "guarantee without deserved": (a_queue(guarantee={"resource": {"memory": "1Gi"}}),
        "spec.guarantee.resource[memory]",
        "deserved[memory] must be >= guarantee[memory]=1073741824; set spec.deserved[memory] too"),
    "guarantee within capability only": (a_queue(capability={"cpu": 1}, guarantee={"resource": {"cpu": 2}}),
        "spec.guarantee.resource[cpu]", "deserved[cpu] must be >= guarantee[cpu]=2000m"),
    "CPUs over capability": (a_queue(deserved={"cpu": 8, "memory": 1}, capability={"cpu": 4}), "spec.deserved[cpu]",
                             "deserved[cpu]=8000m must be <= capability[cpu]=4000m"),
    "deserved over capability": (a_queue(deserved={"nvidia.com/gpu": 9}, capability={"nvidia.com/gpu": 8}),
        "spec.deserved[nvidia.com/gpu]", "deserved[nvidia.com/gpu]=9 must be <= capability[nvidia.com/gpu]=8"),
    "own parent": (a_queue(parent="new"), "spec.parent",
                   "cannot use itself as parent: a queue can not be its own ancestor: new is below new"),
    "circle": (a_queue("a", parent="b"), "spec.parent", "a is below b is below a"),
    "unknown parent": (a_queue(parent="nowhere"), "spec.parent", "queue nowhere does not exist; create it first"),
    "too long a notice": (a_queue(annotations={"muster.dev/max-evict-notice": "2h"}),
        "metadata.annotations[muster.dev/max-evict-notice]", "must be at most 3600 (seconds; limit 'eviction notice')"),
    "weights": (a_queue(annotations={"muster.dev/weights": "nvidia.com/gpu=-1"}),
        "metadata.annotations[muster.dev/weights]",
        "'nvidia.com/gpu=-1' is not a resource with a weight from 0 to 65535; write it like nvidia.com/gpu=0,cpu=2.5"),
    "a key that is misspelt": (a_queue(annotations={"muster.dev/max-per-usr": "cpu=1"}),
        "metadata.annotations[muster.dev/max-per-usr]",
        "no annotation of a Queue known to Muster, so it has no effect; did you mean muster.dev/max-per-user?"),
    "a name that is no label": (a_queue("q" * 64), "metadata.name", "must have at most 63 characters (it has 64)"),
    "a key in the plural": (a_queue(annotations={"muster.dev/budgets": "cpu=1h/day"}),
        "metadata.annotations[muster.dev/budgets]", "did you mean muster.dev/budget?"),
    "an annotation as a label": ({"metadata": {"name": "new", "labels": {"muster.dev/budget": "x"}}, "spec": {}},
        "metadata.labels[muster.dev/budget]", "it is an annotation"),
    "too deep": (a_queue(parent="e"), "spec.parent", "exceeds the maximum allowed depth of 5: at most 5 levels"),
}  # fmt: skip


def test_a_resource_that_no_node_has_is_warned_of() -> None:
    """A misspelt amount has no effect; an update repeats no warning, and has those of what it adds."""
    sound = {"cpu": 1, "memory": 1, "pods": 1, "hugepages-2Mi": 1, "nvidia.com/gpu": 1, "example.com/thing": 1}
    review = queue.reviewer(SIZED)
    [of_domain] = review(request(a_queue(deserved=sound))).warnings
    assert of_domain.endswith(
        "no node has a resource of this name; the amount has an effect once a node has the resource"
    )
    del sound["example.com/thing"]
    sound |= {"other.org/x": 1}
    assert list(review(request(a_queue(deserved=sound))).warnings) == []
    wrong = a_queue(deserved={"memroy": 1, "thing": 1}, guarantee={"resource": {}})
    of_memory, of_thing = review(request(wrong)).warnings
    assert of_memory == "spec.deserved[memroy]: no node has a resource of this name; did you mean memory?"
    assert of_thing.endswith("it must be cpu, memory, pods, ephemeral-storage, or have a domain")
    more = a_queue(deserved={"memroy": 2, "thing": 1}, capability={"GPU": 8})
    [added] = review(request(more, "UPDATE", wrong)).warnings
    assert added == "spec.capability[GPU]: no node has a resource of this name; did you mean nvidia.com/gpu?"


@pytest.mark.parametrize(("typed", "largest", "meant"), [
    ("CPU", {}, "did you mean cpu?"),
    ("gpu", {}, "it must be cpu, memory, pods, ephemeral-storage, or have a domain"),
    ("gpu", {"amd.com/gpu": "8"}, "did you mean amd.com/gpu?"),
    ("memroy", {"amd.com/gpu": "8"}, "did you mean memory?"),
    ("amd.com/gpus", {"amd.com/gpu": "8"}, "did you mean amd.com/gpu?"),
])  # fmt: skip
def test_the_resource_that_was_meant_is_one_of_the_nodes(typed: str, largest: JSON, meant: str) -> None:
    """Those of Kubernetes, and those that the largest nodes have."""
    root = {"metadata": {"name": "root"}, "spec": {}, "status": {"state": "Open", "largestNode": largest}}
    [warning] = queue.reviewer(QueueTree(root))(request(a_queue(deserved={typed: 1}))).warnings
    assert warning.endswith(f"; {meant}")


def test_a_limit_of_a_resource_that_no_node_has_is_warned_of() -> None:
    """As of an amount in the spec, in every limit that names resources."""
    limits = {
        "muster.dev/max-per-user": "cpuu=1,nvidia.com/gpu=1",
        "muster.dev/budget": "memroy=1h/day,cpu=1h/day",
        "muster.dev/limit-windows": "Mon-Fri 08:00-18:00 Europe/Berlin podss=32,cpu=1",
        "muster.dev/weights": "cpuu=1",
    }
    found = queue.reviewer(QUEUES)(request(a_queue(annotations=limits)))
    assert found.errors == []
    assert {each.partition(": ")[0] for each in found.warnings} == {
        f"metadata.annotations[{key}][{name}]"
        for key, name in zip(limits, ["cpuu", "memroy", "podss", "cpuu"], strict=True)
    }
    assert found.warnings[0].endswith("no node has a resource of this name; did you mean cpu?")


def test_an_unknown_key_that_was_there_stays() -> None:
    """An update is refused for what it adds; the keys of every version before stay writable around it."""
    before = a_queue(annotations={"muster.dev/older": "1"})
    review = queue.reviewer(QUEUES)
    assert not review(request(a_queue(annotations={"muster.dev/older": "2"}, weight=3), "UPDATE", before)).errors
    more = a_queue(annotations={"muster.dev/older": "1", "muster.dev/budgets": "1"})
    assert len(review(request(more, "UPDATE", before)).errors) == 1


@pytest.mark.parametrize(("obj", "path", "words"), BAD.values(), ids=BAD.keys())
def test_bad_queues(obj: JSON, path: str, words: str) -> None:
    """Each mistake is refused at its field."""
    errors = queue.reviewer(QUEUES)(request(obj)).errors
    assert [error.path for error in errors] == [path]
    assert words in str(errors[0])


def test_good_queues() -> None:
    """Amounts that fit together pass, also the root."""
    for obj in (
        a_queue(),
        a_queue("root"),
        a_queue(parent="d"),
        a_queue(capability={"cpu": 8}, deserved={"cpu": 4}, guarantee={"resource": {"cpu": "4000m"}}),
    ):
        assert not queue.reviewer(QUEUES)(request(obj)).errors


def test_a_null_is_a_field_that_is_absent() -> None:
    """The API server keeps them in custom objects: server-side apply of an empty map leaves one."""
    one = {"metadata": {"name": "new", "annotations": None, "labels": None}, "spec": {"capability": None}}
    assert not queue.reviewer(QUEUES)(request(one)).errors
    bad = {**one, "spec": {"capability": {"cpu": "many"}, "parent": None}}
    assert [each.path for each in queue.reviewer(QUEUES)(request(bad)).errors] == ["spec.capability[cpu]"]


@pytest.mark.parametrize(("name", "phrases"), [
    ("root", ["`root` queue can not be deleted", "has 5 child queues"]),
    ("default", ["`default` queue can not be deleted"]),
    ("a", ["has 1 child queues"]),
    ("e", []),
])  # fmt: skip
def test_deletion(name: str, phrases: list[str]) -> None:
    """The two built-in queues and queues with children stay, in the words that tools look for."""
    errors = queue.reviewer(QUEUES)(request(a_queue(name), "DELETE")).errors
    assert [phrase in str(error) for phrase, error in zip(phrases, errors, strict=True)] == [True] * len(phrases)


def test_a_queue_with_pods_stays() -> None:
    """In the words that tools look for, by the count that the API server has: the cache may be behind."""
    [error] = queue.reviewer(TREE)(request(a_queue("busy"), "DELETE")).errors
    assert "queue busy can not be deleted because it has allocated Pods: 3; close it" in str(error)
    assert not list(queue.check_delete("idle", TREE))


@pytest.mark.parametrize("now", [None, Queue(metadata=ObjectMeta(name="b"), spec=QueueSpec(parent="root"))])
def test_deletion_of_a_parent_whose_child_is_gone(now: Queue | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache that still has the child refuses nothing: the API server is asked."""
    monkeypatch.setattr(QUEUES, "live", {"b": now}.get)
    assert not list(queue.check_delete("a", QUEUES))


@pytest.mark.parametrize(("name", "owner", "refused"), [
    ("a", "", True),
    ("e", "", False),
    ("shut", "", True),
    ("shut", "batch.volcano.sh/v1alpha1", False),
    ("nowhere", "batch.volcano.sh/v1alpha1", True),
    ("shut", "batch/v1", True),
    ("root", "batch/v1", True),
    ("a", "batch/v1", True),
    ("e", "batch/v1", False),
    ("closing", "", True),
    ("closing", "apps/v1", False),
    ("closing", "batch.volcano.sh/v1alpha1", False),
    ("leaf", "apps/v1", False),
    ("parent", "apps/v1", True),
    ("nowhere", "apps/v1", True),
])  # fmt: skip
@pytest.mark.parametrize("user", ["", CONTROLLER, "eve", MINE])
def test_pod_group(name: str, owner: str, refused: bool, user: str) -> None:  # noqa: FBT001 - a column of the table
    """A user's PodGroup needs an open leaf, a controller's may enter a closing one, a reviewed Volcano Job's any.

    A user who names an owner is a user all the same. Only a user's annotations are checked: others are the workload's.
    """
    reference = {"apiVersion": owner, "kind": "Job", "name": "x", "uid": "u", "controller": True}
    metadata: JSON = {"name": "g", "ownerReferences": [reference] if owner else []}
    group = {"metadata": metadata, "spec": {"queue": name}}
    review = podgroup.reviewer(lookups(QUEUES))
    verdict = review(request(group, user_info=UserInfo(username=user)))
    assert bool(verdict.errors) == (refused or (user in {"eve", MINE} and name != "e"))
    metadata["annotations"] = {names.TOPOLOGY_REQUIRED: "a b"}
    verdict = review(request(group, user_info=UserInfo(username=user)))
    found = [error for error in verdict.errors if names.TOPOLOGY_REQUIRED in error.path]
    assert bool(found) == (not owner or user in {"eve", MINE})


JOB: JSON = {"metadata": {"name": "x", "uid": "u"}, "spec": {"queue": "e"}}
OF_THE_JOB: JSON = {
    "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "x", "uid": "u", "controller": True,
}  # fmt: skip


@pytest.mark.parametrize("key", ["muster.dev/rank", "muster.dev/of-another-version"])
def test_a_key_that_is_like_none_of_a_queue_is_warned_of(key: str) -> None:
    """So that a backup of another version can be restored."""
    verdict = queue.reviewer(QueueTree())(request(a_queue(annotations={key: "1"})))
    [warning] = verdict.warnings
    assert not verdict.errors
    assert (
        f"annotations[{key}]: is no annotation of a Queue known to Muster, so it has no effect; a Queue has" in warning
    )


OF_A_SET: JSON = {**OF_THE_JOB, "apiVersion": "apps/v1", "kind": "ReplicaSet"}


def a_group(name: str, *owners: JSON, **metadata: object) -> JSON:
    """A PodGroup in this queue."""
    return {"metadata": {"name": "g", "ownerReferences": [*owners], **metadata}, "spec": {"queue": name}}


@pytest.mark.parametrize(("old", "new", "words"), [
    (a_group("e"), a_group("shut"), "`shut` status is `Closed`"),
    (a_group("e"), a_group("a"), "can only submit job to leaf queue"),
    (a_group("e"), a_group("nowhere"), "unable to find job queue"),
    (a_group("e"), a_group("default"), ""),
    (a_group("e", OF_A_SET), a_group("closing", OF_A_SET), "`closing` status is `Closing`"),
    (a_group("shut"), a_group("shut", finalizers=["x"]), ""),
    (a_group("e"), a_group("shut", deletionTimestamp="2026-01-01T00:00:00Z"), ""),
    (a_group(""), a_group("default"), ""),
    (a_group("e", OF_THE_JOB), a_group("default", OF_THE_JOB), "must stay 'e'"),
    (a_group("e", OF_THE_JOB), a_group("default"), "must stay 'e'"),
    (a_group("e"), a_group("default", OF_THE_JOB), "must stay 'e'"),
    (a_group("default", OF_THE_JOB), a_group("e", OF_THE_JOB), ""),
    (a_group("e", {**OF_THE_JOB, "uid": "other"}), a_group("default"), "must stay 'e'"),
])  # fmt: skip
def test_a_pod_group_that_moves(old: JSON, new: JSON, words: str) -> None:
    """It needs what a new one needs; that of a Volcano Job is in the Job's queue or on its way back there."""
    errors = podgroup.reviewer(lookups(QUEUES, OwnerWorld(JOB)))(request(new, "UPDATE", old)).errors
    assert [error.path for error in errors] == ["spec.queue"] * bool(words)
    assert words in "".join(map(str, errors))


def with_least(phase: str, queue_name: str = "e", *owners: JSON, **amounts: str) -> JSON:
    """A PodGroup in this phase with these minResources."""
    group = a_group(queue_name, *owners)
    return {**group, "spec": {**group["spec"], "minResources": amounts}, "status": {"phase": phase}}


RAY: JSON = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "ray", "uid": "u", "controller": True}
MADE: JSON = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "x", "uid": "u", "controller": True}


@pytest.mark.parametrize(("old", "new", "words"), [
    (with_least("Running", cpu="2"), with_least("Running", cpu="3"), "must not be more than 2"),
    (with_least("Inqueue", cpu="2"), with_least("Inqueue", cpu="2", memory="1Gi"), "must not be more than 0"),
    (with_least("Running", cpu="2"), with_least("Pending", "default", cpu="1"), "must be left out, or stay in queue e"),
    (with_least("Running", "e", RAY, cpu="2"), with_least("Running", "default", RAY, cpu="2"), "must stay in queue e"),
    (with_least("Running", "e", RAY, cpu="2"), with_least("Running", "e", RAY, cpu="3"), "must not be more than 2"),
    (with_least("Running", cpu="2"), with_least("Running", cpu="x"), "'x'"),
    (with_least("Running", cpu="2"), with_least("Running", cpu="2000m"), ""),
    (with_least("Running", cpu="2"), with_least("Running", cpu="1"), ""),
    (with_least("Running", cpu="2"), with_least("Running", "default"), ""),
    (with_least("Pending", cpu="2"), with_least("Pending", "default", cpu="3"), ""),
    (with_least("Running", "e", MADE, cpu="2"), with_least("Running", "e", MADE, cpu="3"), ""),
    (with_least("Running", "e", OF_THE_JOB, cpu="2"), with_least("Running", "e", OF_THE_JOB, cpu="3"), ""),
])  # fmt: skip
def test_min_resources_of_an_admitted_pod_group_do_not_grow(old: JSON, new: JSON, words: str) -> None:
    """Its queue, and all above it, would hold them without a check; Muster's own count with their pods alone."""
    errors = podgroup.reviewer(lookups(QUEUES, OwnerWorld(JOB)))(request(new, "UPDATE", old)).errors
    assert [error.path.partition("[")[0] for error in errors] == ["spec.minResources"] * bool(words)
    assert words in "".join(map(str, errors))


LIMITED = QueueTree(
    a_queue("root", ""), a_queue("free"), a_queue("one", capability={"nvidia.com/gpu": 8}), a_queue("below", "one"),
    a_queue("beside", "one"), *(a_queue(key, annotations={f"muster.dev/{key}": text}) for key, text in {
        "max-per-user": "cpu=1", "max-by-model": "H100=1", "limit-windows": "Mon-Sun 00:00-24:00 cpu=1"}.items()),
    a_queue("warned", annotations={"muster.dev/budget": "cpu=1h/day", "muster.dev/budget-mode": "warn"}),
    a_queue("spent", annotations={"muster.dev/budget": "cpu=1h/day", "muster.dev/budget-mode": "enforce"}),
)  # fmt: skip


@pytest.mark.parametrize(
    "to", ["free", "warned", "below", "beside", "max-per-user", "max-by-model", "limit-windows", "spent"]
)
@pytest.mark.parametrize("was", ["free", "below"])
def test_a_gang_that_has_its_nodes_passes_no_limit_by_a_move(was: str, to: str) -> None:
    """Limits are checked before a gang starts: 32 GPUs would fit into two queues of 8. An administrator may move it.

    Muster's controller may not: it moves a gang for any user's `moved-to`.
    """
    above = {"below", "beside"} if was == "below" else set()  # the limit above both counts the gang already
    limited = to not in {"free", "warned", *above}
    holding = {"Planned": True, "Binding": True, "Bound": True, "Abandoned": False, "Reserved": False, "": False}
    for phase, noted, may, user in product(holding, ({}, {names.PLACEMENT: "{}"}), (False, True), ("eve", CONTROLLER)):
        placement = msgspec.convert({"status": {"phase": phase}}, Placement) if phase else None
        allowing = SimpleNamespace(allows=lambda *_, may=may: may)
        world = lookups(LIMITED, placements=lambda *_, known=placement: known, rights=allowing)
        old, new = a_group(was, annotations=noted), a_group(to, annotations=noted)
        errors = podgroup.reviewer(world)(request(new, "UPDATE", old, user_info=UserInfo(username=user))).errors
        assert bool(errors) == (limited and not (may and user == "eve") and (holding[phase] or bool(noted)))
        assert all("the gang has its nodes, and the limits of queue" in str(each) for each in errors)


@pytest.mark.parametrize("may", [False, True])
@pytest.mark.parametrize("phase", ["Bound", ""])
@pytest.mark.parametrize(("least", "words"), [
    ({"cpu": "2"}, ""), ({"cpu": "1"}, ""), ({}, ""), ({"cpu": "2001m"}, "must not be more than"),
    ({"cpu": "2", "nvidia.com/gpu": "1"}, "must not be more than"), ({"cpu": "many"}, "is not a quantity"),
])  # fmt: skip
def test_a_gang_with_nodes_cannot_raise_its_requests(least: JSON, words: str, phase: str, *, may: bool) -> None:
    """Its queue is charged its minResources at least: one pod would fill the queue of others."""
    placement = msgspec.convert({"status": {"phase": phase}}, Placement) if phase else None
    world = lookups(LIMITED, placements=lambda *_: placement, rights=SimpleNamespace(allows=lambda *_: may))
    old, new = ({"metadata": {"name": "g"}, "spec": {"minResources": each}} for each in ({"cpu": "2"}, least))
    errors = podgroup.reviewer(world)(request(new, "UPDATE", old, user_info=UserInfo(username="eve"))).errors
    assert bool(errors) == (bool(words) and bool(phase) and not may)
    assert all(words in str(each) for each in errors)


def test_a_budget_whose_usage_is_forgotten_is_warned_of() -> None:
    """Once, when it comes to be enforced; a budget that only warns costs nobody anything."""
    said = {"muster.dev/budget": "cpu=1h/day", "muster.dev/budget-mode": "enforce"}
    warns, enforces, other = (
        a_queue(annotations=each) for each in (said | {"muster.dev/budget-mode": "warn"}, said, said | {"x": "y"})
    )
    for durable, review in (
        (False, queue.reviewer(QUEUES, durable_history=False)),
        (True, queue.reviewer(QUEUES)),
    ):
        asked = [
            request(enforces),
            request(warns),
            request(enforces, "UPDATE", warns),
            request(other, "UPDATE", enforces),
        ]
        told = [any("no durable store" in each for each in review(one).warnings) for one in asked]
        assert told == [not durable, False, not durable, False]


def test_tree_from_the_cache() -> None:
    """Children are those that name the queue as parent, or none; usable are open leaves other than the root."""
    lookup = QueueLookup(Client(ClientConfig(server="http://127.0.0.1:9")))
    for name, parent, state in (("root", "", ""), ("default", "", "Open"), ("a", "root", ""), ("b", "a", "Closed")):
        obj = {**a_queue(name, parent=parent), "status": {"state": state}}
        lookup.store.add_object(msgspec.convert(obj, Queue))
    assert lookup.children("root") == ["a", "default"]
    assert lookup.children("a") == ["b"]
    assert lookup.names() == ["default"]


HIERARCHY, WEIGHTS = "volcano.sh/hierarchy", "volcano.sh/hierarchy-weights"


def tree_of(*queues: JSON) -> QueueTree:
    """These queues, below those that always exist."""
    return QueueTree(a_queue("root", ""), a_queue("default"), *queues)


IN_USE = {**a_queue("busy"), "status": {"allocated": {"cpu": "1", "pods": "3"}}}
TREE = tree_of(
    a_queue("team", capability={"cpu": 10, "gpu": 8}, deserved={"cpu": 8}, guarantee={"resource": {"cpu": 4}}),
    a_queue("one", "team", capability={"cpu": 6}, deserved={"cpu": 3}, guarantee={"resource": {"cpu": 2}}),
    a_queue("deep", "one", capability={"gpu": 4}),
    a_queue("idle", "team"),
    a_queue("named", annotations={HIERARCHY: "root/eng/dev", WEIGHTS: "1/2/3"}),
    IN_USE,
)

WRONG = {
    "over the parent": (a_queue("new", "team", capability={"cpu": 11}), "spec.capability[cpu]",
        "ancestor's capability: spec.capability[cpu] of queue team (10000m)"),
    "over a grandparent": (a_queue("new", "one", capability={"gpu": 9}), "spec.capability[gpu]",
        "spec.capability[gpu] of queue team (8)"),
    "under a grandchild": (a_queue("one", "team", capability={"gpu": 3}), "spec.capability[gpu]",
        "queue deep (4), which is below and exceeds its ancestor's capability"),
    "deserved of siblings": (a_queue("new", "team", deserved={"cpu": 6}), "spec.deserved[cpu]",
        "sum of children's deserved (cpu=9000m) exceeds parent's deserved limit (cpu=8000m): spec."),
    "guarantee of siblings": (a_queue("new", "team", deserved={"cpu": 3}, guarantee={"resource": {"cpu": 3}}),
        "spec.guarantee.resource[cpu]",
        "sum of children's guarantee (cpu=5000m) exceeds parent's guarantee limit (cpu=4000m)"),
    "deserved of children": (a_queue("team", deserved={"cpu": 2}), "spec.deserved[cpu]",
        "sum of children's deserved (cpu=3000m) exceeds parent's deserved limit (cpu=2000m)"),
    "parent in use": (a_queue("new", "busy"), "spec.parent", "has pods of its own"),
    "lengths": (a_queue("new", annotations={HIERARCHY: "root/a", WEIGHTS: "1"}), f"metadata.annotations[{WEIGHTS}]",
        "must have the same length"),
    "weights": (a_queue("new", annotations={HIERARCHY: "root/a", WEIGHTS: "1/0"}), f"metadata.annotations[{WEIGHTS}]",
        "numbers greater than 0"),
    "sub path": (a_queue("new", annotations={HIERARCHY: "eng", WEIGHTS: "2"}), f"metadata.annotations[{HIERARCHY}]",
        "sub path of that of another queue: named has root/eng/dev"),
}  # fmt: skip


@pytest.mark.parametrize(("obj", "path", "words"), WRONG.values(), ids=WRONG.keys())
def test_queues_that_do_not_fit(obj: JSON, path: str, words: str) -> None:
    """Each is refused at its field, with the other queue's name and amount."""
    errors = queue.reviewer(TREE)(request(obj)).errors
    assert [error.path for error in errors] == [path]
    assert words in str(errors[0])


def test_queues_that_fit() -> None:
    """Amounts up to the limits, resources that no queue above names, and weights with a path of their own."""
    for obj in (
        a_queue("new", "team", deserved={"cpu": 5}, guarantee={"resource": {"cpu": 2}}),
        a_queue("new", "team", deserved={"memory": "1Ti"}, guarantee={"resource": {"memory": "1Gi"}}),
        a_queue("new", annotations={HIERARCHY: "root/eng/ops", WEIGHTS: "1/2/0.5"}),
        a_queue("team", capability={"cpu": 6, "gpu": 4}, deserved={"cpu": 3}, guarantee={"resource": {"cpu": 2}}),
    ):
        assert not queue.reviewer(TREE)(request(obj)).errors


def test_all_mistakes_are_told_at_once() -> None:
    """One of each kind."""
    wrong = a_queue("new", "team", capability={"cpu": 11, "x": "many"}, annotations={HIERARCHY: "root/a", WEIGHTS: "x"})
    paths = [error.path for error in queue.reviewer(TREE)(request(wrong)).errors]
    weights = f"metadata.annotations[{WEIGHTS}]"
    assert paths == ["spec.capability[x]", weights, weights, "spec.capability[cpu]"]


@pytest.mark.parametrize("state", ["Open", "Closed", "Closing", "Unknown"])
def test_a_queue_may_be_edited_in_every_state(state: str) -> None:
    """Also while it is closing; and what is wrong since earlier times does not stand in the way of other changes."""
    old = {**a_queue("new", "team", capability={"cpu": 11}), "status": {"state": state}}
    labelled = {**old, "metadata": {"name": "new", "labels": {"a": "b"}}}
    assert not queue.reviewer(TREE)(request(labelled, "UPDATE", old)).errors
    fixed = {**old, "spec": {"parent": "team", "capability": {"cpu": 10}}}
    assert not queue.reviewer(TREE)(request(fixed, "UPDATE", old)).errors
    worse = {**old, "spec": {"parent": "team", "capability": {"cpu": 12}}}
    assert queue.reviewer(TREE)(request(worse, "UPDATE", old)).errors


def test_an_old_queue_keeps_its_name() -> None:
    """A name that is no label is refused of a new one; one that exists can get another parent."""
    old, new = (a_queue("q" * 64, parent) for parent in ("root", "team"))
    assert not queue.reviewer(TREE)(request(new, "UPDATE", old)).errors


def test_a_queue_stays_below_a_parent_in_use() -> None:
    """Only to go there is refused."""
    old, new = a_queue("new", "busy"), a_queue("new", "busy", capability={"cpu": 1})
    assert not queue.reviewer(TREE)(request(new, "UPDATE", old)).errors


def test_what_the_root_has_is_fixed() -> None:
    """Its amounts cannot be changed; other things can."""
    old = a_queue("root", "")
    new = a_queue("root", "", capability={"cpu": 1}, deserved={"cpu": 1}, guarantee={"resource": {"cpu": 1}}, weight=2)
    errors = queue.reviewer(TREE)(request(new, "UPDATE", old)).errors
    assert [error.path for error in errors] == ["spec.capability", "spec.deserved", "spec.guarantee.resource"]
    assert not queue.reviewer(TREE)(request(a_queue("root", "", weight=2), "UPDATE", old)).errors


@pytest.mark.parametrize(("given", "spec", "annotations"), [
    ({}, {"weight": 1, "reclaimable": True}, {}),
    ({"spec": {"weight": 0, "reclaimable": False}}, {"weight": 0, "reclaimable": False}, {}),
    ({"metadata": {"annotations": {HIERARCHY: "eng/dev", WEIGHTS: "2/3"}}, "spec": {"weight": 7}},
        {"weight": 7, "reclaimable": True}, {HIERARCHY: "eng/dev", WEIGHTS: "2/3"}),
])  # fmt: skip
def test_defaults(given: JSON, spec: JSON, annotations: JSON) -> None:
    """Weight and reclaimable; a weight of 0 and a path stay as they were sent; a second time nothing changes."""
    result = apply(given, mutate_queues.review_queue(request(given)).patch)
    assert result["spec"] == spec
    assert msgspec.convert(spec, QueueSpec).weight == (spec["weight"] or 1)
    assert result.get("metadata", {}).get("annotations", {}) == annotations
    assert not mutate_queues.review_queue(request(result)).patch


VCJOB = {"kind": "Job", "apiVersion": "batch.volcano.sh/v1alpha1", "name": "train", "uid": "u"}


@pytest.mark.parametrize(("group", "expected"), [
    ({"spec": {}}, "a"),
    ({"spec": {"queue": "default"}}, "a"),
    ({"spec": {"queue": "b"}}, "b"),
    ({"metadata": {"ownerReferences": [{**VCJOB, "apiVersion": "batch/v1", "controller": True}]}, "spec": {}}, "a"),
    ({"metadata": {"ownerReferences": [VCJOB]}, "spec": {"queue": "default"}}, "a"),
    ({"metadata": {"ownerReferences": [{**VCJOB, "controller": True}]}, "spec": {"queue": "default"}}, "default"),
])  # fmt: skip
def test_the_namespace_names_the_queue(group: JSON, expected: str) -> None:
    """The queue of a PodGroup that names none; a Volcano Job's PodGroup is in the Job's queue.

    A copy loses the status of its original.
    """
    group = {**group, "status": {"phase": "Running"}}
    result = apply(group, mutate_queues.reviewer(lookups(TREE))(request(group)).patch)
    assert result["status"] == (group["status"] if expected == "default" else {})
    assert apply(group, mutate_queues.reviewer(lookups(TREE))(request(group)).patch)["spec"]["queue"] == expected


def test_a_namespace_that_cannot_be_read_changes_no_group() -> None:
    """A controller makes most of them, and a gang in the default queue runs."""
    review = mutate_queues.reviewer(lookups(TREE, namespaces=DownWorld()))
    for group in ({"spec": {"queue": "default"}}, {"metadata": {"labels": 7}}):
        assert review(request(group)).outcome == "allowed"


def test_amounts_of_a_pod_group() -> None:
    """An amount that the planner could not read is refused at its field."""
    spec = {"queue": "default", "minTaskMember": {"w": -1}, "minResources": {"requests.cpu": "500m", "memory": "much"}}
    errors = podgroup.reviewer(lookups(TREE))(request({"metadata": {"name": "g"}, "spec": spec})).errors
    assert [error.path for error in errors] == ["spec.minTaskMember[w]", "spec.minResources[memory]"]
