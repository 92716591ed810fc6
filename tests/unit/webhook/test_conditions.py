"""The conditions by which the API server sends objects, evaluated as it does: in the Common Expression Language."""

from copy import deepcopy
from functools import cache
from typing import Any

import pytest
from builders import manifests
from cel_expr_python import cel
from webhook_world import JSON

from muster.api.kubernetes.admission import AdmissionRequest, UserInfo
from webhook.config import ResourceGroup
from webhook.registration import configurations
from webhook.senders import is_controller

GROUPS = (ResourceGroup(name="a", namespaces=("grouped",)), ResourceGroup(name="b", annotations=(("team", "it's"),)))
QUEUED = {"muster.dev/queue": "q"}
OURS = {"schedulerName": "muster"}
POOL = {"schedulerName": "muster-fast"}
IN_GROUP = {"schedulingGroup": {"podGroupName": "g"}}
OF_JOB = {"ownerReferences": [manifests.job_owner("train")]}
OF_SET = {"ownerReferences": [manifests.owner("d", "DaemonSet", "apps/v1")]}
CONTROLLER = "system:serviceaccount:muster-system:muster-controller"
MANY = {f"example.com/r{number}": "1" for number in range(17)}


@cache
def program(expression: str) -> Any:
    """An expression that is ready to be evaluated."""
    return cel.NewEnv(variables=dict.fromkeys(("object", "oldObject", "request"), cel.Type.DYN)).compile(expression)


def sent(plural: str, obj: JSON, old: JSON | None = None, *, namespace: str = "n", user: str = "eve") -> set[str]:
    """The webhooks whose conditions hold for an object, of those that have some; `!` before those that only check."""
    request = {"operation": "UPDATE" if old else "CREATE", "namespace": namespace, "userInfo": {"username": user}}
    data = {"object": obj, "oldObject": old or {}, "request": request}
    found = set()
    for mark, one in zip(("", "!"), configurations(url="https://x", ca_bundle=b"", groups=GROUPS), strict=True):
        for each in one["webhooks"]:
            conditions = [program(condition["expression"]) for condition in each.get("matchConditions", [])]
            plurals = [rule["resources"][0] for rule in each["rules"]]
            if plural in plurals and conditions and request["operation"] in each["rules"][0]["operations"]:
                holds = [condition.eval(data=data).plain_value() for condition in conditions]
                assert all(isinstance(value, bool) for value in holds), (each["name"], holds)
                if all(holds):
                    name = each["name"].partition(".")[0]  # of several kinds it has the names of all
                    found.add(mark + (f"{name.partition(plurals[0])[0]}{plural}" if plurals[1:] else name))
    return found


def pod(annotations: JSON | None = None, container: JSON | None = None, meta: JSON | None = None, **spec: Any) -> JSON:
    """A pod."""
    metadata = {"name": "p", **({"annotations": annotations} if annotations else {}), **(meta or {})}
    return {"metadata": metadata, "spec": {"containers": [container or {"name": "main"}], **spec}}


GATE = {"scheduling.volcano.sh/queue-allocation-gate": "true"}
SHARE = {"gpu-fraction": "0.5"}
TOPOLOGY = {"muster.dev/topology-required": "rack"}
PODS: dict[str, tuple[JSON, str, set[str]]] = {
    "plain": (pod(), "n", {"namespaced-pods"}),
    "asks for a gate": (pod(GATE), "n", {"held-pods"}),
    "asks for no gate": (pod({next(iter(GATE)): "false"}), "n", {"namespaced-pods"}),
    "shares a GPU": (pod(SHARE), "n", {"held-pods"}),
    "grouped by namespace": (pod(), "grouped", {"grouped-pods"}),
    "grouped by annotation": (pod({"team": "it's"}), "n", {"grouped-pods"}),
    "another value of the annotation": (pod({"team": "its"}), "n", {"namespaced-pods"}),
    "grouped, with a gate": (pod(GATE), "grouped", {"held-pods"}),
    "of a Volcano Job": (pod(meta=OF_JOB), "grouped", {"namespaced-pods"}),
    "owned by a Volcano Job": (pod(meta={"ownerReferences": [{**OF_JOB["ownerReferences"][0], "controller": False}]}),
                               "grouped", {"grouped-pods"}),
    "of a batch Job": (pod(meta={"ownerReferences": [manifests.owner()]}), "grouped", {"grouped-pods"}),
    "in a native group of Muster's": (pod(**OURS, **IN_GROUP), "n", {"native-pods"}),
    "in a native group of a pool": (pod(**POOL, **IN_GROUP), "n", {"native-pods"}),
    "in a native group of others": (pod(schedulerName="other", **IN_GROUP), "n", set()),
    "in a native group, grouped": (pod(**OURS, **IN_GROUP), "grouped", {"grouped-pods"}),
    "in a native group, no scheduler": (pod(**IN_GROUP), "n", {"namespaced-pods"}),
    "has a node": (pod(nodeName="n1"), "n", set()),
    "has no node": (pod(nodeName=""), "n", {"namespaced-pods"}),
    "of a DaemonSet": (pod(meta=OF_SET), "n", set()),
    "of another scheduler": (pod(schedulerName="other"), "n", set()),
    "of the cluster's scheduler": (pod(schedulerName="default-scheduler"), "n", {"namespaced-pods"}),
    "of no scheduler": (pod(schedulerName=""), "n", {"namespaced-pods"}),
    "of Muster's": (pod(**OURS), "n", {"namespaced-pods"}),
    "of a pool": (pod(**POOL), "n", {"namespaced-pods"}),
    "with a topology, of others": (pod(TOPOLOGY), "n", {"namespaced-pods"}),
    "with a topology": (pod(TOPOLOGY, **OURS), "n", {"namespaced-pods", "!pods"}),
    "with a topology, of a pool": (pod(TOPOLOGY, **POOL), "n", {"namespaced-pods", "!pods"}),
    "with a topology of Kueue's": (pod({"kueue.x-k8s.io/podset-preferred-topology": "r"}, **OURS), "n",
                                   {"namespaced-pods", "!pods"}),
    "with a budget": (pod({"volcano.sh/jdb-max-unavailable": "1"}, **OURS), "n", {"namespaced-pods", "!pods"}),
    "with a rule for faults": (pod({"muster.dev/on-node-fault": "wait"}, **OURS), "n", {"namespaced-pods", "!pods"}),
    "shares a GPU of Muster's": (pod(SHARE, **OURS), "n", {"held-pods", "!pods"}),
    "with another annotation": (pod({"muster.dev/rank": "1"}, **OURS), "n", {"namespaced-pods"}),
    "with GPU memory of Volcano's": (pod(container={"resources": {"limits": {"volcano.sh/gpu-memory": 1}}}, **OURS),
                                     "n", {"namespaced-pods", "!pods"}),
    "with GPUs": (pod(container={"resources": {"limits": {"nvidia.com/gpu": 1}}}, **OURS), "n", {"namespaced-pods"}),
    "with many limits": (pod(container={"resources": {"limits": MANY}}, **OURS), "n", {"namespaced-pods", "!pods"}),
    "with many requests": (pod(container={"resources": {"requests": MANY}}, **OURS), "n",
                           {"namespaced-pods", "!pods"}),
    "with some requests": (pod(container={"resources": {"requests": dict(list(MANY.items())[1:])}}, **OURS), "n",
                           {"namespaced-pods"}),
    "with many of an init container": (pod(initContainers=[{"resources": {"limits": MANY}}], **OURS), "n",
                                       {"namespaced-pods", "!pods"}),
    "with many containers": ({"metadata": {}, "spec": {"containers": [{}] * 5, **OURS}}, "n",
                             {"namespaced-pods", "!pods"}),
    "with some containers": ({"metadata": {}, "spec": {"containers": [{}] * 4, **OURS}}, "n", {"namespaced-pods"}),
}  # fmt: skip


@pytest.mark.parametrize(("obj", "namespace", "webhooks"), PODS.values(), ids=PODS)
def test_pods(obj: JSON, namespace: str, webhooks: set[str]) -> None:
    """A pod is sent for the first reason that it gives itself, else for its group, else for its namespace."""
    assert sent("pods", obj, namespace=namespace) == webhooks


def workload(labels: JSON | None = None, template: JSON | None = None, **annotations: str) -> JSON:
    """A workload with one template."""
    of_pods = {"metadata": {"labels": template}} if template else {}
    return {"metadata": {"labels": labels or {}, "annotations": annotations}, "spec": {"template": of_pods}}


@pytest.mark.parametrize(
    ("plural", "obj", "webhooks"),
    [
        ("jobs", workload(QUEUED), {"jobs", "!jobs"}),
        ("jobs", workload({"muster.dev/managed": "false"}), {"jobs", "!jobs"}),
        ("jobs", workload({"muster.dev/framework": "torch"}), {"jobs", "!jobs"}),
        ("jobs", workload(None, QUEUED), {"jobs", "!jobs"}),
        ("jobs", workload(None, {"muster.io/queue": "q"}), {"namespaced-jobs", "!jobs"}),
        ("jobs", workload({"muster/queue": "q"}), {"namespaced-jobs", "!jobs"}),
        ("jobs", workload({"app": "x"}, {"app": "x"}), {"namespaced-jobs"}),
        ("statefulsets", workload(QUEUED), {"statefulsets", "!statefulsets"}),
        ("statefulsets", workload(None, QUEUED), {"templated-statefulsets", "!statefulsets"}),
        ("statefulsets", workload(), {"created-statefulsets"}),
        ("statefulsets", workload(**QUEUED), {"created-statefulsets", "!statefulsets"}),
        ("statefulsets", workload(other="x"), {"created-statefulsets"}),
        ("replicasets", workload(None, QUEUED), {"templated-replicasets", "!replicasets"}),
        ("replicasets", workload(), {"created-replicasets"}),
        ("daemonsets", workload(None, QUEUED), {"templated-daemonsets", "!daemonsets"}),
        ("daemonsets", workload(), set()),
        ("jobsets", {"metadata": {}, "spec": {"replicatedJobs": [
            {"template": {"spec": {}}}, {"template": {"spec": workload(None, QUEUED)["spec"]}},
        ]}}, {"templated-jobsets", "!jobsets"}),
        ("jobsets", {"metadata": {}, "spec": {"replicatedJobs": [{"template": {"spec": workload()["spec"]}}]}},
            {"created-jobsets"}),
    ],
)  # fmt: skip
def test_workloads(plural: str, obj: JSON, webhooks: set[str]) -> None:
    """A label opts in or out; any that looks like Muster's has it checked. Batch Jobs take that of the namespace."""
    assert sent(plural, obj) == webhooks


@pytest.mark.parametrize("user", [
    "eve", "system:kube-controller-manager", "system:serviceaccount:kube-system:deployment-controller",
    "system:serviceaccount:n:robot", "system:serviceaccount:n-2:robot", "my-system:kube-controller-manager",
])  # fmt: skip
@pytest.mark.parametrize("controller", [None, True, False])
def test_only_a_users_owners_of_pods_are_sent_for_their_creator(user: str, *, controller: bool | None) -> None:
    """Those for which the creator is written; a controller's objects wait for no webhook that does nothing."""
    one = workload()
    owner = {key: value for key, value in manifests.owner().items() if key != "controller"}
    one["metadata"]["ownerReferences"] = [owner if controller is None else {**owner, "controller": controller}]
    asked = AdmissionRequest(uid="u", namespace="n", user_info=UserInfo(username=user))
    written = not is_controller(asked, owned=bool(controller))
    assert sent("replicasets", one, user=user) == ({"created-replicasets"} if written else set())


BEFORE = workload(QUEUED, QUEUED, other="1", **{"muster.dev/min-member": "2"})


@pytest.mark.parametrize(("change", "checked"), [
    ({}, False),
    ({"annotations": {"other": "2", "muster.dev/min-member": "2"}}, False),
    ({"annotations": {"other": "1"}}, False),
    ({"annotations": {"muster.dev/min-member": "3"}}, True),
    ({"annotations": {"muster.dev/min-member": "2", "muster.dev/rank": "1"}}, True),
    ({"labels": {**QUEUED, "app": "x"}}, True),
    ({"spec": {"suspend": True}}, True),
])  # fmt: skip
def test_updates_of_workloads(change: JSON, *, checked: bool) -> None:
    """What Muster reads has changed: spec, labels, or an annotation of its own."""
    new = deepcopy(BEFORE)
    new["spec"] |= change.pop("spec", {})
    new["metadata"] |= change
    assert sent("statefulsets", new, BEFORE) == ({"!statefulsets"} if checked else set())


@pytest.mark.parametrize(("labels", "old", "checked"), [
    (QUEUED, None, True),
    ({"app": "x"}, None, False),
    (QUEUED, {}, True),
    (QUEUED, QUEUED, False),
    ({"muster.io/queue": "a"}, {"muster.io/queue": "b"}, True),
])  # fmt: skip
def test_namespaces(labels: JSON, old: JSON | None, *, checked: bool) -> None:
    """Labels that may be Muster's are checked when they are new."""
    before = None if old is None else {"metadata": {"labels": old} if old else {}}
    assert sent("namespaces", {"metadata": {"labels": labels}}, before) == ({"!namespaces"} if checked else set())


LEAST: JSON = {"spec": {"minResources": {"cpu": "1"}}}


@pytest.mark.parametrize(("before", "after", "checked"), [(2, 3, True), (2, 2, False), (0, 3, False), (3, 0, False)])
def test_scales(before: int, after: int, *, checked: bool) -> None:
    """From some pods to another number of them."""
    new, old = ({"metadata": {}, "spec": {"replicas": each} if each else {}} for each in (after, before))
    assert sent("statefulsets/scale", new, old) == ({"!scales"} if checked else set())


def group(queue: str | None = "a", pool: str = "", name: str = "", **metadata: Any) -> JSON:
    """A PodGroup."""
    labels = {"muster.dev/node-pool": pool} if pool else {}
    spec = {**({"queue": queue} if queue else {}), **({"priorityClassName": name} if name else {})}
    return {"metadata": {"labels": labels, **metadata}, **({"spec": spec} if spec else {})}


@pytest.mark.parametrize(("obj", "old", "user", "webhooks"), [
    (group(), None, "eve", {"podgroups", "!podgroups"}),
    (group(**OF_JOB), None, "eve", {"!podgroups"}),
    (group(**OF_JOB), None, CONTROLLER, set()),
    (group(), None, CONTROLLER, {"podgroups", "!podgroups"}),
    (group(), group(), "eve", set()),
    (group("b"), group(), "eve", {"changed-podgroups", "!podgroups"}),
    (group(None), group(), "eve", {"changed-podgroups", "!podgroups"}),
    (group(None), group(None), "eve", set()),
    (group(None) | LEAST, group(None), "eve", {"!podgroups"}),
    (group(None) | LEAST, group(None) | LEAST, "eve", set()),
    (group(pool="x"), group(), "eve", {"!podgroups"}),
    (group(name="high"), group(), "eve", {"changed-podgroups", "!podgroups"}),
    (group("b", **OF_JOB), group(**OF_JOB), CONTROLLER, {"changed-podgroups", "!podgroups"}),
])  # fmt: skip
def test_pod_groups(obj: JSON, old: JSON | None, user: str, webhooks: set[str]) -> None:
    """One is checked when it is new or moves, unless Muster's controller has computed it from a Job.

    Who moves it or gives it another class is noted.
    """
    assert sent("podgroups", obj, old, user=user) == webhooks
