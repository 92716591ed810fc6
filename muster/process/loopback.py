"""Whether an address, or a caller, can only mean the machine itself (in a pod: the pod).

A process of the same machine can call; a web page that is open there must not. It can reach loopback under a name of
its own (DNS rebinding), but it cannot choose the headers `Host` and `Origin`.
"""

from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import urlsplit


@lru_cache(256)
def is_loopback(host: str) -> bool:
    """Whether this name or address can only mean the machine itself."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.removeprefix("[").removesuffix("]")).is_loopback
    except ValueError:
        return False


@lru_cache(256)
def host_of(header: str) -> str:
    """The header `Host` without its port; empty if it is none."""
    try:
        return urlsplit(f"//{header}").hostname or ""
    except ValueError:
        return ""
