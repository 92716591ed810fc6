"""Plugin `mpi`: the names of the workers, for `mpiexec --host`."""

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from muster.api.fields import FieldError
from muster.api.volcano.batch import Job, TaskSpec
from muster.volcano.manifests import Manifest, fits_env, open_port, variables
from muster.volcano.plugins.base import Owned, Plugin, PluginError, missing_task
from muster.volcano.plugins.flags import Flags
from muster.volcano.plugins.svc import hosts_file
from muster.volcano.slots import PodSlot, task_hosts

PORT_NAME = "mpijob-port"
HOST = "MPI_HOST"
HOSTFILE = "MPI_HOSTFILE"


class MPI(Plugin):
    """Flags: master, worker (task names), port (22). The names come from plugin svc, the keys from plugin ssh."""

    name = "mpi"
    flags: ClassVar[Flags] = {"master": "master", "worker": "worker", "port": 22}
    requires = ("svc", "ssh")

    def __init__(self, arguments: Sequence[str]) -> None:
        super().__init__(arguments)
        self._hosts: str | None = None

    def check(self, job: Job) -> Iterable[FieldError]:
        """Refuses a Job without a master."""
        return missing_task(job, self.name, "master", self.values["master"])

    def ports(self, job: Job, task: TaskSpec) -> Mapping[str, int]:
        """The port, in the pods of every task."""
        del job, task
        return {PORT_NAME: self.values["port"]}

    def env(self, job: Job, slot: PodSlot) -> Sequence[Manifest]:
        """The names of the workers, separated by commas, in the master's pods; none if there is no such task.

        A list that is too long for a variable is in the file of plugin svc, for `mpiexec --hostfile`.
        """
        hosts = self._workers(job) if slot.task.name == self.values["master"] else ""
        if not hosts:
            return ()
        return variables({HOST: hosts} if fits_env(HOST, hosts) else {HOSTFILE: hosts_file(self.values["worker"])})

    def objects(self, job: Job) -> Sequence[Owned]:
        """None; PluginError without a master."""
        master = self.values["master"]
        if master not in {task.name for task in job.spec.tasks}:
            raise PluginError(f"spec.plugins[mpi]: no task is named {master!r}; name the master's with --master")
        return ()

    def shape(self, job: Job, slot: PodSlot, manifest: Manifest) -> None:
        """Opens the port everywhere."""
        for name, port in self.ports(job, slot.task).items():
            open_port(manifest, name, port, init=True)

    def _workers(self, job: Job) -> str:
        if self._hosts is None:
            workers = [task for task in job.spec.tasks if task.name == self.values["worker"]]
            self._hosts = ",".join(host for task in workers for host in task_hosts(job, task))
        return self._hosts
