"""What torchrun makes of an environment.

For tests that have no PyTorch at hand: the table of the options that torchrun reads from `PET_<OPTION>`, with their
types and defaults, as its argument parser has them (compared with that of torch 2.13; `test_torch` compares it with the
one that runs there), and how a worker's rank follows from them.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

VALUES: Mapping[str, tuple[Callable[[str], Any], Any]] = {
    "NNODES": (str, "1:1"),
    "NPROC_PER_NODE": (str, "1"),
    "RDZV_BACKEND": (str, "static"),
    "RDZV_ENDPOINT": (str, ""),
    "RDZV_ID": (str, "none"),
    "RDZV_CONF": (str, ""),
    "MAX_RESTARTS": (int, 0),
    "NODE_RANK": (int, 0),
    "MASTER_ADDR": (str, "127.0.0.1"),
    "MASTER_PORT": (int, 29500),
    "LOCAL_ADDR": (str, None),
}
FLAGS = ("STANDALONE", "MODULE", "NO_PYTHON", "RUN_PATH", "VIRTUAL_LOCAL_RANK")


class Arguments(NamedTuple):
    """What torchrun would start with."""

    least: int
    most: int
    processes: int
    backend: str
    endpoint: str
    run_id: str
    node_rank: int
    max_restarts: int


def parse(environment: Mapping[str, str], devices: int) -> Arguments:
    """Reads the environment as torchrun does; ValueError where it would give up. `devices` are the GPUs it sees."""
    unknown = [name for name in environment if name.startswith("PET_") and name[4:] not in {*VALUES, *FLAGS}]
    if unknown:
        raise ValueError(f"torchrun does not read {unknown}")
    given = {
        key: kind(environment[f"PET_{key}"]) if f"PET_{key}" in environment else default
        for key, (kind, default) in VALUES.items()
    }
    low, _, high = given["NNODES"].partition(":")
    endpoint = given["RDZV_ENDPOINT"] or f"{given['MASTER_ADDR']}:{given['MASTER_PORT']}"
    if given["RDZV_BACKEND"] == "static" and high and low != high:
        raise ValueError("a static rendezvous needs a fixed number of nodes")
    return Arguments(
        least=int(low),
        most=int(high or low),
        processes=_processes(given["NPROC_PER_NODE"], devices),
        backend=given["RDZV_BACKEND"],
        endpoint=endpoint,
        run_id=given["RDZV_ID"],
        node_rank=given["NODE_RANK"],
        max_restarts=given["MAX_RESTARTS"],
    )


def _processes(text: str, devices: int) -> int:
    """A number, `gpu`, or `auto` where there are GPUs; without any, `auto` would count the CPUs of the whole host."""
    if text in {"auto", "gpu"}:
        if not devices:
            raise ValueError(f"{text} without a GPU")
        return devices
    return int(text)


def world(pods: list[Mapping[str, str]], devices: int) -> list[tuple[int, int]]:
    """(first rank, world size) of each pod, when all of them have met; ValueError where they would not."""
    read = [parse(pod, devices) for pod in pods]
    if len({(each.endpoint, each.backend, each.run_id, each.least, each.most) for each in read}) != 1:
        raise ValueError(f"the pods would not meet: {read}")
    if not read[0].least <= len(read) <= read[0].most:
        raise ValueError(f"{len(read)} pods, but {read[0].least} to {read[0].most} are waited for")
    if read[0].backend == "static" and sorted(each.node_rank for each in read) != list(range(len(read))):
        raise ValueError(f"ranks are not 0 to {len(read) - 1}: {[each.node_rank for each in read]}")
    size = sum(each.processes for each in read)
    order = sorted(range(len(read)), key=lambda place: read[place].node_rank)
    first = {place: sum(read[other].processes for other in order[:at]) for at, place in enumerate(order)}
    return [(first[place], size) for place in range(len(read))]
