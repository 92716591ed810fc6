"""The network and mount namespaces of the nodes: those of this process, and of all that it starts.

The network has no way out: a loopback interface, and a bridge to which pods are connected. The kernel takes both away
with the last process in them. Where the programs keep things at fixed paths, what they write goes to memory.
"""

import ctypes
import os
import subprocess
from pathlib import Path

BRIDGE = "pods"
NETWORK = "10.88.0.0/16"
_CLONE_NEWNS = 0x00020000
_CLONE_NEWNET = 0x40000000
_HIDDEN = ("/run", "/var/log")
"""Folders that are empty in the namespaces: sockets and networks of containers, links to logs."""
_COVERED = Path("/var/lib")
"""Where kubelet and CNI make folders; what else there is can be read, as somebody's home may be there."""
_COVER = Path("/run/cover")


def address(node: int) -> str:
    """The address of the node with that number; its pods are in `pod_range`."""
    return f"10.88.0.{node}"


def pod_range(node: int) -> tuple[str, str]:
    """First and last address of the node's pods."""
    return f"10.88.{node}.2", f"10.88.{node}.250"


def enter(nodes: int) -> None:
    """Moves this process into the namespaces, for as long as it lives; other threads of it stay outside."""
    if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWNS | _CLONE_NEWNET):
        number = ctypes.get_errno()
        raise OSError(number, f"unshare: {os.strerror(number)}")
    _run("mount", "--make-rprivate", "/")
    for path in _HIDDEN:
        _run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", path)
    upper, work = _COVER / "upper", _COVER / "work"
    upper.mkdir(parents=True)
    work.mkdir()
    _run(
        "mount", "-t", "overlay", "-o", f"lowerdir={_COVERED},upperdir={upper},workdir={work}", "overlay", str(_COVERED)
    )
    _run("ip", "link", "set", "lo", "up")
    _run("ip", "link", "add", BRIDGE, "type", "bridge")
    _run("ip", "link", "set", BRIDGE, "up")
    width = NETWORK.partition("/")[2]
    for node in range(1, nodes + 1):
        _run("ip", "addr", "add", f"{address(node)}/{width}", "dev", BRIDGE)


def _run(*command: str) -> None:
    subprocess.run(command, check=True)
