"""Torch: the variables that torchrun reads, so that `torchrun train.py` needs no arguments.

Three shapes: the usual one (a fixed number of pods), elastic (`minNodes:maxNodes`, where pods meet by c10d), and
`python` for containers that run their script without torchrun and so need each process's own variables.
"""

from functools import partial

from muster.api.fields import Findings
from muster.runtime.info import Info, PodSet, Variables
from muster.runtime.plugins.shared import errors_of, leader, rank, reserved, size
from muster.runtime.plugins.torch_settings import PORT, form, is_plain, nodes, processes, restarts
from muster.runtime.plugins.torchtune import check, command, is_torchtune
from muster.runtime.settings import ELASTIC

_MASTER = ("PET_MASTER_ADDR", "PET_MASTER_PORT")
RESERVED = ("PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK", *_MASTER)
OVERRIDING = ("PET_STANDALONE", "PET_RDZV_BACKEND", "PET_RDZV_ENDPOINT", "PET_RDZV_ID")
ELASTIC_RESERVED = (*RESERVED, *OVERRIDING, "PET_MAX_RESTARTS")
PYTHON_RESERVED = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")


class Torch:
    """Shapes the containers of each pod set that trains."""

    name = "Torch"
    framework = "torch"

    def validate(self, info: Info) -> Findings:
        """Refuses reserved variables, and settings that torchrun cannot use."""
        findings = Findings()
        if info.framework != self.framework:
            return findings
        if is_plain(info):
            findings.add(reserved(info, PYTHON_RESERVED))
        elif info.setting(ELASTIC):
            findings.add(reserved(info, ELASTIC_RESERVED))
        else:
            findings.add(reserved(info, RESERVED))
            findings.warnings += _overriding(info)
        of_pod_sets = (partial(processes, pod_set=pod_set) for pod_set in info.trainers)
        findings.errors += errors_of(info, form, nodes, restarts, *of_pod_sets)
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
            pod_set.slots = int(number) if number.isdecimal() else pod_set.gpus
            variables = _variables(info, pod_set, (number, source))
            if target and is_torchtune(info):
                target.command = command(info, pod_set)
                target.set(self.name, {key: value for key, value in variables.items() if key not in _MASTER})
            elif target:
                target.set(self.name, variables)
            for container in info.injections:
                container.set(self.name, variables)
            pod_set.port(PORT)


def _overriding(info: Info) -> list[str]:
    """A warning for each variable of the user that disables the rendezvous."""
    return [
        f"{info.user_env.path}[{index}].name: {variable.name} makes torchrun ignore the rendezvous that Muster sets "
        "up; remove it unless you mean that"
        for index, variable in enumerate(info.user_env.variables)
        if variable.name in OVERRIDING
    ]


def _variables(info: Info, pod_set: PodSet, number: tuple[str, str]) -> Variables:
    if is_plain(info):
        return _python(info, pod_set)
    if info.setting(ELASTIC):
        return _elastic(info, number)
    return {
        "PET_NNODES": size(info),
        "PET_NPROC_PER_NODE": number,
        "PET_NODE_RANK": rank(info, pod_set),
        "PET_MASTER_ADDR": leader(info),
        "PET_MASTER_PORT": (str(PORT), "torchrun's default port"),
    }


def _elastic(info: Info, number: tuple[str, str]) -> Variables:
    """Pods come and go between a minimum and a maximum; ranks are given out at each rendezvous."""
    count, source = nodes(info)
    return {
        "PET_NNODES": (count, source),
        "PET_NPROC_PER_NODE": number,
        "PET_RDZV_BACKEND": ("c10d", source),
        "PET_RDZV_ENDPOINT": leader(info, PORT),
        "PET_RDZV_ID": (info.owner.name, f"name of {info.workload}"),
        "PET_MAX_RESTARTS": restarts(info),
    }


def _python(info: Info, pod_set: PodSet) -> Variables:
    """One process in each pod, for torch's `env://` initialisation."""
    return {
        "RANK": rank(info, pod_set),
        "WORLD_SIZE": size(info),
        "LOCAL_RANK": ("0", "one process in each pod"),
        "MASTER_ADDR": leader(info),
        "MASTER_PORT": (str(PORT), "torchrun's default port"),
    }
