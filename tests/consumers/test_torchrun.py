"""What `torchrun` reads in the environments of all pods forms one world, under each kind of owner."""

import copy
import re
from typing import Any

import pytest
from frameworks_world import (
    INDEX,
    JOBSET,
    LWS,
    RESOURCES,
    Group,
    bare_pod,
    indexed_job,
    jobset,
    leader_worker_set,
    shaped,
    stateful_set,
    template,
    volcano_job,
)
from torchrun_world import parse, world

JSON = dict[str, Any]
PLACE = {
    "labels": (INDEX, "apps.kubernetes.io/pod-index", f"{LWS}/worker-index"),
    "annotations": (INDEX, "volcano.sh/task-index", "muster.dev/rank"),
}


def members(group: Group, start: int = 0) -> list[Group]:
    """All four pods of a group of one run, made from one of them."""
    result = []
    for index in range(4):
        pod = copy.deepcopy(group.pod)
        for place, keys in PLACE.items():
            values = pod["metadata"].get(place) or {}
            values.update({key: str(index + start) for key in keys if key in values})
        if group.owner and "serviceName" in group.owner["spec"]:
            pod["metadata"]["name"] = re.sub(r"\d+$", str(index + start), pod["metadata"]["name"])
        result.append(Group(pod, group.owner))
    return result


def two_jobs(pods: JSON) -> list[Group]:
    """The pods of a JobSet with two Jobs of two."""
    result = []
    for job in (0, 1):
        for index in (0, 1):
            group = jobset(pods, jobs=2)
            assert group.owner is not None
            for labels in (group.owner["metadata"]["labels"], group.pod["metadata"]["labels"]):
                labels[f"{JOBSET}/job-index"] = str(job)
            group.pod["metadata"]["labels"][INDEX] = str(index)
            result.append(group)
    return result


def two_tasks(pods: JSON) -> list[Group]:
    """The pods of a Volcano Job with a master and three workers."""
    group = volcano_job(pods, tasks={"master": 1, "worker": 3})
    result = []
    for task, index in (("master", 0), ("worker", 0), ("worker", 1), ("worker", 2)):
        pod = copy.deepcopy(group.pod)
        pod["metadata"]["annotations"] |= {"volcano.sh/task-spec": task, "volcano.sh/task-index": str(index)}
        result.append(Group(pod, group.owner))
    return result


GROUPS = {
    "Indexed Job": lambda pods: members(indexed_job(pods)),
    "Indexed Job before 1.28": lambda pods: members(indexed_job(pods, old=True)),
    "JobSet": lambda pods: members(jobset(pods)),
    "JobSet of two Jobs": two_jobs,
    "StatefulSet": lambda pods: members(stateful_set(pods)),
    "StatefulSet from ordinal 5": lambda pods: members(stateful_set(pods, start=5), 5),
    "StatefulSet before 1.28": lambda pods: members(stateful_set(pods, old=True)),
    "LeaderWorkerSet": lambda pods: members(leader_worker_set(pods)),
    "Volcano Job": lambda pods: members(volcano_job(pods)),
    "Volcano Job of two tasks": two_tasks,
    "Pods": lambda pods: members(bare_pod(pods)),
}
PROCESSES = {"8 GPUs, 64 CPUs": 8, "2500m CPU": 3, "nothing": 1}


def container_env(group: Group) -> dict[str, str]:
    """The environment as the kubelet makes it: fields of the pod are read, a missing one is empty."""
    result = shaped(group)
    assert not result.errors
    env = {}
    for name, value in result.env.items():
        field = re.fullmatch(r"metadata\.(labels|annotations)\['(.+)'\]", value)
        env[name] = result.pod["metadata"][field[1]].get(field[2], "") if field else value
    return env


@pytest.mark.parametrize("resources", RESOURCES)
@pytest.mark.parametrize("owner", GROUPS)
def test_all_pods_form_one_world(owner: str, resources: str) -> None:
    """Every pod knows its own rank, all agree on the rest, and the world has all processes."""
    groups = GROUPS[owner](template("torch", {}, RESOURCES[resources]))
    processes = PROCESSES[resources]
    devices = processes if "GPU" in resources else 0
    found = world([container_env(group) for group in groups], devices)
    assert found == [(rank * processes, 4 * processes) for rank in range(4)]


@pytest.mark.parametrize("owner", GROUPS)
def test_elastic_pods_meet(owner: str) -> None:
    """With c10d all pods have the same endpoint and run, and four are between two and four."""
    groups = GROUPS[owner](template("torch", {"muster.dev/elastic": "2:4"}, {}))
    environments = [container_env(group) for group in groups]
    assert world(environments, 0)[0][1] == 4
    assert {parse(each, 0).backend for each in environments} == {"c10d"}
