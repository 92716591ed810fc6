"""`muster record --status` and `muster replay` as people see them: tables, exit codes, and what is said of mistakes."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from recorded_world import GPU, RecordedWorld

from extender.record.ring import PATTERN
from musterctl.app import main


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
    assert "12 of 12 are the same now" in told.output


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


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["record"], "give either a FOLDER to record into, or --status with a recording"),
        (["record", "folder", "--for", "soon"], "'soon' is not a duration"),
        (["replay", "{}", "--add-nodes", "2"], "--add-nodes and --like go together"),
        (["replay", "{}", "--check", "--queue", "team.weight=2"], "it takes no change but --scheduler-config"),
        (["replay", "{}", "--queue", "team.weight=much"], "weight must be a whole number, not 'much'"),
        (["replay", "{}", "--scheduler-config", "{config}"], "magic"),
    ],
)
def test_mistakes_are_told(recording: Path, tmp_path: Path, arguments: list[str], words: str) -> None:
    """Each mistake has a sentence that says what is wrong, and nothing is replayed."""
    config = tmp_path / "config.yaml"
    config.write_text('actions: "magic"\n')
    told = muster(*(each.replace("{config}", str(config)).replace("{}", str(recording)) for each in arguments))
    assert told.exit_code != 0
    assert words in told.output
