"""The network and mount namespaces of the nodes: those of this process, and of all that it starts.

The network has no way out: a loopback interface, and a bridge to which pods are connected. The kernel takes both away
with the last process in them. Where the programs keep things at fixed paths, what they write goes to memory; so do the
settings of the kernel that kubelet would change for the whole machine.
"""

import ctypes
import os
import subprocess
from dataclasses import dataclass
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
_KERNEL = (
    "kernel/panic", "kernel/panic_on_oops", "vm/overcommit_memory", "vm/panic_on_oom", "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes"
)  # fmt: skip
"""Settings of the whole machine that kubelet writes (setupKernelTunables of its container manager)."""


@dataclass(frozen=True)
class Place:
    """Where a node is in the network."""

    subnet: str
    """What its pods take for their own network, out of which they have `pod_range`."""
    gateway: str
    """Where its pods send what is for other networks."""
    dns: str
    """The DNS server of its pods."""
    enter: tuple[str, ...] = ()
    """What starts a program there: nothing, where the node is in the namespace of this process."""


def address(node: int) -> str:
    """The address of the node with that number."""
    return f"10.88.0.{node}"


def pod_range(node: int) -> tuple[str, str]:
    """First and last address of the node's pods."""
    return f"10.88.{node}.2", f"10.88.{node}.250"


def shared() -> Place:
    """The place of all nodes on the one bridge of this process: there are no routes between them."""
    return Place(NETWORK, address(1), address(1))


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
    _shield()
    _run("ip", "link", "set", "lo", "up")
    _run("ip", "link", "add", BRIDGE, "type", "bridge")
    _run("ip", "link", "set", BRIDGE, "up")
    width = NETWORK.partition("/")[2]
    for node in range(1, nodes + 1):
        _run("ip", "addr", "add", f"{address(node)}/{width}", "dev", BRIDGE)


def kernel_settings(root: Path = Path("/")) -> dict[str, str]:
    """What kubelet would change of the whole machine, as seen from a root directory."""
    settings = {name: root / "proc/sys" / name for name in _KERNEL}
    return {name: file.read_text().strip() for name, file in settings.items() if file.exists()}


def _shield() -> None:
    """Lays files over the kernel's settings that kubelet writes: it finds there what it wrote, the kernel never does.

    So nothing is to be put back, however the nodes end. Settings of the network are the namespace's own, and stay.
    """
    for name, value in kernel_settings().items():
        copy = Path("/run/kernel") / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(value)
        _run("mount", "--bind", str(copy), f"/proc/sys/{name}")


def _run(*command: str) -> None:
    subprocess.run(command, check=True)
