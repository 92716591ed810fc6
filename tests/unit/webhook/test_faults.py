"""Rules for faults of nodes in annotations: refused where users write them, at their path, with what is valid."""

import msgspec
import pytest
from webhook_world import RuntimeWorld, lookups, request, task, vcjob

from muster.api.kubeflow.trainer import TrainJob
from muster.api.kubeflow.trainingruntime import ClusterTrainingRuntime
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.names import CREATED_BY
from muster.api.volcano.batch import Job
from muster.resources.faults import mistakes, policy_of, seconds_of
from muster.runtime import registry
from muster.runtime.train_job import compile_train_job
from webhook.objects.names import unknown_keys
from webhook.validate.pod import check_annotations
from webhook.validate.trainjob import reviewer
from webhook.validate.volcano_job.tasks import check_pods_of_tasks

ON_FAULT, GRACE, AVOID = "muster.dev/on-node-fault", "muster.dev/node-fault-grace", "muster.dev/avoid-failed-node"

REPLICATED = {
    "name": "node",
    "template": {
        "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
        "spec": {"template": {"spec": {"containers": [{"name": "node", "image": "i"}]}}},
    },
}


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


def test_a_volcano_job_is_checked_too() -> None:
    """Its annotations are those of its gang."""
    job = msgspec.convert(vcjob(task("t", 2)), Job)
    job.metadata = ObjectMeta(name="a", annotations={ON_FAULT: "repair"})
    assert [error.path for error in check_pods_of_tasks(job)] == [f"metadata.annotations[{ON_FAULT}]"]


def test_what_admission_has_not_seen_does_not_count() -> None:
    """An annotation can be written before Muster is installed."""
    assert policy_of({ON_FAULT: "repair"}) is None
    assert seconds_of({GRACE: "9" * 30 + "h"}, GRACE) is None
    assert seconds_of({GRACE: ""}, GRACE) is None


def test_a_train_job_is_checked_and_its_job_gets_what_it_says() -> None:
    """The planner reads the annotations of the Job's gang; the TrainJob's come before the runtime's."""
    runtime = {
        "metadata": {"name": "r", "annotations": {ON_FAULT: "wait", GRACE: "1m", CREATED_BY: "bob"}},
        "spec": {"mlPolicy": {"torch": {}}, "template": {"spec": {"replicatedJobs": [REPLICATED]}}},
    }
    said = {ON_FAULT: "restart", CREATED_BY: "alice"}
    job = {"metadata": {"name": "t", "annotations": said}, "spec": {"runtimeRef": {"name": "r"}}}
    compiled = compile_train_job(
        msgspec.convert(job, TrainJob), msgspec.convert(runtime, ClusterTrainingRuntime), registry.framework()
    )
    [made] = [each.manifest for each in compiled.components if each.manifest["kind"] == "Job"]
    assert made["metadata"]["annotations"] == {ON_FAULT: "restart", GRACE: "1m", CREATED_BY: "alice"}
    wrong = {**job, "kind": "TrainJob", "metadata": {"name": "t", "annotations": {ON_FAULT: "repair"}}}
    world = lookups(runtimes=RuntimeWorld({**runtime, "kind": "ClusterTrainingRuntime"}))
    verdict = reviewer(world, registry.framework())(request(wrong, "CREATE", None))
    assert [error.path for error in verdict.errors] == [f"metadata.annotations[{ON_FAULT}]"]
