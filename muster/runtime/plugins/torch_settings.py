"""What users choose for Torch, read and checked; InvalidFieldError says what would be right."""

from muster.api.fields import FieldError, InvalidFieldError
from muster.api.limits import PROCESSES, whole_number
from muster.runtime.devices import cpus, gpus
from muster.runtime.info import Info, PodSet
from muster.runtime.settings import ELASTIC, MAX_RESTARTS, NPROC_PER_NODE, TORCH_ENV, Setting, annotation

PORT = 29500


def processes(info: Info, pod_set: PodSet) -> tuple[str, str]:
    """PET_NPROC_PER_NODE and what it follows from; InvalidFieldError says what would be right."""
    setting = info.setting(NPROC_PER_NODE)
    wanted = setting.text if setting else "auto"
    source = setting.source if setting else "default (auto)"
    if is_plain(info):
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
    if 0 < _number(wanted) <= PROCESSES.value:
        return str(_number(wanted)), source
    raise _invalid(setting, f"must be auto, cpu, gpu or a number of processes from 1 to {PROCESSES.value}")


def form(info: Info) -> None:
    """Torchrun or python; only torchrun is elastic."""
    setting = info.setting(TORCH_ENV)
    if setting and setting.text not in {"torchrun", "python"}:
        raise _invalid(setting, "must be torchrun (the default) or python")
    elastic = info.setting(ELASTIC)
    if setting and setting.text == "python" and elastic:
        raise _invalid(elastic, f"must be left out where {annotation(TORCH_ENV)} is python: only torchrun is elastic")


def nodes(info: Info) -> tuple[str, str]:
    """`minNodes:maxNodes` and what it follows from; empty where the world has a fixed size."""
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


def restarts(info: Info) -> tuple[str, str]:
    """How often the workers of an elastic run may start again, and what that follows from."""
    setting = info.setting(MAX_RESTARTS)
    if setting is None:
        return "3", "default"
    if _number(setting.text) < 0:
        raise _invalid(setting, "must be a number of restarts of at least 0")
    if not info.setting(ELASTIC):
        raise _invalid(setting, f"must be left out unless {annotation(ELASTIC)} is set")
    return str(_number(setting.text)), setting.source


def is_plain(info: Info) -> bool:
    """Whether the containers run `python` themselves, without torchrun."""
    setting = info.setting(TORCH_ENV)
    return setting is not None and setting.text == "python"


def _number(digits: str) -> int:
    """A number of ASCII digits, -1 for anything else."""
    number = whole_number(digits)
    return -1 if number is None else number


def _invalid(setting: Setting | None, message: str) -> InvalidFieldError:
    return InvalidFieldError(FieldError(setting.path if setting else "", message, setting.text if setting else None))
