"""The extender's configuration is followed while it runs: a mounted ConfigMap that changes, to good and to bad."""

import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from gang_jobs import job
from pairs import ended, resettled, started
from their_files import VOLCANO_CHART

from muster.api.kubernetes.core import EVENTS
from muster.api.muster.placement import PLACEMENTS
from muster.api.names import SYSTEM_NAMESPACE
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS
from musterctl.plane.plane import Plane

pytestmark = [pytest.mark.plane, pytest.mark.alone, pytest.mark.slow]

NOBODY_IS_PLACED = 'actions: "enqueue"'
BAD = VOLCANO_CHART.replace("overcommit", "overcommitt")


class Mount:
    """A folder as the kubelet mounts a ConfigMap: the files are links into a folder that is itself a link."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._version = 0
        self.file = folder / "volcano-scheduler.conf"
        self.file.symlink_to(Path("..data") / self.file.name)

    def show(self, text: str) -> None:
        """Another text in one step."""
        self._version += 1
        data = self._folder / f"..{self._version}"
        data.mkdir()
        (data / self.file.name).write_text(text)
        new = self._folder / "..data_tmp"
        new.symlink_to(data.name)
        new.rename(self._folder / "..data")


@pytest.fixture
def mount(plane: Plane, tmp_path: Path) -> Iterator[Mount]:
    """The configuration of the plane's extender, which runs in place of its own one until the test ends."""
    folder = tmp_path / "mount"
    folder.mkdir()
    one = Mount(folder)
    one.show(NOBODY_IS_PLACED)
    plane.part("extender").kill()
    command = resettled(plane.commandlines.command("extender"), tmp_path / "settings.yaml", {"config": str(one.file)})
    process: subprocess.Popen[bytes] = started(command, tmp_path / "extender.log")
    try:
        yield one
    finally:
        ended(process)
        plane.mend()


def test_a_change_takes_effect_and_a_bad_one_changes_nothing(
    plane: Plane, namespace: str, mount: Mount, tmp_path: Path, wait_for: Callable[..., Any]
) -> None:
    """A gang waits as nothing allocates; Volcano's own file lets it run; with a bad file the next one runs too."""
    client = plane.client()
    status = f"{plane.commandlines.url('extender-status')}/metrics"

    def current() -> bool:
        with urllib.request.urlopen(status, timeout=5) as answer:  # noqa: S310 - http, on loopback
            return "muster_config_current 1.0" in answer.read().decode()

    def running(name: str) -> bool:
        return client.get(JOBS, name, namespace).status.running == 4

    client.create(JOBS, job("waits", namespace, replicas=4, gpus=1), namespace)
    wait_for(lambda: [g for g in client.list(POD_GROUPS, namespace) if g.status.phase == "Inqueue"], 60, "Inqueue")
    assert client.list(PLACEMENTS, namespace) == []

    mount.show(VOLCANO_CHART)
    wait_for(lambda: running("waits"), 30, "the gang to run once there is allocate")
    assert current()

    mount.show(BAD)
    wait_for(lambda: not current(), 10, "the metric to say that the file is wrong")
    events = wait_for(
        lambda: [each for each in client.list(EVENTS, SYSTEM_NAMESPACE) if each.reason == "ConfigRefused"],
        10,
        "an Event",
    )
    assert "there is no plugin 'overcommitt'" in events[0].message
    assert "configuration refused" in (tmp_path / "extender.log").read_text()
    client.create(JOBS, job("next", namespace, replicas=4, gpus=1), namespace)
    wait_for(lambda: running("next"), 30, "the next gang to run as the good file says")

    mount.show(VOLCANO_CHART)
    wait_for(current, 10, "the metric to say that all is well again")
