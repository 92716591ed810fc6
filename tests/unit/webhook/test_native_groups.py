"""Native PodGroups: of Jobs with `spec.scheduling`, whose pods are marked and held, and of gangs that are published."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest
from builders import manifests
from webhook_world import (
    FRAMEWORK,
    JSON,
    DownWorld,
    NamespaceWorld,
    OwnerWorld,
    QueueWorld,
    apply,
    indexed_job,
    lookups,
    pod_of,
    request,
)

from muster.api import names
from muster.api.kubernetes.core import IndexedJob, Pod
from muster.workloads.table import is_independent, min_member
from webhook.mutate import workload as mutate_workload
from webhook.mutate.pod import mutate
from webhook.validate.workload import reviewer

QUEUED = {"muster.dev/queue": "default"}
GATED = [{"name": "muster.dev/gang"}]


def gang(minimum: int | None = 4, key: str = "") -> JSON:
    """`spec.scheduling` of a gang."""
    constraints = {"schedulingConstraints": {"topology": [{"key": key}]}} if key else {}
    return {"schedulingPolicy": {"gang": {"minCount": minimum} if minimum else {}}, **constraints}


BASIC: JSON = {"schedulingPolicy": {"basic": {}}}


def job(scheduling: JSON | None, *, own: JSON | None = None, labels: JSON | None = None, **annotations: str) -> JSON:
    """A Job of four in a queue; `own` are its own annotations, the others those of its template."""
    given = {f"muster.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    made = indexed_job(labels={**QUEUED, **(labels or {})}, annotations=given)
    made["metadata"]["annotations"] = own or {}
    if scheduling is not None:
        made["spec"]["scheduling"] = scheduling
    return made


def admitted(workload: JSON) -> JSON:
    """The Job as it is created."""
    return apply(workload, mutate_workload.reviewer(NamespaceWorld())(request(workload)).patch)


def errors(workload: JSON) -> dict[str, str]:
    """Field path → message of each error."""
    return {error.path: error.cause for error in reviewer(lookups(), FRAMEWORK)(request(workload)).errors}


def reviewed(pod: JSON) -> JSON:
    """A pod as it is created."""
    verdict = mutate(pod, "team", lookups(owners=OwnerWorld()), FRAMEWORK)
    assert not verdict.errors
    return apply(pod, verdict.patch)


def member(workload: JSON) -> JSON:
    """A pod of a Job, as the Job controller makes it where it makes a PodGroup for every Job."""
    pod = pod_of(workload)
    pod["spec"]["schedulingGroup"] = {"podGroupName": "train-group"}
    return pod


@pytest.mark.parametrize("scheduling", [gang(), BASIC, {"disruptionMode": {"single": {}}}])
def test_a_job_that_asks_has_its_native_group_as_its_gang(scheduling: JSON) -> None:
    """Its pods wait for that, and not for one that Muster makes."""
    pod = reviewed(member(admitted(job(scheduling))))
    assert (pod["spec"]["schedulerName"], pod["spec"]["schedulingGates"]) == ("muster", GATED)
    assert names.GANG not in pod["metadata"]["labels"]


@pytest.mark.parametrize(("spec", "asks", "gang"), [
    ({}, False, "podgroup-job-uid"), ({"schedulingGroup": {"podGroupName": "train-group"}}, True, None),
])  # fmt: skip
def test_a_job_that_asks_for_nothing_is_a_gang_as_muster_reads_it(spec: JSON, gang: str | None, *, asks: bool) -> None:
    """Also where the Job controller makes a native PodGroup for every Job; a template with a group asks for it."""
    workload = job(None)
    workload["spec"]["template"]["spec"] |= spec
    assert (names.NATIVE_GROUP in admitted(workload)["spec"]["template"]["metadata"]["annotations"]) == asks
    assert reviewed(member(admitted(workload)))["metadata"]["labels"].get(names.GANG) == gang


def test_a_job_of_another_scheduler_is_not_marked() -> None:
    """Its group is none of Muster's."""
    workload = job(gang(), labels={"muster.dev/managed": "false"})
    assert names.NATIVE_GROUP not in admitted(workload)["spec"]["template"]["metadata"]["annotations"]


def test_what_a_job_says_of_its_topology_and_duration_reaches_its_pods() -> None:
    """The native PodGroup has none of the Job's annotations; those of the template win."""
    own = {names.TOPOLOGY_PREFERRED: "rack", names.EXPECTED_RUNTIME: "1h", "example.com/other": "x"}
    annotations = admitted(job(gang(), own=own, expected_runtime="2h"))["spec"]["template"]["metadata"]["annotations"]
    assert annotations == {
        names.NATIVE_GROUP: "true", names.TOPOLOGY_PREFERRED: "rack", names.EXPECTED_RUNTIME: "2h",
    }  # fmt: skip


def test_a_bare_member_is_held() -> None:
    """It names Muster's scheduler itself, and no queue; another scheduler's is left alone, as is a gang's of Muster."""
    pod: JSON = {"metadata": {"name": "p"}, "spec": {"containers": [], "schedulingGroup": {"podGroupName": "g"}}}
    mine = {**pod, "spec": {**pod["spec"], "schedulerName": "muster"}}
    assert reviewed(mine)["spec"]["schedulingGates"] == GATED
    assert reviewed(pod) == pod
    named = {**mine, "metadata": {"name": "p", "annotations": {names.GROUP_NAME: "mine"}}}
    assert reviewed(named) == named


AGREE = {
    "the same minimum": job(gang(), min_member="4"),
    "left out, the parallelism": job(gang(None), own={names.MIN_MEMBER: "4"}),
    "a framework of as many": job(gang(), labels={"muster.dev/framework": "torch"}),
    "an elastic framework of as many": job(gang(2), labels={"muster.dev/framework": "torch"}, elastic="2:4"),
    "basic and one": job(BASIC, min_member="1"),
    "the same level": job(gang(key="rack"), own={names.TOPOLOGY_REQUIRED: "rack"}),
    "a level that only Muster knows": job(gang(), topology_required="rack"),
    "nothing native": job(None, min_member="3"),
    "not managed": job(gang(), labels={"muster.dev/managed": "false"}, min_member="3"),
}


@pytest.mark.parametrize("workload", AGREE.values(), ids=AGREE)
def test_what_agrees_is_admitted(workload: JSON) -> None:
    """Saying the same twice is no error."""
    assert errors(workload) == {}


MIN_COUNT = "spec.scheduling.schedulingPolicy.gang.minCount"
DIFFER: dict[str, tuple[JSON, str, str, str]] = {
    "annotation": (job(gang(), own={names.MIN_MEMBER: "3"}), f"metadata.annotations[{names.MIN_MEMBER}]", '"3"',
        f"{MIN_COUNT} is 4"),
    "Volcano's annotation of the template": (indexed_job(labels=QUEUED,
        annotations={names.VOLCANO_GROUP_MIN_MEMBER: "2"}, scheduling=gang()),
        f"spec.template.metadata.annotations[{names.VOLCANO_GROUP_MIN_MEMBER}]", '"2"', f"{MIN_COUNT} is 4"),
    "left out": (job(gang(None), min_member="3"), f"spec.template.metadata.annotations[{names.MIN_MEMBER}]", '"3"',
        "spec.parallelism 4"),
    "basic": (job(BASIC, min_member="4"), f"spec.template.metadata.annotations[{names.MIN_MEMBER}]", '"4"',
        "must be 1 or left out"),
    "framework": (job(gang(2), labels={"muster.dev/framework": "torch"}), MIN_COUNT, "2", "4 pods start together"),
    "framework and basic": (job(BASIC, labels={"muster.dev/framework": "torch"}), "spec.scheduling.schedulingPolicy",
        "1", "4 pods start together"),
    "topology": (job(gang(key="rack"), topology_required="zone"),
        f"spec.template.metadata.annotations[{names.TOPOLOGY_REQUIRED}]", '"zone"', "topology[0].key is 'rack'"),
    "another gang": (job(gang(), labels={names.GANG: "mine"}), "spec.scheduling", "4", "belong to PodGroup mine"),
}  # fmt: skip


@pytest.mark.parametrize(("workload", "path", "value", "other"), DIFFER.values(), ids=DIFFER)
def test_what_differs_is_refused_with_both_values(workload: JSON, path: str, value: str, other: str) -> None:
    """At the field that is to be changed."""
    found = errors(workload)
    assert list(found) == [path]
    assert value in found[path].partition(": must")[0]
    assert other in found[path]


def converted(workload: JSON) -> tuple[Pod, IndexedJob]:
    """A pod of a Job, and the Job."""
    return msgspec.convert(pod_of(workload), Pod), msgspec.convert(workload, IndexedJob)


@pytest.mark.parametrize(("scheduling", "least"), [(gang(3), 3), (gang(None), 4), (gang(9), 4), (BASIC, 1), (None, 1)])
def test_a_gang_that_muster_makes_of_a_job_has_the_minimum_of_its_scheduling(scheduling: Any, least: int) -> None:
    """Where no native PodGroup is made: a feature gate is off, or admission has not marked the Job."""
    pod, owner = converted(job(scheduling))
    assert min_member(pod, owner) == least
    assert is_independent(pod, owner) is (least == 1)


QUEUES = QueueWorld(q=("root", "Open"))
GROUP = {"podGroupName": "podgroup-u"}


def pod(annotations: JSON | None = None, labels: JSON | None = None, **spec: Any) -> JSON:
    """A pod of batch Job `train` with a queue, as its controller creates it."""
    labels = {"muster.dev/queue": "q", "batch.kubernetes.io/job-name": "train", **(labels or {})}
    metadata: JSON = {"generateName": "train-", "labels": labels, "annotations": annotations or {}}
    metadata["ownerReferences"] = [manifests.owner("train", uid="u")]
    pods = manifests.pod_spec(image="i", limits={"cpu": "1"}, restart_policy="Never", **spec)
    return {"metadata": metadata, "spec": pods}


def workload(parallelism: int = 4, **annotations: str) -> OwnerWorld:
    """Batch Job `train`, perhaps with a minimum."""
    metadata = {"name": "train", "uid": "u", "annotations": annotations}
    template = {"spec": {"containers": [{"name": "main"}]}}
    spec = {"completionMode": "Indexed", "parallelism": parallelism, "completions": parallelism, "template": template}
    return OwnerWorld({"metadata": metadata, "spec": spec})


def named(obj: JSON, owners: Any = None, *, served: bool = True) -> Any:
    """The group that an admitted pod names, if gangs are published while the kind is served."""
    world = replace(lookups(QUEUES, owners or workload()), native_groups=lambda: served)
    verdict = mutate(obj, "team", world, FRAMEWORK)
    assert not verdict.errors
    return apply(obj, verdict.patch)["spec"].get("schedulingGroup")


MINIMUM = {"muster.dev/min-member": "2"}


def test_a_pod_of_a_gang_names_the_group_as_which_it_is_published() -> None:
    """Whether pod or owner says the minimum, or a framework makes the pods a world; and nothing is said twice."""
    assert named(pod(MINIMUM)) == GROUP
    assert named(pod(), workload(**MINIMUM)) == GROUP
    assert named(pod(labels={"muster.dev/framework": "torch"})) == GROUP
    assert named(pod(MINIMUM, schedulingGroup=GROUP)) == GROUP


@pytest.mark.parametrize(
    ("obj", "owners"),
    [(pod(), None), (pod({"muster.dev/min-member": "1"}), None), (pod(MINIMUM), workload(parallelism=1)),
        (pod(MINIMUM, schedulerName="other"), None), (pod(MINIMUM, evictionResponders=[{"name": "x"}]), None),
        (pod({**MINIMUM, "scheduling.k8s.io/group-name": "mine"}), None)],
    ids=["independent", "one", "one at a time", "another scheduler", "with responders", "in a group of the user's"],
)  # fmt: skip
def test_others_name_none(obj: JSON, owners: Any) -> None:
    """Pods that need no others to start, those of other schedulers, and those that the API server would refuse."""
    assert named(obj, owners) is None


def test_a_group_that_is_the_gang_of_the_pod_stays() -> None:
    """Admission has marked the templates of Jobs that ask for one."""
    mine = {"podGroupName": "mine"}
    assert named(pod({**MINIMUM, names.NATIVE_GROUP: "true"}, schedulingGroup=mine)) == mine


def test_the_group_that_every_job_has_makes_way() -> None:
    """For the one as which the gang is published, or for none: kube-scheduler would hold back pods for others."""
    made = {"podGroupName": "train-made-for-every-job"}
    assert named(pod(MINIMUM, schedulingGroup=made)) == GROUP
    assert named(pod(schedulingGroup=made)) is None
    assert named(pod(MINIMUM, schedulingGroup=made), served=False) is None
    verdict = mutate(pod(MINIMUM, schedulingGroup=made), "team", lookups(QUEUES, workload()), FRAMEWORK)
    assert verdict.patch[-1] == {"op": "add", "path": "/spec/schedulingGroup", "value": None}
    assert named(pod(MINIMUM, schedulingGroup=made, schedulerName="other")) == made


def test_nothing_is_said_where_nothing_is_published() -> None:
    """The API server does not serve the kind, or settings say no; a pod whose owner cannot be read goes by itself."""
    assert named(pod(MINIMUM), served=False) is None
    assert "schedulingGroup" not in str(mutate(pod(MINIMUM), "team", lookups(QUEUES, workload()), FRAMEWORK).patch)
    assert (named(pod(MINIMUM), DownWorld()), named(pod(), DownWorld())) == (GROUP, None)
