"""A node dies under a run that keeps a spare: it goes on from its checkpoint, on the spare."""

import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from planes import Kubectl
from realnode.cluster import Cluster
from realnode.jobs import Jobs

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("torch")]
CHECKPOINTS = Path("/var/tmp/muster-checkpoints")  # noqa: S108 - as the manifest has it; all nodes are on this machine


@pytest.fixture
def saved() -> Iterator[Path]:
    """The folder of the run's checkpoints, which is gone afterwards."""
    shutil.rmtree(CHECKPOINTS, ignore_errors=True)
    CHECKPOINTS.mkdir()
    yield CHECKPOINTS
    shutil.rmtree(CHECKPOINTS, ignore_errors=True)


def test_a_run_goes_on_from_its_checkpoint(
    cluster: Cluster, jobs: Jobs, saved: Path, kubectl: Kubectl, wait_for: Callable[..., Any]
) -> None:
    """The rank whose node died is on the spare, the other one on its node; no saved step is lost."""

    def step() -> int:
        file = saved / "step"
        return int(file.read_text()) if file.exists() else 0

    with cluster.another():
        jobs.submit("torch-checkpoints")
        before = jobs.running("train", 2)
        nodes = [pod["spec"]["nodeName"] for pod in before]
        [spare] = {node.name for node in cluster.all_nodes} - set(nodes)
        jobs.explained("train", f"1 spare slot is kept for lost members on {spare}")
        wait_for(lambda: step() >= 10, timeout_s=120, what="ten steps")
        with cluster.dead(nodes[1]):
            kubectl("delete", "node", nodes[1])  # as a cloud's node controller does with a machine that is gone
            died, at = time.monotonic(), step()
            after = jobs.running("train", 2, but=frozenset(pod["metadata"]["uid"] for pod in before))
            placed = time.monotonic() - died
            wait_for(lambda: step() > at + 5, timeout_s=120, what="steps after the fault")
            told = f"\nboth ranks run {placed:.1f} s after the node was gone, and train on after"
            sys.stderr.write(f"{told} {time.monotonic() - died:.1f} s; the fault came at step {at}\n")
            assert [pod["spec"]["nodeName"] for pod in after] == [nodes[0], spare]
            log = jobs.log(after[0]["metadata"]["name"])
            assert int(log.partition("from step ")[2].partition(" ")[0]) >= at - 1
            assert f"on {nodes[0]}, {nodes[0]}, {spare}, {spare}" in log
            (saved / "go").touch()
            assert jobs.end("job", "train") == "Complete"
