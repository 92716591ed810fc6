"""Jobs that restart whole while the planner keeps nodes for their gang: it stays the same gang."""

from typing import Any

import pytest
from simulated_cluster import Cluster
from simulated_jobs import add, pods, settle, task

from muster.api.kubernetes.core import PODS
from muster.api.muster.placement import PLACEMENTS
from muster.api.volcano.scheduling import POD_GROUPS


@pytest.mark.parametrize(("phase", "victims", "made_room", "stays"), [
    ("Planned", ["own"], [], True),
    ("Planned", [], ["own"], True),
    ("Planned", ["other"], ["n/other"], False),
    ("Bound", [], ["own"], False),
], ids=["evicted now", "evicted before", "others were evicted", "over"])  # fmt: skip
def test_a_restart_for_an_eviction_keeps_the_gang_whose_nodes_are_kept(
    cluster: Cluster, phase: str, victims: list[str], made_room: list[str], *, stays: bool
) -> None:
    """A repair or a move has written where its pods come again; else another gang follows, as after any restart."""
    add(cluster, "j", task("w", 2), policies=[{"events": ["PodEvicted"], "action": "RestartJob"}])
    settle(cluster)
    for one in cluster.api.all(PLACEMENTS):
        cluster.api.remove(PLACEMENTS, one, at_once=True)
    [group] = cluster.api.all(POD_GROUPS)
    name, before = group.metadata.name, {pod.metadata.uid for pod in pods(cluster)}
    own = {"own": name}
    spec: dict[str, Any] = {
        "podGroupUID": group.metadata.uid,
        "epoch": 2,
        "podSets": [{"name": "w", "runs": [{"node": "node-1", "count": 2}]}],
        "victims": [{"name": "j-w-0", "gang": own.get(each, each)} for each in victims],
    }
    status = {"phase": phase, "madeRoom": [f"n/{own[each]}" if each in own else each for each in made_room]}
    owner = {"apiVersion": POD_GROUPS.api_version, "kind": "PodGroup", "name": name, "uid": group.metadata.uid}
    metadata = {"name": name, "ownerReferences": [owner]}
    cluster.api.add(PLACEMENTS, {"metadata": metadata, "spec": spec, "status": status}, "n")
    cluster.api.remove(PODS, pods(cluster)[0], at_once=True)
    settle(cluster)
    assert len(pods(cluster)) == 2
    assert not before & {pod.metadata.uid for pod in pods(cluster)}, "all pods are new"
    [after] = cluster.api.all(POD_GROUPS)
    assert (after.metadata.uid == group.metadata.uid) is stays
