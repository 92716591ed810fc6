"""Torch: the variables that torchrun reads, so that `torchrun train.py` needs no arguments.

Three shapes: the usual one (a fixed number of pods), elastic (`minNodes:maxNodes`, where pods meet by c10d), and
`python` for containers that run their script without torchrun and so need each process's own variables.
"""

from collections.abc import Callable
from functools import partial

from muster.api.fields import FieldError, Findings, InvalidFieldError
from muster.runtime.devices import gpus
from muster.runtime.info import Info, PodSet
from muster.runtime.plugins.reserved import Variables, overriding, reserved
from muster.runtime.plugins.torch_settings import PORT, form, is_plain, nodes, processes, restarts
from muster.runtime.plugins.torchtune import check, command, is_torchtune
from muster.runtime.settings import ELASTIC
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

_MASTER = (MASTER_ADDR, MASTER_PORT)


class Torch:
    """Shapes the containers of each pod set that trains."""

    name = "Torch"
    framework = "torch"

    def validate(self, info: Info) -> Findings:
        """Reserved variables must not be set, and the settings must be such that torchrun can use them."""
        findings = Findings()
        if info.framework != self.framework:
            return findings
        if is_plain(info):
            findings.add(reserved(info, PYTHON_RESERVED))
        elif info.setting(ELASTIC):
            findings.add(reserved(info, ELASTIC_RESERVED))
        else:
            findings.add(reserved(info, RESERVED))
            findings.add(overriding(info, OVERRIDING, "makes torchrun ignore the rendezvous that Muster sets up"))
        for each in (form, nodes, restarts):
            findings.errors += _errors(each, info)
        for pod_set in info.trainers:
            findings.errors += _errors(partial(processes, pod_set=pod_set), info)
        if is_torchtune(info) and not findings.errors:
            findings.add(check(info))
        return findings

    def enforce_ml_policy(self, info: Info) -> None:
        """Adds the variables, in the order of the reference, and the rendezvous port."""
        form(info)  # pods whose owner was not validated come here without it
        restarts(info)
        for pod_set in info.trainers:
            number, source = processes(info, pod_set)
            target = pod_set.target
            pod_set.slots = int(number) if number.isdecimal() else gpus(target.requests if target else {})
            variables = self._variables(info, pod_set, (number, source))
            if target and is_torchtune(info):
                fewer = {key: value for key, value in variables.items() if key not in _MASTER}
                target.command = command(info, pod_set)
                target.set(self.name, fewer)
            elif target:
                target.set(self.name, variables)
            for container in info.injections:
                container.set(self.name, variables)
            pod_set.port(PORT)

    def _variables(self, info: Info, pod_set: PodSet, number: tuple[str, str]) -> Variables:
        if is_plain(info):
            return _python(info, pod_set)
        if info.setting(ELASTIC):
            return _elastic(info, number)
        return fixed(info, pod_set, number)


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
    count, source = nodes(info)
    max_restarts, why = restarts(info)
    return {
        NNODES: (count, source),
        NPROC: number,
        RDZV_BACKEND: ("c10d", source),
        RDZV_ENDPOINT: (Late(lambda: f"{text(info.leader())}:{PORT}"), f"rank 0 of {info.workload}"),
        RDZV_ID: (info.owner.name, f"name of {info.workload}"),
        RESTARTS: (max_restarts, why),
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


def _errors(check: Callable[[Info], object], info: Info) -> list[FieldError]:
    try:
        check(info)
    except InvalidFieldError as error:
        return [error.error]
    return []
