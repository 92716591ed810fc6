"""The PodGroup of a Volcano Job."""

from typing import Any

import pytest
from builders import job as a_job
from builders.manifests import pod_spec
from msgspec import structs

from muster.api.names import CHANGED_BY
from muster.api.volcano.batch import Job, PartitionPolicy, TaskSpec
from muster.volcano.podgroup import min_resources, pod_group, update


def task(name: str, replicas: int, least: int | None = None, **resources: Any) -> TaskSpec:
    """A task whose pods ask for these resources."""
    spec = pod_spec(priority_class_name=resources.pop("priority", ""), **(resources or {"requests": {"cpu": "1"}}))
    return TaskSpec(name=name, replicas=replicas, min_available=least, template={"spec": spec})


def job(*tasks: TaskSpec, min_available: int, **more: Any) -> Job:
    """Job `n/j`."""
    ours = ("kubectl.kubernetes.io/last-applied-configuration", "muster.dev/grouped-templates", "muster.dev/placement")
    notes = {"note": "x", **dict.fromkeys(ours, "{}")}
    return a_job("j", tasks, "n", uid="u", labels={"team": "a"}, annotations=notes, min_available=min_available, **more)


def test_group_of_a_job() -> None:
    """Name, owner, copies and minimums; born Pending."""
    partitioned = task("p", 4)
    partitioned.partition_policy = PartitionPolicy(total_partitions=2, partition_size=2, min_partitions=1)
    group = pod_group(job(task("a", 2), task("b", 3, 1), partitioned, min_available=5, queue="q"), {})
    assert (group.metadata.name, group.metadata.namespace, group.status.phase) == ("j-u", "n", "Pending")
    assert (group.metadata.labels, group.metadata.annotations) == ({"team": "a"}, {"note": "x"})
    assert group.metadata.owner_references[0].uid == "u"
    assert (group.spec.min_member, group.spec.queue) == (5, "q")
    assert group.spec.min_task_member == {"a": 2, "b": 1, "p": 2}
    assert [(s.name, s.sub_group_size, s.match_label_keys) for s in group.spec.sub_group_policy] == [
        ("p", 2, ["volcano.sh/partition-id"])
    ]


def test_ten_keys() -> None:
    """The keys of a quota, with the extended resource under both of its names."""
    requests = {"cpu": "500m", "memory": "1Gi", "nvidia.com/gpu": "1"}
    resources = {"requests": requests, "limits": {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1"}}
    asked = {"cpu": "1500m", "memory": "3Gi", "nvidia.com/gpu": "3"}
    expected = asked | {f"requests.{key}": amount for key, amount in asked.items()}
    expected |= {"limits.cpu": "3", "limits.memory": "3Gi", "pods": "3", "count/pods": "3"}
    assert min_resources(job(task("a", 3, **resources), min_available=3), {}) == expected


SMALL = {"requests": {"cpu": "1"}}
BIG = {"requests": {"cpu": "10"}}


@pytest.mark.parametrize(
    ("of", "cpu", "pods"),
    [
        (job(task("a", 4, 4, **SMALL), task("b", 2, 2, **BIG), min_available=6), "24", "6"),
        (job(task("a", 4, 4, **SMALL), task("b", 2, 2, **BIG), min_available=5), "14", "5"),  # a whole, then one of b
        (job(task("a", 4, 1, **SMALL), task("b", 2, 1, **BIG), min_available=3), "12", "3"),  # minimums, then one of a
        (job(task("a", 2, 1, **SMALL), task("b", 4, 1, **BIG), min_available=5), "32", "5"),  # and then two of b
        (job(task("a", 4, 4, **SMALL), task("b", 2, 2, priority="high", **BIG), min_available=3), "21", "3"),
        (job(task("a", 1, 1, **SMALL), min_available=5), "1", "1"),
        (job(task("a", 0, 0, **SMALL), min_available=0), None, "0"),
    ],
)
def test_the_smallest_gang(of: Job, cpu: str | None, pods: str) -> None:
    """Important tasks first; whole tasks below the sum of minimums, else minimums and then the rest."""
    found = min_resources(of, {"high": 100})
    assert (found.get("cpu"), found["pods"]) == (cpu, pods)


def test_update_after_scaling() -> None:
    """Only what scaling changes is written, also down to nothing; an unchanged Job writes nothing."""
    before = pod_group(job(task("a", 3, 2), min_available=2), {})
    assert update(before, pod_group(job(task("a", 3, 2), min_available=2, queue="other"), {})) == {}
    patch = update(before, pod_group(job(task("a", 0, 0), min_available=0), {}))["spec"]
    assert (patch["minMember"], patch["minTaskMember"], patch["minResources"]["pods"]) == (0, {"a": 0}, "0")
    assert set(patch) == {"minMember", "minTaskMember", "minResources"}


def test_another_class_comes_with_its_user() -> None:
    """Whom admission has written into the Job; without a change of the spec, no annotation is written."""
    before, after = (job(task("a", 3), min_available=3, priority_class_name=name) for name in ("", "high"))
    after.metadata.annotations[CHANGED_BY] = "alice"
    patch = update(pod_group(before, {}), pod_group(after, {}))
    assert patch == {"spec": {"priorityClassName": "high"}, "metadata": {"annotations": {CHANGED_BY: "alice"}}}
    before.metadata.annotations[CHANGED_BY] = "bob"
    assert update(pod_group(after, {}), pod_group(structs.replace(before, spec=after.spec), {})) == {}
