"""Questions about the past and their answers, as the page's server sends them and commands print them.

`OfStore` answers from a store, for whom a scope says; `answers` does so for an address of the server. `silence` says
whether the recorder still looks, so that what is not written is not taken for what did not happen. It notes how far it
has looked with every transaction, and every ten seconds while nothing happens; not while it cannot read the cluster.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Final, NamedTuple

import msgspec

from gangs.words import short
from history import read, usage
from history.model import EVERYTHING, MS, Scope
from history.store import HistoryStore

MOST: Final = 1000
"""Gangs of one answer."""
Time = Annotated[float, msgspec.Meta(ge=0, le=1e11)]
"""Seconds since the epoch, until the year 5138."""
SILENT_AFTER_S: Final = 60.0
"""Six notes: a recorder that starts again takes less, and a busy one writes oftener."""
NO_GANGS: Final = "what gangs have done since then is missing here; it reads it later, as far as the cluster remembers"
NO_USAGE: Final = "what gangs have asked for and held since then does not count here yet"
NO_BUDGETS: Final = (
    "of budgets, what gangs have held since then does not count here; the planner counts it while it runs"
)
"""Notes on unknown values in the list of gangs, in usage, and beside budgets."""


class GangQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A query for gangs; times are seconds since the epoch."""

    namespace: str | None = None
    name: str | None = None
    queue: str | None = None
    since: Time | None = None
    until: Time | None = None
    ended: bool | None = None
    limit: int = 200


class AskedUsage(msgspec.Struct, frozen=True, kw_only=True):
    """A query for usage."""

    by: tuple[str, ...] = ("queue", "user")
    since: Time = 0.0
    until: Time | None = None
    namespace: str | None = None
    queue: str | None = None


class Gangs(msgspec.Struct, frozen=True):
    """Gangs, and the times for which nothing was recorded."""

    gangs: list[read.GangHistory]
    gaps: list[read.Outage] = []


class Looked(msgspec.Struct, frozen=True):
    """End of the recorded history."""

    looked: float
    """Time of the recorder's last pass, in seconds since the epoch; 0 if there was none."""


class OfStore(NamedTuple):
    """Answers from a store, for whom `scope` says."""

    store: HistoryStore
    scope: Scope = EVERYTHING

    def gangs(self, asked: GangQuery) -> Gangs:
        """Return gangs."""
        wanted = msgspec.structs.asdict(asked) | {"limit": min(asked.limit, MOST)}
        return Gangs(read.gangs(self.store, self.scope, **wanted), read.gaps(self.store, asked.since))

    def story(self, namespace: str, name: str) -> list[read.GangEvent]:
        """Return what happened to the gangs of a workload."""
        return read.story(self.store, self.scope, namespace, name)

    def usage(self, asked: AskedUsage) -> list[usage.UsageRow]:
        """Return who used what."""
        wanted = msgspec.structs.asdict(asked)
        return usage.usage(self.store, self.scope, wanted.pop("by"), **wanted)

    def looked(self) -> Looked:
        """Return when the recorder looked last."""
        return Looked(looked(self.store))


class QueryError(ValueError):
    """A query that cannot be read; the message says which parameter, and why."""


def answers(store: HistoryStore, scope: Scope, path: Sequence[str], query: Mapping[str, str]) -> Any:
    """Return the answer to /api/history, /api/history/NAMESPACE/NAME, /api/usage or /api/recorder, to be sent as JSON.

    `path` are its parts after /api. QueryError for a query that cannot be read, LookupError for another path.
    """
    source = OfStore(store, scope)
    try:
        match path:
            case ["recorder"]:
                return source.looked()
            case ["history"]:
                return source.gangs(msgspec.convert(dict(query), GangQuery, strict=False))
            case ["history", namespace, name]:
                return source.story(namespace, name)
            case ["usage"]:
                by = tuple(filter(None, query.get("by", "queue,user").split(",")))
                return source.usage(msgspec.convert({**query, "by": by}, AskedUsage, strict=False))
    except (msgspec.ValidationError, ValueError) as error:
        raise QueryError(str(error)) from error
    raise LookupError("/".join(path))


def looked(store: HistoryStore) -> float:
    """Return when the recorder looked last, in seconds since the epoch; 0 if it never has."""
    return int(store.note(usage.SEEN) or 0) / MS


def silence(looked: float, now: float, what: str, clock: Callable[[float], str]) -> str:
    """Return what is said of a recorder that has not looked for longer than it should; empty while it looks.

    `what` is not known then, and `clock` returns a moment as text. A clock that is ahead is no silence.
    """
    if now - looked <= SILENT_AFTER_S:
        return ""
    since = f"since {clock(looked)} ({short(now - looked)} ago)" if looked else "yet"
    return f"The recorder of the history has not looked at the cluster {since}: {what}"
