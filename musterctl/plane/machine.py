"""The machine that planes share: its TCP ports, locks between processes, and files that are never half written.

Ports are of the loopback, outside of the range for outgoing connections. One of those could be taken while a part
restarts, and a client that keeps dialling a closed port of that range can end up connected to itself.
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
    """Something about the local control plane failed; the message is written for people."""


def free_ports(count: int, taken: Iterable[int] = ()) -> list[int]:
    """Return so many different ports on which no process listens now, none of them in `taken`."""
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
    """True if one can listen on the port now."""
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


def write_private(path: Path, content: bytes) -> None:
    """Writes a file in one step that only its owner may read."""
    temporary = path.with_name(f"{path.name}.tmp")
    temporary.touch(mode=0o600)
    temporary.write_bytes(content)
    temporary.replace(path)
