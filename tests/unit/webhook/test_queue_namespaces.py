"""A queue says which namespaces may use it, and a namespace may hold what is in it to one queue."""

from collections.abc import Callable
from typing import Any

import pytest
from webhook_world import FRAMEWORK, JSON, NamespaceWorld, QueueWorld, RuntimeWorld, apply, lookups, request, vcjob

from muster.api.kubernetes.admission import UserInfo
from webhook.lookup import Lookups
from webhook.mutate import pod as mutate_pod
from webhook.mutate import queues as mutate_queues
from webhook.mutate import trainjob as mutate_trainjob
from webhook.mutate import workload as mutate_workload
from webhook.review import ReviewVerdict
from webhook.validate import podgroup, queue, trainjob, workload
from webhook.validate.volcano_job import job as volcano_job

QUEUE, LOCKED = "muster.dev/queue", "muster.dev/queue-locked"
QUEUES = QueueWorld(
    {"research": "team in (vision, speech)", "theirs": "team=vision", "broken": "team in ("}, research=("root", "Open"),
    theirs=("research", "Open"), ours=("research", "Open"), free=("root", "Open"), broken=("root", "Open"),
    closing=("root", "Closing")
)  # fmt: skip
Ask = Callable[[str, NamespaceWorld], ReviewVerdict]


def seen_by(namespaces: NamespaceWorld) -> Lookups:
    """The queues, and these namespaces."""
    return lookups(QUEUES, namespaces=namespaces)


def a_pod(name: str, **meta: Any) -> JSON:
    """A pod with the label."""
    return {"metadata": {"name": "p", "labels": {QUEUE: name}, **meta}, "spec": {"containers": [{"name": "main"}]}}


def a_deployment(name: str) -> JSON:
    """A Deployment with the label on itself and its template."""
    template = {"metadata": {"labels": {QUEUE: name}}, "spec": {"containers": [{"name": "main"}]}}
    metadata = {"name": "d", "labels": {QUEUE: name}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {"template": template}}


def a_train_job(name: str) -> JSON:
    """A TrainJob with the label."""
    spec = {"runtimeRef": {"name": "r", "kind": "ClusterTrainingRuntime"}}
    return {"kind": "TrainJob", "metadata": {"name": "t", "labels": {QUEUE: name}}, "spec": spec}


def a_group(name: str, owner: str = "") -> JSON:
    """A PodGroup."""
    reference = {"apiVersion": owner, "kind": "Job", "name": "x", "uid": "u", "controller": True}
    return {"metadata": {"name": "g", "ownerReferences": [reference] if owner else []}, "spec": {"queue": name}}


def ask_group(owner: str) -> Ask:
    """The review of a PodGroup with an owner of this group and version."""
    return lambda name, seen: podgroup.reviewer(seen_by(seen))(request(a_group(name, owner)))


ENTERS: dict[str, Ask] = {
    "Job": lambda name, seen: volcano_job.reviewer(seen_by(seen), FRAMEWORK)(request(vcjob(queue=name))),
    "PodGroup": ask_group(""),
    "PodGroup of a workload": ask_group("apps/v1"),
    "PodGroup of a Job": ask_group("batch.volcano.sh/v1alpha1"),
    "workload": lambda name, seen: workload.reviewer(seen_by(seen), FRAMEWORK)(request(a_deployment(name))),
    "TrainJob": lambda name, seen: trainjob.reviewer(seen_by(seen), FRAMEWORK)(request(a_train_job(name))),
    "moved TrainJob": lambda name, seen: trainjob.reviewer(seen_by(seen),
        FRAMEWORK)(request(a_train_job(name), "UPDATE", a_train_job("free"))),
    "moved PodGroup": lambda name, seen: podgroup.reviewer(seen_by(seen))(request(a_group(name), "UPDATE",
        a_group("free"))),
    "pod": lambda name, seen: mutate_pod.reviewer(seen_by(seen), FRAMEWORK)(request(a_pod(name))),
}  # fmt: skip


def refusals(verdict: ReviewVerdict) -> list[str]:
    """The errors about namespaces."""
    return [str(error) for error in verdict.errors if "is not allowed to use queue" in str(error)]


@pytest.mark.parametrize("kind", ENTERS)
def test_nothing_enters_a_queue_that_is_not_for_its_namespace(kind: str) -> None:
    """The message lists the queues that are."""
    speech = NamespaceWorld(team={"team": "speech"})
    [refusal] = refusals(ENTERS[kind]("theirs", speech))
    assert "namespace team is not allowed to use queue 'theirs'" in refusal
    assert "queue 'theirs' is for namespaces with team=vision" in refusal
    assert refusal.endswith("usable queues are: default, research, ours, free")
    assert not refusals(ENTERS[kind]("ours", speech))
    assert not refusals(ENTERS[kind]("theirs", NamespaceWorld(team={"team": "vision"})))


@pytest.mark.parametrize("kind", ENTERS)
def test_a_queue_above_closes_those_below_it(kind: str) -> None:
    """A namespace must be selected all the way up."""
    [refusal] = refusals(ENTERS[kind]("ours", NamespaceWorld(team={"team": "sales"})))
    assert "queue 'research' is for namespaces with team in (vision, speech)" in refusal
    assert not refusals(ENTERS[kind]("free", NamespaceWorld()))


@pytest.mark.parametrize("kind", ENTERS)
def test_a_selector_that_cannot_be_read_lets_nobody_in(kind: str) -> None:
    """Such a queue was made while Muster did not look."""
    [refusal] = refusals(ENTERS[kind]("broken", NamespaceWorld(team={"team": "vision"})))
    assert "cannot be read: the parentheses of 'team in (' do not match" in refusal


@pytest.mark.parametrize("name", ["theirs", "closing"])
def test_a_pod_of_an_admitted_workload_is_admitted_even_if_its_queue_changed(name: str) -> None:
    """It may be the next of a gang that runs; of one that does not, the planner places none. A user's is none of it."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u", "controller": True}
    review = mutate_pod.reviewer(lookups(QUEUES, namespaces=NamespaceWorld(team={"team": "speech"})), FRAMEWORK)
    pod = a_pod(name, ownerReferences=[owner])
    for user, refused in (("system:serviceaccount:kube-system:replicaset-controller", False), ("eve", True)):
        assert bool(review(request(pod, user_info=UserInfo(username=user))).errors) == refused


@pytest.mark.parametrize(("text", "words"), [("team in (", "do not match"), ("a b", "not a condi"), ("-=x", "key of")])
def test_a_malformed_selector_is_refused_with_what_is_wrong(text: str, words: str) -> None:
    """On a new queue, and on one that gets it."""
    said: JSON = {"metadata": {"name": "q", "annotations": {"muster.dev/namespace-selector": text}}, "spec": {}}
    bare: JSON = {"metadata": {"name": "q"}, "spec": {}}
    for operation, old in (("CREATE", None), ("UPDATE", bare)):
        [error] = queue.reviewer(QUEUES)(request(said, operation, old)).errors
        assert error.path == "metadata.annotations[muster.dev/namespace-selector]"
        assert words in error.message
    good = {"metadata": {"name": "q", "annotations": {"muster.dev/namespace-selector": "team=a,!b"}}, "spec": {}}
    assert not queue.reviewer(QUEUES)(request(good)).errors


HELD = NamespaceWorld(team={QUEUE: "free", LOCKED: "true"})


def test_a_pod_in_a_locked_namespace_is_set_back_to_its_queue() -> None:
    """With a warning; without the lock its own label counts."""
    obj = a_pod("default")
    verdict = mutate_pod.reviewer(seen_by(HELD), FRAMEWORK)(request(obj))
    assert apply(obj, verdict.patch)["metadata"]["labels"][QUEUE] == "free"
    [warning] = verdict.warnings
    assert "Muster replaced 'default' by 'free', because the namespace is locked" in warning
    unlocked = lookups(QUEUES, namespaces=NamespaceWorld(team={QUEUE: "free"}))
    verdict = mutate_pod.reviewer(unlocked, FRAMEWORK)(request(obj))
    assert apply(obj, verdict.patch)["metadata"]["labels"][QUEUE] == "default"


def test_a_workload_in_a_locked_namespace_is_set_back_with_its_pods() -> None:
    """One warning for each label that was written."""
    obj = a_deployment("default")
    verdict = mutate_workload.reviewer(HELD)(request(obj))
    after = apply(obj, verdict.patch)
    assert after["metadata"]["labels"][QUEUE] == "free"
    assert after["spec"]["template"]["metadata"]["labels"][QUEUE] == "free"
    assert [warning.partition(": ")[0] for warning in verdict.warnings] == [
        f"metadata.labels[{QUEUE}]",
        f"spec.template.metadata.labels[{QUEUE}]",
    ]
    assert not mutate_workload.reviewer(HELD)(request(after)).warnings


def test_a_train_job_in_a_locked_namespace_is_set_back() -> None:
    """It cannot move afterwards, either."""
    obj = a_train_job("default")
    verdict = mutate_trainjob.reviewer(HELD, RuntimeWorld(), lambda: 0.0)(request(obj))
    after = apply(obj, verdict.patch)
    assert after["metadata"]["labels"][QUEUE] == "free"
    assert len(verdict.warnings) == 1
    assert refusals(trainjob.reviewer(seen_by(HELD), FRAMEWORK)(request(obj, "UPDATE", after)))


@pytest.mark.parametrize("kind", ["Job", "PodGroup", "PodGroup of a workload", "PodGroup of a Job", "moved PodGroup"])
def test_jobs_and_pod_groups_in_a_locked_namespace_name_no_other_queue(kind: str) -> None:
    """Their queue is a field that their owner has chosen."""
    [refusal] = refusals(ENTERS[kind]("default", HELD))
    assert "the namespace is locked to queue 'free'" in refusal
    assert refusal.endswith("usable queues are: free")
    assert not refusals(ENTERS[kind]("free", HELD))


def test_a_pod_group_of_a_locked_namespace_gets_its_queue_where_it_names_none() -> None:
    """The schema writes `default` for none."""
    obj = a_group("default")
    assert apply(obj, mutate_queues.reviewer(seen_by(HELD))(request(obj)).patch)["spec"]["queue"] == "free"


@pytest.mark.parametrize(("name", "told"), [("system-node-critical", True), ("high", False)])
def test_a_pod_group_that_names_a_class_of_the_system_is_told_that_its_pods_decide(
    name: str,
    told: bool,  # noqa: FBT001 - a column of the table
) -> None:
    """The planner believes it as far as its pods have it."""
    obj = a_group("free")
    obj["spec"]["priorityClassName"] = name
    verdict = podgroup.reviewer(lookups(QUEUES))(request(obj))
    assert not verdict.errors
    assert bool(verdict.warnings) == told
