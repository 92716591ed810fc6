"""What a runtime says to a JobSet, where its TrainJob runs as a Job of Muster's: done, or warned of."""

from typing import Any

import msgspec
import pytest
from frameworks_world import compiled, component, pods_of, replicated_job, runtime, train_job

from muster.api.trainingruntime import ClusterTrainingRuntime
from webhook.validate.trainingruntime import check

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
    assert claim["metadata"]["name"] == "data-train"
    assert claim["metadata"]["labels"] == {"a": "b"}
    assert claim["metadata"]["ownerReferences"][0]["name"] == "train"
    assert claim["spec"] == CLAIM["spec"]
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


@pytest.mark.parametrize(
    ("templates", "message"),
    [
        ([{"metadata": {}}], "metadata.name: Required value: must be set: containers mount the claim under it"),
        ([CLAIM, CLAIM], 'metadata.name: Duplicate value: "data": must be the name of one claim only'),
        (
            [{"metadata": {"name": "logs"}}],
            'metadata.name: Invalid value: "logs": must be mounted by a container of the runtime; mounted are data',
        ),
    ],
)
def test_claims_that_nobody_could_use(templates: list[JSON], message: str) -> None:
    """They are refused with the runtime."""
    on = msgspec.convert(msgspec.to_builtins(with_claims({"templates": templates})), ClusterTrainingRuntime)
    found = [str(error) for error in check(on)]
    assert found[0] == f"spec.template.spec.volumeClaimPolicies[0].templates[0].{message}"


def test_jobs_that_start_in_order() -> None:
    """Each waits for the one before; a gang counts only what exists from the beginning."""
    jobs = (replicated_job("first"), replicated_job("node", "trainer"))
    on = runtime({"torch": {}}, *jobs, jobset={"startupPolicy": {"startupPolicyOrder": "InOrder"}})
    result = compiled(train_job(trainer={"numNodes": 3}), on, "Job")
    spec = component(result, "Job")["spec"]
    assert spec["tasks"][1]["dependsOn"] == {"name": ["first"]}
    assert spec["minAvailable"] == 1
    assert result.findings.warnings == []


WITHOUT_EFFECT: dict[str, tuple[JSON, JSON, str]] = {
    "subdomain": ({"network": {"subdomain": "svc"}}, {}, "network.subdomain"),
    "names": ({"network": {"enableDNSHostnames": False}}, {}, "network.enableDNSHostnames"),
    "strategy": ({"failurePolicy": {"restartStrategy": "InPlaceRestart"}}, {}, "failurePolicy.restartStrategy"),
    "rules": (
        {"failurePolicy": {"rules": [{"name": "a", "action": "FailJobSet"}]}},
        {},
        "failurePolicy.rules",
    ),
    "success": (
        {"successPolicy": {"operator": "Any", "targetReplicatedJobs": ["node", "other"]}},
        {},
        "successPolicy",
    ),
    "field of a Job": ({}, {"backoffLimit": 3}, "replicatedJobs[node].template.spec.backoffLimit"),
}


@pytest.mark.parametrize(("jobset", "job", "field"), WITHOUT_EFFECT.values(), ids=WITHOUT_EFFECT.keys())
def test_what_has_no_effect_is_warned_of(jobset: JSON, job: JSON, field: str) -> None:
    """Where the TrainJob runs as a Job, and only there."""
    node, other = replicated_job("node", "trainer"), replicated_job("other")
    node["template"]["spec"].update(job)
    on = runtime({"torch": {}}, node, other, jobset=jobset)
    [warning] = compiled(train_job(), on, "Job").findings.warnings
    assert warning.startswith(f"spec.runtimeRef: runtime: spec.template.spec.{field} has no effect where")
    assert compiled(train_job(), on, "JobSet").findings.warnings == []


@pytest.mark.parametrize(("ready", "flags"), [(None, ["--publish-not-ready-addresses"]), (False, [])])
def test_addresses_of_pods_that_are_not_ready(ready: bool | None, flags: list[str]) -> None:  # noqa: FBT001
    """Published, as by a JobSet, unless the runtime says otherwise."""
    jobset = {"network": {} if ready is None else {"publishNotReadyAddresses": ready}}
    job = component(compiled(train_job(), runtime({"torch": {}}, jobset=jobset), "Job"), "Job")
    assert job["spec"]["plugins"] == {"svc": flags}


def test_the_coordinator_is_told_to_all_pods() -> None:
    """Its host name, as a label and an annotation; of a pod that does not exist nobody is told."""
    jobset = {"coordinator": {"replicatedJob": "node", "podIndex": 1}}
    on = runtime({"torch": {}}, replicated_job("node", "trainer"), replicated_job("other"), jobset=jobset)
    for nodes, host in ((2, "train-node-1.train"), (1, None)):
        job = component(compiled(train_job(trainer={"numNodes": nodes}), on, "Job"), "Job")
        for task in job["spec"]["tasks"]:
            metadata = task["template"]["metadata"]
            for place in ("labels", "annotations"):
                assert (metadata.get(place) or {}).get("jobset.sigs.k8s.io/coordinator") == host


@pytest.mark.parametrize(("restarts", "most"), [(0, 1000), (1, 2), (3, 4)])
def test_restarts(restarts: int, most: int) -> None:
    """The Job counts the one that comes too late, too; without restarts only evictions are retried."""
    job = component(
        compiled(train_job(), runtime({"torch": {}}, jobset={"failurePolicy": {"maxRestarts": restarts}}), "Job"), "Job"
    )
    assert job["spec"]["maxRetry"] == most
    failed = next(each for each in job["spec"]["policies"] if each["event"] == "PodFailed")
    assert failed["action"] == ("RestartJob" if restarts else "TerminateJob")


def test_what_has_an_effect_is_not() -> None:
    """Fields whose value is the default's, and those that a Job has too."""
    jobset = {
        "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True},
        "failurePolicy": {"maxRestarts": 2, "restartStrategy": "Recreate"},
        "successPolicy": {"operator": "All", "targetReplicatedJobs": ["node"]},
        "ttlSecondsAfterFinished": 60,
    }
    assert compiled(train_job(), runtime({"torch": {}}, jobset=jobset), "Job").findings.warnings == []
