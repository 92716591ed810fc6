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
from muster.api.kubernetes.core import Namespace, PriorityClass
from muster.api.kubernetes.meta import ObjectMeta, format_time
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
    ([{"kind": "Service", "apiVersion": "v1", "metadata": {"name": "s"}}], ("--like", "node-0"), "together with"),
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


TORCH = {"muster.dev/queue": "default", "muster.dev/framework": "torch"}
TEMPLATE = {"metadata": {"labels": TORCH}, "spec": {**manifests.pod_spec(**PODS), "restartPolicy": "Always"}}


def replicated(api_version: str, kind: str, **spec: Any) -> dict[str, Any]:
    """A workload named `new` whose pods take a node each."""
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "new", "labels": TORCH}, "spec": spec}


STATEFUL_SET = replicated(
    "apps/v1", "StatefulSet", replicas=2, serviceName="new", podManagementPolicy="Parallel", template=TEMPLATE
)
DEPLOYMENT = {
    **replicated("apps/v1", "Deployment", replicas=2, template={"spec": TEMPLATE["spec"]}),
    "metadata": {
        "name": "new", "labels": {"muster.dev/queue": "default"}, "annotations": {"muster.dev/min-member": "2"},
    },
}  # fmt: skip
JOB_POD = {"metadata": {"labels": TORCH}, "spec": manifests.pod_spec(**PODS)}
JOB_SET = replicated(
    "jobset.x-k8s.io/v1alpha2",
    "JobSet",
    replicatedJobs=[
        {"name": "w", "replicas": 2, "template": {"spec": {"completions": 1, "parallelism": 1, "template": JOB_POD}}}
    ],
)
LEADER_WORKER_SET = replicated(
    "leaderworkerset.x-k8s.io/v1",
    "LeaderWorkerSet",
    replicas=1,
    leaderWorkerTemplate={"size": 2, "workerTemplate": TEMPLATE},
)
TRAIN_JOB = {
    "apiVersion": "trainer.kubeflow.org/v1alpha1",
    "kind": "TrainJob",
    "metadata": {"name": "new"},
    "spec": {
        "runtimeRef": {"name": "torch-distributed"},
        "trainer": {"numNodes": 2, "resourcesPerNode": {"limits": {"nvidia.com/gpu": 8}}},
    },
}
CRON_JOB = {
    **replicated("batch/v1", "CronJob", schedule="@daily"),
    "metadata": {"name": "new"},
}
CRON_JOB["spec"]["jobTemplate"] = {
    "spec": {"completions": 2, "parallelism": 2, "completionMode": "Indexed", "template": JOB_POD}
}


@pytest.mark.parametrize(("manifest", "title"), [
    (STATEFUL_SET, "StatefulSet ns/new"),
    (DEPLOYMENT, "Deployment ns/new"),
    (JOB_SET, "JobSet ns/new"),
    (LEADER_WORKER_SET, "LeaderWorkerSet ns/new"),
    (TRAIN_JOB, "TrainJob ns/new"),
    (CRON_JOB, "Job ns/new-1"),
], ids=lambda each: each["kind"] if isinstance(each, dict) else "")  # fmt: skip
def test_every_kind_is_one_gang_on_the_nodes_of_its_pods(
    simulate: Simulate, manifest: dict[str, Any], title: str
) -> None:
    """Two pods on the two free nodes, which start together: with one node less, none starts."""
    gangs = simulate(manifest)
    assert list(gangs) == [title]
    assert (gangs[title]["placed"], gangs[title]["slots"]) == (True, 2)
    [gang] = simulate(manifest, options=("--cordon", "node-3")).values()
    assert not gang["placed"]


def test_a_native_group_and_its_pods_are_a_gang(simulate: Simulate) -> None:
    """Its minimum is its own."""
    group = manifests.manifest("scheduling.k8s.io/v1beta1", "PodGroup", "g", schedulingPolicy={"gang": {"minCount": 2}})
    pods = [
        {**BARE, "metadata": {"name": f"g-{index}"}, "spec": BARE["spec"] | {"schedulingGroup": {"podGroupName": "g"}}}
        for index in range(2)
    ]
    [gang] = simulate(group, *pods).values()
    assert (gang["placed"], gang["submitted"], gang["slots"]) == (True, True, 2)


SUSPENDED_JOB = {**CRON_JOB, **replicated("batch/v1", "Job", **CRON_JOB["spec"]["jobTemplate"]["spec"], suspend=True)}


@pytest.mark.parametrize("manifest", [
    SUSPENDED_JOB,
    {**JOB_SET, "spec": {**JOB_SET["spec"], "suspend": True}},
    {**TRAIN_JOB, "spec": {**TRAIN_JOB["spec"], "suspend": True}},
], ids=lambda each: each["kind"])  # fmt: skip
def test_a_suspended_workload_is_simulated_as_released(simulate: Simulate, manifest: dict[str, Any]) -> None:
    """With a remark."""
    title = f"{manifest['kind']} new"
    output = simulate(manifest, raw=True).output
    assert f"{title} is suspended; it is simulated as if it were released" in output
    assert f"{manifest['kind']} ns/new (submitted) would start" in output
    assert "left out" not in output


def step(name: str, *targets: str, **patch: Any) -> dict[str, Any]:
    """A step of a JobFlow."""
    return {"name": name, "dependsOn": {"targets": [*targets]}, "patch": {"jobSpec": patch}}


def template(name: str, replicas: int) -> dict[str, Any]:
    """A JobTemplate of a Job with this number of pods."""
    spec = job(name, replicas)["spec"]
    return manifests.manifest("flow.volcano.sh/v1alpha1", "JobTemplate", name, "", **spec)


def job_flow(*steps: dict[str, Any]) -> dict[str, Any]:
    """A JobFlow named `flow`."""
    return manifests.manifest("flow.volcano.sh/v1alpha1", "JobFlow", "flow", "", flows=[*steps])


def test_the_first_jobs_of_a_job_flow_are_simulated(simulate: Simulate) -> None:
    """With their patches; a JobTemplate of no JobFlow is simulated as a Job of its name."""
    flow = job_flow(step("fetch", queue="default"), step("train", "fetch"))
    documents = (flow, template("fetch", 1), template("train", 4), template("alone", 1))
    gangs = simulate(*documents)
    assert {name: gang["placed"] for name, gang in gangs.items()} == {"Job ns/flow-fetch": True, "Job ns/alone": True}
    output = simulate(*documents, raw=True).output
    assert "left out       JobFlow flow, step train (it starts after fetch): there is nothing to place" in output


def test_a_job_flow_without_its_template_names_it(simulate: Simulate) -> None:
    """The manifests do not contain it, and there is no cluster to read it from."""
    result = simulate(job_flow(step("fetch")), raw=True)
    assert result.exit_code
    assert "JobFlow flow: add JobTemplate fetch to the manifests" in result.output


def test_what_wants_no_pods_is_left_out(simulate: Simulate) -> None:
    """A workload with 0 replicas."""
    none = {**STATEFUL_SET, "spec": {**STATEFUL_SET["spec"], "replicas": 0}}
    output = simulate(none, raw=True).output
    assert "left out       StatefulSet new (it is scaled to 0): there is nothing to place" in output


def test_victims_are_named_with_the_work_that_they_lose(world: ExplainWorld, simulate: Simulate) -> None:
    """In the preemptor's entry: their pods, and the time since the last checkpoint, or else since the start."""
    for name, value in (("low", 1), ("high", 10)):
        world.state.on_priority_class(None, PriorityClass(metadata=ObjectMeta(name=name), value=value))
    for node, saved in ((2, ""), (3, f"step=9,at={format_time(world.now - 2460)}")):
        key = world.gang(f"low-{node}", {"worker": (1, GPU8)}, phase="Running", priority_class="low")
        world.change(world.state.groups[key], annotations={"muster.dev/checkpoint": saved} if saved else {})
        world.pod(key, "worker", 0, GPU8, node=f"node-{node}", phase="Running", bound=world.now - 7200)
    urgent, elsewhere = job("urgent", 2, priorityClassName="high"), ("--cordon", "node-0", "--cordon", "node-1")
    [gang] = simulate(urgent, options=elsewhere).values()
    assert [(each["gang"], each["pods"], each["lostS"], each["saved"]) for each in gang["evicts"]] == [
        ("ns/low-3", 1, 2460.0, True),
        ("ns/low-2", 1, 7200.0, False),
    ]
    lines = simulate(urgent, options=elsewhere, raw=True).output.splitlines()
    assert lines[0] == "Job ns/urgent (submitted) would start: 2 pods"
    assert lines[2:] == [
        "evicts         Job ns/low-3 (1 pod, 41m since its checkpoint)",
        "evicts         Job ns/low-2 (1 pod, 120m since its start)",
    ]
