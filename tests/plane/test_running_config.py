"""`muster up --scheduler-config` and `muster restart`: the planner's configuration changes; commands use what runs."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from gang_jobs import job

from muster.api.muster.configuration import NAME
from muster.api.names import SYSTEM_NAMESPACE

pytestmark = [pytest.mark.plane, pytest.mark.slow]
ROOT = Path(__file__).parents[2]
MUSTER = Path(sys.executable).with_name("muster")
Muster = Callable[..., subprocess.CompletedProcess[str]]
NAMED = ("--name", "configured")
LEVELS = """\
actions: enqueue, allocate
tiers:
- plugins:
  - name: proportion
  - name: topology
    arguments: {levels: [muster.dev/block, muster.dev/rack]}
"""
QUIET = "tiers: [{plugins: [{name: proportion}, {name: quietnodes}]}]\n"


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which packages may be installed while processes run that look for them there."""
    return tmp_path_factory.mktemp("packages")


@pytest.fixture(scope="module")
def muster(tmp_path_factory: pytest.TempPathFactory, packages: Path) -> Iterator[Muster]:
    """Runs the command line with a home and packages of its own, and ends its plane."""
    home = tmp_path_factory.mktemp("home")
    path = os.pathsep.join([str(packages), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "XDG_STATE_HOME": str(home), "PYTHONPATH": path.rstrip(os.pathsep)}
    environment.pop("KUBECONFIG", None)

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([MUSTER, *arguments], env=environment, capture_output=True, text=True, check=False)

    yield run
    run("down", *NAMED)


def published(muster: Muster) -> dict[str, str]:
    """The data of the ConfigMap in which the extender says what it runs with."""
    found = muster("kubectl", *NAMED, "get", "configmap", NAME, "-n", SYSTEM_NAMESPACE, "-o", "json")
    data: dict[str, str] = json.loads(found.stdout)["data"]
    return data


def install(packages: Path) -> None:
    """Install the example of docs/writing-plugins.md there, as pip does."""
    shutil.copy(ROOT / "docs/plugin-example/quietnodes.py", packages)
    info = packages / "quietnodes-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: quietnodes\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[muster.extender.plugins]\nquietnodes = quietnodes:QuietNodes\n")


def test_the_planners_configuration_of_a_plane(muster: Muster, packages: Path, tmp_path: Path) -> None:
    """Kept by the plane, changed by a second `up`, and used by the commands that plan; a later plugin is told."""
    file = tmp_path / "planning.yaml"

    # A mistake is told before anything is started.
    file.write_text("actions: alocate\n")
    wrong = muster("up", *NAMED, "--scheduler-config", str(file))
    assert (wrong.returncode, "there is no action 'alocate'" in wrong.stderr) == (2, True)

    # The plane starts with it, and `topo` and `explain` use what runs.
    file.write_text(LEVELS)
    started = muster("up", *NAMED, "--nodes", "2", "--gpus", "0", "--scheduler-config", str(file))
    assert started.returncode == 0, started.stderr
    assert muster("up", *NAMED, "--scheduler-config", str(file)).returncode == 0, "the same again"
    levels = muster("topo", *NAMED, "default")
    assert "rack-0" in levels.stdout, levels.stderr

    # A second `up` changes it, without a restart; `down` and `up` of parts keep it.
    file.write_text('actions: "enqueue"\n')
    changed = muster("up", *NAMED, "--scheduler-config", str(file))
    assert changed.returncode == 0, changed.stderr
    assert published(muster)["config.yaml"] == 'actions: "enqueue"\n'
    manifest = tmp_path / "job.yaml"
    manifest.write_text(yaml.safe_dump(job("waits", "default", replicas=1, gpus=0)))
    simulated = json.loads(muster("simulate", *NAMED, "-f", str(manifest), "-o", "json").stdout)
    assert [gang["placed"] for gang in simulated["gangs"]] == [False], "nothing allocates"
    assert muster("restart", *NAMED, "extender").returncode == 0

    # A plugin that was installed after the extender's start is refused, and runs after a restart.
    install(packages)
    file.write_text(QUIET)
    refused = muster("up", *NAMED, "--scheduler-config", str(file))
    assert refused.returncode == 1
    assert "there is no plugin 'quietnodes'" in refused.stderr
    assert "the package was installed after this process started" in refused.stderr
    assert published(muster)["config.yaml"] == 'actions: "enqueue"\n'
    again = muster("restart", *NAMED, "extender")
    assert again.returncode == 0, again.stderr
    assert again.stdout.startswith("extender was restarted as process ")
    used = muster("up", *NAMED, "--scheduler-config", str(file))
    assert used.returncode == 0, used.stderr

    # An empty file brings the default one back.
    assert muster("up", *NAMED, "--scheduler-config", "/dev/null").returncode == 0
    assert published(muster)["config.yaml"] == ""
