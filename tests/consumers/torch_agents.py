"""Runs the containers of several pods on this machine with the real PyTorch: `torch_agents.py < plan.json`.

It is started in namespaces of its own (network, names, mounts, processes). PyTorch is imported once, then each pod is a
fork of this process with its own host name and environment. A pod runs `torchrun` without any argument but its program,
or, in the form `python`, a script that calls `init_process_group` itself.
"""

import ctypes
import fcntl
import importlib
import json
import os
import socket
import struct
import sys
from typing import Any

CLONE_NEWUTS = 0x04000000
SIOCSIFFLAGS, IFF_UP = 0x8914, 1
SOON = {"PET_MONITOR_INTERVAL": "0.1"}
"""How often torchrun looks for workers that have ended; by default each 5 s."""
PROGRAM = ["bash", "-c", 'echo "rank $RANK $WORLD_SIZE $LOCAL_RANK"']


def main() -> None:
    """Starts all pods, and ends with 1 if one of them fails."""
    pods = json.load(sys.stdin)
    loopback_up()
    importlib.import_module("torch.distributed.run")
    children = [start(pod) for pod in pods]
    failed = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    sys.exit(1 if any(failed) else 0)


def loopback_up() -> None:
    """A new network namespace has no addresses: its loopback interface must be switched on."""
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh", b"lo", IFF_UP))


def start(pod: dict[str, Any]) -> int:
    """A fork that becomes the pod's container; its pid."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWUTS):
            raise OSError(ctypes.get_errno(), "unshare")
        socket.sethostname(pod["host"])
        os.environ.update(SOON | pod["env"])
        (meet if pod["python"] else torchrun)()
        code = 0
    finally:
        sys.stdout.flush()
        os._exit(code)


def torchrun() -> None:
    """Bare torchrun, whose workers say who they are."""
    from torch.distributed import run  # noqa: PLC0415 - PyTorch is not there where linters and type checkers run
    from torch.distributed.elastic.multiprocessing import Std  # noqa: PLC0415 - as above

    # PyTorch 1.13 looks for 0 among the members of a flag, where Python 3.11 has none; newer ones do this.
    Std.from_str = classmethod(lambda kind, text: kind(int(text)))
    run.main(["--no_python", *PROGRAM])


def meet() -> None:
    """What a script without torchrun does: it meets the others, and they add up their ranks."""
    import torch  # noqa: PLC0415 - as in torchrun
    import torch.distributed as world  # noqa: PLC0415 - as in torchrun

    world.init_process_group("gloo")
    total = torch.tensor([world.get_rank()])
    world.all_reduce(total)
    size = world.get_world_size()
    if int(total) != sum(range(size)):
        raise RuntimeError(f"the ranks add up to {int(total)}, and there are {size}")
    sys.stdout.write(f"rank {world.get_rank()} {size} {os.environ['LOCAL_RANK']}\n")


if __name__ == "__main__":
    main()
