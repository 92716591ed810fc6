"""Names and addresses of the machine itself. Pure."""

from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import urlsplit


@lru_cache(256)
def is_loopback(host: str) -> bool:
    """Return True for a name or address that can only mean the machine itself or, inside a pod, the pod."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.removeprefix("[").removesuffix("]")).is_loopback
    except ValueError:
        return False


@lru_cache(256)
def host_of(header: str) -> str:
    """Return the value of a `Host` header without the port; empty for a malformed header."""
    try:
        return urlsplit(f"//{header}").hostname or ""
    except ValueError:
        return ""
