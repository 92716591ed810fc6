"""Plugin `mpi`: who the workers are, for `mpiexec --host`; plugins svc and ssh come along (admission adds them)."""

from collections.abc import Sequence

from controller.job.rules.pods import Manifest
from controller.job.rules.sync import PodSlot
from controller.plugins.base import Owned, PluginError, add_env, containers, fits_env, open_port
from controller.plugins.svc import MOUNT_PATH
from muster.api.batch import Job
from muster.runtime.job_env import MPI_HOST, mpi_hosts
from muster.runtime.job_plugins import flags

PORT_NAME = "mpijob-port"


class MPI:
    """Flags: master, worker (task names), port (22)."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._flags = flags("mpi", arguments)
        self._hosts: str | None = None

    def objects(self, job: Job) -> list[Owned]:
        """None; the names come from plugin svc, the keys from plugin ssh."""
        if self._flags["master"] not in {task.name for task in job.spec.tasks}:
            master = self._flags["master"]
            raise PluginError(f"spec.plugins[mpi]: no task is named {master!r}; name the master's with --master")
        return []

    def shape(self, job: Job, slot: PodSlot, manifest: Manifest) -> None:
        """Opens the port everywhere, and names the workers to the master's containers.

        More workers than fit in a variable are in the file that svc writes: `mpiexec --hostfile` takes it.
        """
        hosts = self._workers(job) if slot.task.name == self._flags["master"] else ""
        open_port(manifest, PORT_NAME, self._flags["port"], init=True)
        for container in containers(manifest):
            if hosts and fits_env(MPI_HOST, hosts):
                add_env(container, [{"name": MPI_HOST, "value": hosts}])
            elif hosts:
                file = f"{MOUNT_PATH}/{self._flags['worker'].replace('-', '_')}.host"
                add_env(container, [{"name": "MPI_HOSTFILE", "value": file}])

    def _workers(self, job: Job) -> str:
        if self._hosts is None:
            self._hosts = mpi_hosts(job, self._flags)
        return self._hosts
