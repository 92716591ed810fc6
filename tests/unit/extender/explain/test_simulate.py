"""`muster simulate`: what would be placed where, on a cluster that is not changed."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from builders import manifests
from click.testing import CliRunner
from explain_world import ExplainWorld
from extender_world import GPU8

from extender.explain.clusterdump import save
from muster.api.kubernetes.core import Namespace
from muster.api.kubernetes.meta import ObjectMeta
from musterctl.app import main

PODS = {"image": "i", "requests": {"cpu": "1"}, "limits": {"nvidia.com/gpu": 8}, "restart_policy": "Never"}
BARE = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "bare"},
    "spec": manifests.pod_spec(scheduler_name="volcano", **PODS),
}
Simulate = Callable[..., Any]


def job(name: str, replicas: int, gpus: int = 8, **spec: Any) -> dict[str, Any]:
    """A Volcano Job as users write it: without any default."""
    pods = {**PODS, "limits": {"nvidia.com/gpu": gpus}}
    made = manifests.job(name, [manifests.task("worker", replicas, template={"spec": manifests.pod_spec(**pods)})], "")
    return {**made, "spec": made["spec"] | spec}


@pytest.fixture
def world() -> ExplainWorld:
    """Four nodes; two are used by a gang that runs."""
    world = ExplainWorld().nodes(4)
    world.runs("first", 2)
    world.now += 1
    return world


@pytest.fixture
def simulate(world: ExplainWorld, tmp_path: Path) -> Simulate:
    """Runs `muster simulate` on the world with these manifests."""

    def run(*documents: dict[str, Any], options: tuple[str, ...] = (), raw: bool = False) -> Any:
        snapshot, manifests = tmp_path / "snapshot", tmp_path / "manifests.yaml"
        snapshot.write_bytes(save(world.dump()))
        manifests.write_text(yaml.safe_dump_all(documents))
        arguments = ["simulate", "--snapshot", str(snapshot), "-n", "ns", "-f", str(manifests), *options]
        result = CliRunner().invoke(main, arguments if raw else [*arguments, "-o", "json"])
        if raw:
            return result
        assert result.exit_code == 0, result.output
        return {gang["workload"]: gang for gang in json.loads(result.output)["gangs"]}

    return run


def test_a_job_that_fits_is_placed_in_rank_order(simulate: Simulate) -> None:
    """With the defaults that admission gives it: the whole job starts together."""
    gang = simulate(job("new", 4, gpus=4))["Job ns/new"]
    assert (gang["placed"], gang["submitted"], gang["slots"]) == (True, True, 4)
    assert gang["nodes"] == ["worker: node-2 (2), node-3 (2)"]


def test_a_job_that_does_not_fit_says_why_and_what_would_change_it(simulate: Simulate) -> None:
    """Three nodes are needed, two are free; then a node more, or the other job less."""
    gang = simulate(job("new", 3))["Job ns/new"]
    assert not gang["placed"]
    assert gang["why"]["cause"] == "no-room"
    assert "room is missing for 3 pods of 8 nvidia.com/gpu each: 2 fit now" in gang["why"]["summary"]
    added = simulate(job("new", 3), options=("--add-nodes", "1", "--like", "node-0"))["Job ns/new"]
    assert added["nodes"] == ["worker: node-0-new-1, node-2, node-3"]
    without = simulate(job("new", 3), options=("--without", "first"))
    assert without["Job ns/new"]["nodes"] == ["worker: node-0, node-1, node-2"]
    assert "Job ns/first" not in without


def test_cordoned_nodes_are_not_used(simulate: Simulate) -> None:
    """One of the two free nodes is taken out."""
    gang = simulate(job("new", 2), options=("--cordon", "node-3"))["Job ns/new"]
    assert not gang["placed"]
    causes = {cause["words"]: cause["nodes"] for cause in gang["why"]["shortage"]["causes"]}
    assert causes == {"cordoned": 1, "too little nvidia.com/gpu": 2}


def test_gangs_that_wait_already_come_first(world: ExplainWorld, simulate: Simulate) -> None:
    """They are told of too."""
    world.gang("older", {"worker": (2, GPU8)})
    world.now += 1
    gangs = simulate(job("new", 1))
    assert (gangs["Job ns/older"]["placed"], gangs["Job ns/older"]["submitted"]) == (True, False)
    assert not gangs["Job ns/new"]["placed"]


def test_a_batch_job_with_muster_labels_is_a_gang(world: ExplainWorld, simulate: Simulate) -> None:
    """Its pods start together, as it has a framework; without labels it is none of ours, unless its namespace asks."""
    labels = {"muster.dev/queue": "default", "muster.dev/framework": "torch"}
    content = manifests.batch_job("torchrun", 3, "", labels=labels, template={"spec": manifests.pod_spec(**PODS)})
    gang = simulate(content)["Job ns/torchrun"]
    assert not gang["placed"]
    assert "it waits: room is missing for 3 pods of 8 nvidia.com/gpu each: 2 fit now" in gang["why"]["summary"]
    content["spec"] |= {"completions": 2, "parallelism": 2}
    assert simulate(content)["Job ns/torchrun"]["nodes"] == ["pods: node-2, node-3"]
    content["metadata"] = {"name": "theirs"}
    assert simulate(content) == {}
    labelled = Namespace(metadata=ObjectMeta(name="ns", labels={"muster.dev/queue": "default"}))
    world.state.on_namespace(None, labelled)
    assert simulate(content)["Job ns/theirs"]["placed"]


def test_a_pod_group_with_pods_is_a_gang(simulate: Simulate) -> None:
    """As users of Volcano and of the coscheduling plugin write it."""
    group = manifests.manifest("scheduling.volcano.sh/v1beta1", "PodGroup", "g", min_member=2, queue="default")
    notes = {"annotations": {"scheduling.k8s.io/group-name": "g"}}
    pods = [{**BARE, "metadata": {"name": f"g-{index}", **notes}} for index in range(2)]
    assert simulate(group, *pods)["ns/g"]["nodes"] == ["pods: node-2, node-3"]


def test_resource_groups_take_pods_to_their_nodes(world: ExplainWorld, simulate: Simulate, tmp_path: Path) -> None:
    """As the webhook that has this configuration would."""
    world.node("special", labels={"pool": "a"})
    config = tmp_path / "admission.yaml"
    group = {"resourceGroup": "a", "object": {"key": "namespace", "value": ["ns"]}, "schedulerName": "volcano"}
    config.write_text(yaml.safe_dump({"resourceGroups": [{**group, "labels": {"pool": "a"}}]}))
    options = ("--admission-config", str(config))
    assert simulate(job("new", 1), options=options)["Job ns/new"]["nodes"] == ["worker: special"]
    for given, node in ((options, "special"), ((), "node-2")):
        assert [gang["nodes"] for gang in simulate(BARE, options=given).values()] == [[f"pods: {node}"]]


def test_the_queue_that_the_namespace_names(world: ExplainWorld, simulate: Simulate) -> None:
    """What names none, a Job or a pod, waits in it."""
    annotations = {"scheduling.volcano.sh/queue-name": "shut"}
    world.state.on_namespace(None, Namespace(metadata=ObjectMeta(name="ns", annotations=annotations)))
    world.queue("shut", "Closed")
    assert [gang["why"]["queue"]["name"] for gang in simulate(job("new", 1), BARE).values()] == ["shut", "shut"]


@pytest.mark.parametrize(("documents", "options", "words"), [
    ([job("Bad_Name", 1)], (), "metadata.name"),
    ([job("new", 1, tasks=[])], (), "spec.tasks"),
    ([{"kind": "Service", "apiVersion": "v1", "metadata": {"name": "s"}}], ("--like", "node-0"), "go together"),
    ([], ("--cordon", "nod-1"), "there is no node 'nod-1'; there is node-"),
    ([], ("--without", "frist"), "there is no job 'frist' in namespace 'ns'; there is first"),
])  # fmt: skip
def test_what_cannot_be_is_refused_with_a_sentence(
    simulate: Simulate, documents: list[dict[str, Any]], options: tuple[str, ...], words: str
) -> None:
    """As admission would refuse it, or with a near name."""
    result = simulate(*documents, options=options, raw=True)
    assert result.exit_code
    assert words in result.output


def test_people_read_lines(simulate: Simulate) -> None:
    """Who starts where, who waits and why, and what is not about placing."""
    service = {"kind": "Service", "apiVersion": "v1", "metadata": {"name": "s"}}
    output = simulate(job("small", 1), job("large", 2), service, raw=True).output.splitlines()
    why = (
        "worker: room is missing for 2 pods of 8 nvidia.com/gpu each: 1 fits now; of 4 nodes: "
        "3 too little nvidia.com/gpu; 1 more node with 8 free nvidia.com/gpu is needed"
    )
    assert output == [
        "Job ns/small (submitted) would start: 1 pod",
        "on             worker: node-2",
        "Job ns/large (submitted) would wait",
        f"why            {why}",
        "queue          default, place 1 of 1 in it",
        "left out       Service s: there is nothing to place",
    ]
