"""What planes of one machine share, and must not take from each other: its TCP ports, and locks between processes.

Ports are of the loopback, outside of the range from which the kernel serves outgoing connections. One from that range
could be taken by anybody's outgoing connection while a part restarts, and a client that keeps dialling a closed port of
that range can even end up connected to itself.
"""

import contextlib
import fcntl
import random
import socket
from collections.abc import Iterable, Iterator
from pathlib import Path

LOOPBACK = "127.0.0.1"
_RANGE_FILE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_FIRST = 10_000
_LAST = 65_535


def free_ports(count: int, taken: Iterable[int] = ()) -> list[int]:
    """That many different ports on which nobody listens now, none of them in `taken`."""
    ephemeral = _ephemeral()
    candidates = [port for port in range(_FIRST, _LAST + 1) if port not in ephemeral]
    avoided = set(taken)
    found: list[int] = []
    for port in random.sample(candidates, len(candidates)):
        if port not in avoided and _is_free(port):
            found.append(port)
        if len(found) == count:
            return found
    raise OSError(f"only {len(found)} of {count} TCP ports are free on {LOOPBACK}")


def _ephemeral() -> range:
    """The ports that the kernel gives to outgoing connections."""
    try:
        first, last = _RANGE_FILE.read_text().split()
    except FileNotFoundError:
        return range(32_768, 61_000)
    return range(int(first), int(last) + 1)


def _is_free(port: int) -> bool:
    """Whether one can listen on the port now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Waits for the lock on this file, and holds it; the kernel releases it when its holder dies, however it does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
