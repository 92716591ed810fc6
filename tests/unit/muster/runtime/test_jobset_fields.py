"""What a runtime says to a JobSet, where its TrainJob runs as a Job of Muster's: done, or refused."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from frameworks_world import compiled, component, pods_of, replicated_job, runtime, train_job

from muster.api.kubeflow.trainingruntime import ClusterTrainingRuntime
from muster.runtime.plan import Compiled
from muster.runtime.training_runtime import check_runtime

JSON = dict[str, Any]
MOUNTING: JSON = {"containers": [{"name": "node", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}]}
CLAIM: JSON = {
    "metadata": {"name": "data", "labels": {"a": "b"}},
    "spec": {"resources": {"requests": {"storage": "1Gi"}}},
}


def with_claims(*policies: JSON, jobs: tuple[JSON, ...] = (), **jobset: Any) -> ClusterTrainingRuntime:
    """A runtime whose trainer mounts `data`, or with these jobs."""
    listed = jobs or (replicated_job("node", "trainer", MOUNTING),)
    return runtime({"torch": {}}, *listed, jobset={"volumeClaimPolicies": list(policies), **jobset})


def test_shared_claims_are_made_and_mounted() -> None:
    """As by a JobSet's controller: claim `<name>-<TrainJob>`, a volume where it is mounted, gone with the job."""
    apart = replicated_job("other", "", {"containers": [{"name": "main"}]})
    on = with_claims({"templates": [CLAIM]}, jobs=(replicated_job("node", "trainer", MOUNTING), apart))
    result = compiled(train_job(), on, "Job")
    claim = component(result, "PersistentVolumeClaim")
    assert (claim["metadata"]["name"], claim["metadata"]["labels"]) == ("data-train", {"a": "b"})
    assert (claim["metadata"]["ownerReferences"][0]["name"], claim["spec"]) == ("train", CLAIM["spec"])
    assert pods_of(result)["spec"]["volumes"] == [
        {"name": "data", "persistentVolumeClaim": {"claimName": "data-train"}}
    ]
    assert "volumes" not in pods_of(result, "other")["spec"]
    assert [each.once for each in result.components if each.kind == "PersistentVolumeClaim"] == [True]


def test_initializers_mount_claims_too() -> None:
    """What they fetch is found by those that train."""
    fetch = {"containers": [{"name": "dataset-initializer", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}]}
    steps = (
        replicated_job("dataset-initializer", "dataset-initializer", fetch),
        replicated_job("node", "trainer", MOUNTING),
    )
    result = compiled(train_job(), with_claims({"templates": [CLAIM]}, jobs=steps), "Job")
    [job] = [each.manifest for each in result.components if each.manifest["apiVersion"] == "batch/v1"]
    [volume] = job["spec"]["template"]["spec"]["volumes"]
    assert volume["persistentVolumeClaim"] == {"claimName": "data-train"}


def test_claims_that_stay() -> None:
    """Without an owner nobody deletes them."""
    policy = {"templates": [CLAIM], "retentionPolicy": {"whenDeleted": "Retain"}}
    claim = component(compiled(train_job(), with_claims(policy), "Job"), "PersistentVolumeClaim")
    assert "ownerReferences" not in claim["metadata"]


def test_a_jobset_makes_its_claims_itself() -> None:
    """There they stay in the JobSet's spec."""
    result = compiled(train_job(), with_claims({"templates": [CLAIM]}), "JobSet")
    assert "PersistentVolumeClaim" not in {each.kind for each in result.components}
    [policy] = component(result, "JobSet")["spec"]["volumeClaimPolicies"]
    assert policy["templates"][0]["metadata"]["name"] == "data"


@pytest.mark.parametrize(("templates", "message"), [
    ([{"metadata": {}}], "metadata.name: Required value: must be set: containers mount the claim by this name"),
    ([CLAIM, CLAIM], 'metadata.name: Duplicate value: "data": must be the name of one claim only'),
    ([{"metadata": {"name": "logs"}}],
        'metadata.name: Invalid value: "logs": must be mounted by a container of the runtime; mounted volumes: data'),
])  # fmt: skip
def test_claims_that_nobody_could_use(templates: list[JSON], message: str) -> None:
    """They are refused with the runtime."""
    on = msgspec.convert(msgspec.to_builtins(with_claims({"templates": templates})), ClusterTrainingRuntime)
    found = [str(error) for error in check_runtime(on)]
    assert found[0] == f"spec.template.spec.volumeClaimPolicies[0].templates[0].{message}"


def test_jobs_that_start_in_order() -> None:
    """Each waits for the one before; a gang counts only what exists from the beginning."""
    jobs = (replicated_job("first"), replicated_job("node", "trainer"))
    on = runtime({"torch": {}}, *jobs, jobset={"startupPolicy": {"startupPolicyOrder": "InOrder"}})
    result = compiled(train_job(trainer={"numNodes": 3}), on, "Job")
    spec = component(result, "Job")["spec"]
    assert (spec["tasks"][1]["dependsOn"], spec["minAvailable"]) == ({"name": ["first"]}, 1)
    assert result.findings.warnings == []


FAIL: JSON = {"name": "a", "action": "FailJobSet"}
REFUSED: dict[str, tuple[JSON, JSON, str]] = {
    "subdomain": ({"network": {"subdomain": "svc"}}, {}, "network.subdomain"),
    "names": ({"network": {"enableDNSHostnames": False}}, {}, "network.enableDNSHostnames"),
    "strategy": ({"failurePolicy": {"restartStrategy": "InPlaceRestart"}}, {}, "failurePolicy.restartStrategy"),
    "uncounted restarts": ({"failurePolicy": {"rules": [FAIL,
                                                        {"name": "b", "action": "RestartJobSetAndIgnoreMaxRestarts"}]}},
                           {}, "failurePolicy.rules[1].action"),
    "other reasons": ({"failurePolicy": {"rules": [{**FAIL, "onJobFailureReasons": ["PodFailurePolicy"]}]}}, {},
                      "failurePolicy.rules[0].onJobFailureReasons"),
    "messages": ({"failurePolicy": {"rules": [{**FAIL, "onJobFailureMessagePatterns": ["cuda"]}]}}, {},
                 "failurePolicy.rules[0].onJobFailureMessagePatterns"),
    "two of three": ({"successPolicy": {"operator": "All", "targetReplicatedJobs": ["node", "other"]}}, {},
                     "successPolicy.targetReplicatedJobs"),
    "one that is over": ({"successPolicy": {"operator": "All", "targetReplicatedJobs": ["dataset-initializer"]}}, {},
                         "successPolicy.targetReplicatedJobs"),
    "any of several": ({"successPolicy": {"operator": "Any"}}, {}, "successPolicy.targetReplicatedJobs"),
    "manager": ({"managedBy": "example.com/me"}, {}, "managedBy"),
    "retries": ({}, {"backoffLimit": 3}, "replicatedJobs[1].template.spec.backoffLimit"),
    "deadline": ({}, {"activeDeadlineSeconds": 3}, "replicatedJobs[1].template.spec.activeDeadlineSeconds"),
    "failures": ({}, {"podFailurePolicy": {"rules": []}}, "replicatedJobs[1].template.spec.podFailurePolicy"),
}  # fmt: skip


def several(jobset: JSON, job: JSON) -> ClusterTrainingRuntime:
    """A runtime of four replicated jobs, one of them an initializer, one with two Jobs."""
    fetch = {"containers": [{"name": "dataset-initializer"}]}
    jobs = [replicated_job("dataset-initializer", "dataset-initializer", fetch), replicated_job("node", "trainer")]
    jobs += [replicated_job("other"), {**replicated_job("more"), "replicas": 2}]
    jobs[1]["template"]["spec"].update(job)
    return runtime({"torch": {}}, *jobs, jobset=jobset)


@pytest.mark.parametrize(("jobset", "job", "field"), REFUSED.values(), ids=REFUSED.keys())
def test_what_no_job_can_carry_out_is_refused(jobset: JSON, job: JSON, field: str) -> None:
    """With the runtime, and with a TrainJob on one that was there before; a JobSet takes it as it is."""
    on = several(jobset, job)
    [error] = compiled(train_job(), on, "Job").findings.errors
    assert (error.path, f"whose spec.template.spec.{field} is " in error.message) == ("spec.runtimeRef", True)
    [with_runtime] = [each for each in check_runtime(on) if each.path == f"spec.template.spec.{field}"]
    assert with_runtime.message.startswith("must be ")
    assert compiled(train_job(), on, "JobSet").findings.errors == []


@pytest.mark.parametrize(("nodes", "refused"), [(1, []), (2, ["spec.runtimeRef"])])
def test_an_exclusive_topology(nodes: int, refused: list[str]) -> None:
    """JobSet would make the other pods of a gang when the first one has a node, which waits for them."""
    key = "alpha.jobset.sigs.k8s.io/exclusive-topology"
    job = replicated_job("node", "trainer")
    job["template"]["metadata"]["annotations"] = {key: "rack"}
    result = compiled(train_job(trainer={"numNodes": nodes}), runtime({"torch": {}}, job), "JobSet")
    assert [each.path for each in result.errors] == refused
    assert all(key in each.message for each in result.errors)


SAME: dict[str, tuple[JSON, JSON]] = {
    "strategy": ({"failurePolicy": {"maxRestarts": 1, "restartStrategy": "BlockingRecreate"}}, {}),
    "no retries": ({}, {"backoffLimit": 0, "suspend": False, "podReplacementPolicy": "Failed"}),
    "reasons": ({"failurePolicy": {"rules": [{**FAIL, "onJobFailureReasons": ["BackoffLimitExceeded"]}]}}, {}),
    "names": ({"network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True}}, {}),
    "all": ({"successPolicy": {"operator": "All"}}, {}),
    "all by name": ({"successPolicy": {"operator": "All", "targetReplicatedJobs": ["more", "node", "other"]}}, {}),
}


@pytest.mark.parametrize(("jobset", "job"), SAME.values(), ids=SAME.keys())
def test_what_says_what_happens_anyway(jobset: JSON, job: JSON) -> None:
    """Nobody is bothered with it."""
    on = several(jobset, job)
    assert compiled(train_job(), on, "Job").findings.errors == []
    assert [*check_runtime(on)] == []


def job_of(result: Compiled) -> Mapping[str, Any]:
    """The Job of the gang, not those of initializers."""
    [job] = [each.manifest for each in result.components if each.manifest["apiVersion"] == "batch.volcano.sh/v1alpha1"]
    return job


def policies_of(result: Compiled) -> JSON:
    """Task → its policies as event: action."""
    tasks = job_of(result)["spec"]["tasks"]
    return {task["name"]: {each["event"]: each["action"] for each in task.get("policies", [])} for task in tasks}


def test_rules_of_failure() -> None:
    """The first rule for a replicated job decides whether its failure ends the set, whatever restarts are left."""
    rules = [
        {"name": "a", "action": "RestartJobSet", "targetReplicatedJobs": ["other"]},
        {"name": "b", "action": "FailJobSet", "targetReplicatedJobs": ["other", "node"]},
    ]
    result = compiled(train_job(), several({"failurePolicy": {"maxRestarts": 2, "rules": rules}}, {}), "Job")
    assert policies_of(result) == {"node": {"PodFailed": "TerminateJob"}, "other": {}, "more": {}}
    assert {"event": "PodFailed", "action": "RestartJob"} in job_of(result)["spec"]["policies"]


def test_any_of_the_targets_ends_the_set() -> None:
    """One that succeeds is enough; without names all count."""
    any_of = {"operator": "Any", "targetReplicatedJobs": ["node", "other"]}
    ends = {"TaskCompleted": "CompleteJob"}
    result = compiled(train_job(), several({"successPolicy": any_of}, {}), "Job")
    assert policies_of(result) == {"node": ends, "other": ends, "more": {}}
    two = runtime({"torch": {}}, replicated_job("node", "trainer"), replicated_job("other"), jobset={
        "successPolicy": {"operator": "Any"}
    })  # fmt: skip
    assert policies_of(compiled(train_job(), two, "Job")) == {"node": ends, "other": ends}


def test_a_job_set_keeps_its_size() -> None:
    """The annotation for another number of nodes is refused there."""
    job = train_job()
    job.metadata.annotations["muster.dev/num-nodes"] = "3"
    [error] = compiled(job, several({}, {}), "JobSet").errors
    assert error.path == "metadata.annotations[muster.dev/num-nodes]"


def test_pods_without_host_names() -> None:
    """Where the framework needs none there is no Service."""
    on = runtime({}, replicated_job("node", "trainer"), jobset={"network": {"enableDNSHostnames": False}})
    result = compiled(train_job(), on, "Job")
    assert result.errors == []
    assert component(result, "Job")["spec"]["plugins"] == {}
