"""Names in objects: what one may look like, and whether the queue or framework that it names can be used.

The looks are the API server's rules, for names that it would check too late: where a name becomes part of another one
(a pod's of its Job's), or stands in a configuration of ours.
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
    """Whether a host, and so a pod, can have this name: a DNS label (RFC 1123)."""
    return len(name) <= MAX_LABEL and _LABEL.fullmatch(name) is not None


def is_subdomain(name: str) -> bool:
    """Whether most kinds of objects can have this name: labels with dots between them (RFC 1123)."""
    return len(name) <= _MAX_SUBDOMAIN and _SUBDOMAIN.fullmatch(name) is not None


def unknown_queue(path: str, name: str, queues: Queues) -> list[FieldError]:
    """An error unless there is such a queue; enough for pods whose workload was admitted while it was open."""
    if name and queues.get(name):
        return []
    message = f"unable to find job queue: {name!r}; usable queues are: {_usable(queues)}"
    return [FieldError(path, message, name, "NotFound")]


def unusable_queue(path: str, name: str, queues: Queues) -> list[FieldError]:
    """An error unless new workloads may enter the queue: it exists, is a leaf, is open, and is not the root."""
    queue = queues.get(name) if name else None
    if queue is None:
        return unknown_queue(path, name, queues)
    if name == names.ROOT_QUEUE:
        message = f"can not submit job to root queue; usable queues are: {_usable(queues)}"
        return [FieldError(path, message, name)]
    if not queue.open:
        message = (
            f"can only submit job to queue with state `Open`, queue `{name}` status is `{queue.status.state}`; "
            f"usable queues are: {_usable(queues)}"
        )
        return [FieldError(path, message, name)]
    children = queues.children(name)
    if children:
        message = f"can only submit job to leaf queue; `{name}` has queues below it: {', '.join(children)}"
        return [FieldError(path, message, name)]
    return []


def unknown_framework(path: str, name: str, framework: Framework) -> list[FieldError]:
    """An error unless a plugin brings the framework of this name."""
    if name in framework.frameworks:
        return []
    return [FieldError(path, f"must be one of: {', '.join(framework.frameworks)}", name, "NotSupported")]


def _usable(queues: Queues) -> str:
    return ", ".join(queues.names()) or "none yet"
