"""mpirun on this machine: our hostfile and environment, and an `ssh` that runs all here, under the host's name."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

CONSUMERS = Path(sys.prefix) / "consumers"
LIB = f"lib/{os.uname().machine}-linux-gnu"
SSH = """#!/bin/bash
while [[ $1 == -* ]]; do
  case $1 in -o|-p|-l|-i) echo "option $2" >> "$SSH_LOG"; shift 2;; *) shift;; esac
done
echo "host $1" >> "$SSH_LOG"
name=${1%%.*}
shift
export TMPDIR=$(mktemp -d)
exec unshare --uts bash -c 'hostname "$0"; exec bash -c "$1"' "$name" "$*"
"""
TIMEOUT_S = 20
ATTEMPTS = 4


@dataclass(frozen=True)
class Program:
    """One implementation: its folder, what `mpi-implementation` calls it, its launcher, and its variables of a rank."""

    name: str
    implementation: str
    command: str
    ranks: tuple[str, str, str]

    @property
    def root(self) -> Path:
        """Where it is installed."""
        return CONSUMERS / self.name

    def environment(self) -> dict[str, str]:
        """What makes it run from a folder that it was not built for; none of this is about hosts or ssh."""
        if self.name == "openmpi4":
            prefix = self.root / "usr"
            libraries = f"{prefix / LIB}:{prefix / LIB / 'openmpi/lib'}"
            quiet = {"OMPI_MCA_mca_base_component_show_load_errors": "0"}
            return {"PATH": f"{prefix}/bin", "LD_LIBRARY_PATH": libraries, "OPAL_PREFIX": str(prefix), **quiet}
        return {"PATH": f"{self.root}/bin", "I_MPI_ROOT": str(self.root)}


OPEN_MPI = ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK")
HYDRA = ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID")
PROGRAMS = (
    Program("openmpi4", "OpenMPI", "mpirun.openmpi", OPEN_MPI),
    Program("openmpi", "OpenMPI", "mpirun", OPEN_MPI),
    Program("mpich", "MPICH", "mpiexec", HYDRA),
    Program("impi-rt", "Intel", "mpiexec.hydra", HYDRA),
)


@dataclass(frozen=True)
class Outcome:
    """What mpirun did: (rank, size, local rank) of each process, hosts reached by ssh, options given to ssh."""

    ranks: list[tuple[int, int, int]]
    hosts: set[str]
    options: set[str]


def run(program: Program, env: Mapping[str, str], hostfile: str, launcher: str, folder: Path) -> Outcome:
    """Runs it as the launcher's container would, under the launcher's host name, which DNS knows in the cluster."""
    (folder / "hostfile").write_text(hostfile)
    ssh = folder / "bin" / "ssh"
    ssh.parent.mkdir()
    ssh.write_text(SSH)
    ssh.chmod(0o755)
    log = folder / "log"
    log.touch()
    ours = program.environment()
    mounted = {name: value.replace("/etc/mpi/hostfile", str(folder / "hostfile")) for name, value in env.items()}
    path = f"{ssh.parent}:{ours.pop('PATH')}:{os.environ['PATH']}"
    rank, size, local = program.ranks
    (folder / "hosts").write_text(f"127.0.0.1 localhost {launcher}\n")
    echo = f"{program.command} bash -c 'echo rank ${rank} ${size} ${local}'"
    script = f'hostname "$0"; mount --bind {folder}/hosts /etc/hosts; exec {echo}'
    as_root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"} if os.getuid() == 0 else {}
    output, failure = _finish(
        ["unshare", *UNSHARE, "bash", "-c", script, launcher],
        {"HOME": str(folder), **as_root, **ours, **mounted, "PATH": path, "SSH_LOG": str(log)},
    )
    assert not failure, f"{program.name}: {output}{failure}"
    lines = [line.strip("\0").split() for line in output.splitlines()]
    ranks = [(int(line[1]), int(line[2]), int(line[3])) for line in lines if line[:1] == ["rank"]]
    noted = [line.partition(" ")[::2] for line in log.read_text().splitlines()]
    return Outcome(
        sorted(ranks),
        {value for kind, value in noted if kind == "host"},
        {value for kind, value in noted if kind == "option"},
    )


_NAMESPACES = ["--uts", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
UNSHARE = _NAMESPACES if os.getuid() == 0 else ["--map-root-user", *_NAMESPACES]
"""Namespaces of their own: host names, mounts and processes, which all end when the first of them does."""


@cache
def isolated() -> bool:
    """Whether this machine lets us have namespaces of our own; containers often do not."""
    return (
        bool(shutil.which("unshare"))
        and not subprocess.run(["unshare", "--net", *UNSHARE, "true"], check=False).returncode
    )


def _finish(command: list[str], environment: Mapping[str, str]) -> tuple[str, str]:
    """Output, and what went wrong.

    In about one of thirty runs Open MPI 5 hangs after all ranks have ended, when its hosts are one machine: prterun and
    some of its daemons then wait for each other's good-bye. That is nothing that we could have set otherwise. It is
    killed with all it started (its namespace of processes), and gets another try.
    """
    for _ in range(ATTEMPTS):
        # A folder of its own for sockets, with a short name: theirs must not be longer than 108 characters.
        with tempfile.TemporaryDirectory(prefix="m", ignore_cleanup_errors=True) as sockets:
            try:
                done = subprocess.run(
                    command,
                    env={**environment, "TMPDIR": sockets},
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    timeout=TIMEOUT_S,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                continue
        failure = done.stderr.decode(errors="replace") if done.returncode else ""
        return done.stdout.decode(errors="replace"), failure or ("failed" if done.returncode else "")
    return "", f"did not end within {TIMEOUT_S} s, {ATTEMPTS} times"
