"""A pod that opts in is given to Muster's scheduler, shaped and marked in one patch, which keeps all that was there."""

import copy
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from webhook_world import (
    FRAMEWORK,
    JSON,
    OwnerWorld,
    apply,
    container,
    indexed_job,
    job_defaults,
    lookups,
    pod_of,
    request,
    task,
    vcjob,
)

from muster.api import names
from muster.api.volcano.batch import Job
from webhook.mutate.pod import mutate
from webhook.review import ReviewVerdict

QUEUED = {"muster.dev/queue": "default"}
BOTH = {"muster.dev/queue": "default", "muster.dev/framework": "torch"}
RESERVED = ["PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT"]


def reviewed(pod: JSON, *jobs: JSON) -> ReviewVerdict:
    """The verdict on a pod, with these Jobs in the cluster."""
    return mutate(pod, "team", lookups(owners=OwnerWorld(*jobs)), FRAMEWORK)


def admitted(pod: JSON, *jobs: JSON) -> JSON:
    """The pod as it is admitted."""
    verdict = reviewed(pod, *jobs)
    assert not verdict.errors
    return apply(pod, verdict.patch)


def refusal(pod: JSON, *jobs: JSON) -> dict[str, str]:
    """Field path → message of each error; a refused pod has no patch."""
    verdict = reviewed(pod, *jobs)
    assert not verdict.patch
    return {error.path: error.cause for error in verdict.errors}


def env_of(pod: JSON, index: int = 0) -> dict[str, Any]:
    """Name → value or field path."""
    env = pod["spec"]["containers"][index].get("env", [])
    return {
        each["name"]: each.get("value", each.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")) for each in env
    }


def test_two_labels_give_a_gang_and_an_environment() -> None:
    """A pod of an Indexed Job with both labels: scheduler, gang, gate, env, port and subdomain."""
    job = indexed_job(container(nvidia_com_gpu=8), labels=BOTH)
    pod = admitted(pod_of(job), job)
    assert pod["spec"]["schedulerName"] == "muster"
    assert pod["spec"]["schedulingGates"] == [{"name": "muster.dev/gang"}]
    assert pod["metadata"]["labels"]["muster.dev/gang"] == "podgroup-job-uid"
    assert env_of(pod) == {
        "PET_NNODES": "4",
        "PET_NPROC_PER_NODE": "auto",
        "PET_NODE_RANK": "metadata.labels['batch.kubernetes.io/job-completion-index']",
        "PET_MASTER_ADDR": "train-0.train",
        "PET_MASTER_PORT": "29500",
    }
    assert pod["spec"]["containers"][0]["ports"] == [{"containerPort": 29500, "protocol": "TCP"}]
    assert pod["spec"]["subdomain"] == "train"


def test_queue_alone_does_not_shape() -> None:
    """Only the queue label: Muster's scheduler, but no env; and the other way round."""
    job = indexed_job(labels=QUEUED)
    assert env_of(admitted(pod_of(job), job)) == {}
    job = indexed_job()
    pod = admitted(pod_of(job), job)
    assert pod["spec"]["schedulerName"] == "default-scheduler"
    assert "schedulingGates" not in pod["spec"]
    assert "muster.dev/gang" not in pod["metadata"]["labels"]


def test_pod_without_owner_is_scheduled_without_a_gang() -> None:
    """A bare pod with a queue goes to Muster's scheduler at once: it has no gang to wait for."""
    pod = {"metadata": {"name": "a", "labels": QUEUED}, "spec": {"containers": []}}
    assert admitted(pod)["spec"] == {"containers": [], "schedulerName": "muster"}
    assert admitted(pod)["metadata"]["labels"] == QUEUED


@pytest.mark.parametrize(("metadata", "gang"), [
    ({"annotations": {"scheduling.k8s.io/group-name": "own"}}, None),
    ({"labels": {**QUEUED, "scheduling.x-k8s.io/pod-group": "own"}}, None),
    ({"labels": {**QUEUED, "muster.dev/gang": "own"}}, "own"),
])  # fmt: skip
def test_a_gang_that_the_user_made_stays(metadata: JSON, gang: str | None) -> None:
    """A pod that belongs to a gang already keeps it, and waits for its placement."""
    pod = pod_of(indexed_job(labels=QUEUED))
    for key, value in metadata.items():
        pod["metadata"][key] = {**pod["metadata"].get(key, {}), **value}
    after = admitted(pod)
    assert after["metadata"]["labels"].get("muster.dev/gang") == gang
    assert after["spec"]["schedulingGates"] == [{"name": "muster.dev/gang"}]


@pytest.mark.parametrize(
    "change", [{"spec": {"nodeName": "n1"}}, {"metadata": {"annotations": {"muster.dev/node": "n1"}}}]
)
def test_no_gate_for_a_pod_that_has_its_node(change: JSON) -> None:
    """A pod that is bound or pinned already must not wait."""
    pod = pod_of(indexed_job(labels=QUEUED))
    for key, value in change.items():
        pod[key].update(value)
    assert "schedulingGates" not in admitted(pod)["spec"]


def test_foreign_scheduler_is_left_alone() -> None:
    """A pod that names a foreign scheduler keeps it, and the user is told."""
    pod = pod_of(indexed_job(labels=QUEUED))
    pod["spec"]["schedulerName"] = "other"
    verdict = reviewed(pod)
    assert not verdict.patch
    assert "'other' is not a scheduler of Muster's" in verdict.warnings[0]


def test_volcano_profile_stays() -> None:
    """Both of Muster's profiles are its own."""
    pod = pod_of(indexed_job(labels=QUEUED))
    pod["spec"]["schedulerName"] = "volcano"
    assert admitted(pod)["spec"]["schedulerName"] == "volcano"


def test_user_env_keeps_its_order_and_comes_first() -> None:
    """Ours is appended, so that the order and meaning of the user's variables stay."""
    env = [{"name": "B", "value": "2"}, {"name": "A", "value": "$(B)"}, {"name": "MASTER_ADDR", "value": "x"}]
    job = indexed_job(container(env=env))
    assert list(env_of(admitted(pod_of(job), job))) == ["B", "A", "MASTER_ADDR", *RESERVED]


def test_reserved_env_is_refused() -> None:
    """A reserved variable with another value is refused with its path, and so is one with valueFrom."""
    env = [
        {"name": "A"},
        {"name": "PET_NNODES", "value": "7"},
        {"name": "PET_MASTER_PORT", "valueFrom": {"fieldRef": {}}},
    ]
    job = indexed_job(container(env=env))
    found = refusal(pod_of(job), job)
    assert list(found) == ["spec.containers[0].env[1].name", "spec.containers[0].env[2].name"]
    assert found["spec.containers[0].env[1].name"] == (
        'Invalid value: "PET_NNODES": is set by Muster for framework torch (number of pods of Job train); remove it'
    )


@pytest.mark.parametrize(("containers", "annotations", "target"), [
    (["main", "sidecar"], {}, "main"),
    (["sidecar", "node"], {}, "node"),
    (["node", "main"], {"kubectl.kubernetes.io/default-container": "main"}, "main"),
    (["a", "b"], {"kubectl.kubernetes.io/default-container": "gone"}, "a"),
])  # fmt: skip
def test_which_container_is_shaped(containers: list[str], annotations: JSON, target: str) -> None:
    """The annotated one, else `node`, else the first."""
    job = indexed_job(*map(container, containers), annotations=annotations)
    assert [each["name"] for each in admitted(pod_of(job), job)["spec"]["containers"] if "env" in each] == [target]


def test_sidecar_put_in_front_by_another_webhook() -> None:
    """The container is chosen in the Job's template, so an injected sidecar is not shaped, before or after."""
    job = indexed_job(container("main"))
    pod = pod_of(job)
    pod["spec"]["containers"].insert(0, container("proxy"))
    after = admitted(pod, job)
    assert (list(env_of(after, 0)), list(env_of(after, 1))) == ([], RESERVED)
    late = admitted(pod_of(job), job)
    late["spec"]["containers"].insert(0, container("proxy"))
    assert not reviewed(late, job).patch


def test_subdomain_of_the_user_is_used() -> None:
    """With a subdomain of its own the group is found there."""
    job = indexed_job()
    job["spec"]["template"]["spec"]["subdomain"] = "svc"
    pod = admitted(pod_of(job), job)
    assert pod["spec"]["subdomain"] == "svc"
    assert env_of(pod)["PET_MASTER_ADDR"] == "train-0.svc"


def test_owner_that_cannot_be_shaped() -> None:
    """Owners without ranks, vanished owners and unknown names are refused with a reason."""
    job = indexed_job()
    assert "is gone" in refusal(pod_of(job))["metadata.ownerReferences"]
    other = copy.deepcopy(job)
    other["metadata"]["uid"] = "another"
    assert "is gone" in refusal(pod_of(job), other)["metadata.ownerReferences"]
    loose = {**job, "spec": {**job["spec"], "completionMode": "NonIndexed"}}
    assert "spec.completionMode" in refusal(pod_of(job), loose)["metadata.ownerReferences"]


def test_unknown_framework_and_queue_together() -> None:
    """Both are refused in one answer, each with what there is."""
    found = refusal(pod_of(indexed_job(labels={"muster.dev/framework": "touch", "muster.dev/queue": "nowhere"})))
    assert found["metadata.labels[muster.dev/framework]"].startswith('Unsupported value: "touch": must be one of: ')
    assert "usable queues are: default" in found["metadata.labels[muster.dev/queue]"]


ENV = st.lists(
    st.sampled_from([{"name": "A", "value": "1"}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}]),
    max_size=3,
)
CONTAINERS = st.lists(
    st.builds(
        lambda env, ports, extra: {**({"env": env} if env else {}), **({"ports": ports} if ports else {}), **extra},
        ENV,
        st.lists(st.sampled_from([{"containerPort": 80}, {"containerPort": 29500, "protocol": "TCP"}]), max_size=2),
        st.sampled_from([{}, {"resources": {"requests": {"cpu": "1"}}}, {"x-unknown": {"a/b~c": 1}}]),
    ),
    min_size=1,
    max_size=3,
)


@settings(max_examples=settings().max_examples * 2)
@given(
    CONTAINERS,
    st.sampled_from([BOTH, QUEUED, {"muster.dev/framework": "torch"}]),
    st.sampled_from([{}, {"schedulingGates": [{"name": "other"}]}, {"subdomain": "s"}, {"schedulerName": "volcano"}]),
)
def test_nothing_is_lost_and_a_second_review_changes_nothing(containers: list[JSON], labels: JSON, spec: JSON) -> None:
    """Applying our patch keeps every value and the order of every list; reviewing the result again gives no patch."""
    named = [{"name": f"c{index}", **each} for index, each in enumerate(containers)]
    job = indexed_job(*named, labels=labels)
    job["spec"]["template"]["spec"].update(spec)
    before = pod_of(job, 2)
    after = admitted(before, job)
    assert_kept(before, after)
    assert not reviewed(after, job).patch


def assert_kept(before: Any, after: Any, path: str = "") -> None:
    """Every member of `before` is in `after`; lists begin with the same elements. The scheduler's name may change."""
    if isinstance(before, dict):
        for key, value in before.items():
            if value is not None and f"{path}/{key}" != "/spec/schedulerName":
                assert_kept(value, after[key], f"{path}/{key}")
    elif isinstance(before, list):
        assert len(after) >= len(before), path
        for index, value in enumerate(before):
            assert_kept(value, after[index], f"{path}/{index}")
    else:
        assert before == after, path


MARKERS = {"muster.dev/binding": "1", "muster.dev/member": "1"}


def marked(pod: JSON, *jobs: JSON) -> JSON:
    """The pod as a webhook admits it that marks pods."""
    verdict = mutate(pod, "team", lookups(owners=OwnerWorld(*jobs)), FRAMEWORK, marks=True)
    assert not verdict.errors
    return apply(pod, verdict.patch)


def limits(pod: JSON) -> list[Any]:
    """The limits of each container."""
    return [(each.get("resources") or {}).get("limits") for each in pod["spec"]["containers"]]


@pytest.mark.parametrize(("containers", "expected"), [
    ([{"name": "a"}], [MARKERS]),
    ([{"name": "a"}, {"name": "b", "resources": {"limits": {"cpu": "1"}}}], [None, {"cpu": "1", **MARKERS}]),
    ([{"name": "a", "resources": {}}, {"name": "b", "resources": {"limits": {}}}], [MARKERS, {}]),
    ([{"name": "a"}, {"name": "b", "resources": {"limits": {"muster.dev/member": 1}}}],
        [None, {"muster.dev/member": 1, "muster.dev/binding": "1"}]),
    ([], []),
])  # fmt: skip
def test_where_markers_go(containers: list[JSON], expected: list[Any]) -> None:
    """To the first container that has limits, else to the first; one that is there already is not added again."""
    pod = {"metadata": {"name": "a", "labels": QUEUED}, "spec": {"containers": containers}}
    assert limits(marked(pod)) == expected


def test_a_sidecar_that_comes_later() -> None:
    """A second review, after another webhook has put a container in front, finds the markers."""
    once = marked(pod_of(indexed_job(labels=QUEUED)))
    once["spec"]["containers"].insert(0, container("proxy"))
    assert not mutate(once, "team", lookups(), FRAMEWORK, marks=True).patch


def test_pods_that_muster_does_not_place() -> None:
    """Pods of other schedulers and pods that are only shaped are not marked; nor is anything unless asked for."""
    foreign = pod_of(indexed_job(labels=QUEUED))
    foreign["spec"]["schedulerName"] = "other"
    assert limits(marked(foreign)) == [None]
    job = indexed_job()
    assert limits(marked(pod_of(job), job)) == [None]
    pod = pod_of(indexed_job(labels=QUEUED))
    assert limits(apply(pod, mutate(pod, "team", lookups(), FRAMEWORK).patch)) == [None]


def test_tasks_of_a_volcano_job() -> None:
    """Their pods do not pass the webhook, so the Job records the markers, where Muster places their pods."""
    job = vcjob(task("a"), task("b", template={"spec": {"schedulerName": "other", "containers": [{"name": "main"}]}}))
    after = apply(job, job_defaults(marks=True)(request(job)).patch)
    read = msgspec.convert(after, Job)
    assert [limits({"spec": each.template["spec"]}) for each in read.spec.tasks] == [[MARKERS], [None]]
    assert not job_defaults(marks=True)(request(after)).patch
    plain = apply(job, job_defaults()(request(job)).patch)
    assert plain["metadata"] == job["metadata"]


def test_a_template_of_another_shape() -> None:
    """It is the API server's to refuse."""
    job = vcjob(task(template={"spec": {"containers": [{"name": "a", "resources": 7}]}}))
    assert job_defaults(marks=True)(request(job)).outcome == "allowed"


@pytest.mark.parametrize(("annotations", "group", "gang"), [
    ({names.KUEUE_TOTAL: "2"}, "sample", "podgroup-kueue-sample"),
    ({names.KUEUE_TOTAL: "2"}, "No_DNS_name", None),
    ({names.KUEUE_TOTAL: "2"}, "a..b", None),
    ({names.KUEUE_TOTAL: "x"}, "sample", None),
    ({}, "sample", None),
])  # fmt: skip
def test_plain_pods_of_a_group_of_kueue_are_a_gang(annotations: JSON, group: str, gang: str | None) -> None:
    """By the label with its name, and the annotation with the number of its pods."""
    labels = {names.QUEUE: "default", names.KUEUE_GROUP: group}
    plain = {"metadata": {"name": "p", "labels": labels, "annotations": annotations}, "spec": {"containers": []}}
    after = apply(plain, mutate(plain, "ns", lookups(), FRAMEWORK).patch)
    assert after["metadata"]["labels"].get(names.GANG) == gang
    assert bool(after["spec"].get("schedulingGates")) == bool(gang)
