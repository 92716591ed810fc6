"""`muster record --status` and `muster replay` as people see them: tables, exit codes, and what is said of mistakes."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from recorded_world import GPU, RecordedWorld

from extender.record.folder import PATTERN
from extender.record.reading import RecordingGap, RecordingStatus
from extender.replay.check import CheckReport, Difference
from musterctl.app import main
from musterctl.output.replayed import check_lines, status_lines


def muster(*arguments: str) -> Result:
    """Runs the command line."""
    return CliRunner().invoke(main, arguments)


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """Two nodes; three gangs of a queue that may use one of them."""
    return RecordedWorld.capped(tmp_path / "recording")


def test_a_check_without_differences_ends_with_0(recording: Path) -> None:
    """Each decision is the same now."""
    told = muster("replay", str(recording))
    assert told.exit_code == 0
    assert "12 of 12 are the same in the replay" in told.output


def test_a_check_with_differences_lists_them_and_ends_with_1(recording: Path, tmp_path: Path) -> None:
    """A configuration that only reclaims places nothing; what was decided then is named."""
    config = tmp_path / "config.yaml"
    config.write_text('actions: "reclaim"\n')
    told = muster("replay", str(recording), "--check", "--scheduler-config", str(config))
    assert told.exit_code == 1
    assert "then           place ns/a 1 worker node-0*1" in told.output


def test_a_what_if_has_a_table_of_queues_and_the_gangs_that_gain(recording: Path) -> None:
    """Each queue has a line for the recording, its replay, and the replay with the change."""
    told = muster("replay", str(recording), "--queue", f"team.capability.{GPU}=16").output
    rows = [line.split() for line in told.splitlines()]
    assert ["team", "replayed", "3", "3", "0", "1m40s", "3m20s", "0", "0.1%", "4.2%"] in rows
    assert ["team", "changed", "3", "3", "0", "0s", "1m40s", "0", "0.1%", "4.2%"] in rows
    assert "ns/b (queue team): 1m40s -> 0s" in told


def test_the_status_tells_what_is_in_it_and_that_a_file_is_cut(recording: Path) -> None:
    """A file that was being written when its process was killed is told, and used as far as it goes."""
    (file,) = recording.glob(PATTERN)
    file.write_bytes(file.read_bytes()[:-40])
    told = json.loads(muster("record", "--status", str(recording), "-o", "json").output)
    assert told["objects"]["nodes"] == 2
    assert "the process was killed, or still writes it" in told["cuts"][file.name]
    assert "the process was killed, or still writes it" in muster("replay", str(recording)).output


@pytest.mark.parametrize(("arguments", "words"), [
    (["record"], "give either a FOLDER to record into, or --status with a recording"),
    (["record", "folder", "--for", "soon"], "'soon' is not a duration"),
    (["replay", "{}", "--add-nodes", "2"], "use --add-nodes together with --like"),
    (["replay", "{}", "--check", "--queue", "team.weight=2"], "the only change that it allows is --scheduler-config"),
    (["replay", "{}", "--queue", "team.weight=much"], "weight must be a whole number, not 'much'"),
    (["replay", "{}", "--scheduler-config", "{config}"], "magic"),
])  # fmt: skip
def test_mistakes_are_told(recording: Path, tmp_path: Path, arguments: list[str], words: str) -> None:
    """Each mistake has a sentence that says what is wrong, and nothing is replayed."""
    config = tmp_path / "config.yaml"
    config.write_text('actions: "magic"\n')
    told = muster(*(each.replace("{config}", str(config)).replace("{}", str(recording)) for each in arguments))
    assert told.exit_code != 0
    assert words in told.output


QUEUE = "{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: team}, spec: %s}"


def test_queues_of_a_file_are_tried(recording: Path, tmp_path: Path) -> None:
    """Alone, in a list, or one after another."""
    spec = f"{{capability: {{{GPU}: 16}}}}"
    for text in (QUEUE % spec, f"---\n---\n{QUEUE % spec}", f"{{kind: List, items: [{QUEUE % spec}]}}"):
        file = tmp_path / "queues.yaml"
        file.write_text(text)
        told = muster("replay", str(recording), "--queues", str(file))
        assert "ns/b (queue team): 1m40s -> 0s" in told.output, told.output


@pytest.mark.parametrize(("text", "words"), [
    ("a: [", "it is not YAML: "),
    ("", "the file contains no Queue"),
    ("kind: Job", "the file must contain only Queues, but contains Job"),
    ("[1]", "the file must contain only Queues, but contains list"),
    (QUEUE % "{weight: much}", "Queue team: Expected `int`, got `str` - at `$.spec.weight`"),
])  # fmt: skip
def test_a_file_without_queues_is_refused(recording: Path, tmp_path: Path, text: str, words: str) -> None:
    """With the name of the file, and what is wrong."""
    file = tmp_path / "queues.yaml"
    file.write_text(text)
    told = muster("replay", str(recording), "--queues", str(file))
    assert told.exit_code == 1
    assert f"Error: {file}: {words}" in told.output


def test_a_gap_and_a_cut_are_lines_of_the_status() -> None:
    """Below the numbers; a node pool is named where it is not the default one."""
    status = RecordingStatus(
        since="s", until="u", files=1, bytes=2, sessions=2, versions=["1", "2"], pool="b",
        objects={"nodes": 2, "pods": 1}, changes=3, cycles=4, decisions=1,
        gaps=[RecordingGap("x", "y", "why")], cuts={"file": "cut"},
    )  # fmt: skip
    assert [(line.label, line.text) for line in status_lines(status)] == [
        ("", "Recorded from s to u by Muster 1, 2"),
        ("files", "1 file, 2 bytes, 2 starts of the process"),
        ("node pool", "b"),
        ("objects", "2 nodes, 1 pods"),
        ("changes", "3 of objects"),
        ("cycles", "4 with 1 decision"),
        ("missing", "x to y: why"),
        ("", "file: cut"),
    ]
    empty = [line.text for line in status_lines(RecordingStatus())]
    assert empty[2:] == ["none", "0 of objects", "0 with 0 decisions"]


def test_differences_beyond_the_first_are_counted() -> None:
    """Ten cycles, with four decisions of each side."""
    many = [["place", str(number)] for number in range(6)]
    differences = [Difference(f"at {number}", number, many, many[:4]) for number in range(12)]
    report = CheckReport(
        since="s", until="u", cycles=20, decisions={"place": 5, "evict": 2}, equal=3, gone=2, new=1, lost=7,
        different_cycles=12, differences=differences,
    )  # fmt: skip
    lines = [(line.label, line.text, line.tone) for line in check_lines(report)]
    assert lines[:6] == [
        ("", "Recorded from s to u by Muster unknown", "title"),
        ("cycles", "20 cycles", "plain"),
        ("decisions", "7: 2 evict, 5 place", "plain"),
        ("", "3 of 7 are the same in the replay", "bad"),
        ("", "12 cycles differ: 2 gone, 1 new", "bad"),
        ("", "7 changes are missing in the recording, so later cycles may differ", "bad"),
    ]
    assert lines[6:13] == [
        ("", "at 0, cycle 0", "title"),
        *(("then", f"place {number}", "plain") for number in range(4)),
        ("then", "and 2 more", "plain"),
        ("now", "place 0", "plain"),
    ]
    assert sum(label == "now" for label, _, _ in lines) == 40
    assert lines[-1] == ("", "2 more cycles differ; -o json lists more of them", "hint")
    none = [line.text for line in check_lines(CheckReport(since="s", until="u"))]
    assert none[2:] == [
        "0", "0 of 0 are the same in the replay",
        "no decisions were recorded: was it recorded by the extender, or by `muster record`?",
    ]  # fmt: skip
