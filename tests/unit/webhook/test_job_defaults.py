"""Defaults of a Volcano Job are stored outside its list of tasks, and change nothing that the user wrote."""

import copy
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from webhook_world import JSON, DownWorld, NamespaceWorld, apply, job_defaults, request, task, vcjob

from muster.api.kubernetes.admission import UserInfo
from muster.api.names import CHANGED_BY
from muster.api.volcano.batch import Job
from muster.kube.errors import Unreachable
from muster.volcano.podgroup import pod_group
from webhook.objects.canonical import same
from webhook.validate.volcano_job.job import check_update


def defaulted(job: JSON) -> JSON:
    """The Job after the mutation."""
    return apply(job, job_defaults()(request(job)).patch)


def test_an_almost_empty_job_is_complete() -> None:
    """Queue, scheduler and minimum are filled in; tasks and their retries stay as they were sent."""
    job = vcjob({"replicas": 2}, {"name": "b", "replicas": 3})
    del job["spec"]["queue"]
    assert defaulted(job)["spec"] == {
        "queue": "default",
        "schedulerName": "volcano",
        "minAvailable": 5,
        "tasks": [{"replicas": 2}, {"name": "b", "replicas": 3}],
    }


def test_minimum_of_partitions() -> None:
    """A task with a minimum of partitions needs that many whole partitions."""
    policy = {"totalPartitions": 4, "partitionSize": 2, "minPartitions": 3}
    assert defaulted(vcjob(task(replicas=8, partitionPolicy=policy)))["spec"]["minAvailable"] == 6


def test_plugins_imply_others() -> None:
    """Distributed frameworks need svc, and mpi needs ssh; given arguments stay."""
    assert defaulted(vcjob(plugins={"mpi": ["--master=a"]}))["spec"]["plugins"] == {
        "mpi": ["--master=a"],
        "svc": [],
        "ssh": [],
    }
    assert defaulted(vcjob(plugins={"pytorch": [], "svc": ["x"]}))["spec"]["plugins"] == {"pytorch": [], "svc": ["x"]}


def test_malformed_job_passes_unchanged() -> None:
    """The API server's schema refuses it next, naming every wrong field."""
    assert job_defaults()(request(vcjob({"replicas": "two"}))).outcome == "allowed"


TASKS = st.lists(st.fixed_dictionaries({"replicas": st.integers(0, 5)}, optional={
    "name": st.sampled_from(["", "a", "b"]),
    "minAvailable": st.integers(0, 3),
    "maxRetry": st.integers(0, 2),
    "template": st.just({"metadata": {"annotations": {"unknown/field": "kept"}}, "spec": {"hostNetwork": True}}),
}), min_size=1, max_size=4)  # fmt: skip


@given(TASKS, st.dictionaries(st.sampled_from(["svc", "mpi", "ray"]), st.just(["--x"]), max_size=2), st.integers(0, 3))
def test_defaults_are_idempotent_and_lose_nothing(tasks: list[Any], plugins: JSON, minimum: int) -> None:
    """A second review changes nothing, and every value that the user gave is still there."""
    once = defaulted(vcjob(*tasks, plugins=plugins, minAvailable=minimum))
    assert job_defaults()(request(once)).outcome == "allowed"
    assert once["spec"]["tasks"] == tasks
    assert {name: once["spec"]["plugins"][name] for name in plugins} == plugins


MANIFEST = vcjob(
    {"replicas": 2, "template": {"spec": {"hostNetwork": True, "containers": [{"name": "main"}]}}},
    {"name": "b", "replicas": 3},
    plugins={"mpi": ["--master=b"]},
)


def applied(manifest: JSON, old: JSON, *, marks: bool = False, **kept: Any) -> JSON:
    """The manifest after the mutation, as an update of `old`; `kept` are fields of its spec that the client kept."""
    update = {**manifest, "spec": {**manifest["spec"], **kept}}
    return apply(update, job_defaults(marks=marks)(request(update, "UPDATE", old)).patch)


def test_a_manifest_can_replace_what_was_made_of_it() -> None:
    """Everything that creation had added is there again, markers too."""
    for marks in (False, True):
        old = apply(MANIFEST, job_defaults(marks=marks)(request(MANIFEST)).patch)
        assert applied(MANIFEST, old, marks=marks) == old


def test_an_update_that_leaves_nothing_out_is_not_touched() -> None:
    """A label, a status, or the same spec in other words: no patch, also for Jobs made before there were defaults."""
    old = vcjob(task(maxRetry=0))
    new = {**vcjob(task()), "metadata": {"name": "train", "labels": {"a": "b"}}}
    assert job_defaults(marks=True)(request(new, "UPDATE", old)).outcome == "allowed"


def test_what_the_old_job_lacks_is_not_added() -> None:
    """A Job made before something became a default stays without it; only the minimum is too much to be without."""
    old = vcjob(task(replicas=3))
    assert applied(vcjob(task(replicas=4)), old, marks=True)["spec"] == vcjob(task(replicas=4), minAvailable=4)["spec"]


def test_minimums_follow_the_replicas_that_are_applied() -> None:
    """A task that leaves its minimum out needs all of its pods; so does the Job, if the client left that out, too."""
    more = copy.deepcopy(MANIFEST)
    more["spec"]["tasks"][1]["replicas"] = 7
    assert applied(more, defaulted(MANIFEST))["spec"]["minAvailable"] == 9


@pytest.mark.parametrize(
    ("replicas", "given", "minimum"),
    [(7, 5, 9), (1, 5, 3), (1, 4, 4), (7, 0, 0), (1, 1, 1), (0, 5, 2)],
    ids=["up", "down", "explicit and too much", "explicit zero", "explicit", "none left"],
)
def test_the_minimum_of_an_update(replicas: int, given: int, minimum: int) -> None:
    """It stays as it comes; only one that a client kept follows the tasks."""
    new = copy.deepcopy(MANIFEST)
    new["spec"]["tasks"][1]["replicas"] = replicas
    assert applied(new, defaulted(MANIFEST), minAvailable=given)["spec"]["minAvailable"] == minimum


def test_a_minimum_that_a_client_set_stays() -> None:
    """The API server knows who: a client that applies it again is told that it cannot be met."""
    new = copy.deepcopy(MANIFEST)
    new["spec"]["tasks"][1]["replicas"] = 1
    for owned, minimum in (({"f:minAvailable": {}}, 5), ({"f:tasks": {}}, 3)):
        new["metadata"]["managedFields"] = [{"manager": "kubectl", "fieldsV1": {"f:spec": owned}}]
        assert applied(new, defaulted(MANIFEST), minAvailable=5)["spec"]["minAvailable"] == minimum


@pytest.mark.parametrize("last", ['{"spec": {"minAvailable": 5}}', '{"spec": {}}', "{", ""])
def test_a_minimum_that_a_manifest_says_stays(last: str) -> None:
    """Also where it is what admission had filled in: then only kubectl knows that it was said."""
    new = copy.deepcopy(MANIFEST)
    new["spec"]["tasks"][1]["replicas"] = 7
    new["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": last}
    expected = 5 if "minAvailable" in last else 9
    assert applied(new, defaulted(MANIFEST), minAvailable=5)["spec"]["minAvailable"] == expected


@pytest.mark.parametrize("keeps", [True, False], ids=["apply", "replace"])
@pytest.mark.parametrize("stated", [True, False])
def test_through_zero(*, keeps: bool, stated: bool) -> None:
    """A gang that is scaled to 0 and back starts as a whole, whether or not the minimums of its tasks are given."""
    job = None
    for replicas in (3, 0, 12, 1, 5):
        counts = {"replicas": replicas, **({"minAvailable": replicas} if stated else {})}
        new = vcjob({**task(), **counts})
        if job is None:
            job = defaulted(new)
        else:
            job = applied(new, job, **({"minAvailable": job["spec"]["minAvailable"]} if keeps else {}))
        assert (job["spec"]["tasks"][0]["replicas"], job["spec"]["minAvailable"]) == (replicas, replicas)


def test_a_job_of_no_pods_says_so() -> None:
    """Its minimum is written down, too."""
    assert defaulted(vcjob(task(replicas=0)))["spec"]["minAvailable"] == 0


def test_a_minimum_below_the_sum_is_no_sum() -> None:
    """A client has chosen it, even if it is unknown which."""
    old = vcjob(task(replicas=5, minAvailable=5), minAvailable=3)
    assert applied(vcjob(task(replicas=8)), old, minAvailable=3)["spec"]["minAvailable"] == 3


def test_a_minimum_of_0_is_stored_and_stands_for_the_sum() -> None:
    """A client that applies the manifest again finds no difference, and the gang starts as a whole."""
    job = vcjob(task(replicas=3), minAvailable=0)
    once = defaulted(job)
    assert once["spec"]["minAvailable"] == applied(job, once)["spec"]["minAvailable"] == 0
    assert pod_group(msgspec.convert(once, Job), {}).spec.min_member == 3


def test_a_job_that_an_older_version_has_filled_in() -> None:
    """Its manifest can replace it: the defaults in its tasks are no difference, and another image is the only one."""
    port = {"containerPort": 22}
    nearness = {"highestTierAllowed": 1}
    sent = vcjob(
        {
            "replicas": 2,
            "template": {"spec": {"containers": [{"name": "main", "image": "a", "ports": [port]}]}},
            "partitionPolicy": {"totalPartitions": 1, "partitionSize": 2, "networkTopology": nearness},
        }
    )
    stored = copy.deepcopy(sent)
    stored["spec"] |= {"queue": "default", "schedulerName": "volcano", "maxRetry": 3, "minAvailable": 2}
    [task] = stored["spec"]["tasks"]
    task |= {"name": "default0", "minAvailable": 2, "maxRetry": 3}
    task["partitionPolicy"] |= {"minPartitions": 0, "networkTopology": nearness | {"mode": "hard"}}
    task["template"]["spec"]["containers"][0]["ports"] = [port | {"protocol": "TCP"}]
    assert not list(check_update(stored, applied(sent, stored)))
    sent["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["image"] = "b"
    [error] = check_update(stored, applied(sent, stored))
    assert error.path == "spec.tasks[0].template.spec.containers[0].image"


def test_malformed_updates_pass_unchanged() -> None:
    """Whatever is wrong with the new or the old object is not ours to say."""
    for new, old in ((vcjob({"replicas": "two"}), vcjob()), (vcjob(), {"spec": {"tasks": 7}}), (vcjob(), {})):
        assert not job_defaults()(request(new, "UPDATE", old)).errors
    leaving = {**vcjob(task()), "metadata": {"name": "train", "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    assert job_defaults()(request(leaving, "UPDATE", defaulted(vcjob()))).outcome == "allowed"


@given(TASKS, TASKS, st.integers(0, 3))
def test_applying_again_changes_nothing(tasks: list[Any], others: list[Any], minimum: int) -> None:
    """Any manifest can follow itself, also after another one, and the counts that it gives stay."""
    job = vcjob(*tasks, minAvailable=minimum)
    once = defaulted(job)
    if 0 < minimum <= sum(each["replicas"] for each in tasks):
        assert same(applied(job, once)["spec"], once["spec"])
    for said, stored in zip(others, applied(vcjob(*others), once)["spec"]["tasks"], strict=True):
        kept = {key: value for key, value in said.items() if key in {"replicas", "minAvailable"}}
        assert {**stored, **kept} == stored


class TestQueueOfTheNamespace:
    """Namespace `team` names the queue `a`, for what is created there without one."""

    def mutated(self, job: JSON, old: JSON | None = None) -> JSON:
        """The Job after the mutation."""
        asked = request(job, "UPDATE", old) if old else request(job)
        return apply(job, job_defaults(NamespaceWorld())(asked).patch)

    @pytest.mark.parametrize(("queue", "expected"), [("default", "a"), ("", "a"), ("b", "b")])
    def test_creation(self, queue: str, expected: str) -> None:
        """The schema writes the default queue where nothing is said; any other is the user's."""
        assert self.mutated(vcjob(queue=queue))["spec"]["queue"] == expected

    @pytest.mark.parametrize(("before", "queue", "expected"), [
        ("a", "default", "a"),
        ("default", "default", "default"),
        ("b", "default", "b"),
        ("b", "", "b"),
        ("a", "b", "b"),
    ])  # fmt: skip
    def test_update(self, before: str, queue: str, expected: str) -> None:
        """A manifest without a queue can be applied again, whatever the namespace names by now; the Job stays there."""
        old = defaulted(vcjob(queue=before))
        assert self.mutated(vcjob(task(replicas=5), queue=queue), old)["spec"]["queue"] == expected

    def test_a_namespace_that_cannot_be_read(self) -> None:
        """The Job is submitted again, rather than waiting in a queue that it should not be in."""
        with pytest.raises(Unreachable):
            job_defaults(DownWorld())(request(vcjob()))
        assert not job_defaults(DownWorld())(request(vcjob(queue="b"))).errors
        assert not job_defaults(DownWorld())(request(vcjob(task(replicas=5)), "UPDATE", defaulted(vcjob()))).errors


@pytest.mark.parametrize(("user", "owner", "noted"), [
    ("alice", None, "alice"),
    ("system:serviceaccount:muster-system:muster-controller", {"controller": True}, None),
])  # fmt: skip
def test_a_user_who_changes_the_class_is_noted(user: str, owner: JSON | None, noted: str | None) -> None:
    """Not a controller, which changes its own Job; other changes are not noted."""
    old = defaulted(vcjob(task("a", 1)))
    reference = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "name": "t", "uid": "u"}
    old["metadata"]["ownerReferences"] = [{**reference, **owner}] if owner else []
    new = {**old, "spec": {**old["spec"], "priorityClassName": "high"}}
    sent = request(new, "UPDATE", old, user_info=UserInfo(username=user))
    after = apply(new, job_defaults()(sent).patch)
    assert after["metadata"].get("annotations", {}).get(CHANGED_BY) == noted
    assert job_defaults()(request(old, "UPDATE", old, user_info=UserInfo(username=user))).patch == []
