"""Torch: the five variables that torchrun reads, so that `torchrun train.py` needs no arguments.

Reserved are exactly these five. Others that make torchrun ignore them are allowed, with a warning.
"""

from muster.api import names
from muster.resources.vector import CPU, Vector
from muster.runtime.fields import FieldError, Findings, InvalidFieldError
from muster.runtime.info import Container, Info, PodSet
from muster.runtime.plan import EnvVar, Value

NNODES = "PET_NNODES"
NPROC_PER_NODE = "PET_NPROC_PER_NODE"
NODE_RANK = "PET_NODE_RANK"
MASTER_ADDR = "PET_MASTER_ADDR"
MASTER_PORT = "PET_MASTER_PORT"
RESERVED = (NNODES, NPROC_PER_NODE, NODE_RANK, MASTER_ADDR, MASTER_PORT)
OVERRIDING = ("PET_STANDALONE", "PET_RDZV_BACKEND", "PET_RDZV_ENDPOINT", "PET_RDZV_ID")

PORT = 29500
_MILLI = 1000
_NO_DEVICES = ("mem", "core", "percent", "priority")


class Torch:
    """Shapes the target container of each pod set for torchrun."""

    name = "Torch"
    framework = "torch"

    def validate(self, info: Info) -> Findings:
        """Reserved variables must not be set, and the number of processes must be one that torchrun can use."""
        findings = Findings()
        if info.framework != self.framework:
            return findings
        for pod_set in info.pod_sets:
            findings.add(_check_env(pod_set.target))
            try:
                _processes(info, pod_set)
            except InvalidFieldError as error:
                findings.errors.append(error.error)
        return findings

    def enforce_ml_policy(self, info: Info) -> None:
        """Adds the five variables, in the order of the reference, and the rendezvous port."""
        for pod_set in info.pod_sets:
            processes, source = _processes(info, pod_set)
            pod_set.slots = int(processes) if processes.isdecimal() else gpus(pod_set.target.requests)
            values: dict[str, tuple[Value, str]] = {
                NNODES: (str(pod_set.count), f"number of pods of {info.workload}"),
                NPROC_PER_NODE: (processes, source),
                NODE_RANK: (pod_set.rank, f"index of the pod in {info.workload}"),
                MASTER_ADDR: (pod_set.endpoints[0] if pod_set.endpoints else "", f"rank 0 of {info.workload}"),
                MASTER_PORT: (str(PORT), "torchrun's default port"),
            }
            pod_set.target.env += [EnvVar(key, value, self.name, source) for key, (value, source) in values.items()]
            pod_set.target.ports.append(PORT)


def gpus(requests: Vector) -> int:
    """How many GPUs: the largest amount among the resources with `gpu` in their name that count devices.

    Shared devices have more than one such name (`…/gpu`, `…/gpumem`, `…/gpucores`); only the first is a count.
    """
    devices = [
        amount
        for name, amount in requests.items()
        if "gpu" in name.lower() and not any(part in name.lower() for part in _NO_DEVICES)
    ]
    return max(devices, default=0)


def _processes(info: Info, pod_set: PodSet) -> tuple[str, str]:
    """PET_NPROC_PER_NODE and what it follows from; InvalidFieldError says what would be right."""
    given = info.parameters.get(names.NPROC_PER_NODE)
    wanted = given or "auto"
    source = f"annotation {names.NPROC_PER_NODE}" if given else "default (auto)"
    path = f"{info.parameters_path}[{names.NPROC_PER_NODE}]"
    container = pod_set.target
    devices = gpus(container.requests)
    if wanted == "cpu" or (wanted == "auto" and not devices):
        cpus = max(1, -(-container.requests.get(CPU, 0) // _MILLI))
        return str(cpus), f"{source}: CPUs of container {container.name}, rounded up"
    if wanted in {"auto", "gpu"}:
        if not devices:
            message = f"container {container.name} asks for no GPU: add one to its resources, or use cpu"
            raise InvalidFieldError(FieldError(path, message, wanted))
        return wanted, f"{source}: torchrun counts the GPUs it sees ({devices} asked for)"
    if wanted.isascii() and wanted.isdecimal() and int(wanted) > 0:
        return str(int(wanted)), source
    message = "must be auto, cpu, gpu or a number of processes of at least 1"
    raise InvalidFieldError(FieldError(path, message, wanted))


def _check_env(container: Container) -> Findings:
    findings = Findings()
    for index, variable in enumerate(container.given.env):
        path = f"{container.path}.env[{index}].name"
        if variable.name in RESERVED:
            message = f"is set by Muster for framework torch; remove it (reserved are {', '.join(RESERVED)})"
            findings.errors.append(FieldError(path, message, variable.name))
        elif variable.name in OVERRIDING:
            findings.warnings.append(
                f"{path}: {variable.name} makes torchrun ignore the rendezvous that Muster sets up; "
                "remove it unless you mean that"
            )
    return findings
