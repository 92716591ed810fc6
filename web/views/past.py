"""The pages of recorded events and usage: forms, tables, the events of one gang, and CSV. Pure.

The history is queried with the caller's scope, so the input contains no data of other tenants.
"""

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import quote, urlencode

from msgspec import Struct

from gangs.words import nodes_text, plain
from history.answers import NO_GANGS, NO_USAGE, silence
from history.read import GangEvent, GangHistory, Outage
from history.usage import HOUR_S, KEYS, Seconds, UsageRow, cell, hours, is_bytewise
from web.views.gang import GangStep
from web.views.gangs import tone
from web.views.parts import WHOLE, Moment, moment

DAYS: Final = (1, 7, 30, 90, 365)
"""Periods that a form offers, in days."""
GANGS: Final = 200
"""Number of gangs on one page."""
USAGE_ROWS: Final = 1_000
"""Maximum number of rows in a table; the CSV has all rows."""
_USUAL_DAYS: Final = 7
_BY: Final = ("queue", "user")
_MOST_CHARS: Final = 253
_DAY_S: Final = 86_400


class Period(Struct, frozen=True):
    """The values of the form of the pages History and Usage: a period, filters, and keys for grouping."""

    days: int = _USUAL_DAYS
    queue: str = ""
    namespace: str = ""
    by: tuple[str, ...] = _BY
    """The keys by which the usage is grouped."""
    user: str = ""

    def since(self, now: float) -> float:
        """Return the start of the chosen period, in seconds since the epoch."""
        return now - self.days * _DAY_S

    @property
    def query(self) -> str:
        """Return the values of the form as the query part of an address."""
        fields = [("days", str(self.days)), *(("by", each) for each in self.by)]
        fields += [(name, value) for name in ("queue", "namespace", "user") if (value := getattr(self, name))]
        return urlencode(fields)


class PastGang(Struct, frozen=True):
    """A gang in the list of the history."""

    of: GangHistory
    title: str
    address: str
    tone: str
    submitted: Moment | None
    waited: str
    """Waiting time until the gang's first start."""
    ran: str
    """Time in which at least one member of the gang was bound to a node."""
    ended: Moment | None
    nodes: str
    gpu_hours: str


class HistoryView(Struct, frozen=True):
    """The page."""

    gangs: list[PastGang]
    full: bool
    """True if there may be more gangs than are shown."""
    gaps: list[str]
    silence: str
    """Warning that the recorder is down; empty while the recorder is running."""
    period: Period


class UsageLine(Struct, frozen=True):
    """One row of the usage table: a key (such as a user) and a resource."""

    key: list[str]
    resource: str
    asked: str
    held: str
    used: str
    lost: str
    share: int
    """Used part of the held amounts, in thousandths."""


class UsageView(Struct, frozen=True):
    """The page."""

    by: list[str]
    lines: list[UsageLine]
    more: int
    period: Period
    csv: str
    silence: str
    """Warning that the recorder is down; empty while the recorder is running."""


def period(query: Mapping[str, str], by: Sequence[str] = ()) -> Period:
    """Return the query in an address; unreadable values count as unset."""
    days = query.get("days", "")
    chosen = tuple(each for each in KEYS if each in by)
    return Period(
        days=int(days) if days in {str(each) for each in DAYS} else _USUAL_DAYS,
        queue=query.get("queue", "").strip()[:_MOST_CHARS],
        namespace=query.get("namespace", "").strip()[:_MOST_CHARS],
        user=query.get("user", "").strip()[:_MOST_CHARS],
        by=chosen or _BY,
    )


def history_view(
    gangs: Sequence[GangHistory], gaps: Sequence[Outage], asked: Period, now: float, *, recorded_until: float
) -> HistoryView:
    """Return the list of gangs, with the gaps in the recording."""
    return HistoryView(
        gangs=[past_gang(each, now) for each in gangs[:GANGS]],
        full=len(gangs) >= GANGS,
        gaps=[_gap(each) for each in gaps],
        silence=silence(recorded_until, now, NO_GANGS, day_of),
        period=asked,
    )


def steps_of(events: Sequence[GangEvent], now: float) -> list[GangStep]:
    """Return events as steps of a timeline."""
    return [
        GangStep(moment(each.at, now), str(each.what), plain(each.text), each.epoch, _nodes(each.nodes))
        for each in events
    ]


def _nodes(nodes: Sequence[str]) -> str:
    return nodes_text(nodes) if nodes else ""


def past_gang(gang: GangHistory, now: float) -> PastGang:
    """Return one gang of the history as a row."""
    place = f"/history/{quote(gang.namespace, safe='')}/{quote(gang.name, safe='')}"
    return PastGang(
        of=gang,
        title=f"{gang.kind} {gang.name}",
        address=f"{place}?{urlencode({'uid': gang.uid})}",
        tone=tone(gang.state),
        submitted=moment(gang.submitted, now),
        waited=gang.waited(),
        ran=gang.ran(),
        ended=moment(gang.ended, now),
        nodes=_nodes(gang.nodes),
        gpu_hours=_number(gang.gpu_seconds / HOUR_S),
    )


def usage_view(rows: Sequence[UsageRow], asked: Period, now: float, *, recorded_until: float) -> UsageView:
    """Return the table of usage; under each key, GPUs come first."""
    lines = [_line(row, resource) for row in rows for resource in sorted(row.resources, key=_order)]
    return UsageView(
        by=list(asked.by),
        lines=lines[:USAGE_ROWS],
        more=max(0, len(lines) - USAGE_ROWS),
        period=asked,
        csv=f"/usage.csv?{asked.query}",
        silence=silence(recorded_until, now, NO_USAGE, day_of),
    )


def day_of(at: float) -> str:
    """Return date and time of day of a moment as text."""
    found = moment(at, at)
    return found.day if found else "?"


def usage_csv(rows: Sequence[UsageRow], by: Sequence[str]) -> str:
    """Return all usage as CSV, in hours; texts that a spreadsheet would interpret as formulas get a leading quote."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow([*by, "resource", "unit", "asked", "held", "used", "lost"])
    for row in rows:
        for resource in sorted(row.resources, key=_order):
            cells = [f"{amount:.6f}" for amount in _hours(resource, row.resources[resource])]
            writer.writerow([*map(cell, row.key), resource, unit_of(resource), *cells])
    return out.getvalue()


def unit_of(resource: str) -> str:
    """Return the name of the unit of an amount over time: hours of one unit, or of one GiB."""
    return "GiB h" if is_bytewise(resource) else "h"


def _line(row: UsageRow, resource: str) -> UsageLine:
    each = row.resources[resource]
    asked, held, used, lost = map(_number, _hours(resource, each))
    share = round(WHOLE * each.used / each.held) if each.held else 0
    name = f"{resource} {unit_of(resource)}"
    return UsageLine([plain(key) for key in row.key], name, asked, held, used, lost, min(WHOLE, max(0, share)))


def _order(resource: str) -> tuple[bool, bool, str]:
    return resource in {"cpu", "memory"} or not resource.count("/"), resource != "cpu", resource


def _hours(resource: str, each: Seconds) -> list[float]:
    return [hours(resource, amount) for amount in (each.asked, each.held, each.used, each.lost)]


def _number(hours: float) -> str:
    return f"{hours:,.0f}" if hours >= WHOLE else f"{hours:.3g}"


def _gap(gap: Outage) -> str:
    return f"{day_of(gap.since)} to {day_of(gap.until)}: {plain(gap.text)}"
