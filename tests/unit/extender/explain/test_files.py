"""Snapshot files: they explain as the cluster does, and hold nothing that nobody has to see."""

import gzip
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from explain_world import ExplainWorld, report_of
from extender_world import GPU8

from extender.explain.clusterdump import load, save
from muster.api.kubernetes.core import Pod
from muster.api.kubernetes.storage import (
    BIND_COMPLETED,
    CLAIMS,
    SELECTED_NODE,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
)
from muster.api.muster.configuration import Suspects
from musterctl.app import main

SECRET = "hunter2"  # noqa: S105 - it stands for one


def world_of_secrets() -> ExplainWorld:
    """A running and a waiting gang, with values that must not leave the cluster."""
    world = ExplainWorld().nodes(2)
    world.runs("first", 2, GPU8)
    world.now += 1
    key = world.gang("a", {"worker": (2, GPU8)}, spec={"volumes": [{"name": "s", "secret": {"secretName": SECRET}}]})
    content = msgspec.to_builtins(world.pod(key, "worker", 0, GPU8, gated=True))
    env = [{"name": "PASSWORD", "value": SECRET}, {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": SECRET}}}]
    container = {"image": SECRET, "command": [SECRET], "args": [SECRET], "env": env}
    content["spec"]["containers"][0] |= container
    content["spec"]["volumes"] = [
        {"name": "data", "persistentVolumeClaim": {"claimName": "kept"}},
        {"name": "keys", "secret": {"secretName": SECRET}},
    ]
    metadata = world.meta("kept", annotations={BIND_COMPLETED: "yes", SELECTED_NODE: "node-0", "note": SECRET})
    claim = PersistentVolumeClaim(metadata=metadata, spec=PersistentVolumeClaimSpec(volume_name="disk"))
    world.state.on_claim(None, claim)
    world.state.on_volume(None, PersistentVolume(metadata=world.meta("disk", namespace="")))
    content["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] = SECRET
    world.state.on_pod(None, msgspec.convert(content, Pod))
    job = next(job for job in world.state.jobs.values() if job.metadata.name == "a")
    job.spec.tasks[0].template["spec"]["containers"][0] |= container
    job.metadata.annotations["example.com/note"] = SECRET
    return world


def test_a_file_holds_no_secrets_and_no_environment() -> None:
    """What the planner does not read stays behind; claims, which it reads, do not."""
    text = gzip.decompress(save(world_of_secrets().dump())).decode()
    assert [word in text for word in (SECRET, "PASSWORD", "kept")] == [False, False, True]


def test_a_file_explains_as_its_cluster_does() -> None:
    """Gangs and pods, to the last word; and a file of a file is the same file."""
    dump = world_of_secrets().dump()
    content = save(dump)
    again = load(content)
    for kind, name in (("gang", "a"), ("gang", "first"), ("pod", "a-worker-0"), ("job", "a")):
        assert report_of(again, name, kind) == report_of(dump, name, kind)
    assert [(claim.bound, claim.metadata.annotations[SELECTED_NODE]) for claim in again.objects_of(CLAIMS)] == [
        (True, "node-0")
    ]
    assert save(again) == content


@pytest.mark.parametrize(("content", "words"), [
    (b"nonsense", "not a file of `muster snapshot`"),
    (b"\x1f\x8bnonsense", "not a file of `muster snapshot`"),
    (b'{"format": "muster-snapshot/v9", "takenAt": "2027-01-15T08:00:00Z", "objects": {}}', "this version reads"),
])  # fmt: skip
def test_another_file_is_refused_with_a_sentence(content: bytes, words: str, tmp_path: Path) -> None:
    """By the command line too."""
    with pytest.raises(ValueError, match="snapshot"):
        load(content)
    file = tmp_path / "file"
    file.write_bytes(content)
    result = CliRunner().invoke(main, ["explain", "gang", "a", "--snapshot", str(file)])
    assert result.exit_code == 1
    assert words in result.output


def test_explain_prints_lines_without_colour_or_json(tmp_path: Path) -> None:
    """Where nobody looks at a terminal, a line is a line."""
    world = ExplainWorld().nodes(2)
    world.runs("first", 2, GPU8)
    world.gang("a", {"worker": (2, GPU8)})
    file = tmp_path / "file"
    file.write_bytes(save(world.dump()))
    arguments = ["explain", "job", "a", "-n", "ns", "--snapshot", str(file)]
    text = CliRunner().invoke(main, arguments)
    assert text.exit_code == 0, text.output
    assert "\x1b" not in text.output
    lines = text.output.splitlines()
    assert lines[0] == "Job ns/a"
    assert "nearest miss   2 more nodes with 8 free nvidia.com/gpu are needed" in lines
    assert "would help     Job ns/first (2 pods on 2 nodes) ends" in lines
    as_json = msgspec.json.decode(CliRunner().invoke(main, [*arguments, "-o", "json"]).output)
    assert (as_json["cause"], as_json["shortage"]["miss"]["pods"]) == ("no-room", 2)


def test_a_node_is_suspect_by_the_list_in_the_file(tmp_path: Path) -> None:
    """As the extender told it; where an older file has no list, that of this version counts, and a note says so."""
    world = ExplainWorld().nodes(1, conditions={"XidError": "True"})
    world.gang("a", {"worker": (1, GPU8)})
    dump = world.dump()
    dump.suspects = {"": Suspects(("XidError=True",))}
    file = tmp_path / "file"
    arguments = ["explain", "gang", "a", "-n", "ns", "--snapshot", str(file)]
    file.write_bytes(save(dump))
    result = CliRunner().invoke(main, arguments)
    assert "1 suspect (condition XidError=True)" in result.output
    assert "would help     node-0 recovers and the condition XidError=True disappears" in result.output
    assert "Note" not in result.output
    dump.suspects = {}
    file.write_bytes(save(dump))
    result = CliRunner().invoke(main, arguments)
    assert "suspect (condition" not in result.output
    assert (
        result.stderr
        == f"Note: the default list of this version decides which nodes are suspect, as {file} has no other\n"
    )


def test_an_unknown_name_fails_with_one_line(tmp_path: Path) -> None:
    """And with a near name, and the command that knows deleted ones."""
    file = tmp_path / "file"
    file.write_bytes(save(world_of_secrets().dump()))
    result = CliRunner().invoke(main, ["explain", "job", "fisrt", "-n", "ns", "--snapshot", str(file)])
    error = "Error: there is no job with a gang 'fisrt' in namespace 'ns'; near names: first"
    gone = "if it was deleted, `muster history fisrt -n ns` shows its events"
    assert (result.exit_code, result.output) == (1, f"{error}; {gone}\n")
