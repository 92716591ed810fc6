"""The settings of Torch, read and checked; InvalidFieldError has the path and what would be right."""

from muster.api.limits import PROCESSES, whole_number
from muster.runtime.info import Info, PodSet
from muster.runtime.settings import ELASTIC, MAX_RESTARTS, NPROC_PER_NODE, TORCH_ENV, Setting, annotation

PORT = 29500


def processes(info: Info, pod_set: PodSet) -> tuple[str, str]:
    """PET_NPROC_PER_NODE, and its source."""
    setting = info.setting(NPROC_PER_NODE) or Setting("auto", "", "default (auto)")
    wanted, source = setting.text, setting.source
    if is_plain(info):
        if wanted in {"auto", "1"}:
            return "1", "one process in each pod"
        raise setting.invalid(
            f"must be 1 where {annotation(TORCH_ENV)} is python: only torchrun starts several processes"
        )
    container = pod_set.target.name if pod_set.target else ""
    gpus = pod_set.gpus
    if wanted == "cpu" or (wanted == "auto" and not gpus):
        return str(pod_set.cpus), f"{source}: CPUs of container {container}, rounded up"
    if wanted in {"auto", "gpu"}:
        if not gpus:
            raise setting.invalid(f"container {container} asks for no GPU: add one to its resources, or use cpu")
        return wanted, f"{source}: torchrun counts the GPUs it sees ({gpus} asked for)"
    if 0 < _number(wanted) <= PROCESSES.value:
        return str(_number(wanted)), source
    raise setting.invalid(f"must be auto, cpu, gpu or a number of processes from 1 to {PROCESSES.value}")


def form(info: Info) -> None:
    """Checks that the form is torchrun or python, and elastic only with torchrun."""
    setting, elastic = info.setting(TORCH_ENV), info.setting(ELASTIC)
    if setting and setting.text not in {"torchrun", "python"}:
        raise setting.invalid("must be torchrun (the default) or python")
    if is_plain(info) and elastic:
        raise elastic.invalid(f"must be left out where {annotation(TORCH_ENV)} is python: only torchrun is elastic")


def nodes(info: Info) -> tuple[str, str]:
    """`minNodes:maxNodes`, and its source; empty if the world has a fixed size."""
    setting = info.setting(ELASTIC)
    if setting is None:
        return "", ""
    low, colon, high = setting.text.partition(":")
    least, most = _number(low), _number(high)
    if not colon or not 1 <= least <= most:
        raise setting.invalid("must be minNodes:maxNodes, e.g. 2:4, with 1 <= minNodes <= maxNodes")
    if not least <= info.size <= most:
        raise setting.invalid(f"must include the number of pods of {info.workload} ({info.size})")
    return f"{least}:{most}", setting.source


def restarts(info: Info) -> tuple[str, str]:
    """The number of times that the workers of an elastic run may start again, and its source."""
    setting = info.setting(MAX_RESTARTS)
    if setting is None:
        return "3", "default"
    if _number(setting.text) < 0:
        raise setting.invalid("must be a number of restarts of at least 0")
    if not info.setting(ELASTIC):
        raise setting.invalid(f"must be left out unless {annotation(ELASTIC)} is set")
    return str(_number(setting.text)), setting.source


def is_plain(info: Info) -> bool:
    """True if the containers run `python` themselves, without torchrun."""
    setting = info.setting(TORCH_ENV)
    return setting is not None and setting.text == "python"


def _number(digits: str) -> int:
    """A number of ASCII digits, -1 for any other text."""
    number = whole_number(digits)
    return -1 if number is None else number
