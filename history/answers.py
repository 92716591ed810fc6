"""Questions about the past and their answers, as the page's server sends them and commands print them.

`OfStore` answers from a store, for whom a scope says; `answers` does so for an address of the server.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, NamedTuple

import msgspec

from history import read, silence, usage
from history.scope import EVERYTHING, Scope
from history.store import Store

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
