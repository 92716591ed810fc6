"""`muster shape` shows the pods of every kind of workload, as rank 0 of each shape would be admitted."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from frameworks_world import env_of

from musterctl.app import main

JSON = dict[str, Any]
LABELS = {"muster.dev/queue": "default", "muster.dev/framework": "torch"}


def pods(**labels: str) -> JSON:
    """A pod template."""
    return {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "node", "image": "image"}]}}


def workload(api_version: str, kind: str, spec: JSON, labels: JSON | None = None) -> JSON:
    """A workload named `train`."""
    metadata = {"name": "train", "labels": LABELS if labels is None else labels}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


def job(count: int) -> JSON:
    """The template of a Job of so many pods."""
    return {"spec": {"parallelism": count, "completions": count, "completionMode": "Indexed", "template": pods()}}


JOBSET = {"replicatedJobs": [{"name": "node", "replicas": 2, "template": job(2)}, {"name": "log", "template": job(1)}]}
GROUPS = {"leaderWorkerTemplate": {"size": 4, "leaderTemplate": pods(), "workerTemplate": pods()}}
VOLCANO = {
    "queue": "default",
    "plugins": {"svc": [], "env": []},
    "tasks": [{"name": "node", "replicas": 4, "template": pods()}],
}
WORKLOADS: dict[str, tuple[JSON, list[tuple[str, str, str]]]] = {
    "JobSet": (workload("jobset.x-k8s.io/v1alpha2", "JobSet", JOBSET),
        [("train-node-0-0", "4", "train-node-0-0.train"), ("train-log-0-0", "1", "train-log-0-0.train")]),
    "LeaderWorkerSet": (workload("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", GROUPS),
        [("train-0", "4", "train-0.train"), ("train-0-1", "4", "train-0.train")]),
    "CronJob": (workload("batch/v1", "CronJob", {"schedule": "@daily", "jobTemplate": job(3)}),
        [("train-1-0", "3", "train-1-0.train-1")]),
}  # fmt: skip


@pytest.mark.parametrize(("obj", "expected"), WORKLOADS.values(), ids=WORKLOADS.keys())
def test_first_pods(shape: Any, obj: JSON, expected: list[tuple[str, str, str]]) -> None:
    """Name, number of nodes and rank 0 of each; a line above says which pod it is."""
    result = shape(obj)
    assert result.exit_code == 0, result.output
    found = [each for each in yaml.safe_load_all(result.stdout) if each and each["kind"] == "Pod"]
    told = [(each["metadata"]["name"], env_of(each["spec"]["containers"][0])) for each in found]
    assert [(name, env["PET_NNODES"], env["PET_MASTER_ADDR"]) for name, env in told] == expected
    assert result.stdout.count("\n# ") == len(expected)


def test_a_volcano_job(shape: Any) -> None:
    """The first pod of each task is shown with what the plugins of the Job add."""
    result = shape(workload("batch.volcano.sh/v1alpha1", "Job", VOLCANO, {}))
    pod = list(yaml.safe_load_all(result.stdout))[-1]
    assert (pod["metadata"]["name"], pod["spec"]["subdomain"]) == ("train-node-0", "train")
    assert env_of(pod["spec"]["containers"][0])["VC_TASK_INDEX"]
    assert "# the first pod of task node of Job train, with what its plugins add" in result.stdout


def test_a_deployment_has_no_ranks(shape: Any) -> None:
    """Its pods would be refused, as in the cluster."""
    deployment = {"selector": {}, "template": pods()}
    result = shape(workload("apps/v1", "Deployment", deployment))
    assert result.exit_code == 1
    assert "pods of a ReplicaSet (or Deployment) have no index" in result.stderr
    labelled = workload("apps/v1", "Deployment", deployment, {"muster.dev/queue": "default"})
    queued = shape(labelled, options=("--explain",))
    assert queued.exit_code == 0
    assert "schedulerName: muster" in queued.stdout


@pytest.mark.parametrize(
    "spec", [7, {"replicatedJobs": 7}, {"replicatedJobs": [{"name": "a", "template": {"spec": []}}]}]
)
def test_what_is_no_jobset(shape: Any, spec: Any) -> None:
    """It is refused in one sentence; its API server would say more."""
    result = shape(workload("jobset.x-k8s.io/v1alpha2", "JobSet", spec))
    assert result.exit_code in {0, 1}
    assert "Traceback" not in result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)


def test_claimed_devices_have_a_process_each(tmp_path: Path) -> None:
    """By the template in the same files; without it a claim counts as one device."""
    template = {"devices": {"requests": [{"name": "g", "exactly": {"deviceClassName": "gpu.example.com", "count": 4}}]}}
    devices = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": "gpus"}}
    resources = {"requests": {"cpu": "8"}, "claims": [{"name": "mine"}]}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "labels": {"muster.dev/queue": "default", "muster.dev/framework": "torch"}},
        "spec": {
            "resourceClaims": [{"name": "mine", "resourceClaimTemplateName": "gpus"}],
            "containers": [{"name": "node", "image": "i", "resources": resources}],
        },
    }
    file = tmp_path / "pod.yaml"
    for documents, processes in (([pod], "1"), ([{**devices, "spec": {"spec": template}}, pod], "4")):
        file.write_text(yaml.safe_dump_all(documents), encoding="utf-8")
        result = CliRunner().invoke(main, ["shape", "-f", str(file)])
        assert not result.exit_code
        [shaped] = [each for each in yaml.safe_load_all(result.stdout) if each["kind"] == "Pod"]
        env = {each["name"]: each.get("value") for each in shaped["spec"]["containers"][0]["env"]}
        assert env["PET_NPROC_PER_NODE"] == processes
