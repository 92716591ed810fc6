"""Plugin `svc`, which gives host names, and lists of all host names, to the pods of a Job.

A headless Service with the Job's name gives each pod the DNS name `<pod>.<job>`. A ConfigMap lists the host names of
each task; pods get the lists as files in /etc/volcano and as environment variables. A NetworkPolicy blocks traffic from
pods of other jobs. A list that is too long for a variable (about 1,100 pods), or too long for the ConfigMap twice, is
only in the files.
"""

from collections.abc import Iterable, Sequence
from typing import ClassVar

from muster.api import names
from muster.api.fields import FieldError
from muster.api.kubernetes import core, endpoints
from muster.api.volcano.batch import Job, TaskSpec
from muster.volcano.manifests import Manifest, add_volume, fits_env
from muster.volcano.plugins.base import Flags, JobPlugin, Owned, unfit_for_a_service
from muster.volcano.tasks import PodSlot, task_hosts, total_replicas

MOUNT_PATH = "/etc/volcano"
CONFIG_MAP_BYTES = 1 << 20


class Svc(JobPlugin):
    """Plugin svc; flags: publish-not-ready-addresses, disable-network-policy (both false), inject-hosts-env (true)."""

    name = "svc"
    flags: ClassVar[Flags] = {
        "publish-not-ready-addresses": False,
        "disable-network-policy": False,
        "inject-hosts-env": True,
    }

    def __init__(self, arguments: Sequence[str]) -> None:
        super().__init__(arguments)
        self._known: list[Manifest] | None = None

    def check(self, job: Job) -> Iterable[FieldError]:
        """Reject a name that is invalid for a Service, and lists of hosts that do not fit into a ConfigMap."""
        yield from unfit_for_a_service(job, self.name)
        size = sum(_file_bytes(job, task) for task in job.spec.tasks)
        if size > CONFIG_MAP_BYTES:
            message = (
                f"needs a ConfigMap of {size} bytes for the names of {total_replicas(job.spec)} pods, but the limit is "
                f"{CONFIG_MAP_BYTES}; use fewer pods, or shorter names of the Job and its tasks"
            )
            yield FieldError("spec.plugins[svc]", message, reason="Forbidden")

    def env(self, job: Job, slot: PodSlot) -> Sequence[Manifest]:
        """Return variables that refer to the ConfigMap: the hosts of each task, and their number."""
        if self._known is None:
            self._known = self._variables(job)
        return self._known

    def objects(self, job: Job) -> Sequence[Owned]:
        """Return the ConfigMap, the Service and the NetworkPolicy."""
        name = job.metadata.name
        selector = {names.JOB_NAME: name, names.JOB_NAMESPACE: job.metadata.namespace}
        service = {
            "metadata": {"name": name},
            "spec": {
                "clusterIP": "None",
                "selector": selector,
                "publishNotReadyAddresses": self.values["publish-not-ready-addresses"],
            },
        }
        policy = {
            "metadata": {"name": name},
            "spec": {
                "podSelector": {"matchLabels": selector},
                "ingress": [{"from": [{"podSelector": {"matchLabels": selector}}]}],
                "policyTypes": ["Ingress"],
            },
        }
        result = [
            Owned(core.CONFIG_MAPS, {"metadata": {"name": config_map_name(job)}, "data": hosts_data(job)}),
            Owned(core.SERVICES, service),
        ]
        return result if self.values["disable-network-policy"] else [*result, Owned(core.NETWORK_POLICIES, policy)]

    def shape(self, job: Job, slot: PodSlot, manifest: Manifest) -> None:
        """Set the pod's host name and subdomain, and mount the ConfigMap."""
        spec = manifest["spec"]
        spec["hostname"] = spec.get("hostname") or slot.name
        spec["subdomain"] = spec.get("subdomain") or job.metadata.name
        config_map = config_map_name(job)
        add_volume(manifest, {"name": config_map, "configMap": {"name": config_map}}, path=MOUNT_PATH)

    def _variables(self, job: Job) -> list[Manifest]:
        keys = []
        for task in job.spec.tasks:
            if self.values["inject-hosts-env"]:
                keys += [_hosts_key(task)] if _hosts_fit(job, task) else []
                keys.append(_count_key(task))
        source = config_map_name(job)
        return [{"name": key, "valueFrom": {"configMapKeyRef": {"name": source, "key": key}}} for key in keys]


def config_map_name(job: Job) -> str:
    """Return the name of the ConfigMap and of its volume."""
    return f"{job.metadata.name}-svc"


def hosts_file(task: str) -> str:
    """Return the path of the file that lists a task's hosts in the containers, one host per line."""
    return f"{MOUNT_PATH}/{_file(task)}"


def hosts_data(job: Job) -> dict[str, str]:
    """Return the ConfigMap's data: for each task, the hosts for files and for variables, and their number."""
    data = {}
    for task in job.spec.tasks:
        hosts = task_hosts(job, task)
        data[_file(task.name)] = "\n".join(hosts)
        data[_hosts_key(task)] = ",".join(hosts)
        data[_count_key(task)] = str(len(hosts))
    if sum(len(key) + len(value) for key, value in data.items()) > CONFIG_MAP_BYTES:
        for task in job.spec.tasks:
            if not _hosts_fit(job, task):
                del data[_hosts_key(task)]
    return data


def _file_bytes(job: Job, task: TaskSpec) -> int:
    """Return the size of the task's hosts file and count, computed without creating the file.

    The hosts file might be huge, because the number of pods has not been checked yet.
    """
    hosts = task_hosts(job, task)
    if isinstance(hosts, endpoints.NumberedNames):
        count, size = max(0, hosts.size), hosts.characters
    else:
        count, size = len(hosts), sum(map(len, hosts))
    keys = len(_file(task.name)) + len(_count_key(task))
    return keys + size + max(0, count - 1) + len(str(count))


def _hosts_fit(job: Job, task: TaskSpec) -> bool:
    return fits_env(_hosts_key(task), ",".join(task_hosts(job, task)))


def _file(task: str) -> str:
    return f"{task.replace('-', '_')}.host"


def _variable_part(task: TaskSpec) -> str:
    return task.name.upper().replace("-", "_")


def _hosts_key(task: TaskSpec) -> str:
    return f"VC_{_variable_part(task)}_HOSTS"


def _count_key(task: TaskSpec) -> str:
    return f"VC_{_variable_part(task)}_NUM"
