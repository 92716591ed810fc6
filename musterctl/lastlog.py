"""The last line of the log of a failed gang."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final

from gangs.members import container_of
from gangs.words import plain
from muster.api.kubernetes.core import Pod
from muster.api.kubernetes.pod_problems import failure, first_failure
from muster.kube.client import Client
from muster.kube.errors import APIError

_MOST_BYTES: Final = 4_000
"""Maximum size of the line in bytes; a longer line is truncated."""


def last_line(client: Client, pods: Iterable[Pod]) -> Iterator[str]:
    """Yield the last line of the log of the pod that failed first, if the user is allowed to read this log."""
    first = first_failure(pods)
    if first is None:
        return
    pod, how = first[0], failure(first[0])
    container = (how.container if how else "") or container_of(pod)
    meta = pod.metadata
    with suppress(APIError):
        lines = list(
            client.log_lines(meta.name, meta.namespace, container, follow=False, last=1, most_bytes=_MOST_BYTES)
        )
        yield from (f"last line of the log of pod {meta.name}: {plain(line)}" for line in lines[-1:])
