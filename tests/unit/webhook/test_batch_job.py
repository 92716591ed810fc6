"""A batch/v1 Job with our labels: they reach its pods, and what its pods would be refused for is refused at once."""

from typing import Any

import msgspec
import pytest
from webhook_world import FRAMEWORK, JSON, NamespaceWorld, apply, container, indexed_job, lookups, request

from muster.api.kubernetes.admission import UserInfo
from webhook.mutate import workload as mutate_workload
from webhook.review import MalformedError, ReviewVerdict
from webhook.validate.workload import reviewer

OF_BATCH: JSON = {"apiVersion": "batch/v1", "kind": "Job"}


def mutated(workload: JSON) -> ReviewVerdict:
    """What admission adds to a workload."""
    return mutate_workload.reviewer(NamespaceWorld())(request(workload))


def errors(job: JSON) -> dict[str, str]:
    """Field path → message of each error."""
    return {error.path: error.cause for error in reviewer(lookups(), FRAMEWORK)(request(job)).errors}


@pytest.mark.parametrize("template", [{}, {"metadata": None}, {"metadata": {}}, {"metadata": {"labels": {"app": "x"}}}])
def test_labels_are_copied(template: JSON) -> None:
    """Queue and framework go to the template, whatever is there; nothing else does."""
    labels = {"muster.dev/queue": "default", "muster.dev/framework": "torch", "team": "a"}
    job = {**OF_BATCH, "metadata": {"labels": labels}, "spec": {"template": template}}
    verdict = mutated(job)
    after = apply(job, verdict.patch)
    assert {"metadata.labels[muster.dev/queue]", "metadata.labels[muster.dev/framework]"} <= {
        why.source for why in verdict.reasons
    }
    copied = after["spec"]["template"]["metadata"]["labels"]
    assert {**copied, "app": "x"} == {"muster.dev/queue": "default", "muster.dev/framework": "torch", "app": "x"}
    assert not mutated(after).patch


def test_label_of_the_template_wins() -> None:
    """A queue that stands in the template stays."""
    labels = {"labels": {"muster.dev/queue": "a"}}
    job = {**OF_BATCH, "metadata": {"labels": {"muster.dev/queue": "b"}}, "spec": {"template": {"metadata": labels}}}
    assert not mutated(job).patch


def annotated(**annotations: Any) -> JSON:
    """An Indexed Job with annotations on itself."""
    job = indexed_job()
    job["metadata"]["annotations"] = {f"muster.dev/{key.replace('_', '-')}": each for key, each in annotations.items()}
    return job


BAD = {
    "reserved env": (indexed_job(container(env=[{"name": "PET_NNODES", "value": "4"}])),
        "spec.template.spec.containers[0].env[0].name",
        'Invalid value: "PET_NNODES": is set by Muster for framework torch; remove it'),
    "no index": (indexed_job(completionMode="NonIndexed"), "spec.completionMode",
        '"NonIndexed": must be Indexed for muster.dev/framework, because the index of a pod is its rank'),
    "fewer pods than ranks": (indexed_job(parallelism=2), "spec.parallelism", "2: must equal completions (4)"),
    "no number of pods": (indexed_job(completions=None), "spec.completions", "Required value"),
    "unknown framework": (indexed_job(labels={"muster.dev/framework": "torhc"}),
        "metadata.labels[muster.dev/framework]", 'Unsupported value: "torhc": must be one of: '),
    "unknown queue": (indexed_job(labels={"muster.dev/queue": "nowhere"}), "metadata.labels[muster.dev/queue]",
        "usable queues are: default"),
    "processes that are none": (annotated(nproc_per_node="many"), "metadata.annotations[muster.dev/nproc-per-node]",
        '"many": must be auto, cpu, gpu or a number of processes from 1 to 4096'),
    "processes in the template": (indexed_job(annotations={"muster.dev/nproc-per-node": "0"}),
        "spec.template.metadata.annotations[muster.dev/nproc-per-node]", "must be auto, cpu, gpu or a number"),
    "GPUs that were not asked for": (annotated(nproc_per_node="gpu"), "metadata.annotations[muster.dev/nproc-per-node]",
        "container node requests no GPU: add one to its resources, or use cpu"),
    "minimum above parallelism": (annotated(min_member="5"), "metadata.annotations[muster.dev/min-member]",
        '"5": must be a number from 1 to 4 (spec.parallelism)'),
}  # fmt: skip


@pytest.mark.parametrize(("job", "path", "words"), BAD.values(), ids=BAD.keys())
def test_each_error_has_its_path(job: JSON, path: str, words: str) -> None:
    """One thing wrong: one error, at its field, with its value and what would be right."""
    found = errors(job)
    assert list(found) == [path]
    assert words in found[path]


def test_a_number_that_is_none_has_its_path() -> None:
    """As `muster shape` shows it; the API server refuses it by the schema."""
    with pytest.raises(MalformedError, match=r"at `\$\.spec\.parallelism`"):
        errors(indexed_job(parallelism="x"))


def test_all_errors_come_together() -> None:
    """Mode, env and annotation are refused in one answer."""
    env = [{"name": name, "value": "1"} for name in ("PET_NNODES", "OK", "PET_NODE_RANK")]
    job = indexed_job(container(env=env), completionMode="NonIndexed", annotations={"muster.dev/nproc-per-node": "-1"})
    assert set(errors(job)) == {
        "spec.completionMode",
        "spec.template.spec.containers[0].env[0].name",
        "spec.template.spec.containers[0].env[2].name",
        "spec.template.metadata.annotations[muster.dev/nproc-per-node]",
    }


@pytest.mark.parametrize(("user", "believed"), [
    ("system:kube-controller-manager", True),
    ("system:serviceaccount:jobset-system:jobset-controller", True),
    ("system:serviceaccount:team:default", False),
    ("anne", False),
])  # fmt: skip
def test_a_job_of_a_jobset_was_checked_with_it(user: str, *, believed: bool) -> None:
    """It is not refused for what its JobSet was admitted with; a tenant who names an owner is not believed."""
    job = indexed_job(container(env=[{"name": "PET_NNODES", "value": "4"}]))
    owner = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "set", "uid": "u", "controller": True}
    job["metadata"]["ownerReferences"] = [owner]
    sent = request(job, user_info=UserInfo(username=user))
    assert bool(reviewer(lookups(), FRAMEWORK)(sent).errors) != believed


def test_variables_that_switch_ours_off_are_warned_of() -> None:
    """PET_STANDALONE and the like are allowed, but the user is told what they do."""
    job = indexed_job(container(env=[{"name": "PET_STANDALONE", "value": "1"}]))
    in_a_queue = NamespaceWorld(team={"muster.dev/queue": "default"})
    verdict = reviewer(lookups(namespaces=in_a_queue), FRAMEWORK)(request(job))
    assert not verdict.errors
    assert "makes torchrun ignore" in verdict.warnings[0]


def test_a_good_job_passes() -> None:
    """Also one with only a queue, which need not be indexed."""
    assert errors(indexed_job(annotations={"muster.dev/nproc-per-node": "2", "muster.dev/min-member": "4"})) == {}
    assert errors(indexed_job(labels={"muster.dev/queue": "default"}, completionMode="NonIndexed")) == {}


def test_the_job_is_not_changed_by_validation() -> None:
    """Validation reads only."""
    job = indexed_job()
    before = msgspec.json.encode(job)
    errors(job)
    assert msgspec.json.encode(job) == before


def reviewed(spec: JSON, **metadata: Any) -> tuple[JSON, list[str]]:
    """The Job that the API server gets after the mutation, and the warnings."""
    template = {"metadata": {}, "spec": {"restartPolicy": "Never", **spec.pop("pod", {})}}
    job = indexed_job(labels={"muster.dev/queue": "default"}, template=template, **spec)
    job["metadata"] |= metadata
    verdict = mutated(job)
    return apply(job, verdict.patch), list(verdict.warnings)


def test_evicted_pods_do_not_count_towards_the_backoff_limit() -> None:
    """Seven of them would fail the Job for good."""
    job, warnings = reviewed({"podReplacementPolicy": "TerminatingOrFailed"})
    assert job["spec"]["podReplacementPolicy"] == "Failed", "the API server takes no other with a podFailurePolicy"
    [rule] = job["spec"]["podFailurePolicy"]["rules"]
    assert rule == {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    assert not warnings


def owner(version: str, kind: str) -> JSON:
    """Metadata of a Job that has this owner."""
    return {"ownerReferences": [{"apiVersion": version, "kind": kind, "name": "s", "uid": "u", "controller": True}]}


@pytest.mark.parametrize("known", [("jobset.x-k8s.io/v1alpha2", "JobSet"), ("batch/v1", "CronJob")])
def test_nor_do_those_of_a_job_that_has_a_known_owner(known: tuple[str, str]) -> None:
    """A JobSet would fail with its Job, and a CronJob has no say in it."""
    job, warnings = reviewed({}, **owner(*known))
    assert job["spec"]["podFailurePolicy"]["rules"]
    assert not warnings


@pytest.mark.parametrize(("spec", "metadata"), [
    ({"podFailurePolicy": {"rules": [{"action": "Count"}]}}, {}),
    ({"managedBy": "example.com/other"}, {}),
    ({}, owner("example.com/v1", "Pipeline")),
    ({}, {"labels": {"muster.dev/managed": "false"}}),
    ({}, {"labels": {}}),
], ids=["its user's policy", "another controller's", "an unknown owner's", "opted out", "not Muster's"])  # fmt: skip
def test_a_job_that_is_left_as_it_is(spec: JSON, metadata: JSON) -> None:
    """Its user, its owner or another controller decides."""
    job, warnings = reviewed(dict(spec), **metadata)
    assert job["spec"].get("podFailurePolicy") == spec.get("podFailurePolicy")
    assert not warnings


@pytest.mark.parametrize(("pods", "spec", "warns"), [
    ({"restartPolicy": "OnFailure"}, {}, []),
    ({"restartPolicy": "OnFailure"}, {"backoffLimit": 3}, ["spec.replicatedJobs[0].template.spec.backoffLimit: "]),
    ({"restartPolicy": "Never"}, {"backoffLimit": 3}, []),
    ({"restartPolicy": "OnFailure"}, {"backoffLimit": 3, "podFailurePolicy": {"rules": []}}, []),
])  # fmt: skip
def test_a_job_set_that_one_eviction_would_fail(pods: JSON, spec: JSON, warns: list[str]) -> None:
    """It is warned of where the user sees it: at the JobSet; one of nobody's queue is not."""
    job = indexed_job(template={"metadata": {}, "spec": pods}, **spec)
    one = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "set", "labels": {"muster.dev/queue": "default"}},
        "spec": {"replicatedJobs": [{"name": "node", "template": {"spec": job["spec"]}}]},
    }
    assert [each[: len(start)] for each, start in zip(mutated(one).warnings, warns, strict=True)] == warns
    one["metadata"]["labels"] = {}
    assert list(mutated(one).warnings) == []


@pytest.mark.parametrize(("spec", "warns"), [({}, False), ({"backoffLimit": 3}, True), ({"size": 7}, True)])
def test_a_job_whose_containers_are_restarted_in_place_is_warned(spec: JSON, warns: bool) -> None:  # noqa: FBT001
    """Kubernetes takes no podFailurePolicy there."""
    job, warnings = reviewed(
        {
            "pod": {"restartPolicy": "OnFailure"},
            "podReplacementPolicy": "TerminatingOrFailed",
            **spec,
        }
    )
    assert "podFailurePolicy" not in job["spec"]
    assert job["spec"]["podReplacementPolicy"] == "Failed", "so that an evicted pod has not failed yet"
    assert bool(warnings) == warns
    assert all("the loss of all" in each and "restartPolicy to Never" in each for each in warnings)
