"""`muster up --provider kind` with a real engine and a real kind: skipped where there is none."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from gang_jobs import job

from musterctl.kind import image
from musterctl.plane.machine import LocalError

pytestmark = pytest.mark.plane
NAME = "kind-test"


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    """A home of its own for the cluster, which is deleted afterwards; skips where no cluster can be made."""
    try:
        image.find_engine()
    except LocalError as error:
        pytest.skip(f"kind needs a container engine: {error}")
    if shutil.which("kind") is None:
        pytest.skip("kind is not on the PATH")
    variables = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    yield variables
    muster("down", "--name", NAME, environment=variables)


def muster(*arguments: str, environment: dict[str, str], stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Runs the command line."""
    program = Path(sys.executable).with_name("muster")
    return subprocess.run(
        [program, *arguments], env=environment, input=stdin, capture_output=True, text=True, check=False
    )


@pytest.mark.timeout(1800)
def test_a_gang_runs_in_a_kind_cluster(environment: dict[str, str]) -> None:
    """Image, cluster, chart: a gang of two runs on the workers."""
    made = muster("up", "--name", NAME, "--provider", "kind", "--nodes", "2", environment=environment)
    assert made.returncode == 0, made.stderr
    gang = job("gang", "default", replicas=2, gpus=0, cpu="100m")
    container = gang["spec"]["tasks"][0]["template"]["spec"]["containers"][0]
    container |= {"image": "registry.k8s.io/pause:3.10"}
    create = muster("kubectl", "--name", NAME, "create", "-f", "-", environment=environment, stdin=yaml.safe_dump(gang))
    assert create.returncode == 0, create.stderr
    running = "--for=jsonpath={.status.state.phase}=Running"
    told = muster("kubectl", "--name", NAME, "wait", running, "--timeout=180s", "vcjob/gang", environment=environment)
    assert told.returncode == 0, told.stderr
