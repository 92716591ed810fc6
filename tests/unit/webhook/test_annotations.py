"""Annotations: refused where users write them, at their path; without effect, they are warned of."""

from fnmatch import fnmatchcase

import msgspec
import pytest
from webhook_world import FRAMEWORK, JSON, RuntimeWorld, lookups, request, task, vcjob

from muster.api import names
from muster.api.kubeflow.trainer import TrainJob
from muster.api.kubeflow.trainingruntime import ClusterTrainingRuntime
from muster.api.volcano.batch import Job
from muster.resources.faults import mistakes, policy_of, seconds_of
from muster.resources.runtime import notice_s
from muster.runtime.train_job import compile_train_job
from webhook.objects.foreign import FOREIGN
from webhook.objects.names import _OF_USERS, LABELS, WRITTEN, unknown_keys
from webhook.validate.pod import check_annotations
from webhook.validate.trainjob import reviewer
from webhook.validate.volcano_job.tasks import check_pods_of_tasks

KQ = "kueue.x-k8s.io/podset"
ON_FAULT, GRACE, AVOID = "muster.dev/on-node-fault", "muster.dev/node-fault-grace", "muster.dev/avoid-failed-node"


@pytest.mark.parametrize(("own", "templates", "paths"), [
    ({"muster.dev/topology-required": "a b"}, ({}, {f"{KQ}-slice-required-topology": "rack", f"{KQ}-slice-size": "3"}),
        ["metadata.annotations[muster.dev/topology-required]",
        f"spec.tasks[1].template.metadata.annotations[{KQ}-slice-size]"]),
    ({ON_FAULT: "repair"}, ({},), [f"metadata.annotations[{ON_FAULT}]"]),
], ids=["topology", "faults"])  # fmt: skip
def test_each_mistake_in_a_volcano_job_has_its_path(own: JSON, templates: tuple[JSON, ...], paths: list[str]) -> None:
    """That of its template, or of the Job's own annotations, which are those of its gang."""
    document = vcjob(*[task(f"t{number}", 2) for number in range(len(templates))])
    for one, said in zip(document["spec"]["tasks"], templates, strict=True):
        one["template"]["metadata"] = {"annotations": said}
    job = msgspec.convert({**document, "metadata": {"name": "a", "annotations": own}}, Job)
    assert [error.path for error in check_pods_of_tasks(job)] == paths


def test_a_group_is_a_leader_and_its_workers() -> None:
    """Two templates, one of them of one pod."""
    said = {f"{KQ}-group-name": "g", f"{KQ}-required-topology": "rack"}
    assert not list(check_annotations({}, [(said, "a", 1), (said, "b", 7)]))
    (alone,) = check_annotations({}, [(said, "a", 1)])
    assert alone.path == f"a[{KQ}-group-name]"
    (many,) = check_annotations({}, [(said, "a", 2), (said, "b", 7)])
    assert "one of which has one pod" in many.message


KEY = "muster.dev/evict-notice"


@pytest.mark.parametrize("text", ["300s", "1h", "0s", "1m30s"])
def test_what_can_be_kept_passes(text: str) -> None:
    """Up to an hour."""
    assert not list(check_annotations({KEY: text}, [({KEY: text}, "spec.template.metadata.annotations", 1)]))


@pytest.mark.parametrize(("text", "why"), [
    ("61m", "must be at most 3600 (seconds; limit 'eviction notice')"),
    ("3600.5s", "must be at most 3600 (seconds; limit 'eviction notice')"),
    ("soon", "'soon' is not a duration; write it like 30s, 5m or 1h30m"),
    ("-5s", "'-5s' is not a duration; write it like 30s, 5m or 1h30m"),
])  # fmt: skip
def test_the_rest_is_refused_with_its_place(text: str, why: str) -> None:
    """On the workload and on its template."""
    errors = list(check_annotations({KEY: text}, [({KEY: text}, "spec.template.metadata.annotations", 1)]))
    assert [error.path for error in errors] == [
        f"metadata.annotations[{KEY}]",
        f"spec.template.metadata.annotations[{KEY}]",
    ]
    assert {error.message for error in errors} == {why}


@pytest.mark.parametrize(("text", "seconds"), [("2h", 3600), ("90s", 90), ("", None), (None, None), ("soon", None)])
def test_where_admission_was_bypassed_the_limit_counts(text: str | None, seconds: float | None) -> None:
    """What cannot be read is no notice."""
    assert notice_s(text) == seconds


REPLICATED = {
    "name": "node",
    "template": {"metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
        "spec": {"template": {"spec": {"containers": [{"name": "node", "image": "i"}]}}}},
}  # fmt: skip


@pytest.mark.parametrize("policy", ["wait", "replace", "restart"])
def test_each_policy_is_taken_with_durations_from_0s_on(policy: str) -> None:
    """And nobody is warned that Muster does not know the annotation."""
    said = {ON_FAULT: policy, GRACE: "0s", AVOID: "10m"}
    assert [*mistakes(said, "a")] == []
    assert unknown_keys({"annotations": said}) == []
    assert (policy_of(said), seconds_of(said, GRACE), seconds_of(said, AVOID)) == (policy, 0.0, 600.0)


def test_what_is_no_policy_or_duration_is_refused_with_what_would_be_one() -> None:
    """At once, in all templates."""
    errors = [*check_annotations({ON_FAULT: "Restart"}, [({GRACE: "soon", AVOID: "-1s"}, "t", 1)])]
    assert [error.path for error in errors] == [f"metadata.annotations[{ON_FAULT}]", f"t[{GRACE}]", f"t[{AVOID}]"]
    assert "wait, replace, restart" in errors[0].message
    assert "30s, 5m or 1h30m" in errors[1].message


def test_what_admission_has_not_seen_does_not_count() -> None:
    """An annotation can be written before Muster is installed."""
    assert policy_of({ON_FAULT: "repair"}) is None
    assert seconds_of({GRACE: "9" * 30 + "h"}, GRACE) is None
    assert seconds_of({GRACE: ""}, GRACE) is None


def test_a_train_job_is_checked_and_its_job_gets_what_it_says() -> None:
    """The planner reads the annotations of the Job's gang; the TrainJob's come before the runtime's."""
    runtime = {
        "metadata": {"name": "r", "annotations": {ON_FAULT: "wait", GRACE: "1m", names.CREATED_BY: "bob"}},
        "spec": {"mlPolicy": {"torch": {}}, "template": {"spec": {"replicatedJobs": [REPLICATED]}}},
    }
    said = {ON_FAULT: "restart", names.CREATED_BY: "alice"}
    job = {"metadata": {"name": "t", "annotations": said}, "spec": {"runtimeRef": {"name": "r"}}}
    compiled = compile_train_job(
        msgspec.convert(job, TrainJob), msgspec.convert(runtime, ClusterTrainingRuntime), FRAMEWORK
    )
    [made] = [each.manifest for each in compiled.components if each.manifest["kind"] == "Job"]
    assert made["metadata"]["annotations"] == {ON_FAULT: "restart", GRACE: "1m", names.CREATED_BY: "alice"}
    wrong = {**job, "kind": "TrainJob", "metadata": {"name": "t", "annotations": {ON_FAULT: "repair"}}}
    world = lookups(runtimes=RuntimeWorld({**runtime, "kind": "ClusterTrainingRuntime"}))
    verdict = reviewer(world, FRAMEWORK)(request(wrong, "CREATE", None))
    assert [error.path for error in verdict.errors] == [f"metadata.annotations[{ON_FAULT}]"]


@pytest.mark.parametrize("text", ["30s", "1h30m", "0.5s"])
def test_a_runtime_that_can_be_read_is_no_warning(text: str) -> None:
    """As Go writes durations."""
    assert unknown_keys({"annotations": {"muster.dev/expected-runtime": text}}) == []


@pytest.mark.parametrize("text", ["soon", "-5s", "0s", "99999999h", ""])
def test_a_runtime_that_says_nothing_is_warned_of(text: str) -> None:
    """The pod runs all the same, and is expected to run for ever."""
    [warning] = unknown_keys({"annotations": {"muster.dev/expected-runtime": text}})
    assert warning == (
        f"metadata.annotations[muster.dev/expected-runtime]: {text!r} is not a duration above 0 and up to 315360000 "
        "seconds, such as 30s, 5m or 1h30m; it has no effect"
    )


def test_an_unknown_way_to_reserve_is_warned_of() -> None:
    """With those there are."""
    assert unknown_keys({"annotations": {"muster.dev/reservations": "Strict"}}) == []
    [warning] = unknown_keys({"annotations": {"muster.dev/reservations": "greedy"}})
    assert warning.endswith("'greedy' is not one of strict, reserve, besteffort; it has no effect")


def test_what_muster_writes_is_known() -> None:
    """A copy of a Job's pod has Muster's own keys without a warning."""
    assert unknown_keys({"labels": {"muster.dev/reviewed": "true"}, "annotations": {"muster.dev/node": "a"}}) == []


OF_QUEUES = {
    names.NAMESPACE_SELECTOR, names.QUEUE_WEIGHTS, names.QUEUE_LOCKED, names.PREEMPT_MIN_RUNTIME,
    names.RECLAIM_MIN_RUNTIME, names.MAX_EVICT_NOTICE, *names.QUEUE_LIMIT_KEYS
}  # fmt: skip
ELSEWHERE = OF_QUEUES | names.MARKERS | {names.ROTATE}


def test_every_key_is_a_users_or_musters_own() -> None:
    """Each of Muster's own is forged by a tenant in tests/plane/test_tenant_rights.py, and gains him nothing."""
    ours = {value for value in vars(names).values() if isinstance(value, str) and value.startswith("muster.dev/")}
    assert ours - LABELS - _OF_USERS - WRITTEN == ELSEWHERE


@pytest.mark.parametrize(("place", "key", "instead"), [
    ("annotations", "volcano.sh/task-topology-affinity", "pod affinity"),
    ("annotations", "volcano.sh/numa-topology-policy", "topologyManagerPolicy"),
    ("annotations", "kueue.x-k8s.io/job-min-parallelism", names.MIN_MEMBER),
    ("annotations", "kueue.x-k8s.io/podset-spreading", names.TOPOLOGY_REQUIRED),
    ("annotations", names.KUEUE_TOTAL, names.MIN_MEMBER),
    ("labels", "kueue.x-k8s.io/priority-class", "priorityClassName"),
    ("labels", "kai.scheduler/subgroup-name", "subGroupPolicy"),
    ("labels", "kai.scheduler/queue", names.QUEUE),
])  # fmt: skip
def test_keys_of_other_schedulers_without_effect(place: str, key: str, instead: str) -> None:
    """Each is named, with what to use; not where Kueue takes the workload, too."""
    [warning] = unknown_keys({place: {key: "x"}}, "spec.template.metadata")
    assert warning.startswith(f"spec.template.metadata.{place}[{key}]: Muster does not read this {place[:-1]}; use ")
    assert instead in warning
    kueues = {names.KUEUE_QUEUE: "q"}
    assert bool(unknown_keys({place: {key: "x"}}, "x.metadata", kueues)) == (not key.startswith("kueue."))


def test_keys_of_other_schedulers_that_are_read() -> None:
    """Nobody is warned of them."""
    read = [names.KUEUE_REQUIRED, *names.KAI_NEAR_KEYS, names.KAI_TOPOLOGY, names.GPU_FRACTION, names.VOLCANO_QUEUE]
    assert unknown_keys({"annotations": dict.fromkeys(read, "x")}) == []
    group = {"labels": {names.KUEUE_GROUP: "g"}, "annotations": {names.KUEUE_TOTAL: "2"}}
    assert unknown_keys(group) == []
    assert len(unknown_keys(group, "spec.template.metadata")) == 2


def test_every_key_of_another_scheduler_has_an_effect_or_a_replacement() -> None:
    """And what is read is not hidden behind an entry above it."""
    for each in FOREIGN:
        assert each.read or each.instead
        first = next(other for other in FOREIGN if fnmatchcase(each.key, other.key))
        assert first is each or first.key == each.key
