"""Names in objects: their syntax, and whether the queue or framework that they name can be used.

The syntax is the API server's, for names that it would check too late: parts of other names (a pod's contains its
Job's), and names in a configuration of Muster.
"""

import re

from muster.api import names
from muster.api.fields import FieldError
from muster.runtime.framework import Framework
from webhook.lookup import Queues

MAX_LABEL = 63
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_MAX_SUBDOMAIN = 253


def is_label(name: str) -> bool:
    """Return True for a DNS label (RFC 1123), as names of hosts and so of pods are."""
    return len(name) <= MAX_LABEL and _LABEL.fullmatch(name) is not None


def is_subdomain(name: str) -> bool:
    """Return True for DNS labels with dots between them (RFC 1123), as names of most objects are."""
    return len(name) <= _MAX_SUBDOMAIN and _SUBDOMAIN.fullmatch(name) is not None


def unknown_queue(path: str, name: str, queues: Queues) -> list[FieldError]:
    """Refuse a queue that does not exist; all that is asked for pods whose workload was admitted already."""
    if name and queues.get(name):
        return []
    message = f"unable to find job queue: {name!r}; usable queues are: {_usable(queues)}"
    return [FieldError(path, message, name, "NotFound")]


def unusable_queue(path: str, name: str, queues: Queues) -> list[FieldError]:
    """Refuse a queue that new workloads may not enter: it must exist, be open, be a leaf, and not be the root."""
    queue = queues.get(name) if name else None
    if queue is None:
        return unknown_queue(path, name, queues)
    children = queues.children(name)
    if name == names.ROOT_QUEUE:
        message = f"can not submit job to root queue; usable queues are: {_usable(queues)}"
    elif not queue.open:
        message = (
            f"can only submit job to queue with state `Open`, queue `{name}` status is `{queue.status.state}`; "
            f"usable queues are: {_usable(queues)}"
        )
    elif children:
        message = f"can only submit job to leaf queue; `{name}` has queues below it: {', '.join(children)}"
    else:
        return []
    return [FieldError(path, message, name)]


def unknown_framework(path: str, name: str, framework: Framework) -> list[FieldError]:
    """Refuse a framework of which no plugin has the name."""
    if name in framework.frameworks:
        return []
    return [FieldError(path, f"must be one of: {', '.join(framework.frameworks)}", name, "NotSupported")]


def _usable(queues: Queues) -> str:
    return ", ".join(queues.names()) or "none yet"
