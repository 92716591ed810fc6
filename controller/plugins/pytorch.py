"""Plugin `pytorch`: where the master is, how many we are, and which rank this pod has."""

from collections.abc import Sequence

from controller.job.pods import Manifest
from controller.job.sync import Seat, pod_name
from controller.plugins.base import Owned, add_env, add_port, containers
from muster.api.batch import Job, JobSpec
from muster.runtime.job_plugins import flags

PORT_NAME = "pytorchjob-port"


class PyTorch:
    """Flags: master, worker (task names), port (23456), and wait-master-* for an init container that waits."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._flags = flags("pytorch", arguments)

    def objects(self, job: Job) -> list[Owned]:
        """None; the names come from plugin svc."""
        del job
        return []

    def shape(self, job: Job, seat: Seat, manifest: Manifest) -> None:
        """Sets the variables, and opens the port; a Job without a master task is left alone."""
        master, worker, port = self._flags["master"], self._flags["worker"], self._flags["port"]
        if master not in {task.name for task in job.spec.tasks}:
            return
        address = f"{pod_name(job.metadata.name, master, 0)}.{job.metadata.name}"
        variables = environment(job.spec, seat, master=master, worker=worker, address=address, port=port)
        for container in containers(manifest, init=False):
            add_port(container, PORT_NAME, port)
            add_env(container, [{"name": name, "value": value} for name, value in variables.items()])
        if self._flags["wait-master-enabled"] and seat.task.name == worker:
            spec = manifest["spec"]
            spec["initContainers"] = [*(spec.get("initContainers") or []), self._wait(address, port)]

    def _wait(self, address: str, port: int) -> Manifest:
        timeout_s = self._flags["wait-master-timeout"]
        script = (
            f"for i in $(seq {timeout_s}); do nc -z -w 1 {address} {port} && exit 0; sleep 1; done; "
            f"echo the master {address}:{port} did not answer within {timeout_s} s; exit 1"
        )
        return {
            "name": "wait-for-master",
            "image": self._flags["wait-master-image"],
            "command": ["sh", "-c", script],
        }


def environment(spec: JobSpec, seat: Seat, *, master: str, worker: str, address: str, port: int) -> dict[str, str]:
    """The variables of one pod. Masters have rank 0, workers follow; a pod of another task has no rank."""
    replicas = {task.name: task.replicas for task in spec.tasks}
    variables = {
        "MASTER_ADDR": address,
        "MASTER_PORT": str(port),
        "WORLD_SIZE": str(replicas.get(master, 0) + replicas.get(worker, 0)),
    }
    if seat.task.name == master:
        variables["RANK"] = "0"
    elif seat.task.name == worker:
        variables["RANK"] = str(seat.index + 1)
    return variables
