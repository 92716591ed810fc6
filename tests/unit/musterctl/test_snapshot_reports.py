"""Reports of the planner about a snapshot: explanations, queues and simulations, as users see them."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from explain_world import ExplainWorld

from extender.explain.clusterdump import save
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.volcano.scheduling import Queue, QueueSpec
from musterctl.app import main

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
        (
            "queue top",
            [
                "QUEUE      RESOURCE        USED  FAIR  DESERVED  SHARE                      WAITING",
                "root       nvidia.com/gpu     8    16         4  ##########..........  50%  1",
                "  default  nvidia.com/gpu     8    16         0  ##########..........  50%  1",
                "  team     nvidia.com/gpu     0     0         4  ....................   0%  0",
            ],
        ),
        (
            "queue explain team",
            [
                "Queue team, below root",
                "  weight 3, priority 2",
                "                  used  fair share  deserved  guarantee  capability",
                "  nvidia.com/gpu     -           -         4          -          12  ....................   0%",
                "  0 gangs wait in it",
            ],
        ),
        (
            "queue explain default",
            [
                "Queue default, below root",
                "  weight 1, priority 0",
                "                  used  fair share  deserved  guarantee  capability",
                "  nvidia.com/gpu     8          16         -          -           -  ##########..........  50%",
                "  1 gang waits in it",
                f"    Job ns/waits: {LACKS} (NotEnoughResources)",
            ],
        ),
        (
            "simulate --add-nodes 1 --like node-0",
            ["Job ns/waits would start: 2 pods", "on             worker: node-0-new-1, node-1"],
        ),
        (
            "simulate --without busy -n ns",
            ["Job ns/waits would start: 2 pods", "on             worker: node-0, node-1"],
        ),
        (
            "simulate --queue default.weight=2",
            ["Job ns/waits would wait", f"why            {LACKS}", "queue          default, place 1 of 1 in it"],
        ),
        ("topo", ["there is no topology to draw: no levels of the plugin topology, no Topology of Kueue, and no"]),
    ],
)
def test_a_report_is_told(snapshot: Path, command: str, lines: list[str]) -> None:
    """On standard output, line by line."""
    told = muster(snapshot, *command.split())
    assert told.exit_code == 0, told.output
    found = told.stdout.splitlines()
    at = next(number for number, line in enumerate(found) if line.startswith(lines[0]))
    assert [line[: len(wanted)] for line, wanted in zip(found[at:], lines, strict=False)] == lines


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("explain gang none -n ns", "there is no gang 'none' in namespace 'ns'; there are: busy, waits"),
        ("queue explain none", "there is no queue 'none'; there is default, root, team"),
        ("simulate --cordon node-9", "there is no node 'node-9'"),
        ("simulate --add-nodes 1", "--add-nodes and --like go together: how many, and like which node"),
        ("topo none", "none"),
    ],
)
def test_what_is_not_there_is_named(snapshot: Path, command: str, words: str) -> None:
    """With what there is."""
    told = muster(snapshot, *command.split())
    assert (told.exit_code != 0, words in told.stderr) == (True, True), told.output


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
