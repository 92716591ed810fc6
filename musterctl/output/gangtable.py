"""Output of gangs: as a table, as JSON or YAML, or as names."""

import time
from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from gangs.row import GangRow
from gangs.words import nodes_text, plain, short
from muster.api.kubernetes.meta import readable_time
from muster.api.muster.states import ENDED, WAITING
from musterctl.output.listing import Printer, since

Column = tuple[str, Callable[[GangRow], str]]
_DAY_S = 24 * 3600
_ALL = 100_000
"""Maximum number of characters for the names of a gang's nodes."""


class Shown(NamedTuple):
    """Options of a list of gangs: which gangs it contains, and its format."""

    namespace: str | None
    """The namespace of the gangs; None for all namespaces."""
    output: str
    ended: bool = False
    queue: str | None = None
    kind: str | None = None
    """Kind of the workloads whose gangs are shown; None for all kinds."""
    user: str | None = None
    """Creator of the workloads whose gangs are shown; None for all users."""
    long: bool = False
    start: bool = False
    """True to show only waiting gangs, with the interval in which each gang is expected to start."""

    def has(self, row: GangRow) -> bool:
        """Return True if the options select this gang."""
        if self.start and row.state not in WAITING:
            return False
        ours = self.queue in {None, row.queue} and self.kind in {None, row.kind} and self.user in {None, row.user}
        return ours and (self.ended or row.state not in ENDED)


def printer(shown: Shown) -> Printer[GangRow]:
    """Return the printer for the selected gangs."""
    all_columns = [*([_NAMESPACE] if shown.namespace is None else []), *columns(shown)]
    return Printer(
        all_columns,
        shown.output,
        names=lambda gangs: dict.fromkeys(row.reference for row in gangs),  # a JobSet may have several gangs
        together=lambda gangs: {"gangs": gangs},
    )


def columns(shown: Shown) -> list[Column]:
    """Return the columns of a table.

    With `wide`, the columns include all nodes, the owner and the PodGroup. With `long`, reasons are full sentences, and
    expected starts include the time of day.
    """
    wide = shown.output == "wide"
    if shown.start:
        times: list[Column] = [("START", start_interval), ("KNOWN BY", lambda row: row.start_known_by or "-")]
    else:
        place: Column = ("NODES", lambda row: nodes_text(row.nodes, _ALL) if wide else nodes_text(row.nodes))
        times = [("START", start_time if shown.long else start), place]
    owners: list[Column] = [
        ("WORKLOAD", lambda row: row.reference),  # distinguishes a Kubernetes Job from a Volcano Job
        ("USER", lambda row: row.user or "-"),
        ("GANG", lambda row: row.gang or "-"),
    ]
    return [
        ("NAME", lambda row: row.title),
        ("QUEUE", lambda row: row.queue or "-"),
        ("STATE", lambda row: row.state),
        ("SIZE", lambda row: row.size),
        ("PRIORITY", lambda row: row.priority_text),
        ("AGE", lambda row: since(row.created)),
        *times,
        *(owners if wide else []),
        ("REASON", (lambda row: plain(row.message)) if shown.long else (lambda row: row.reason)),
    ]


_NAMESPACE: Column = ("NAMESPACE", lambda row: row.namespace)


def start(row: GangRow) -> str:
    """Return the time until a gang's expected start, such as `in 30m`.

    The result is `unknown` if a gang waits without an expected start, and `-` if it does not wait.
    """
    at = readable_time(row.expected_start)
    if at is None:
        return "unknown" if row.state in WAITING else "-"
    return f"in {short(at - time.time())}" if at > time.time() else "now"


def start_time(row: GangRow) -> str:
    """Return the expected start as a time of day with the time until then: `10:34 (in 30m)`."""
    at = readable_time(row.expected_start)
    return start(row) if at is None else f"{_clock(at)} ({start(row)})"


def start_interval(row: GangRow) -> str:
    """Return the interval in which a gang starts with a probability of 80 %, such as `10:34-12:05 (in 30m-2h)`."""
    early, late = readable_time(row.earliest_start), readable_time(row.latest_start)
    if early is None:
        return "unknown"
    soon = short(early - time.time())
    if late is None:
        return f"after {_clock(early)} (in {soon})"
    if late == early:
        return f"about {_clock(early)} (in {soon})"
    return f"{_clock(early)}-{_clock(late)} (in {soon}-{short(late - time.time())})"


def _clock(at: float) -> str:
    """Return a time of day, with the date unless the time is within a day."""
    return f"{datetime.fromtimestamp(at).astimezone():{'%H:%M' if at - time.time() < _DAY_S else '%Y-%m-%d %H:%M'}}"
