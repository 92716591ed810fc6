"""Queries of the history and their results, for the web server and the commands.

`OfStore` reads answers from a store, within a user's scope. `answers` returns the answer for a URL path. `silence`
reports if the recorder is down, so that users do not mistake missing data for missing events. The recorder writes the
time of its last pass with every transaction, and every ten seconds while nothing happens. While the recorder cannot
read the cluster, it does not write this time.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Final, NamedTuple

import msgspec

from gangs.words import short
from history import read, usage
from history.model import EVERYTHING, MS, Scope
from history.store import HistoryStore

MOST: Final = 1000
"""Maximum number of gangs in a result."""
Time = Annotated[float, msgspec.Meta(ge=0, le=1e11)]
"""Time in a query, in seconds since the epoch (up to the year 5138)."""
SILENT_AFTER_S: Final = 60.0
"""The recorder counts as down if its last pass is more than this number of seconds ago. This time is six write
intervals, which is longer than a restart takes."""
NO_GANGS: Final = "later events of gangs are missing; the recorder reads them at its start, as far as they still exist"
NO_USAGE: Final = "later requests and usage of gangs are not included yet"
NO_BUDGETS: Final = "the budgets shown do not include later usage; the planner includes the usage of its current gangs"
"""Notes to users about the data that is missing while the recorder is down: in lists of gangs, in usage, and in
budgets."""


class GangQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A query for gangs; times are in seconds since the epoch."""

    namespace: str | None = None
    name: str | None = None
    queue: str | None = None
    user: str | None = None
    since: Time | None = None
    until: Time | None = None
    ended: bool | None = None
    limit: int = 200


class UsageQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A query for usage."""

    by: tuple[str, ...] = ("queue", "user")
    since: Time = 0.0
    until: Time | None = None
    namespace: str | None = None
    queue: str | None = None


class Gangs(msgspec.Struct, frozen=True):
    """The answer to a query for gangs: the gangs, and the periods for which nothing was recorded."""

    gangs: list[read.GangHistory]
    gaps: list[read.Outage] = []


class Coverage(msgspec.Struct, frozen=True):
    """The time up to which the history is recorded."""

    looked: float
    """Time of the recorder's last pass, in seconds since the epoch; 0 if there was no pass."""


class OfStore(NamedTuple):
    """Answers from a store, limited to the user's `scope`."""

    store: HistoryStore
    scope: Scope = EVERYTHING

    def gangs(self, asked: GangQuery) -> Gangs:
        """Return the gangs that match a query, and the periods for which nothing was recorded."""
        wanted = msgspec.structs.asdict(asked) | {"limit": min(asked.limit, MOST)}
        return Gangs(read.gangs(self.store, self.scope, **wanted), read.gaps(self.store, asked.since))

    def events(self, namespace: str, name: str) -> list[read.GangEvent]:
        """Return the events of a workload's gangs."""
        return read.events_of_gang(self.store, self.scope, namespace, name)

    def usage(self, asked: UsageQuery) -> list[usage.UsageRow]:
        """Return the usage that a query selects, grouped by the query's keys."""
        wanted = msgspec.structs.asdict(asked)
        return usage.usage(self.store, self.scope, wanted.pop("by"), **wanted)

    def coverage(self) -> Coverage:
        """Return the time of the recorder's last pass."""
        return Coverage(recorded_until(self.store))


class QueryError(ValueError):
    """Error for an invalid query; the message names the parameter and the problem."""


def answers(store: HistoryStore, scope: Scope, path: Sequence[str], query: Mapping[str, str]) -> Any:
    """Return the answer, to be sent as JSON, to a request of the web page's API for the history.

    `path` is the path after /api: history, history/NAMESPACE/NAME, usage or recorder. Raises QueryError for an invalid
    query, and LookupError for an unknown path.
    """
    source = OfStore(store, scope)
    try:
        match path:
            case ["recorder"]:
                return source.coverage()
            case ["history"]:
                return source.gangs(msgspec.convert(dict(query), GangQuery, strict=False))
            case ["history", namespace, name]:
                return source.events(namespace, name)
            case ["usage"]:
                by = tuple(filter(None, query.get("by", "queue,user").split(",")))
                return source.usage(msgspec.convert({**query, "by": by}, UsageQuery, strict=False))
    except ValueError as error:
        raise QueryError(str(error)) from error
    raise LookupError("/".join(path))


def recorded_until(store: HistoryStore) -> float:
    """Return the time of the recorder's last pass, in seconds since the epoch; 0 if there was no pass."""
    return int(store.note(usage.SEEN) or 0) / MS


def silence(looked: float, now: float, what: str, clock: Callable[[float], str]) -> str:
    """Return a warning if the recorder's last pass is too long ago; otherwise return an empty text.

    `what` describes the data that is missing while the recorder is down, and `clock` formats a time. A last pass in the
    future, from a clock that is ahead, causes no warning.
    """
    if now - looked <= SILENT_AFTER_S:
        return ""
    since = f"since {clock(looked)} ({short(now - looked)} ago)" if looked else "yet"
    return f"The recorder of the history has not read the cluster {since}: {what}"
