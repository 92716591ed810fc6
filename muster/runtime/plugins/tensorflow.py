"""TensorFlow: TF_CONFIG, the list of all workers and which of them this pod is."""

import json

from muster.api.fields import FieldError, Findings, InvalidFieldError
from muster.runtime.info import Info, PodSet
from muster.runtime.plugins.reserved import Variables, reserved, yielding
from muster.runtime.values import Late
from muster.workloads.adapter import FieldPath

TASK_INDEX = "TF_TASK_INDEX"
CONFIG = "TF_CONFIG"
PORT = 2222


class TensorFlow:
    """All pods are workers, worker 0 is the chief: what MultiWorkerMirroredStrategy expects."""

    name = "TensorFlow"
    framework = "tensorflow"
    RESERVED = (CONFIG, TASK_INDEX)

    def validate(self, info: Info) -> Findings:
        """Reserved variables."""
        return reserved(info, self.RESERVED) if info.framework == self.framework else Findings()

    def enforce_ml_policy(self, info: Info) -> None:
        """The index comes from the pod, and Kubernetes puts it into the text of TF_CONFIG."""
        for pod_set in info.trainers:
            pod_set.slots = 1
            for container in ([pod_set.target] if pod_set.target else []) + info.injections:
                container.set(self.name, yielding(info, _variables(info, pod_set)))
            pod_set.port(PORT)


def _variables(info: Info, pod_set: PodSet) -> Variables:
    return {
        TASK_INDEX: (Late(lambda: pod_set.rank), f"index of the pod in {info.workload}"),
        CONFIG: (Late(lambda: config(info, pod_set)), f"all pods of {info.workload}"),
    }


def config(info: Info, pod_set: PodSet) -> str:
    """TF_CONFIG of a pod set's pods."""
    hosts = [host for each in info.trainers for host in each.endpoints]
    if not all(hosts):
        message = "tensorflow needs the names of all pods, and a pod without an owner knows only that of rank 0"
        raise InvalidFieldError(FieldError("metadata.ownerReferences", message, reason="Required"))
    cluster = json.dumps({"worker": [f"{host}:{PORT}" for host in hosts]}, separators=(",", ":"))
    index = f"$({TASK_INDEX})" if isinstance(pod_set.rank, FieldPath) else pod_set.rank
    return f'{{"cluster":{cluster},"task":{{"type":"worker","index":{index}}}}}'
