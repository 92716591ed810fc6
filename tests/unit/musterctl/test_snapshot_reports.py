"""Reports of the planner about a snapshot: explanations, queues and simulations, as users see them."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import page_world
import pytest
from answering_server import Server
from click.testing import CliRunner, Result
from explain_world import ExplainWorld

from extender.explain.clusterdump import load, save
from extender.planner.state.feed import FEED
from muster.api.kubernetes.core import PODS
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.muster.configuration import Suspects
from muster.api.volcano.scheduling import Queue, QueueSpec
from musterctl.app import main
from musterctl.output.report import _main

GPU = "nvidia.com/gpu"
LACKS = (
    "worker: room is missing for 2 pods of 8 nvidia.com/gpu each: 1 fits now; of 2 nodes: 1 too little "
    "nvidia.com/gpu; 1 more node with 8 free nvidia.com/gpu is needed"
)
STARTS = ["Job ns/waits would start: 2 pods", "on             worker: node-0, node-1"]


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two nodes of eight GPUs; a gang has one of them, and another one waits for both in a queue below `team`."""
    world = ExplainWorld().nodes(2)
    world.runs("busy", 1, {GPU: 8})
    spec = QueueSpec(weight=3, priority=2, deserved={GPU: "4"}, guarantee={}, capability={GPU: "12"})  # type: ignore[arg-type]
    world.state.on_queue(None, Queue(metadata=ObjectMeta(name="team", uid="team"), spec=spec))
    world.gang("waits", {"worker": (2, {GPU: 8})})
    world.plan()
    file = tmp_path_factory.mktemp("snapshot") / "snapshot"
    file.write_bytes(save(world.dump()))
    return file


def muster(snapshot: Path, *arguments: str) -> Result:
    """Runs the command line on the snapshot."""
    return CliRunner().invoke(main, [*arguments, f"--snapshot={snapshot}"])


@pytest.mark.parametrize(
    ("command", "lines"),
    [
        ("explain gang waits -n ns", ["Job ns/waits", f"it waits: {LACKS}"]),
        ("explain pod busy-worker-0 -n ns", ["pod ns/busy-worker-0"]),
        ("explain pod/busy-worker-0 -n ns", ["pod ns/busy-worker-0"]),
        ("queue top", ["QUEUE      RESOURCE        USED  FAIR  DESERVED  SHARE                      WAITING",
            "root       nvidia.com/gpu     8    16         4  ##########..........  50%  1",
            "  default  nvidia.com/gpu     8    16         0  ##########..........  50%  1",
            "  team     nvidia.com/gpu     0     0         4  ....................   0%  0"]),
        ("queue explain team", ["Queue team, below root", "  weight 3, priority 2",
            "                  used  fair share  deserved  guarantee  capability",
            "  nvidia.com/gpu     -           -         4          -          12  ....................   0%",
            "  0 gangs wait in it"]),
        ("queue explain default", ["Queue default, below root", "  weight 1, priority 0",
            "                  used  fair share  deserved  guarantee  capability",
            "  nvidia.com/gpu     8          16         -          -           -  ##########..........  50%",
            "  1 gang waits in it", f"    Job ns/waits: {LACKS} (NotEnoughResources)"]),
        ("simulate --add-nodes 1 --like node-0",
            ["Job ns/waits would start: 2 pods", "on             worker: node-0-new-1, node-1"]),
        ("simulate --without busy -n ns", ["Job ns/waits would start: 2 pods",
            "on             worker: node-0, node-1"]),
        ("simulate --queue default.weight=2", ["Job ns/waits would wait", f"why            {LACKS}",
            "queue          default, place 1 of 1 in it"]),
        ("topo", ["no topology exists: no levels of the plugin topology, no Topology of Kueue, and no"]),
    ],
)  # fmt: skip
def test_a_report_is_told(snapshot: Path, command: str, lines: list[str]) -> None:
    """On standard output, line by line."""
    told = muster(snapshot, *command.split())
    assert told.exit_code == 0, told.output
    found = told.stdout.splitlines()
    at = next(number for number, line in enumerate(found) if line.startswith(lines[0]))
    assert [line[: len(wanted)] for line, wanted in zip(found[at:], lines, strict=False)] == lines


@pytest.mark.parametrize(("command", "words"), [
    ("explain gang none -n ns", "there is no gang 'none' in namespace 'ns'; there are: busy, waits"),
    ("queue explain none", "there is no queue 'none'; existing queues are: default, root, team"),
    ("simulate --cordon node-9", "there is no node 'node-9'"),
    ("simulate --add-nodes 1", "use --add-nodes together with --like: the number of nodes, and the node to copy"),
    ("topo none", "none"),
])  # fmt: skip
def test_what_is_not_there_is_named(snapshot: Path, command: str, words: str) -> None:
    """With what there is."""
    told = muster(snapshot, *command.split())
    assert (told.exit_code != 0, words in told.stderr) == (True, True), told.output


@pytest.mark.parametrize("kind", ["batch/v1", "batch.volcano.sh/v1alpha1"])
def test_a_class_that_is_not_there_is_named(snapshot: Path, tmp_path: Path, kind: str) -> None:
    """A workload with it is refused, as by admission."""
    urgent = {"priorityClassName": "urgent"}
    template = {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}
    metadata = {"name": "new", "labels": {"muster.dev/queue": "default"}}
    job: Any = {"apiVersion": kind, "kind": "Job", "metadata": metadata}
    tasks = {"tasks": [{"name": "a", "replicas": 1, "template": template}]}
    pods = {"template": template}
    job["spec"] = pods if kind == "batch/v1" else tasks
    file = tmp_path / "job.json"
    file.write_text(json.dumps(job))
    assert "new (submitted) would" in muster(snapshot, "simulate", f"-f{file}", "-n", "ns").stdout
    (template["spec"] if kind == "batch/v1" else job["spec"]).update(urgent)
    file.write_text(json.dumps(job))
    result = muster(snapshot, "simulate", f"-f{file}", "-n", "ns")
    assert (result.exit_code, "no PriorityClass with name urgent was found" in result.stderr) == (1, True), (
        result.output
    )


def test_data_has_the_same_facts(snapshot: Path) -> None:
    """Of queues, of gangs after a change, and of one gang."""
    queues = json.loads(muster(snapshot, "queue", "top", "-o", "json").stdout)
    assert [each["queue"] for each in queues] == ["root", "default", "team"]
    options = ("--without=busy", "--queue=default.weight=2", "--namespace=ns", "--output=json")
    after = json.loads(muster(snapshot, "simulate", *options).stdout)
    assert [(gang["workload"], gang["placed"], gang["slots"]) for gang in after["gangs"]] == [("Job ns/waits", True, 2)]
    assert (after["ignored"], [each["queue"] for each in after["queues"]]) == ([], ["root", "default", "team"])
    assert "queues" not in json.loads(muster(snapshot, "simulate", *options[:1], *options[2:]).stdout)
    assert json.loads(muster(snapshot, "explain", "gang", "waits", "-n", "ns", "-o", "json").stdout)["whole"]


def test_another_configuration_counts(snapshot: Path, tmp_path: Path) -> None:
    """In place of the one in the snapshot; one that cannot be planned with is refused."""
    file = tmp_path / "config"
    file.write_text('actions: "reclaim"\n')
    told = muster(snapshot, "simulate", "--without=busy", "--namespace=ns", f"--scheduler-config={file}").stdout
    assert "Job ns/waits would wait" in told
    file.write_text('actions: "magic"\n')
    told = muster(snapshot, "simulate", f"--scheduler-config={file}").output
    assert "there is no action 'magic'" in told


def test_a_file_that_is_no_snapshot_is_named(tmp_path: Path) -> None:
    """With what is wrong."""
    file = tmp_path / "none"
    file.write_text("{}")
    told = muster(file, "queue", "top")
    assert (told.exit_code, f"Error: {file}: " in told.stderr) == (1, True)


@pytest.fixture
def cluster(server: Server, snapshot: Path, asked: Any) -> Any:
    """Runs a command line against a cluster with the objects of the snapshot."""
    dump = load(snapshot.read_bytes())
    for fed in FEED:
        items = [msgspec.to_builtins(each) for each in dump.objects_of(fed.resource)]
        server.answers[f"GET {fed.resource.path()}"] = (200, {"metadata": {"resourceVersion": "1"}, "items": items}, [])
    server.other = (404, {"kind": "Status", "reason": "NotFound", "message": "none", "details": {"name": "x"}}, [])
    return asked


def publish(server: Server, **data: str) -> None:
    """The extender of the default pool says what it runs with."""
    found = {"metadata": {"name": "muster-planner", "namespace": "muster-system"}, "data": data}
    server.answers["GET /api/v1/namespaces/muster-system/configmaps/muster-planner"] = (200, found, [])


@pytest.mark.parametrize("command", ["queue top", "queue explain default", "simulate --without busy -n ns"])
def test_a_cluster_is_read_as_its_snapshot(cluster: Any, snapshot: Path, command: str) -> None:
    """All kinds of it; notes tell what its extenders have not published."""
    told = cluster(*command.split())
    assert told.exit_code == 0, told.output
    assert told.stdout == muster(snapshot, *command.split()).stdout
    assert told.stderr.splitlines() == [
        f"Note: {what}, as the extender has not published another (ConfigMap muster-planner)"
        for what in (
            "the default list of this version decides which nodes are suspect",
            "the planner's default timing is used",
        )
    ]


def test_a_snapshot_of_a_cluster_has_what_is_published(cluster: Any, server: Server, tmp_path: Path) -> None:
    """The configuration, what is suspect, and the timing; a file or standard output gets it."""
    text = "actions: reclaim\n"
    publish(server, **{"config.yaml": text, "suspects.json": '{"taints":["x"]}', "timing.json": '{"faultStop":0.75}'})
    file = tmp_path / "snapshot"
    told = cluster("snapshot", f"--output={file}")
    assert (told.exit_code, told.stderr) == (0, "")
    assert told.stdout.startswith(f"{file}: {file.stat().st_size} bytes, 2 nodes, ")
    found = load(file.read_bytes())
    assert (found.scheduler_config, found.suspects) == (text, {"": Suspects((), ("x",))})
    assert found.own_inputs.timing.fault_stop == 0.75
    assert len(found.objects_of(PODS)) == 1
    assert load(cluster("snapshot", "--output=-").stdout_bytes).scheduler_config == text
    assert cluster("snapshot", f"--output={tmp_path}").exit_code == 2
    refused = cluster("snapshot", f"--output={tmp_path}/none/file")
    assert (refused.exit_code, "cannot write" in refused.stderr) == (1, True)
    mine = tmp_path / "config"
    mine.write_text("actions: allocate\n")
    cluster("snapshot", f"--output={file}", f"--scheduler-config={mine}")
    assert load(file.read_bytes()).scheduler_config == mine.read_text()


@pytest.mark.parametrize("plain", [True, False])
def test_why_a_workload_is_not_placed(cluster: Any, server: Server, *, plain: bool) -> None:
    """It has no queue, or the label of another name; its gang is not asked for then."""
    labels = {} if plain else {"muster.dev/managed": "false", "muster.dev/queue": "q"}
    job = {"metadata": {"name": "lone", "namespace": "ns", "labels": labels}, "spec": {}}
    server.answers["GET /apis/batch/v1/namespaces/ns/jobs/lone"] = (200, job, [])
    told = cluster("explain", "job", "lone", "-n", "ns")
    assert told.exit_code == 1
    why = (
        "has no label muster.dev/queue, so Muster does not place its pods"
        if plain
        else 'has the label muster.dev/managed: "false", so Muster ignores its pods'
    )
    assert told.stderr.splitlines()[-1] == f"Error: Job lone {why}"


@pytest.mark.parametrize(("job", "events", "words"), [
    ({}, ["exceeded quota: q"], "has no pods, as they cannot be created: exceeded quota: q"),
    ({}, [], "has no pods yet, so it has no gang"),
    ({"status": {"conditions": [{"type": "Complete", "status": "True"}]}}, [],
     "has ended, and its gang no longer exists"),
], ids=["refused", "new", "ended"])  # fmt: skip
def test_why_a_workload_has_no_gang(cluster: Any, server: Server, job: Any, events: list[str], words: str) -> None:
    """What is known of it; the words about its pods are the Job controller's."""
    meta = {"name": "lone", "namespace": "ns", "uid": "u", "labels": {"muster.dev/queue": "q"}}
    server.answers["GET /apis/batch/v1/namespaces/ns/jobs/lone"] = (200, {"spec": {}, **job, "metadata": meta}, [])
    items = [{"metadata": {}, "message": each, "involvedObject": {"uid": "u"}} for each in events]
    server.answers["GET /api/v1/namespaces/ns/events"] = (200, {"metadata": {}, "items": items}, [])
    told = cluster("explain", "job", "lone", "-n", "ns")
    assert (told.exit_code, told.stderr.splitlines()[-1]) == (1, f"Error: Job lone {words}")


def test_why_a_train_job_has_no_job(cluster: Any, server: Server) -> None:
    """Its condition has the words of the API server."""
    told = {"type": "Blocked", "status": "True", "lastTransitionTime": "", "reason": "x", "message": "Job fit-0: no"}
    spec = {"runtimeRef": {"name": "r"}}
    found = {"metadata": {"name": "fit", "namespace": "ns"}, "spec": spec, "status": {"conditions": [told]}}
    server.answers["GET /apis/trainer.kubeflow.org/v1alpha1/namespaces/ns/trainjobs/fit"] = (200, found, [])
    asked = cluster("explain", "job", "fit", "-n", "ns")
    assert asked.exit_code == 1
    assert asked.stderr.splitlines()[-1] == "Error: TrainJob fit is blocked: Job fit-0: no"


def test_the_next_job_of_a_job_flow_and_its_refusal(cluster: Any, server: Server) -> None:
    """A JobFlow has no gang; its Jobs have."""
    state = {"phase": "Running", "message": "step eval: there is no JobTemplate eval in namespace ns; create it"}
    found = {"metadata": {"name": "flow", "namespace": "ns"}, "spec": {}}
    found["status"] = {"state": state, "jobStatusList": [{"name": "flow-train"}]}
    server.answers["GET /apis/flow.volcano.sh/v1alpha1/namespaces/ns/jobflows/flow"] = (200, found, [])
    asked = cluster("explain", "flow", "-n", "ns")
    assert asked.stderr.splitlines()[-1] == (
        f"Error: JobFlow flow is Running: {state['message']}; "
        "`muster explain JOB -n ns` has more about its Jobs: flow-train"
    )


REF = {"name": "r"}


@pytest.mark.parametrize(("path", "kind", "spec"), [
    ("batch/v1/namespaces/ns/jobs", "Job", {"suspend": True}),
    ("trainer.kubeflow.org/v1alpha1/namespaces/ns/trainjobs", "TrainJob", {"suspend": True, "runtimeRef": REF}),
    ("apps/v1/namespaces/ns/statefulsets", "StatefulSet", {"replicas": 0}),
])  # fmt: skip
def test_a_held_workload_without_a_gang(cluster: Any, server: Server, path: str, kind: str, spec: Any) -> None:
    """A report as for a held Volcano Job, with the command that releases it."""
    meta = {"name": "lone", "namespace": "ns", "uid": "u", "labels": {"muster.dev/queue": "q"}}
    item = {"metadata": {**meta, "annotations": {"muster.dev/held-replicas": "2"}}, "spec": spec}
    server.answers[f"GET /apis/{path}/lone"] = (200, item, [])
    result = cluster("explain", "job", "lone", "-n", "ns")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[:2] == [
        f"{kind} ns/lone",
        "it is suspended (held): `muster release lone -n ns` starts it",
    ]


def test_labels_that_mean_nothing_are_told(snapshot: Path, tmp_path: Path) -> None:
    """Below the report of a pod that has one."""
    dump = load(snapshot.read_bytes())
    (pod,) = dump.objects_of(PODS)
    pod.metadata.labels["muster.dev/queu"] = "team"
    file = tmp_path / "snapshot"
    file.write_bytes(save(dump))
    told = muster(file, "explain", "pod", pod.metadata.name, "-n", "ns").stdout.splitlines()
    slip = f"Pod {pod.metadata.name} has the label muster.dev/queu; did you mean muster.dev/queue?"
    assert [line.strip() for line in told if "did you mean" in line] == [slip]
    assert "did you mean" not in muster(file, "explain", "gang", "busy", "-n", "ns").stdout


def test_a_snapshot_has_a_name_of_its_time(cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without signs that a file cannot have everywhere."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    assert cluster("snapshot").exit_code == 0
    (file,) = folder.iterdir()
    assert re.fullmatch(r"muster-snapshot-[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{6}Z\.json\.gz", file.name)


@pytest.mark.parametrize(("deserved", "used", "main"), [
    ({}, {"cpu": 1000, GPU: 8000}, GPU),
    ({"cpu": "32", GPU: "4"}, {"cpu": 1000, GPU: 8000}, GPU),
    ({"memory": "32", "cpu": "4"}, {"cpu": 8000, "memory": 8000}, "cpu"),
    ({"memory": "32", "cpu": "4"}, {}, "cpu"),
    ({"memory": "32", GPU: "4"}, {}, GPU),
    ({"memory": "32"}, {}, "memory"),
    ({"pods": "32"}, {}, "usual"),
])  # fmt: skip
def test_the_resource_that_a_queue_is_shown_by(deserved: dict[str, str], used: dict[str, int], main: str) -> None:
    """The one that it has most of; of a queue that has nothing one that it deserves, GPUs first."""
    amounts = {name: int(text) * 1000 for name, text in deserved.items()}
    report = page_world.report(allocated=used, deserved=amounts, fair_share=dict.fromkeys(used, 8000))
    assert _main(report, "usual") == main


@pytest.mark.parametrize("arguments", ["", "job", "jobs waits", "queue/waits", "job waits now"])
def test_what_explain_does_not_take(snapshot: Path, arguments: str) -> None:
    """The error says what it takes; a kind alone would be a job of that name, which there is not."""
    result = muster(snapshot, "explain", *arguments.split(), "-nns")
    assert result.exit_code
    expected = "there is no job" if arguments == "job" else "expected NAME, or job, gang or pod and a NAME, not: "
    assert expected in result.stderr
