"""The simulated nodes of a plane, in racks and blocks of consecutive nodes."""

from ipaddress import IPv4Address
from typing import Any

from muster.api.names import DOMAIN, HOSTNAME
from musterctl.plane.state import Options

RACK = f"{DOMAIN}/rack"
BLOCK = f"{DOMAIN}/block"
GPU = "nvidia.com/gpu"
_FIRST_ADDRESS = IPv4Address("10.64.0.1")


def nodes(options: Options) -> list[dict[str, Any]]:
    """All Node objects; consecutive nodes share a rack, consecutive racks a block."""
    return [_node(index, options) for index in range(options.nodes)]


def name_of(index: int) -> str:
    """The name of a node by its number: `node-0007`, so that they sort as they count."""
    return f"node-{index:04}"


def run_of(index: int, count: int, runs: int) -> int:
    """The number of the run that the index belongs to, of `runs` consecutive ones that are equal to within one."""
    return index * runs // count


def _node(index: int, options: Options) -> dict[str, Any]:
    """One node without taints; kwok makes it Ready."""
    name = name_of(index)
    amounts = {"cpu": options.cpu, "memory": options.memory, "pods": "110", "ephemeral-storage": "1Ti"}
    if options.gpus:
        amounts[GPU] = str(options.gpus)
    labels = {
        HOSTNAME: name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        RACK: f"rack-{run_of(index, options.nodes, options.racks)}",
        BLOCK: f"block-{run_of(index, options.nodes, options.blocks)}",
    }
    addresses = {"Hostname": name, "InternalIP": str(_FIRST_ADDRESS + index)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "addresses": [{"type": kind, "address": address} for kind, address in addresses.items()],
            "nodeInfo": {"kubeletVersion": "kwok"},
        },
    }
