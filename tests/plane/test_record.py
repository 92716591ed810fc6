"""The extender records itself on a real control plane, is killed in the middle, and a replay decides the same."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from gang_jobs import job, runs

from extender.record import lines
from extender.record.reading import Recording, status_of
from muster.api.volcano.batch import JOBS
from musterctl.app import main
from musterctl.plane.plane import Plane

pytestmark = [pytest.mark.plane, pytest.mark.long]
RUN_S = 4


def muster(*arguments: str) -> Result:
    """Runs the command line."""
    return CliRunner().invoke(main, arguments, catch_exceptions=False)


def cycles_with(recording: Path, verb: str) -> int:
    """How many decisions of this kind have been written by now."""
    found = (words for line in Recording(recording) if isinstance(line, lines.Cycle) for words in line.decided)
    return sum(words[0] == verb for words in found)


def test_a_killed_extenders_recording_replays_with_the_same_decisions(
    fresh_plane: Callable[..., Plane], wait_for: Callable[..., Any], tmp_path: Path
) -> None:
    """Gangs come and go, the extender is killed and starts again; all recorded decisions are taken again."""
    folder = tmp_path / "recording"
    plane = fresh_plane(settings={"extender": {"recordFolder": str(folder)}}, nodes=2)
    client = plane.client()
    for name in ("first", "second", "third"):  # two nodes: the third waits for an end
        client.create(JOBS, job(name, "default", replicas=1 if name != "third" else 2, run_s=RUN_S), "default")
    wait_for(lambda: runs(client, "default", "third", 2), 90, "the gang that waits to run")
    wait_for(lambda: cycles_with(folder, "place") >= 3, 20, "the recording of all placements")
    plane.part("extender").kill()
    plane.part("extender").start()
    client.create(JOBS, job("fourth", "default", replicas=2, run_s=RUN_S), "default")
    wait_for(lambda: runs(client, "default", "fourth", 2), 90, "a gang to run after the kill")
    wait_for(lambda: cycles_with(folder, "place") >= 4, 20, "the recording of the last placement")
    # A replay may start the last gang some tenths of a second later than it did: its end is recorded, too.
    wait_for(lambda: not runs(client, "default", "fourth", 2), 30, "the last gang to end")
    plane.part("extender").kill()

    status = status_of(Recording(folder))
    assert (status.sessions, status.lost) == (2, 0)
    assert len(status.cuts) == 2, "each of the two processes was killed in its file"
    checked = muster("replay", str(folder), "--output", "json")
    report = json.loads(checked.output)
    assert report["differences"] == []
    assert checked.exit_code == 0
    assert report["decisions"]["place"] >= 4

    played = muster("replay", str(folder), "--as-it-was", "--output", "json")
    assert played.exit_code == 0, played.output
    whole = json.loads(played.output)["replayed"][0]
    assert (whole["came"], whole["starts"], whole["waiting"]) == (4, 4, 0)


def test_the_command_records_a_cluster_whose_extender_does_not(plane: Plane, tmp_path: Path) -> None:
    """`muster record` writes what the planner reads, and says what is in it."""
    folder = str(tmp_path / "recording")
    written = muster("record", folder, "--for", "2s", "--kubeconfig", str(plane.kubeconfig))
    assert written.exit_code == 0, written.output
    told = json.loads(muster("record", "--status", folder, "--output", "json").output)
    assert told["objects"]["nodes"] == 8
    assert told["cuts"] == {}
    assert "no decisions were recorded" in muster("replay", folder).output
