"""Torch: the variables that torchrun reads, so that `torchrun train.py` needs no arguments.

Three shapes: the usual one (a fixed number of pods), elastic (`minNodes:maxNodes`, where pods meet by c10d), and
`python` for containers that run their script without torchrun and so need each process's own variables.
"""

from collections.abc import Callable
from functools import partial

from muster.runtime.devices import cpus, gpus
from muster.runtime.fields import FieldError, Findings, InvalidFieldError
from muster.runtime.info import Container, Info, PodSet
from muster.runtime.plugins.reserved import Variables, overriding, reserved
from muster.runtime.settings import ELASTIC, MAX_RESTARTS, NPROC_PER_NODE, TORCH_ENV, Setting, annotation
from muster.runtime.values import Late, text

NNODES = "PET_NNODES"
NPROC = "PET_NPROC_PER_NODE"
NODE_RANK = "PET_NODE_RANK"
MASTER_ADDR = "PET_MASTER_ADDR"
MASTER_PORT = "PET_MASTER_PORT"
RDZV_BACKEND = "PET_RDZV_BACKEND"
RDZV_ENDPOINT = "PET_RDZV_ENDPOINT"
RDZV_ID = "PET_RDZV_ID"
RESTARTS = "PET_MAX_RESTARTS"

RESERVED = (NNODES, NPROC, NODE_RANK, MASTER_ADDR, MASTER_PORT)
OVERRIDING = ("PET_STANDALONE", RDZV_BACKEND, RDZV_ENDPOINT, RDZV_ID)
ELASTIC_RESERVED = (*RESERVED, *OVERRIDING, RESTARTS)
PYTHON_RESERVED = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")

PORT = 29500


class Torch:
    """Shapes the containers of each pod set that trains."""

    name = "Torch"
    framework = "torch"

    def validate(self, info: Info) -> Findings:
        """Reserved variables must not be set, and the settings must be such that torchrun can use them."""
        findings = Findings()
        if info.framework != self.framework:
            return findings
        if _plain(info):
            findings.add(reserved(info, PYTHON_RESERVED))
        elif info.setting(ELASTIC):
            findings.add(reserved(info, ELASTIC_RESERVED))
        else:
            findings.add(reserved(info, RESERVED))
            findings.add(overriding(info, OVERRIDING, "makes torchrun ignore the rendezvous that Muster sets up"))
        for check in (_form, _nodes, _restarts):
            findings.errors += _errors(check, info)
        for pod_set in info.trainers:
            findings.errors += _errors(partial(processes, pod_set=pod_set), info)
        return findings

    def enforce_ml_policy(self, info: Info) -> None:
        """Adds the variables, in the order of the reference, and the rendezvous port."""
        for pod_set in info.trainers:
            number, source = processes(info, pod_set)
            target = pod_set.target
            pod_set.slots = int(number) if number.isdecimal() else gpus(target.requests if target else {})
            variables = self._variables(info, pod_set, (number, source))
            for container in ([target] if target else []) + info.injections:
                self._shape(container, variables)

    def _variables(self, info: Info, pod_set: PodSet, number: tuple[str, str]) -> Variables:
        if _plain(info):
            return _python(info, pod_set)
        if info.setting(ELASTIC):
            return _elastic(info, number)
        return fixed(info, pod_set, number)

    def _shape(self, container: Container, variables: Variables) -> None:
        container.set(self.name, variables)
        container.port(PORT)


def fixed(info: Info, pod_set: PodSet, number: tuple[str, str]) -> Variables:
    """The five variables of a world of fixed size."""
    return {
        NNODES: (str(info.size), f"number of pods of {info.workload}"),
        NPROC: number,
        NODE_RANK: (Late(lambda: pod_set.rank), f"index of the pod in {info.workload}"),
        MASTER_ADDR: (Late(info.leader), f"rank 0 of {info.workload}"),
        MASTER_PORT: (str(PORT), "torchrun's default port"),
    }


def _elastic(info: Info, number: tuple[str, str]) -> Variables:
    """Pods come and go between a minimum and a maximum; ranks are given out at each rendezvous."""
    nodes, source = _nodes(info)
    restarts, why = _restarts(info)
    return {
        NNODES: (nodes, source),
        NPROC: number,
        RDZV_BACKEND: ("c10d", source),
        RDZV_ENDPOINT: (Late(lambda: f"{text(info.leader())}:{PORT}"), f"rank 0 of {info.workload}"),
        RDZV_ID: (info.owner.name, f"name of {info.workload}"),
        RESTARTS: (restarts, why),
    }


def _python(info: Info, pod_set: PodSet) -> Variables:
    """One process in each pod, which torch's `env://` initialisation finds its way with."""
    return {
        "RANK": (Late(lambda: pod_set.rank), f"index of the pod in {info.workload}"),
        "WORLD_SIZE": (str(info.size), f"number of pods of {info.workload}"),
        "LOCAL_RANK": ("0", "one process in each pod"),
        "MASTER_ADDR": (Late(info.leader), f"rank 0 of {info.workload}"),
        "MASTER_PORT": (str(PORT), "torchrun's default port"),
    }


def processes(info: Info, pod_set: PodSet) -> tuple[str, str]:
    """PET_NPROC_PER_NODE and what it follows from; InvalidFieldError says what would be right."""
    setting = info.setting(NPROC_PER_NODE)
    wanted = setting.text if setting else "auto"
    source = setting.source if setting else "default (auto)"
    if _plain(info):
        if wanted in {"auto", "1"}:
            return "1", "one process in each pod"
        raise _invalid(
            setting, f"must be 1 where {annotation(TORCH_ENV)} is python: nobody starts more than one process"
        )
    requests = pod_set.target.requests if pod_set.target else {}
    container = pod_set.target.name if pod_set.target else ""
    devices = gpus(requests)
    if wanted == "cpu" or (wanted == "auto" and not devices):
        return str(cpus(requests)), f"{source}: CPUs of container {container}, rounded up"
    if wanted in {"auto", "gpu"}:
        if not devices:
            raise _invalid(setting, f"container {container} asks for no GPU: add one to its resources, or use cpu")
        return wanted, f"{source}: torchrun counts the GPUs it sees ({devices} asked for)"
    if _number(wanted) > 0:
        return str(int(wanted)), source
    raise _invalid(setting, "must be auto, cpu, gpu or a number of processes of at least 1")


def _form(info: Info) -> None:
    setting = info.setting(TORCH_ENV)
    if setting and setting.text not in {"torchrun", "python"}:
        raise _invalid(setting, "must be torchrun (the default) or python")
    elastic = info.setting(ELASTIC)
    if setting and setting.text == "python" and elastic:
        raise _invalid(elastic, f"must be left out where {annotation(TORCH_ENV)} is python: only torchrun is elastic")


def _nodes(info: Info) -> tuple[str, str]:
    """`minNodes:maxNodes`."""
    setting = info.setting(ELASTIC)
    if setting is None:
        return "", ""
    low, colon, high = setting.text.partition(":")
    least, most = _number(low), _number(high)
    if not colon or not 1 <= least <= most:
        raise _invalid(setting, "must be minNodes:maxNodes, e.g. 2:4, with 1 <= minNodes <= maxNodes")
    if not least <= info.size <= most:
        raise _invalid(setting, f"must include the number of pods of {info.workload} ({info.size})")
    return f"{least}:{most}", setting.source


def _restarts(info: Info) -> tuple[str, str]:
    setting = info.setting(MAX_RESTARTS)
    if setting is None:
        return "3", "default"
    if _number(setting.text) < 0:
        raise _invalid(setting, "must be a number of restarts of at least 0")
    if not info.setting(ELASTIC):
        raise _invalid(setting, f"must be left out unless {annotation(ELASTIC)} is set")
    return str(int(setting.text)), setting.source


def _plain(info: Info) -> bool:
    setting = info.setting(TORCH_ENV)
    return setting is not None and setting.text == "python"


def _number(digits: str) -> int:
    """A number of ASCII digits, -1 for anything else."""
    return int(digits) if digits.isascii() and digits.isdecimal() else -1


def _invalid(setting: Setting | None, message: str) -> InvalidFieldError:
    return InvalidFieldError(FieldError(setting.path if setting else "", message, setting.text if setting else None))


def _errors(check: Callable[[Info], object], info: Info) -> list[FieldError]:
    try:
        check(info)
    except InvalidFieldError as error:
        return [error.error]
    return []
