"""Runtime patches beyond pods, gangs in the network, and containers that are not the trainer's."""

from typing import Any

import pytest
from frameworks_world import compiled, component, pods_of, replicated_job, runtime, train_job

JSON = dict[str, Any]


def test_patches_of_metadata_and_security() -> None:
    """Labels of the JobSet and of its Jobs, and a container's security context; a later patch wins."""

    def patch(manager: str, value: str) -> JSON:
        pods = {"spec": {"containers": [{"name": "node", "securityContext": {"runAsUser": 7}}]}}
        job = {"name": "node", "template": {"metadata": {"labels": {"a": value}}, "spec": {"template": pods}}}
        metadata = {"labels": {"a": value}, "annotations": {manager: value}}
        spec = {"template": {"metadata": metadata, "spec": {"replicatedJobs": [job, {"name": "node"}]}}}
        return {"manager": f"{manager}.io/x", "trainingRuntimeSpec": spec}

    result = compiled(train_job(runtimePatches=[patch("a", "1"), patch("b", "2")]), runtime({"torch": {}}))
    jobset = component(result, "JobSet")
    assert jobset["metadata"]["labels"] == {"a": "2"}
    assert jobset["metadata"]["annotations"] == {"a": "1", "b": "2"}
    job = jobset["spec"]["replicatedJobs"][0]["template"]
    assert job["metadata"]["labels"]["a"] == "2"
    assert job["metadata"]["labels"]["trainer.kubeflow.org/trainjob-ancestor-step"] == "trainer"
    assert pods_of(result)["spec"]["containers"][0]["securityContext"] == {"runAsUser": 7}


def test_gangs_in_the_network() -> None:
    """The runtime's topology goes to the PodGroup of a JobSet, and to the Job."""
    topology = {"mode": "soft", "highestTierAllowed": 2}
    on = runtime({"torch": {}}, podGroupPolicy={"volcano": {"networkTopology": topology}})
    assert component(compiled(train_job(), on), "PodGroup")["spec"]["networkTopology"] == topology
    assert component(compiled(train_job(), on, "Job"), "Job")["spec"]["networkTopology"] == topology


def test_what_the_trainer_says_is_for_its_own_pods() -> None:
    """With MPI a replicated job that neither launches nor computes keeps its image."""
    waits = {"containers": [{"name": "node", "image": "other"}]}
    jobs = (replicated_job("launcher", "trainer"), replicated_job("node"), replicated_job("log", "", waits))
    result = compiled(train_job(trainer={"image": "mine"}), runtime({"mpi": {}}, *jobs))
    images = {name: pods_of(result, name)["spec"]["containers"][0]["image"] for name in ("launcher", "node", "log")}
    assert images == {"launcher": "mine", "node": "mine", "log": "other"}


@pytest.mark.parametrize("containers", [[], [{"name": "i"}]])
def test_a_container_of_the_runtime_without_a_name(containers: list[JSON]) -> None:
    """The API server refuses its pods; until then nothing fails on it, and a patch does not find it."""
    pod = {"containers": [{"name": "node", "image": "i"}], "initContainers": [{"image": "i"}]}
    job = {"name": "node", "template": {"spec": {"template": {"spec": {"initContainers": containers}}}}}
    patch = {"manager": "a.io/x", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [job]}}}}
    result = compiled(train_job(runtimePatches=[patch]), runtime({"torch": {}}, replicated_job("node", "trainer", pod)))
    assert len(result.errors) == len(containers)
