"""What the names of objects may look like: the API server's rules, for names that it would check too late.

That is where a name becomes part of another one (a pod's of its Job's), or stands in a configuration of ours.
"""

import re

MAX_LABEL = 63
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_MAX_SUBDOMAIN = 253


def is_label(name: str) -> bool:
    """Whether a host, and so a pod, can have this name: a DNS label (RFC 1123)."""
    return len(name) <= MAX_LABEL and _LABEL.fullmatch(name) is not None


def is_subdomain(name: str) -> bool:
    """Whether most kinds of objects can have this name: labels with dots between them (RFC 1123)."""
    return len(name) <= _MAX_SUBDOMAIN and _SUBDOMAIN.fullmatch(name) is not None
