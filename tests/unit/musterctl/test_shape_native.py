"""`muster shape --native`: gangs in the words of Kubernetes' own PodGroups, and these in Muster's."""

from typing import Any

import yaml
from click.testing import Result

JSON = dict[str, Any]


def shown(result: Result) -> list[JSON]:
    """The objects that it prints."""
    assert result.exit_code == 0, result.stderr
    return [each for each in yaml.safe_load_all(result.stdout) if each]


TEMPLATE = {"spec": {"containers": [{"name": "main", "image": "i"}], "restartPolicy": "Never"}}
JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "train", "labels": {"muster.dev/queue": "default"},
        "annotations": {"muster.dev/min-member": "3"}},
    "spec": {"completionMode": "Indexed", "completions": 4, "parallelism": 4, "template": TEMPLATE},
}  # fmt: skip
VOLCANO = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "metadata": {"name": "train", "namespace": "default"},
    "spec": {"priorityClassName": "high", "tasks": [{"name": "worker", "replicas": 4, "template": TEMPLATE}]},
}
GANG = {"schedulingPolicy": {"gang": {"minCount": 4}}, "disruptionMode": {"all": {}}}


def native(kind: str, spec: JSON) -> JSON:
    """An object of scheduling.k8s.io."""
    metadata = {"name": "theirs", "labels": {"muster.dev/queue": "research"}}
    return {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": kind, "metadata": metadata, "spec": spec}


def test_a_gang_is_followed_by_the_group_as_which_it_is_published(shape: Any) -> None:
    """With its minimum and its priority; the pods of a Job name it."""
    _, pod, group = shown(shape(JOB, options=("--native",)))
    assert group["spec"] == {"schedulingPolicy": {"gang": {"minCount": 3}}, "disruptionMode": {"all": {}}}
    assert pod["spec"]["schedulingGroup"] == {"podGroupName": group["metadata"]["name"]}
    *_, group = shown(shape(VOLCANO, options=("--native",)))
    assert group["apiVersion"] == "scheduling.k8s.io/v1beta1"
    assert group["spec"] == {**GANG, "priorityClassName": "high"}


def test_nothing_of_it_is_shown_unasked_or_of_pods_that_start_alone(shape: Any) -> None:
    """Most clusters do not serve the kind."""
    assert "schedulingGroup" not in shape(JOB).stdout
    assert "scheduling.k8s.io" not in shape({**JOB, "metadata": {"name": "train"}}, options=("--native",)).stdout


def test_a_native_group_is_followed_by_what_it_says_in_musters_words(shape: Any) -> None:
    """Minimum, queue, priority and required topology; the policy `basic` is a minimum of one."""
    spec = {**GANG, "priorityClassName": "high", "schedulingConstraints": {"topology": [{"key": "example.com/rack"}]}}
    _, ours = shown(shape(native("PodGroup", spec), options=("--native",)))
    assert (ours["apiVersion"], ours["kind"]) == ("scheduling.volcano.sh/v1beta1", "PodGroup")
    assert ours["spec"] == {"minMember": 4, "queue": "research", "priorityClassName": "high"}
    assert ours["metadata"]["annotations"] == {"muster.dev/topology-required": "example.com/rack"}
    _, ours = shown(shape(native("PodGroup", {"schedulingPolicy": {"basic": {}}}), options=("--native",)))
    assert ours["spec"]["minMember"] == 1


def test_what_a_native_group_says_in_annotations_is_shown(shape: Any) -> None:
    """As the planner reads it: Muster's own marks say nothing, and a queue may stand in an annotation."""
    theirs = native("PodGroup", GANG)
    said = {"muster.dev/expected-runtime": "1h", "muster.dev/indivisible": "true", "muster.dev/queue": "research"}
    theirs["metadata"] = {"name": "theirs", "annotations": said}
    _, ours = shown(shape(theirs, options=("--native",)))
    assert ours["metadata"]["annotations"] == {"muster.dev/expected-runtime": "1h"}
    assert ours["spec"]["queue"] == "research"


def test_so_is_each_template_of_a_workload(shape: Any) -> None:
    """Each stands for PodGroups of its own."""
    templates = [{"name": "driver", "schedulingPolicy": {"basic": {}}}, {"name": "worker", **GANG}]
    _, driver, worker = shown(shape(native("Workload", {"podGroupTemplates": templates}), options=("--native",)))
    assert [driver["metadata"]["name"], worker["metadata"]["name"]] == ["theirs-driver", "theirs-worker"]
    assert worker["spec"]["minMember"] == 4


def test_parts_of_composite_groups_are_shown_with_what_they_lose(shape: Any) -> None:
    """Also those of composite groups in others; where these bind no parts to each other, nothing is lost."""
    inner = {"name": "inner", "schedulingPolicy": {"basic": {}}, "podGroupTemplates": [{"name": "worker", **GANG}]}
    for count, lost in ((2, True), (1, False)):
        policy = {"gang": {"minGroupCount": count}}
        outer = {"name": "outer", "schedulingPolicy": policy, "compositePodGroupTemplates": [inner]}
        spec = {"podGroupTemplates": None, "compositePodGroupTemplates": [outer]}  # as an API server has it
        result = shape(native("Workload", spec), options=("--native",))
        _, worker = shown(result)
        assert (worker["metadata"]["name"], worker["spec"]["minMember"]) == ("theirs-worker", 4)
        assert ("a part of composite group outer" in result.stdout) == lost


def test_a_group_that_cannot_be_read_is_said_to_be_so(shape: Any) -> None:
    """With the place of the mistake, and exit code 1."""
    result = shape(native("PodGroup", {"schedulingPolicy": {"gang": {"minCount": "four"}}}), options=("--native",))
    assert result.exit_code == 1
    assert "refused: PodGroup theirs" in result.stderr
    assert "minCount" in result.stderr
