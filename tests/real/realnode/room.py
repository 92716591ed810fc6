"""A room of one's own for the nodes: the network and the mounts of this process, and of all that it starts.

The network has no way out: a loopback interface, and a bridge to which pods are connected. The kernel takes both away
with the last process in them. Folders in which the programs keep things at fixed paths are hidden behind empty ones.
"""

import ctypes
import os
import subprocess
from pathlib import Path

BRIDGE = "pods"
NETWORK = "10.88.0.0/16"
_CLONE_NEWNS = 0x00020000
_CLONE_NEWNET = 0x40000000
_HIDDEN = ("/run", "/var/lib/cni", "/var/lib/kubelet", "/var/log/containers", "/var/log/pods")


def address(node: int) -> str:
    """The address of the node with that number; its pods are in `pod_range`."""
    return f"10.88.0.{node}"


def pod_range(node: int) -> tuple[str, str]:
    """First and last address of the node's pods."""
    return f"10.88.{node}.2", f"10.88.{node}.250"


def absent() -> list[Path]:
    """Folders that `enter` has to make on the machine, as there is nothing yet to be hidden; deepest last."""
    return [Path(path) for path in _HIDDEN if not Path(path).exists()]


def enter(nodes: int) -> None:
    """Moves this process into the room, for as long as it lives; other threads of it stay outside."""
    if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWNS | _CLONE_NEWNET):
        number = ctypes.get_errno()
        raise OSError(number, f"unshare: {os.strerror(number)}")
    _run("mount", "--make-rprivate", "/")
    for path in _HIDDEN:
        Path(path).mkdir(parents=True, exist_ok=True)
        _run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", path)
    _run("ip", "link", "set", "lo", "up")
    _run("ip", "link", "add", BRIDGE, "type", "bridge")
    _run("ip", "link", "set", BRIDGE, "up")
    width = NETWORK.partition("/")[2]
    for node in range(1, nodes + 1):
        _run("ip", "addr", "add", f"{address(node)}/{width}", "dev", BRIDGE)


def _run(*command: str) -> None:
    subprocess.run(command, check=True)
