"""Pods of a resource group are taken to its nodes, whatever they say themselves; pods may ask for Volcano's gate."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from webhook_world import FRAMEWORK, JSON, NamespaceWorld, apply, indexed_job, lookups, pod_of

from webhook.config import ResourceGroup, parse
from webhook.mutate.pod import mutate
from webhook.mutate.resourcegroup import group_of
from webhook.review import ReviewVerdict

GATE = "scheduling.volcano.sh/queue-allocation-gate"
HELD = {GATE: "true"}
QUEUED = {"muster.dev/queue": "default"}
TOLERATION = {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}
AFFINITY = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}
GROUPS = parse(
    """
resourceGroups:
- resourceGroup: gpu
  object: {key: namespace, value: [team, other]}
  schedulerName: volcano
  tolerations: [{key: gpu, operator: Exists, effect: NoSchedule}, {key: size, value: big}]
  labels: {nodetype: gpu, zone: a}
  affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: []}}
- resourceGroup: cpu
  labels: {nodetype: cpu}
- resourceGroup: ops
  object: {key: annotation, value: ["team: ops"]}
  schedulerName: default-scheduler
"""
)


def pod(labels: JSON | None = None, annotations: JSON | None = None, **spec: Any) -> JSON:
    """A bare pod."""
    metadata = {"name": "a", "labels": labels or {}, "annotations": annotations or {}}
    return {"metadata": metadata, "spec": {"containers": [{"name": "main"}], **spec}}


def reviewed(pod: JSON, namespace: str = "team", **more: Any) -> ReviewVerdict:
    """The verdict on a pod."""
    return mutate(pod, namespace, more.pop("world", lookups()), FRAMEWORK, groups=GROUPS, **more)


def admitted(pod: JSON, namespace: str = "team", **more: Any) -> JSON:
    """The spec of the pod as it is admitted."""
    verdict = reviewed(pod, namespace, **more)
    assert not verdict.errors
    spec: JSON = apply(pod, verdict.patch)["spec"]
    return spec


@pytest.mark.parametrize(("namespace", "annotations", "name"), [
    ("team", {}, "gpu"),
    ("team", {"volcano.sh/resource-group": "cpu"}, "gpu"),
    ("x", {"volcano.sh/resource-group": "cpu", "team": "ops"}, "cpu"),
    ("x", {"team": "ops"}, "ops"),
    ("x", {"team": "dev", "volcano.sh/resource-group": "gpu"}, None),
    ("", {}, None),
])  # fmt: skip
def test_the_first_group_that_takes_a_pod(namespace: str, annotations: dict[str, str], name: str | None) -> None:
    """By its namespace or one of its annotations; the order of the file decides."""
    found = group_of(GROUPS, namespace, annotations)
    assert (found.name if found else None) == name


def test_a_pod_that_says_nothing() -> None:
    """It gets everything."""
    assert admitted(pod()) == {
        "containers": [{"name": "main"}],
        "nodeSelector": {"nodetype": "gpu", "zone": "a"},
        "affinity": AFFINITY,
        "tolerations": [TOLERATION, {"key": "size", "value": "big"}],
        "schedulerName": "volcano",
    }


def test_a_pod_that_says_something_else() -> None:
    """The group wins for labels and scheduler; other labels stay, so does an affinity; no toleration comes twice."""
    own = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": []}}
    tolerations = [{"key": "size", "operator": "", "value": "big"}, {"key": "mine"}]
    node_selector = {"zone": "b", "disk": "ssd"}
    spec = admitted(pod(nodeSelector=node_selector, affinity=own, tolerations=tolerations, schedulerName="foreign"))
    assert spec["nodeSelector"] == {"zone": "a", "disk": "ssd", "nodetype": "gpu"}
    assert spec["affinity"] == own
    assert [each["key"] for each in spec["tolerations"]] == ["size", "mine", "gpu"]
    assert spec["schedulerName"] == "volcano"


def test_every_operation_says_why() -> None:
    """For `muster shape --explain`: the reason, and the field of which group."""
    verdict = reviewed(pod())
    reasons = {operation["path"]: why for operation, why in zip(verdict.patch, verdict.reasons, strict=True)}
    assert all(why.reason and why.source.startswith("resource group gpu: ") for why in reasons.values())
    assert reasons["/spec/schedulerName"].source == "resource group gpu: schedulerName"
    assert reasons["/spec/nodeSelector/zone"].source == "resource group gpu: labels"


def test_pods_that_are_left_alone() -> None:
    """Those that want it, those of no group, and those of a Volcano Job, whose template was given the group."""
    assert not reviewed(pod({"muster.dev/managed": "false"})).patch
    assert not reviewed(pod(), "x").patch
    member = pod()
    owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j", "uid": "u", "controller": True}
    member["metadata"]["ownerReferences"] = [owner]
    assert not reviewed(member).patch
    member["metadata"]["ownerReferences"] = [{**owner, "apiVersion": "batch/v1"}]
    assert reviewed(member).patch


def test_the_groups_scheduler_decides_about_the_queue() -> None:
    """With a scheduler of Muster's come queue and gate; with a foreign one the queue has no effect."""
    member = pod_of(indexed_job(labels=QUEUED))
    member["spec"]["schedulerName"] = "foreign"
    spec = admitted(member)
    assert (spec["schedulerName"], spec["schedulingGates"]) == ("volcano", [{"name": "muster.dev/gang"}])
    foreign = pod(QUEUED, {"team": "ops"})
    verdict = reviewed(foreign, "x")
    assert apply(foreign, verdict.patch)["spec"]["schedulerName"] == "default-scheduler"
    [warning] = verdict.warnings
    assert warning.endswith(
        "has no effect, because the resource group 'ops' assigns the pod to scheduler 'default-scheduler'"
    )


def test_the_queue_of_a_namespace() -> None:
    """A group's pod takes it, unless the group has a foreign scheduler."""
    world = lookups(namespaces=NamespaceWorld(team=QUEUED, x=QUEUED))
    taken = pod(schedulerName="foreign")
    after = apply(taken, reviewed(taken, world=world).patch)
    assert (after["metadata"]["labels"], after["spec"]["schedulerName"]) == (QUEUED, "volcano")
    foreign = reviewed(pod(annotations={"team": "ops"}), "x", world=world)
    assert [operation["value"] for operation in foreign.patch] == ["default-scheduler"]
    assert not foreign.warnings


def test_markers_go_to_pods_that_a_group_gives_to_muster() -> None:
    """Where the cluster's own scheduler serves Muster's pods, it must know them."""
    assert "limits" in admitted(pod(), marks=True)["containers"][0]["resources"]
    assert "resources" not in admitted(pod(annotations={"team": "ops"}), "x", marks=True)["containers"][0]


SPECS = st.fixed_dictionaries({}, optional={
    "nodeSelector": st.sampled_from([{}, {"zone": "b"}, {"zone": "a", "nodetype": "gpu"}]),
    "affinity": st.sampled_from([{}, AFFINITY]),
    "tolerations": st.lists(st.sampled_from([TOLERATION, {"key": "size", "value": "big"}, {"key": "mine"}])),
    "schedulerName": st.sampled_from(["", "default-scheduler", "muster", "volcano", "other"]),
    "schedulingGates": st.sampled_from([[], [{"name": GATE}], [{"name": "mine"}]]),
})  # fmt: skip


@given(
    spec=SPECS,
    labels=st.sampled_from([{}, QUEUED]),
    annotations=st.sampled_from([{}, HELD, {"team": "ops"}, {"volcano.sh/resource-group": "cpu", **HELD}]),
    namespace=st.sampled_from(["team", "x", "queued"]),
)
def test_a_second_review_changes_nothing(spec: JSON, labels: JSON, annotations: JSON, namespace: str) -> None:
    """Whatever the first one found."""
    world = lookups(namespaces=NamespaceWorld(queued=QUEUED, team=QUEUED))
    before = pod(copy.deepcopy(labels), annotations, **copy.deepcopy(spec))
    first = reviewed(before, namespace, world=world)
    second = reviewed(apply(before, first.patch), namespace, world=world)
    assert not second.patch
    assert second.warnings == first.warnings


@pytest.mark.parametrize("scheduler", ["volcano", "muster"])
def test_a_pod_that_asks_for_the_gate(scheduler: str) -> None:
    """It waits behind the gate of that name, next to its own."""
    own = [{"name": "mine"}]
    spec = admitted(pod(annotations=HELD, schedulerName=scheduler, schedulingGates=own), "x")
    assert spec["schedulingGates"] == [*own, {"name": GATE}]


def test_a_member_of_a_gang_has_both_gates() -> None:
    """It gets its scheduler and its gate in one patch."""
    member = pod_of(indexed_job(labels=QUEUED))
    member["metadata"]["annotations"] = HELD
    assert admitted(member, "x")["schedulingGates"] == [{"name": "muster.dev/gang"}, {"name": GATE}]


@pytest.mark.parametrize("change", [
    {"metadata": {"annotations": {GATE: "false"}}},
    {"metadata": {"annotations": {**HELD, "muster.dev/node": "n1"}}},
    {"spec": {"nodeName": "n1"}},
    {"spec": {"schedulingGates": [{"name": GATE}]}},
])  # fmt: skip
def test_no_gate(change: JSON) -> None:
    """For a pod that does not ask for it, or has its node or its gate already."""
    member = pod(annotations=HELD, schedulerName="volcano")
    for key, value in change.items():
        member[key].update(value)
    assert not reviewed(member, "x").patch


LABEL_IT = ", or label the pod or its namespace muster.dev/queue"


@pytest.mark.parametrize(("spec", "named", "advice"), [
    ({}, "default-scheduler", LABEL_IT),
    ({"schedulerName": "default-scheduler"}, "default-scheduler", LABEL_IT),
    ({"schedulerName": "mine"}, "mine", ""),
])  # fmt: skip
def test_the_gate_of_a_pod_of_another_scheduler(spec: JSON, named: str, advice: str) -> None:
    """No scheduler would lift it, so it is not added, and the user is told what would help."""
    verdict = reviewed(pod(annotations=HELD, **spec), "x")
    assert not verdict.patch
    [warning] = verdict.warnings
    assert warning == (
        f"metadata.annotations[{GATE}]: it has no effect, because {named!r} is not a scheduler of Muster's; "
        f"set schedulerName to muster or volcano{advice}"
    )


@pytest.mark.parametrize("labelled", ["pod", "namespace"])
def test_the_advice_helps(labelled: str) -> None:
    """With the label on either, the gate is there."""
    world = lookups(namespaces=NamespaceWorld(x=QUEUED if labelled == "namespace" else {}))
    member = pod(QUEUED if labelled == "pod" else None, HELD)
    assert apply(member, reviewed(member, "x", world=world).patch)["spec"]["schedulingGates"] == [{"name": GATE}]


def test_groups_are_only_what_is_configured() -> None:
    """Without any, the pod stays as it is."""
    assert not mutate(pod(), "team", lookups(), FRAMEWORK).patch
    assert group_of([ResourceGroup(name="a")], "", {}) is None
