"""Opting in to Muster: the label nearest to the pod counts, and objects that opt out are left alone."""

import itertools
from typing import Any

import pytest
from builders import manifests
from webhook_world import FRAMEWORK, JSON, DownWorld, NamespaceWorld, QueueWorld, apply, lookups, request

from muster.api.kubernetes.meta import ObjectMeta
from webhook.mutate import workload
from webhook.mutate.pod import mutate

QUEUE, MANAGED = "muster.dev/queue", "muster.dev/managed"
QUEUES = QueueWorld(**dict.fromkeys(("pod", "job", "ns"), ("root", "Open")))
SAYS: dict[str, JSON] = {
    "nothing": {}, "queue": {QUEUE: "?"}, "leave": {MANAGED: "false"}, "both": {QUEUE: "?", MANAGED: "false"},
    "managed": {MANAGED: "true"}
}  # fmt: skip
"""Labels of an object; `?` becomes the name of the object's own queue."""


def said(what: str, queue: str) -> JSON:
    """Labels."""
    return {key: queue if value == "?" else value for key, value in SAYS[what].items()}


def pod(labels: JSON | None = None, owner: str = "Job", **spec: Any) -> JSON:
    """A pod of a workload, as its controller creates it."""
    references = [manifests.owner("train", owner, uid="u")]
    metadata = {"generateName": "train-", "labels": labels or {}, "ownerReferences": references}
    return {"metadata": metadata, "spec": manifests.pod_spec(**{"schedulerName": "default-scheduler", **spec})}


def admitted(obj: JSON, namespace: JSON | None = None) -> JSON:
    """The pod as it is admitted in a namespace with these labels."""
    verdict = mutate(obj, "team", lookups(QUEUES, namespaces=NamespaceWorld(team=namespace or {})), FRAMEWORK)
    assert not verdict.errors
    return apply(obj, verdict.patch)


def admitted_job(labels: JSON, template: JSON, namespace: JSON, **spec: Any) -> JSON:
    """The pod template of a batch/v1 Job as it is admitted."""
    obj = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train", "labels": labels},
        "spec": {"template": {"metadata": {"labels": template}, "spec": {"containers": [], **spec}}},
    }
    verdict = workload.reviewer(NamespaceWorld(team=namespace))(request(obj))
    result: JSON = apply(obj, verdict.patch)["spec"]["template"]
    return result


def winner(template: str, job: str, namespace: str) -> str | None:
    """The documented rule, stated a second time: the queue that a pod ends up in."""
    if template == "managed":  # the template's own word about being managed takes the place of its workload's
        job = {"leave": "nothing", "both": "queue"}.get(job, job)
    for what, queue in ((template, "pod"), (job, "job"), (namespace, "ns")):
        if what in {"leave", "both"}:
            return None
        if what == "queue":
            return queue
    return None


@pytest.mark.parametrize(("template", "job", "namespace"), list(itertools.product(SAYS, SAYS, SAYS)))
def test_the_nearest_wins(template: str, job: str, namespace: str) -> None:
    """Template before Job before namespace; on one object, to be left alone before a queue."""
    around = said(namespace, "ns")
    labels = admitted_job(said(job, "job"), said(template, "pod"), around)["metadata"]["labels"]
    result = admitted(pod(labels), around)
    expected = winner(template, job, namespace)
    scheduled = result["spec"]["schedulerName"] == "muster"
    assert scheduled == (expected is not None)
    assert "schedulingGates" in result["spec"] or not scheduled
    if expected:
        assert result["metadata"]["labels"][QUEUE] == expected
    else:
        assert result == pod(labels)
    assert admitted(result, around) == result


def test_a_namespace_is_enough() -> None:
    """Pods of whatever workload get queue, scheduler, gang and gate from their namespace."""
    result = admitted(pod(owner="ReplicaSet"), {QUEUE: "ns"})
    assert result["metadata"]["labels"] == {QUEUE: "ns", "muster.dev/gang": "podgroup-u"}
    assert result["spec"]["schedulerName"] == "muster"
    assert result["spec"]["schedulingGates"] == [{"name": "muster.dev/gang"}]


@pytest.mark.parametrize("obj", [
    pod(owner="DaemonSet"),
    pod(owner="Node"),
    pod(nodeName="node-1"),
    pod(schedulerName="foreign"),
    pod({"scheduling.x-k8s.io/pod-group": "theirs"}),
    {**pod(), "metadata": {"annotations": {"scheduling.k8s.io/group-name": "theirs"}}},
], ids=["DaemonSet", "static", "has a node", "other scheduler", "coscheduling", "Volcano"])  # fmt: skip
def test_a_namespace_leaves_alone_what_is_placed_by_others(obj: JSON) -> None:
    """A pod with a node, another scheduler or a gang does not take the queue of its namespace."""
    assert admitted(obj, {QUEUE: "ns"}) == obj


def test_a_bare_pod_has_no_gang_and_no_gate() -> None:
    """The gate is for members of a gang; a pod without a controller is placed at once."""
    bare = pod()
    del bare["metadata"]["ownerReferences"]
    result = admitted(bare, {QUEUE: "ns"})
    assert result["metadata"]["labels"] == {QUEUE: "ns"}
    assert "schedulingGates" not in result["spec"]


def test_a_queue_that_the_namespace_misspells_is_named_as_its_mistake() -> None:
    """The refusal of a pod says where the wrong name stands."""
    found = lookups(QUEUES, namespaces=NamespaceWorld(team={QUEUE: "nowhere"}))
    [error] = mutate(pod(), "team", found, FRAMEWORK).errors
    assert error.path == "namespace team: metadata.labels[muster.dev/queue]"
    assert "usable queues are: " in error.message


def test_the_namespace_is_asked_only_where_it_matters() -> None:
    """A pod that says something itself is admitted while namespaces cannot be looked up."""
    found = lookups(QUEUES, namespaces=DownWorld())
    assert mutate(pod({QUEUE: "pod"}), "team", found, FRAMEWORK).patch
    assert not mutate(pod({MANAGED: "false"}), "team", found, FRAMEWORK).patch


class Behind(NamespaceWorld):
    """A cache that has no labels yet, unless a queue must be there."""

    def metadata(self, name: str, *, with_queue: bool = False) -> ObjectMeta:
        """See webhook.lookup.Namespaces."""
        return super().metadata(name) if with_queue else ObjectMeta()


BEHIND = Behind(team={QUEUE: "ns"})


@pytest.mark.parametrize(("obj", "queued"), [
    (pod(), True),
    (pod({"muster.dev/framework": "torch"}, owner="ReplicaSet"), False),
    ({**pod(), "metadata": {"annotations": {"scheduling.volcano.sh/queue-allocation-gate": "true"}}}, False),
    (pod(schedulingGroup={"podGroupName": "g"}, schedulerName="muster"), False),
], ids=["for its namespace", "for its framework", "for its gate", "for its native group"])  # fmt: skip
def test_a_pod_that_is_sent_for_its_namespace_has_its_queue(obj: JSON, *, queued: bool) -> None:
    """The API server has just read the label; a pod that is sent for itself need not be in such a namespace."""
    verdict = mutate(obj, "team", lookups(QUEUES, namespaces=BEHIND), FRAMEWORK)
    assert any(each["path"].endswith("muster.dev~1queue") for each in verdict.patch) == queued


@pytest.mark.parametrize(("labels", "queued"), [({}, True), ({"muster.dev/framework": "torch"}, False)])
def test_a_workload_that_is_sent_for_its_namespace_has_its_queue(labels: JSON, *, queued: bool) -> None:
    """As a pod has."""
    spec = {"template": {"metadata": {}, "spec": {"containers": []}}}
    obj = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train", "labels": labels}, "spec": spec}
    verdict = workload.reviewer(BEHIND)(request(obj))
    assert any(each["path"].endswith("muster.dev~1queue") for each in verdict.patch) == queued
    assert ("namespace" in {why.source for why in verdict.reasons}) == queued


@pytest.mark.parametrize(("api_version", "kind", "spec", "places"), [
    ("apps/v1", "Deployment", {"template": {}}, [("template",)]),
    ("apps/v1", "StatefulSet", {"template": {"metadata": {}}}, [("template",)]),
    ("batch/v1", "CronJob", {"jobTemplate": {"spec": {"template": {}}}}, [("jobTemplate", "spec", "template")]),
    ("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": [{"template": {"spec": {"template": {}}}},
        {"template": {"spec": {"template": {}}}}]}, [("replicatedJobs", 0, "template", "spec", "template"),
        ("replicatedJobs", 1, "template", "spec", "template")]),
    ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet",
        {"leaderWorkerTemplate": {"size": 2, "leaderTemplate": {}, "workerTemplate": {}}},
        [("leaderWorkerTemplate", "leaderTemplate"), ("leaderWorkerTemplate", "workerTemplate")]),
])  # fmt: skip
def test_labels_of_other_workloads(api_version: str, kind: str, spec: JSON, places: list[tuple[Any, ...]]) -> None:
    """Queue and framework go to each template, wherever the kind has it; the namespace is left to the pods."""
    labels = {QUEUE: "job", "muster.dev/framework": "torch"}
    obj = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "a", "labels": labels}, "spec": spec}
    review = workload.reviewer(NamespaceWorld(team={QUEUE: "ns"}))
    after = apply(obj, review(request(obj)).patch)
    for place in places:
        node = after["spec"]
        for part in place:
            node = node[part]
        assert node["metadata"]["labels"] == labels
    assert not review(request(after)).patch
    assert not review(request({**obj, "metadata": {"name": "a"}})).patch
