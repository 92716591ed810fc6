"""Sources of the history: a store, or the server of the web page, which is called with the user's own token.

A local control plane has a store in its folder, which its owner can read completely. In a cluster, the server of the
web page filters the history by the user's rights (`history.answers`); `OfServer` calls this server.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote

import click
import msgspec

from history import read, usage
from history.answers import Coverage, GangQuery, Gangs, OfStore, UsageQuery
from history.store import STORE_VARIABLE, HistoryStore, StoreError
from musterctl.cluster import Where, known_plane
from musterctl.plane import state
from musterctl.webclient import WebServer

T = TypeVar("T")


class OfServer(NamedTuple):
    """The history from the web page's server, limited to the data that the owner of the token is allowed to see."""

    server: WebServer
    where: Where

    def gangs(self, asked: GangQuery) -> Gangs:
        """Return gangs."""
        return self._get("/api/history", msgspec.structs.asdict(asked), Gangs)

    def events(self, namespace: str, name: str) -> list[read.GangEvent]:
        """Return the events of a workload's gangs."""
        return self._get(f"/api/history/{quote(namespace, safe='')}/{quote(name, safe='')}", {}, list[read.GangEvent])

    def usage(self, asked: UsageQuery) -> list[usage.UsageRow]:
        """Return the usage."""
        query = msgspec.structs.asdict(asked) | {"by": ",".join(asked.by)}
        return self._get("/api/usage", query, list[usage.UsageRow])

    def coverage(self) -> Coverage:
        """Return the time of the recorder's last pass."""
        return self._get("/api/recorder", {}, Coverage)

    def _get(self, path: str, query: Mapping[str, Any], wanted: type[T]) -> T:
        given = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in query.items()}
        asked = {name: text for name, text in given.items() if query[name] is not None}
        found: T = self.server.get(self.where, path, asked, wanted)
        return found


Source = OfStore | OfServer
"""A source of the history."""


def source_of(where: Where, store: str | None, server: WebServer | None) -> Source:
    """Return the source of the history that the options name, or else the store of the local control plane."""
    try:
        if store:
            return OfStore(HistoryStore.for_reading(store))
        if server:
            return OfServer(server, where)
        folder = known_plane(where)
        if folder is not None:
            return OfStore(HistoryStore.for_reading(state.history_of(folder)))
    except StoreError as error:
        raise click.ClickException(str(error)) from error
    raise click.ClickException(
        "no source of the history is known. Name the URL of the web page with --server or in MUSTER_WEB, or a store "
        f"with --store or in {STORE_VARIABLE}. A local control plane has a store of its own"
    )
