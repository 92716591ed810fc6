"""Gangs whose members mind each other are placed so that kube-scheduler agrees."""

import copy
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from gang_jobs import job

from muster.api.kubernetes.core import NODES, PODS
from muster.api.muster.placement import PLACEMENTS
from muster.api.volcano.batch import JOBS
from musterctl.plane.install import RACK
from musterctl.plane.plane import Plane

pytestmark = pytest.mark.plane
WaitFor = Callable[..., Any]

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
ITSELF = {"matchLabels": {"volcano.sh/job-name": "a"}}
SPREAD = {"maxSkew": 1, "topologyKey": RACK, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": ITSELF}


def term(key: str) -> list[dict[str, Any]]:
    """An affinity term that means the gang itself."""
    return [{"topologyKey": key, "labelSelector": ITSELF}]


@pytest.mark.parametrize(("demand", "replicas", "per_node", "per_rack"), [
    ({"affinity": {"podAntiAffinity": {REQUIRED: term("kubernetes.io/hostname")}}}, 8, [1] * 8, [4, 4]),
    ({"affinity": {"podAffinity": {REQUIRED: term(RACK)}}}, 6, [6], [6]),
    ({"topologySpreadConstraints": [SPREAD]}, 6, [3, 3], [3, 3]),
], ids=["one per node", "one rack", "spread over racks"])  # fmt: skip
def test_a_gang_whose_members_mind_each_other_runs(
    plane: Plane, namespace: str, wait_for: WaitFor, demand: Any, replicas: int, per_node: Any, per_rack: Any
) -> None:
    """At the first attempt: its placement is never given up."""
    client = plane.client()
    body = job("a", namespace, replicas=replicas, gpus=0)
    body["spec"]["tasks"][0]["template"]["spec"] |= demand
    client.create(JOBS, body, namespace)
    wait_for(lambda: client.get(JOBS, "a", namespace).status.state.phase == "Running", 60, "the gang to run")
    racks = {node.metadata.name: node.metadata.labels[RACK] for node in client.list(NODES)}
    nodes = [pod.spec.node_name for pod in client.list(PODS, namespace)]
    assert sorted(Counter(nodes).values()) == per_node
    assert sorted(Counter(racks[node] for node in nodes).values()) == per_rack
    assert [placement.spec.epoch for placement in client.list(PLACEMENTS, namespace)] == [1]


def test_workers_that_must_be_beside_their_master_wait_for_it(plane: Plane, namespace: str, wait_for: WaitFor) -> None:
    """kube-scheduler refuses those that come before the master; they are tried again, and the placement stands."""
    client = plane.client()
    body = job("a", namespace, replicas=4, gpus=0)
    [worker] = body["spec"]["tasks"]
    master = {"name": "master", "replicas": 1, "template": copy.deepcopy(worker["template"])}
    master["template"]["metadata"]["labels"] = {"role": "master"}
    beside = [{"topologyKey": RACK, "labelSelector": {"matchLabels": {"role": "master"}}}]
    worker["template"]["spec"]["affinity"] = {"podAffinity": {REQUIRED: beside}}
    body["spec"] |= {"tasks": [worker, master], "minAvailable": 5}
    client.create(JOBS, body, namespace)
    wait_for(lambda: client.get(JOBS, "a", namespace).status.state.phase == "Running", 30, "the gang to run")
    assert [placement.spec.epoch for placement in client.list(PLACEMENTS, namespace)] == [1]
