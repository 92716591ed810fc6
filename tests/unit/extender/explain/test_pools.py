"""A dump holds the whole cluster; a cycle over it plans one node pool, as the pair of that pool would."""

from builders import pod
from explain_world import ExplainWorld, report_of

from extender.explain.changes import DumpChange, changed
from extender.explain.clusterdump import load, save
from extender.explain.pools import in_pool, pool_of_object, pools_of
from extender.explain.queues import queue_reports
from extender.explain.whatif import WhatIf
from extender.simulate.placing import simulate
from muster.api.kubernetes.core import PODS
from muster.api.names import NODE_POOL
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES

CPU = {"cpu": 4}


def world() -> ExplainWorld:
    """Two nodes in each pool, a gang that waits in each, and one of pool b in a queue of the default pool."""
    made = ExplainWorld()
    for index in range(4):
        made.node(f"node-{index}", cpu=8, labels={NODE_POOL: "b"} if index < 2 else {})
    made.queue("team-b")
    made.change(made.state.told["queues.scheduling.volcano.sh"]["team-b"], labels={NODE_POOL: "b"})
    made.gang("here", {"worker": (5, CPU)})
    for name, queue in (("there", "team-b"), ("lost", "default")):
        key = made.gang(name, {"worker": (4, CPU)}, queue=queue)
        made.change(made.state.groups[key], labels={NODE_POOL: "b"})
        made.change(made.job_of(key), spec={"scheduler_name": "muster-b"})
    return made


def test_each_gang_is_explained_in_its_pool() -> None:
    """One fits there, one is too large for its pool, and one has a queue of another pool."""
    dump = world().dump()
    dump.add_objects(PODS, [pod("there-w-0", scheduler="muster-b"), pod("here-w-0"), pod("plain", scheduler="other")])
    pods = {name: pool_of_object(dump, "pod", name, "ns") for name in ("there-w-0", "here-w-0", "plain", "none")}
    assert pods == {"there-w-0": "b", "here-w-0": "", "plain": "", "none": ""}
    assert pools_of(dump) == ["", "b"]
    found = {}
    for name, pool in (("here", ""), ("there", "b"), ("lost", "b")):
        assert pool_of_object(dump, "gang", name, "ns") == pool_of_object(dump, "job", name, "ns") == pool
        found[name] = report_of(in_pool(dump, pool), name).cause
    assert (found["lost"], found["there"]) == ("queue-of-other-pool", "about-to-start")
    assert found["here"] not in {"about-to-start", "queue-of-other-pool"}


def test_a_simulation_places_each_in_its_pool() -> None:
    """A new node like one of a pool is one of that pool."""
    after = changed(world().dump(), DumpChange("ns", added={"node-2": 1}))
    placed = {gang.gang: gang for pool in ("", "b") for gang in simulate(WhatIf(in_pool(after, pool)), [])}
    assert {key: gang.placed for key, gang in placed.items()} == {"ns/here": True, "ns/there": True}
    assert sorted([run.node for each in placed["ns/there"].pod_sets for run in each.runs]) == ["node-0", "node-1"]


def test_queues_are_reported_by_their_pool() -> None:
    """Each once, with shares of the nodes of its pool."""
    dump = world().dump()
    in_b = {report.queue: report for report in queue_reports(WhatIf(in_pool(dump, "b")))}
    assert ("team-b" in in_b, "default" in in_b) == (True, False)
    assert "team-b" not in {report.queue for report in queue_reports(WhatIf(in_pool(dump, "")))}


def test_a_file_keeps_the_configurations_of_pools() -> None:
    """They count in their pools, and the others go by that of the default one."""
    dump = world().dump()
    dump.scheduler_config, dump.pool_configs = "", {"b": 'actions: "enqueue, allocate"\n'}
    again = load(save(dump))
    configs = {pool: in_pool(again, pool).scheduler_config for pool in ("b", "", "c")}
    assert configs == {"b": 'actions: "enqueue, allocate"\n', "": "", "c": ""}


def test_a_cluster_without_pools_is_one() -> None:
    """Then nothing is copied."""
    made = ExplainWorld().nodes(1)
    made.gang("one", {"worker": (1, CPU)})
    dump = made.dump()
    assert pools_of(dump) == [""]
    assert in_pool(dump, "") is dump
    assert len(dump.objects_of(POD_GROUPS)) == len(dump.objects_of(QUEUES)) == 1
