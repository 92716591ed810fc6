"""The list of gangs: the content of `muster ps`, with filters and pages. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import get_args
from urllib.parse import quote, urlencode

from msgspec import Struct

from gangs.row import GangRow
from gangs.words import nodes_text, plain
from history.model import Scope
from muster.api.muster.states import ENDED, WAITING, State
from web.views.parts import ListPart, Moment, moment, page_number, part_of

PAGE_ROWS = 200
"""Number of rows on one page: a few screens, which a browser draws in a tenth of a second."""
STATES = tuple(state for state in get_args(State) if state not in {"Deleted", "Gone"})
"""The states of a gang that has not ended."""
_FIELDS = ("queue", "namespace", "kind", "user", "state")
_TONES = {"Running": "good", "Completed": "good", "Degraded": "bad", "Failed": "bad", "Terminated": "bad"}
_MOST_CHARS = 253
"""Maximum length of a filter's text, because no Kubernetes name is longer."""


class Filters(Struct, frozen=True):
    """Filters of the list of gangs; an empty text selects everything."""

    queue: str = ""
    namespace: str = ""
    kind: str = ""
    user: str = ""
    state: str = ""
    ended: bool = False
    """True to show also gangs that have ended; a filter for an ended state shows such gangs anyway."""
    page: int = 1

    def has(self, row: GangRow) -> bool:
        """Return True if a gang matches the filters."""
        if self.state not in {"", row.state} or (not self.state and not self.ended and row.state in ENDED):
            return False
        return all(getattr(self, name) in {"", getattr(row, name)} for name in ("queue", "namespace", "kind", "user"))

    def address(self, **changes: str | int | bool) -> str:
        """Return the address of the list with these filters after `changes`; unset filters are left out."""
        fields = {name: getattr(self, name) for name in _FIELDS} | {
            "ended": "on" if self.ended else "",
            "page": self.page,
        }
        fields |= {name: "on" if value is True else value for name, value in changes.items()}
        kept = {name: value for name, value in fields.items() if value and (name, value) != ("page", 1)}
        return f"/gangs?{urlencode(kept)}" if kept else "/gangs"


class GangLine(Struct, frozen=True):
    """One row."""

    row: GangRow
    address: str
    tone: str
    """The style in which the gang's state is shown: good, bad or wait; empty for other states."""
    created: Moment | None
    expected: Moment | None
    """The time of the gang's start, or its earliest expected start."""
    latest: Moment | None
    """The latest expected start; None if it is unknown or equals the earliest expected start."""
    known_by: str
    """Basis of the expected start, such as `by past run times`; empty if the start comes from a reservation."""
    nodes: str
    reason: str


class FilterOption(Struct, frozen=True):
    """A filter of the list, with the values that users can choose."""

    name: str
    title: str
    values: list[str]
    chosen: str


class GangsView(Struct, frozen=True):
    """The page."""

    lines: list[GangLine]
    part: ListPart
    """Number of gangs that match the filters."""
    choices: list[FilterOption]
    filters: Filters
    all: int
    """Number of gangs that the caller may see."""


def filters(query: Mapping[str, str]) -> Filters:
    """Return the filters in an address; unreadable values count as unset."""
    texts = {name: query.get(name, "").strip()[:_MOST_CHARS] for name in _FIELDS}
    return Filters(**texts, ended=query.get("ended") in {"on", "true", "1"}, page=page_number(query.get("page", "")))


def gangs_view(rows: Sequence[GangRow], scope: Scope, chosen: Filters, now: float) -> GangsView:
    """Return one page of the gangs in scope."""
    mine = [row for row in rows if scope.has(row.namespace)]
    found = [row for row in mine if chosen.has(row)]
    shown, part = part_of(found, PAGE_ROWS, chosen.page, lambda page: chosen.address(page=page))
    twice = shared_names(mine)
    return GangsView([line(row, now, twice) for row in shown], part, _choices(mine, chosen), chosen, len(mine))


def line(row: GangRow, now: float, twice: frozenset[tuple[str, str]] = frozenset()) -> GangLine:
    """Return one row of the list; `twice` has the names of workloads with several gangs (`shared_names`)."""
    early = (row.expected_start or row.earliest_start) if row.state in WAITING else ""
    late = row.latest_start if early and row.latest_start != early else ""
    return GangLine(
        row=row,
        address=address(row, twice),
        tone=tone(row.state),
        created=moment(row.created, now),
        expected=moment(early, now),
        latest=moment(late, now),
        known_by=_known_by(row) if early and not row.expected_start else "",
        nodes=nodes_text(row.nodes) if row.nodes else "",
        reason=plain(row.reason),
    )


def _known_by(row: GangRow) -> str:
    return f"by {row.start_known_by}" if row.latest_start else f"or later, by {row.start_known_by}"


def tone(state: str) -> str:
    """Return the style in which a state is shown."""
    return "wait" if state in WAITING else _TONES.get(state, "")


def address(row: GangRow, twice: frozenset[tuple[str, str]] = frozenset()) -> str:
    """Return the address of a gang's page, with its workload's name or else its PodGroup's name."""
    name = row.gang if (row.namespace, row.name) in twice and row.gang else row.name
    return f"/gangs/{quote(row.namespace, safe='')}/{quote(name, safe='')}"


def shared_names(rows: Iterable[GangRow]) -> frozenset[tuple[str, str]]:
    """Return the namespaces and names of workloads with several gangs, such as a JobSet."""
    counts = Counter((row.namespace, row.name) for row in rows)
    return frozenset(key for key, count in counts.items() if count > 1)


def _choices(rows: Sequence[GangRow], chosen: Filters) -> list[FilterOption]:
    there: dict[str, Iterable[str]] = {
        "queue": sorted({row.queue for row in rows if row.queue}),
        "namespace": sorted({row.namespace for row in rows}),
        "kind": sorted({row.kind for row in rows}),
        "user": sorted({row.user for row in rows if row.user}),
        "state": STATES,
    }
    return [
        FilterOption(
            name,
            name.capitalize(),
            [*dict.fromkeys((*values, *filter(None, [getattr(chosen, name)])))],
            getattr(chosen, name),
        )
        for name, values in there.items()
    ]
