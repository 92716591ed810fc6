"""Waits until something happens to gangs: to PodGroups of either kind, as each change of a gang shows in one."""

from collections.abc import Mapping
from queue import SimpleQueue
from threading import Thread
from typing import Any

from muster.api.base import Resource
from muster.api.volcano.scheduling import POD_GROUPS
from muster.kube.client import Client, Steps
from muster.kube.errors import APIError, Forbidden, Gone, NotFound

Versions = Mapping[Resource[Any], str]
"""Kinds to watch → the resource version of their list, from which the watch goes on."""


def wait_for_news(client: Client, namespace: str | None, versions: Versions) -> None:
    """Wait until an object of one of these kinds changes, or the API server ends a watch.

    Native PodGroups are left out where their user may list them, but not watch. Raises APIError as a watch does.
    """
    news: SimpleQueue[APIError | None] = SimpleQueue()
    watches: list[Steps[Any]] = []
    try:
        for kind, version in versions.items():
            try:
                watches.append(client.watch(kind, namespace, resource_version=version))
            except (Forbidden, NotFound):
                if kind is POD_GROUPS:
                    raise
        for watch in watches:
            Thread(target=_tell, args=(watch, news), name="watch", daemon=True).start()
        error = news.get()
    except Gone as gone:
        error = gone
    finally:
        for watch in watches:
            watch.close()
    if error is not None and not isinstance(error, Gone):  # Gone: the server has forgotten, as much has happened since
        raise error


def _tell(watch: Steps[Any], news: SimpleQueue[APIError | None]) -> None:
    """Put None once the watch shows a change or has ended, or else the error."""
    try:
        next((kind for kind, _ in watch if kind != "BOOKMARK"), None)
    except APIError as error:
        news.put(error)
    else:
        news.put(None)
