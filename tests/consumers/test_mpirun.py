"""mpirun of Open MPI 4 and 5, MPICH and Intel MPI starts all ranks from what Muster generates."""

from pathlib import Path

import pytest
from frameworks_world import SECRET, compiled, component, env_of, indexed_job, mpi_runtime, pods_of, shaped, template
from frameworks_world import train_job as new_train_job
from mpi_world import PROGRAMS, Program, isolated, run

pytestmark = pytest.mark.consumer


@pytest.fixture(params=PROGRAMS, ids=lambda program: program.name)
def program(request: pytest.FixtureRequest) -> Program:
    """Each implementation that could be had."""
    wanted: Program = request.param
    if not isolated():
        pytest.skip("this machine does not let us have namespaces (unshare), where hosts have names of their own")
    if not wanted.root.exists():
        pytest.skip(f"{wanted.name} is not here: `make consumers` installs it, or says why it cannot be had")
    return wanted


@pytest.mark.parametrize("target", ["Job", "JobSet"])
@pytest.mark.parametrize("computes", [False, True], ids=["launcher apart", "launcher as node"])
def test_train_job(program: Program, target: str, *, computes: bool, tmp_path: Path) -> None:
    """Two slots on each of three nodes: six ranks, two on each, and ssh to every node but the launcher itself."""
    runtime = mpi_runtime(
        mpiImplementation=program.implementation, runLauncherAsNode=computes, sshAuthMountPath="/home/user/.ssh"
    )
    job = new_train_job(trainer={"numNodes": 3, "numProcPerNode": 2, "command": ["mpirun"]})
    result = compiled(job, runtime, "Job" if target == "Job" else "JobSet")
    hostfile = component(result, "ConfigMap")["data"]["hostfile"]
    launcher = "train-launcher-0" if target == "Job" else "train-launcher-0-0"
    outcome = run(program, env_of(pods_of(result, "launcher")["spec"]["containers"][0]), hostfile, launcher, tmp_path)
    assert outcome.ranks == [(rank, 6, rank % 2) for rank in range(6)]
    nodes = {f"train-node-{'' if target == 'Job' else '0-'}{index}.train" for index in range(2 if computes else 3)}
    assert outcome.hosts - {f"{launcher}.train"} == nodes
    assert "ConnectionAttempts=10" in outcome.options
    if program.implementation == "OpenMPI":
        assert outcome.hosts == nodes


def test_labelled_pods(program: Program, tmp_path: Path) -> None:
    """Four pods of an Indexed Job, two ranks each; the hostfile is the annotation that is mounted."""
    annotations = {
        **SECRET,
        "muster.dev/mpi-implementation": program.implementation,
        "muster.dev/nproc-per-node": "2",
        "muster.dev/ssh-auth-mount-path": "/home/user/.ssh",
    }
    result = shaped(indexed_job(template("mpi", annotations, {})))
    assert not result.errors
    hostfile = result.pod["metadata"]["annotations"]["muster.dev/mpi-hostfile"]
    outcome = run(program, result.env, hostfile, "train-0", tmp_path)
    assert outcome.ranks == [(rank, 8, rank % 2) for rank in range(8)]
    assert outcome.hosts - {"train-0.train"} == {f"train-{index}.train" for index in (1, 2, 3)}
