"""Resources of the machine that local control planes share: TCP ports, locks between processes, and files.

All ports are loopback ports outside the range for outgoing connections. A port in the range for outgoing connections
could be taken while a component restarts. A client that retries such a port while it is closed can even connect to
itself.
"""

import contextlib
import fcntl
import random
import socket
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

LOOPBACK: Final = "127.0.0.1"
_RANGE_FILE: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")
_PORTS: Final = range(10_000, 65_536)


class LocalError(Exception):
    """Error of the local control plane, with a message for users."""


def free_ports(count: int, taken: Iterable[int] = ()) -> list[int]:
    """Return `count` different ports that are not in `taken` and on which no process listens."""
    first, last = map(int, _RANGE_FILE.read_text().split())
    avoided = {*range(first, last + 1), *taken}
    candidates = [port for port in _PORTS if port not in avoided]
    found: list[int] = []
    for port in random.sample(candidates, len(candidates)):
        if len(found) == count:
            return found
        if _is_free(port):
            found.append(port)
    raise OSError(f"only {len(found)} of {count} TCP ports are free on {LOOPBACK}")


def _is_free(port: int) -> bool:
    """Return True if a process can listen on the port now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock on this file within the `with` block; if the holder dies, the kernel releases the lock."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def write_private(path: Path, content: bytes) -> None:
    """Write a file atomically, with permissions that allow only its owner to read it."""
    temporary = path.with_name(f"{path.name}.tmp")
    temporary.touch(mode=0o600)
    temporary.write_bytes(content)
    temporary.replace(path)
