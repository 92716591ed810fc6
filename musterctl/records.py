"""Where the history is read from: a store itself, or the server of the page with the caller's own token.

A local plane has a store in its folder, whose owner sees all of it. Elsewhere the page's server says what a caller may
see; `answers` makes its answers, and `Server` reads them.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, NamedTuple, Protocol, TypeVar
from urllib.parse import quote

import click
import msgspec

from history import read, silence, usage
from history.scope import EVERYTHING, Scope
from history.store import Store, StoreError
from musterctl.cluster import Where, known_plane
from musterctl.plane import state
from musterctl.webclient import WebServer

T = TypeVar("T")
STORE_VARIABLE: Final = "MUSTER_HISTORY"
MOST: Final = 1000
"""Gangs of one answer."""


Time = Annotated[float, msgspec.Meta(ge=0, le=1e11)]
"""Seconds since the epoch, until the year 5138."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked about gangs; times are seconds since the epoch."""

    namespace: str | None = None
    name: str | None = None
    queue: str | None = None
    since: Time | None = None
    until: Time | None = None
    ended: bool | None = None
    limit: int = 200


class AskedUsage(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked about usage."""

    by: tuple[str, ...] = ("queue", "user")
    since: Time = 0.0
    until: Time | None = None
    namespace: str | None = None
    queue: str | None = None


class Gangs(msgspec.Struct, frozen=True):
    """Gangs, and the times for which nothing was recorded."""

    gangs: list[read.Gang]
    gaps: list[read.Gap] = []


class Looked(msgspec.Struct, frozen=True):
    """How far the history goes."""

    looked: float
    """When the recorder looked last, in seconds since the epoch; 0 if it never has."""


class Source(Protocol):
    """Answers from the history."""

    def gangs(self, asked: Asked) -> Gangs:
        """Return gangs."""

    def story(self, namespace: str, name: str) -> list[read.Happening]:
        """Return what happened to the gangs of a workload."""

    def usage(self, asked: AskedUsage) -> list[usage.Row]:
        """Return who used what."""

    def looked(self) -> Looked:
        """Return when the recorder looked last."""


class OfStore(NamedTuple):
    """Answers from a store, for whom `scope` says."""

    store: Store
    scope: Scope = EVERYTHING

    def gangs(self, asked: Asked) -> Gangs:
        """Return gangs."""
        wanted = msgspec.structs.asdict(asked) | {"limit": min(asked.limit, MOST)}
        return Gangs(read.gangs(self.store, self.scope, **wanted), read.gaps(self.store, asked.since))

    def story(self, namespace: str, name: str) -> list[read.Happening]:
        """Return what happened to the gangs of a workload."""
        return read.story(self.store, self.scope, namespace, name)

    def usage(self, asked: AskedUsage) -> list[usage.Row]:
        """Return who used what."""
        wanted = msgspec.structs.asdict(asked)
        return usage.usage(self.store, self.scope, wanted.pop("by"), **wanted)

    def looked(self) -> Looked:
        """Return when the recorder looked last."""
        return Looked(silence.looked(self.store))


class OfServer(NamedTuple):
    """Answers of the page's server, which knows what the owner of the token may see."""

    server: WebServer
    where: Where

    def gangs(self, asked: Asked) -> Gangs:
        """Return gangs."""
        return self._get("/api/history", msgspec.structs.asdict(asked), Gangs)

    def story(self, namespace: str, name: str) -> list[read.Happening]:
        """Return what happened to the gangs of a workload."""
        return self._get(f"/api/history/{quote(namespace, safe='')}/{quote(name, safe='')}", {}, list[read.Happening])

    def usage(self, asked: AskedUsage) -> list[usage.Row]:
        """Return who used what."""
        query = msgspec.structs.asdict(asked) | {"by": ",".join(asked.by)}
        return self._get("/api/usage", query, list[usage.Row])

    def looked(self) -> Looked:
        """Return when the recorder looked last."""
        return self._get("/api/recorder", {}, Looked)

    def _get(self, path: str, query: Mapping[str, Any], wanted: type[T]) -> T:
        given = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in query.items()}
        asked = {name: text for name, text in given.items() if query[name] is not None}
        found: T = self.server.get(self.where, path, asked, wanted)
        return found


def source_of(where: Where, store: str | None, server: WebServer | None) -> Source:
    """Return where to read from: what an option or variable names, else the store of the local plane."""
    try:
        if store:
            return OfStore(Store.for_reading(store))
        if server:
            return OfServer(server, where)
        folder = known_plane(where)
        if folder is not None:
            return OfStore(Store.for_reading(state.history_of(folder)))
    except StoreError as error:
        raise click.ClickException(str(error)) from error
    raise click.ClickException(
        "where is the history? Name the page's server with --server or in MUSTER_WEB, or a store with --store or in "
        f"{STORE_VARIABLE}; a plane of `muster up` has its own"
    )


class QueryError(ValueError):
    """A query that cannot be read; the message says which parameter, and why."""


def answers(store: Store, scope: Scope, path: Sequence[str], query: Mapping[str, str]) -> Any:
    """Return the answer to /api/history, /api/history/NAMESPACE/NAME, /api/usage or /api/recorder, to be sent as JSON.

    `path` are its parts after /api. QueryError for a query that cannot be read, LookupError for another path.
    """
    source = OfStore(store, scope)
    try:
        match path:
            case ["recorder"]:
                return source.looked()
            case ["history"]:
                return source.gangs(msgspec.convert(dict(query), Asked, strict=False))
            case ["history", namespace, name]:
                return source.story(namespace, name)
            case ["usage"]:
                by = tuple(filter(None, query.get("by", "queue,user").split(",")))
                return source.usage(msgspec.convert({**query, "by": by}, AskedUsage, strict=False))
    except (msgspec.ValidationError, ValueError) as error:
        raise QueryError(str(error)) from error
    raise LookupError("/".join(path))
